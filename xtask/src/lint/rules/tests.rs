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
    let objections = |name, path, text| check_loom(name, &sources(path, text));
    assert!(objections("ring-core", "sync.rs", text).is_empty());
    assert!(objections("ring-core", "sync/cell.rs", text).is_empty());
    assert!(objections("ring-core", "spsc.rs", "#[cfg(all(loom, test))]\nmod models;").is_empty());
    let elsewhere = objections("ring-core", "spsc/sync.rs", text);
    assert_eq!(elsewhere, ["spsc/sync.rs:1: cfg(loom) belongs into sync.rs or sync/ or tests"]);

    assert!(objections("ring-notify", "sys.rs", text).is_empty());
    assert_eq!(objections("ring-notify", "sys/model.rs", text).len(), 1, "it is chosen in one place");
    assert_eq!(objections("ring-notify", "sync.rs", text).len(), 1);
    assert_eq!(objections("ring-shm", "sys.rs", text), ["sys.rs:1: cfg(loom) belongs into tests"]);
}
