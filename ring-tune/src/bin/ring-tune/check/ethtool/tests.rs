use super::*;
use crate::skip::skip;

#[test]
fn the_loopback_device_and_no_device_tell_nothing() {
    for netdev in ["lo", "no-such-device", "a-name-that-is-longer-than-any-of-the-kernel"] {
        assert!(coalesce(netdev).unwrap_err().is_absent(), "{netdev}");
        assert!(statistics(netdev).unwrap_err().is_absent(), "{netdev}");
    }
}

#[test]
fn what_drivers_tell_are_lines_with_numbers() {
    let mut told = 0;
    for entry in std::fs::read_dir("/sys/class/net").unwrap() {
        let netdev = entry.unwrap().file_name().into_string().unwrap();
        for text in [coalesce(&netdev), statistics(&netdev)].into_iter().flatten() {
            told += 1;
            for line in text.lines() {
                let (name, value) = line.rsplit_once(": ").unwrap();
                assert!(!name.is_empty() && value.parse::<u64>().is_ok(), "{netdev}: {line}");
            }
        }
    }
    if told == 0 {
        skip("no network device here tells anything");
    }
}

#[test]
fn an_answer_is_taken_apart() {
    let mut buffer = Buffer::new(GET_STRINGS, 64);
    buffer.set(12, b"rx_errors\0garbage");
    buffer.set(44, &[b'x'; STRING_BYTES]);
    assert_eq!(buffer.word(0), GET_STRINGS);
    assert_eq!(buffer.string(12), "rx_errors");
    assert_eq!(buffer.string(44), "x".repeat(STRING_BYTES));
    buffer.set(12, b"a\nb\xff\0");
    assert_eq!(buffer.string(12), "a b\u{fffd}");
    assert_eq!(
        (buffer.word(1 << 20), buffer.double_word(78), buffer.string(usize::MAX)),
        (0, 0, String::new())
    );
}
