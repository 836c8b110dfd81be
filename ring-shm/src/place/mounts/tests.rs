use super::*;

#[test]
fn the_mount_point_is_found_behind_optional_fields() {
    let huge =
        b"36 35 0:30 / /dev/hugepages rw,relatime shared:1 master:2 - hugetlbfs hugetlbfs rw,pagesize=2M";
    assert_eq!(mount_point(huge, b"hugetlbfs"), Some(&b"/dev/hugepages"[..]));
    assert_eq!(mount_point(huge, b"tmpfs"), None);
    assert_eq!(mount_point(b"36 35 0:30 / /x rw - tmpfs hugetlbfs rw", b"hugetlbfs"), None);
    assert_eq!(mount_point(b"too short", b"hugetlbfs"), None);
}

#[test]
fn escapes_are_undone() {
    let mut path = [0; LINE_BYTES];
    assert_eq!(unescape(br"/a\040b\134c", &mut path), Some(c"/a b\\c"));
    assert_eq!(unescape(br"/a\04", &mut path), Some(c"/a\\04"));
    assert_eq!(unescape(br"/a\000b", &mut path), None, "a path holds no zero byte");
    assert_eq!(unescape(&[b'x'; LINE_BYTES], &mut path), None, "no room for the end");
}
