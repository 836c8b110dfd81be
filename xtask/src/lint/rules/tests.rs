use std::path::Path;

use super::*;

fn sources(path: &str, text: &str) -> [Source; 1] {
    [Source::parse(Path::new(path), text).unwrap()]
}

#[test]
fn unsafe_code_wants_a_safety_section() {
    let good = sources("x.rs", "//! What.\n//!\n//! # Safety\n//!\n//! Why.\n#![allow(unsafe_code)]");
    assert!(check_unsafe(&good).is_empty());
    let bad = sources("x.rs", "//! What.\n#![allow(unsafe_code)]");
    assert_eq!(check_unsafe(&bad).len(), 1);
    let item = sources("x.rs", "//! # Safety\n#[allow(unsafe_code)]\nfn f() {}");
    assert_eq!(check_unsafe(&item).len(), 1);
}

#[test]
fn loom_is_known_to_the_shim_and_to_tests_alone() {
    let text = "#[cfg(loom)]\nuse loom::hint;";
    assert!(check_loom(&sources("sync.rs", text)).is_empty());
    assert!(check_loom(&sources("sync/cell.rs", text)).is_empty());
    assert!(check_loom(&sources("spsc.rs", "#[cfg(all(loom, test))]\nmod models;")).is_empty());
    assert_eq!(check_loom(&sources("spsc/sync.rs", text)).len(), 1);
}
