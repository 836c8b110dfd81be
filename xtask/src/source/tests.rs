use std::path::Path;

use super::*;

fn source(text: &str) -> Source {
    Source::parse(Path::new("spsc/producer.rs"), text).unwrap()
}

/// Each access as "ordering line:statement function".
fn accesses(text: &str) -> Vec<String> {
    let show = |access: &Access| {
        let function = access.function.as_deref().unwrap_or("-");
        format!("{} {}:{} {function}", access.ordering, access.line, access.statement_line)
    };
    source(text).facts.accesses.iter().map(show).collect()
}

#[test]
fn orderings_are_found_in_calls_and_in_what_macros_are_given() {
    let text = "
        fn f(x: &AtomicU64) {
            x.store(1, Ordering::Release);
            let y = x.load(Relaxed);
            assert_eq!(x.load(atomic::Ordering::Acquire), y);
            loom::model(move || {
                fence(SeqCst);
            });
        }";
    assert_eq!(accesses(text), ["Release 3:3 f", "Relaxed 4:4 f", "Acquire 5:5 f", "SeqCst 7:7 f"]);
}

#[test]
fn imports_other_enums_and_strings_are_no_accesses() {
    let text = r#"
        use core::sync::atomic::Ordering::{Acquire, Relaxed};
        pub use core::sync::atomic::{AtomicU64, Ordering::Release};
        /// Ordering::Release
        fn f() -> (State, cmp::Ordering) {
            let text = "x.load(Ordering::Acquire)";
            match state { State::Release => {}, Relaxed { .. } => {} }
            (State::Acquire, cmp::Ordering::Less)
        }"#;
    assert_eq!(accesses(text), [""; 0]);
}

#[test]
fn fences_that_are_told_no_ordering() {
    let text = "
        #[track_caller]
        pub fn light_fence() {
            core::sync::atomic::compiler_fence(Ordering::SeqCst);
        }
        fn wake() {
            sync::light_fence();
            if !sys::heavy_barrier() {}
        }";
    assert_eq!(accesses(text), ["SeqCst 7:7 wake", "SeqCst 8:8 wake"]);
    let source = source(text);
    assert!(source.facts.accesses.iter().all(|access| access.callee.as_ref().unwrap().is_fence()));
}

#[test]
fn a_statement_begins_after_the_one_before() {
    let text = "
        impl<T, U> Ring<T, U> {
            fn f<A, B>(&self) -> u64 {
                if self.empty() {
                }
                self
                    .word
                    .compare_exchange(
                        1,
                        2,
                        Ordering::AcqRel,
                        Ordering::Relaxed,
                    );
                match self.kind {
                    Kind::A => self.a.load(Ordering::Acquire),
                    Kind::B => self
                        .b
                        .load(Ordering::Acquire),
                }
            }
        }";
    assert_eq!(accesses(text), ["AcqRel 11:6 f", "Relaxed 12:6 f", "Acquire 15:15 f", "Acquire 18:16 f"]);
}

#[test]
fn an_operator_after_braces_goes_on_with_the_statement() {
    let text = "
        fn f() {
            let Some(x) = y else {
                return;
            };
            let Shape { depth } =
                x.load(Ordering::Relaxed);
            if a {
                b
            } else if x
                .load(Ordering::Acquire) {
            }
        }";
    assert_eq!(accesses(text), ["Relaxed 7:6 f", "Acquire 11:8 f"]);
}

#[test]
fn test_modules_are_passed_over() {
    let text = "
        #[cfg(all(loom, test))]
        mod models;
        #[cfg(test)]
        mod tests {
            // ORDERING: Relaxed: no matter.
            fn f() { x.load(Ordering::Relaxed); }
        }
        #[cfg(any(test, loom))]
        extern crate std;
        #[cfg(not(test))]
        fn g() { x.load(Ordering::Acquire); }
        #[cfg(loom)]
        mod kernel;
        #[cfg(loom)]
        fn h() { fence(Ordering::SeqCst); }";
    let source = source(text);
    assert_eq!(accesses(text), ["Acquire 12:12 g"]);
    let modules = ["spsc/producer/models", "spsc/producer/kernel"];
    assert_eq!(source.test_modules(), modules.map(Path::new));
    assert!(source.comments().is_empty());
}

#[test]
fn test_modules_of_a_crate_root_lie_beside_it() {
    let source = Source::parse(Path::new("lib.rs"), "#[cfg(test)] mod tests;").unwrap();
    assert_eq!(source.test_modules(), [Path::new("tests")]);
}

#[test]
fn comments_end_above_the_statement_or_lie_within_it() {
    let text = "
        fn f() {
            // Far away.

            // Directly
            // above.
            #[allow(x)]
            // Behind the attribute.
            y
                // Within.
                .load(Ordering::Relaxed)
                // After.
                .count();
        }";
    let source = source(text);
    let comments = source.comments_at(&source.facts.accesses[0]);
    let texts: Vec<&str> = comments.iter().map(|comment| comment.text.as_str()).collect();
    assert_eq!(texts, ["Directly above.", "Behind the attribute.", "Within."]);
}

#[test]
fn documentation_and_literals_are_no_comments() {
    let text = "
        /// Documentation.
        fn f() -> &'static str {
            \"
            // text
            \"
        }";
    assert!(source(text).comments().is_empty());
}

#[test]
fn where_unsafe_code_is_allowed() {
    let whole_file = source("//! # Safety\n#![allow(unsafe_code)]");
    assert!(whole_file.facts.file_allows_unsafe);
    assert!(whole_file.facts.items_that_allow_unsafe.is_empty());
    assert!(whole_file.module_doc().any(|line| line == "# Safety"));

    let item = source("\n#[expect(unsafe_code, reason = \"x\")]\nfn f() {}");
    assert!(!item.facts.file_allows_unsafe);
    assert_eq!(item.facts.items_that_allow_unsafe, [2]);
}

#[test]
fn cfg_loom_in_each_of_its_forms() {
    let text = "
        #[cfg(loom)]
        use loom::hint;
        #[cfg_attr(loom, allow(dead_code))]
        fn f() {
            if cfg!(loom) {}
            #[cfg(not(loom))]
            g();
        }
        #[cfg(any(test, loom))]
        extern crate std;
        #[cfg(not(loom))]
        const _: () = assert!(size_of::<Header>() == 128);
        #[cfg(not(loom))]
        const SPINS: u32 = 16;";
    assert_eq!(source(text).facts.loom_cfgs, [2, 4, 6, 7, 14]);
}

#[test]
fn renamed_orderings_are_noticed() {
    let text = "use core::sync::atomic::Ordering as O;\nuse Ordering::{Relaxed as R, Acquire};";
    assert_eq!(source(text).facts.renamed_orderings, [1, 2]);
}

#[test]
fn what_is_no_rust_names_its_line() {
    let error = Source::parse(Path::new("x.rs"), "fn f() {\n\"").unwrap_err();
    assert!(error.to_string().starts_with("x.rs:"), "{error}");
}

#[test]
fn a_file_belongs_to_its_folder_also_in_a_command() {
    for (path, folder) in [
        ("lib.rs", "lib"),
        ("spsc.rs", "spsc"),
        ("spsc/producer/grant.rs", "spsc"),
        ("bin/ring-tune/topology.rs", "bin/ring-tune/topology"),
        ("bin/ring-tune/topology/measure.rs", "bin/ring-tune/topology"),
    ] {
        assert_eq!(folder_of(Path::new(path)), folder);
    }
}
