use super::*;

fn reading(count: u64, enabled_ns: u64, running_ns: u64) -> Reading {
    Reading { count, enabled_ns, running_ns }
}

#[test]
fn what_had_its_register_for_a_part_of_the_time_is_scaled_over_that_time() {
    let before = reading(1_000, 10_000, 10_000);
    assert_eq!(reading(1_300, 11_000, 10_500).since(&before), 600);
    assert_eq!(reading(1_300, 11_000, 11_000).since(&before), 300);
    assert_eq!(reading(1_000, 11_000, 10_000).since(&before), 0, "it never had one");
}

#[test]
fn no_reading_overflows() {
    let before = reading(5, 5, 5);
    assert_eq!(reading(u64::MAX, u64::MAX, 6).since(&before), u64::MAX);
    assert_eq!(reading(0, 0, 0).since(&before), 0, "back");
}

#[test]
fn the_kernel_writes_count_then_times() {
    let mut bytes = [0; 24];
    for (place, word) in [7_u64, 8, 9].into_iter().enumerate() {
        bytes[place * 8..][..8].copy_from_slice(&word.to_ne_bytes());
    }
    let reading = Reading::of(bytes);
    assert_eq!((reading.count, reading.enabled_ns, reading.running_ns), (7, 8, 9));
}

#[test]
fn a_reason_is_told_once_with_all_that_it_is_of() {
    let mut perf = Perf::default();
    for (name, errno) in [
        ("cache_misses", libc::ENOENT),
        ("cache_references", libc::EOPNOTSUPP),
        ("cache_misses", libc::ENOENT),
        ("migrations", libc::ESRCH),
    ] {
        perf.has_failed(name, &io::Error::from_raw_os_error(errno));
    }
    assert_eq!(perf.notes(), ["cache_misses, cache_references: this machine does not count it"]);
}
