use super::*;

#[test]
fn a_step_is_called_by_what_it_runs_and_says_what_it_leaves_out() {
    assert_eq!(THREAD.title(), "ThreadSanitizer: ring-core, ring-verbs");
    assert_eq!(ADDRESS.title(), "AddressSanitizer: ring-core, ring-notify, ring-shm, ring-verbs");
    let notes: Vec<String> = THREAD.crates_left_out.iter().map(LeftOut::note).collect();
    assert!(notes[0].starts_with("left out: ring-notify: waiting is ordered by"), "{notes:?}");
}

#[test]
fn what_is_left_out_is_not_run_as_well() {
    for sanitizer in [&THREAD, &ADDRESS] {
        assert!(sanitizer.crates_left_out.iter().all(|left_out| !sanitizer.crates.contains(&left_out.name)));
    }
}
