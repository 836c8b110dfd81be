use super::*;
extern crate std;
use std::string::ToString;

#[test]
fn sizes_have_no_fraction() {
    for (bytes, text) in [
        (0, "0 B"),
        (1, "1 B"),
        (1025, "1025 B"),
        (4096, "4 KiB"),
        (2 << 20, "2 MiB"),
        ((2 << 20) + 4096, "2052 KiB"),
        (3 << 30, "3 GiB"),
        (1 << 40, "1024 GiB"),
    ] {
        assert_eq!(Size(bytes).to_string(), text);
    }
}

#[test]
fn a_person_can_read_it() {
    let report = Report {
        name: None,
        address: 0x1000,
        data_bytes: 10_000,
        mapped_bytes: 12_288,
        reserved_bytes: 12_288,
        page_bytes: 4096,
        fall_back: Some(Errno::NOSPC),
        locked: Locked::Refused(Errno::NOMEM),
        sealed: true,
    };
    assert_eq!(
        report.to_string(),
        "segment   (anonymous)\n\
         data      10000 B at 0x1000, in a mapping of 12 KiB\n\
         pages     4 KiB instead of 2 MiB: No space left on device (errno 28)\n\
         reserved  12 KiB\n\
         locked    no: Cannot allocate memory (errno 12); raise RLIMIT_MEMLOCK\n\
         sealed    yes"
    );
    let text = Report { sealed: false, ..report }.to_string();
    assert!(text.ends_with("\nsealed    no: who can write to its file can truncate it"), "{text}");
}

#[test]
fn the_limit_is_blamed_for_what_it_causes_alone() {
    let text = |errno| Locked::Refused(errno).to_string();
    for errno in [Errno::NOMEM, Errno::PERM, Errno::AGAIN] {
        assert!(text(errno).contains("RLIMIT_MEMLOCK"), "{errno}");
    }
    assert_eq!(text(Errno::NOSYS), "no: Function not implemented (errno 38)");
}
