//! The examples that start all their peers do what they say.

mod common;
#[path = "../../ring-shm/tests/common/examples.rs"]
mod program;

use program::run;

#[test]
fn an_async_gateway_serves_two_rings_and_a_socket() {
    let test = "an_async_gateway_serves_two_rings_and_a_socket";
    let Some(text) = run(test, "async_gateway") else { return };
    assert_eq!(text, "saw 10000 quotes; 10000 orders for 50005000 in all were executed\n");
}

#[test]
fn a_server_answers_until_it_is_killed() {
    let Some(text) = run("a_server_answers_until_it_is_killed", "request_reply") else { return };
    assert!(text.starts_with("10000 answers;"), "{text}");
    assert!(text.ends_with("the server is dead\n"), "{text}");
}

#[test]
fn a_loop_of_ones_own_waits_for_a_ring_and_a_pipe() {
    let Some(text) = run("a_loop_of_ones_own_waits_for_a_ring_and_a_pipe", "event_loop") else { return };
    assert_eq!(text, "10000 messages, 120 bytes of words\n");
}
