use super::*;

#[test]
fn a_path_that_fits_is_whole_and_one_that_does_not_is_none() {
    let path = ShortPath::new(format_args!("/proc/self/fd/{}", i32::MAX)).unwrap();
    assert_eq!(path.as_c_str(), c"/proc/self/fd/2147483647");
    let longest = [b'x'; BYTES - 1];
    let text = core::str::from_utf8(&longest).unwrap();
    let path = ShortPath::new(format_args!("{text}")).unwrap();
    assert_eq!(path.as_c_str().to_bytes(), longest);
    assert!(ShortPath::new(format_args!("{text}/")).is_none());
}
