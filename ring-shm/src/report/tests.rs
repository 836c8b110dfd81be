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
        fall_back: FallBack { from_1gib: None, from_2mib: Some(Errno::NOSPC) },
        nodes: Nodes::Counted { node: 1, there: 2, elsewhere: 1, absent: 0 },
        prefaulted: true,
        locked: Locked::Refused(Errno::NOMEM),
        in_core_dumps: false,
        across_forks: true,
        sealed: true,
    };
    assert_eq!(
        report.to_string(),
        "segment   (anonymous)\n\
         data      10000 B at 0x1000, in a mapping of 12 KiB\n\
         pages     4 KiB instead of 2 MiB: No space left on device (errno 28)\n\
         nodes     2 pages on node 1, 1 elsewhere\n\
         reserved  12 KiB\n\
         present   yes\n\
         locked    no: Cannot allocate memory (errno 12); raise RLIMIT_MEMLOCK\n\
         dumped    no\n\
         forked    yes\n\
         sealed    yes"
    );
    let other = Report {
        fall_back: FallBack { from_1gib: Some(Errno::NOMEM), from_2mib: Some(Errno::NODEV) },
        nodes: Nodes::NotAsked,
        prefaulted: false,
        locked: Locked::Yes,
        in_core_dumps: true,
        across_forks: false,
        sealed: false,
        ..report
    };
    assert_eq!(
        other.to_string(),
        "segment   (anonymous)\n\
         data      10000 B at 0x1000, in a mapping of 12 KiB\n\
         pages     4 KiB instead of 1 GiB: Cannot allocate memory (errno 12), \
         instead of 2 MiB: No such device (errno 19)\n\
         nodes     not asked for\n\
         reserved  12 KiB\n\
         present   no: the first touch of a page is a fault\n\
         locked    yes, each page from its first touch on\n\
         dumped    yes\n\
         forked    no\n\
         sealed    no: who can write to its file can truncate it"
    );
}

#[test]
fn pages_that_are_not_counted_are_told() {
    let counted = Nodes::Counted { node: 0, there: 3, elsewhere: 0, absent: 5 };
    assert_eq!(counted.to_string(), "3 pages on node 0, 0 elsewhere, 5 not present");
    assert_eq!(Nodes::Unknown(Errno::PERM).to_string(), "unknown: Operation not permitted (errno 1)");
}

#[test]
fn the_limit_is_blamed_for_what_it_causes_alone() {
    let text = |errno| Locked::Refused(errno).to_string();
    for errno in [Errno::NOMEM, Errno::PERM, Errno::AGAIN] {
        assert!(text(errno).contains("RLIMIT_MEMLOCK"), "{errno}");
    }
    assert_eq!(text(Errno::NOSYS), "no: Function not implemented (errno 38)");
}
