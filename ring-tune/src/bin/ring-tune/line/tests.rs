use super::*;

#[test]
fn the_last_word_of_a_side_that_has_gone_is_received() {
    let line = Line::default();
    let sends_and_goes = || {
        line.send(7);
        false
    };
    assert_eq!(line.receive(0, sends_and_goes), Ok(7));
    assert_eq!(line.receive(7, || false), Err(PeerGone));
}
