use super::*;

const PAGE: usize = 4096;

#[test]
fn lengths_are_rounded_to_whole_pages() {
    for (data_bytes, file_bytes) in
        [(0, PAGE), (1, PAGE), (PAGE - 128, PAGE), (PAGE - 127, 2 * PAGE), (PAGE, 2 * PAGE)]
    {
        assert_eq!(Layout::new(data_bytes, PAGE).unwrap().file_bytes, file_bytes);
    }
}

#[test]
fn lengths_that_no_mapping_has_are_refused() {
    for data_bytes in [usize::MAX, usize::MAX - 127, usize::MAX - PAGE, usize::MAX / 2] {
        assert_eq!(Layout::new(data_bytes, PAGE), None);
    }
    assert_eq!(Layout::new(1, 0), None);
}

#[test]
fn a_claim_beyond_the_file_is_too_small() {
    for claimed in [2 * PAGE as u64 - 127, 1 << 40, 1 << 63, u64::MAX - 127, u64::MAX] {
        let result = check_lengths(claimed, 2 * PAGE, PAGE);
        assert!(matches!(result, Err(Error::TooSmall { file_bytes: 8192, .. })), "{claimed}: {result:?}");
    }
}

#[test]
fn a_claim_that_leaves_whole_pages_unused_is_corrupt() {
    assert!(matches!(check_lengths(0, 2 * PAGE, PAGE), Err(Error::Corrupted { .. })));
    assert!(matches!(check_lengths(PAGE as u64 - 128, 2 * PAGE, PAGE), Err(Error::Corrupted { .. })));
    assert!(check_lengths(PAGE as u64 - 127, 2 * PAGE, PAGE).is_ok());
}

#[test]
fn a_file_that_ends_within_its_last_page_is_enough() {
    let layout = check_lengths(1000, 1128, PAGE).unwrap();
    assert_eq!(layout.data_bytes, 1000);
    assert!(matches!(check_lengths(1000, 1127, PAGE), Err(Error::TooSmall { .. })));
}

fn words(header: &Header) -> [&AtomicU64; 7] {
    let Header { magic, ready, version, architecture, data_offset, data_bytes, page_bytes, .. } = header;
    [ready, magic, version, architecture, data_offset, data_bytes, page_bytes]
}

fn unwritten() -> Header {
    let zero = || AtomicU64::new(0);
    Header {
        magic: zero(),
        ready: zero(),
        version: zero(),
        architecture: zero(),
        data_offset: zero(),
        data_bytes: zero(),
        page_bytes: zero(),
        created: zero(),
        _reserved: core::array::from_fn(|_| zero()),
    }
}

/// An attacher may see the relaxed stores of a creator in any order; only the ready word comes after all of
/// them (R1 → A1).
#[test]
fn whatever_part_of_the_header_is_seen_it_is_whole_or_not_ready() {
    let layout = Layout::new(1000, PAGE).unwrap();
    let written = unwritten();
    written.write(&layout);
    assert_eq!(written.read(PAGE, PAGE), Ok(None));
    written.publish();
    assert_eq!(written.read(PAGE, PAGE), Ok(Some(layout)));

    for seen in 0..1 << 6 {
        let header = unwritten();
        for (index, (word, value)) in words(&header).into_iter().zip(words(&written)).skip(1).enumerate() {
            if seen >> index & 1 == 1 {
                word.store(read(value), Ordering::Relaxed);
            }
        }
        let is_magic = seen & 1 == 1;
        let expected = if is_magic { Ok(None) } else { Err(Error::WrongMagic { found: 0 }) };
        assert_eq!(header.read(PAGE, PAGE), expected, "{seen:#b}");
    }
}
