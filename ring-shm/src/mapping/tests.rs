use super::*;
extern crate std;
use std::format;

/// A field of this process's own view of a mapping, in KiB.
fn resident_kib(mapping: &Mapping) -> usize {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let start = format!("{:x}-", mapping.address.as_ptr().addr());
    let lines = maps.lines().skip_while(|line| !line.starts_with(&start));
    let line = lines.into_iter().find(|line| line.starts_with("Rss:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn mapped(pages: usize) -> (Descriptor, Mapping) {
    let descriptor = sys::anonymous_file(c"ring-shm-test", crate::pages::PageSize::Base).unwrap();
    sys::reserve(&descriptor, pages * 4096).unwrap();
    let mapping = Mapping::new(&descriptor, pages * 4096).unwrap();
    (descriptor, mapping)
}

fn file(descriptor: &Descriptor) -> std::fs::File {
    let path = format!("/proc/self/fd/{}", descriptor.raw());
    std::fs::File::options().read(true).write(true).open(path).unwrap()
}

#[test]
fn touching_makes_every_page_present_and_changes_nothing() {
    let (descriptor, mapping) = mapped(64);
    // Pages that begin with a zero, and pages that do not.
    let content = [[0; 4096], [b'x'; 4096]].concat().repeat(32);
    std::os::unix::fs::FileExt::write_all_at(&file(&descriptor), &content, 0).unwrap();
    assert_eq!(resident_kib(&mapping), 0);
    mapping.touch(4096);
    assert_eq!(resident_kib(&mapping), 256);
    let mut found = std::vec![1; content.len()];
    assert_eq!(sys::read(&descriptor, &mut found), Ok(content.len()));
    assert!(found == content);
}

#[test]
fn populating_makes_every_page_present() {
    let (_descriptor, mapping) = mapped(64);
    assert_eq!(resident_kib(&mapping), 0);
    mapping.populate(4096).unwrap();
    assert_eq!(resident_kib(&mapping), 256);
}

#[test]
fn populating_what_was_truncated_is_an_error() {
    let (descriptor, mapping) = mapped(2);
    file(&descriptor).set_len(4096).unwrap();
    assert_eq!(mapping.populate(4096), Err(Errno::FAULT));
}
