use std::string::ToString;

use super::{Functions, Library, LoadError};

#[test]
fn a_library_that_is_not_there_names_what_to_install() {
    let error = Library::open(c"libibverbs-of-nobody.so.1").expect_err("there is no such library");
    assert_eq!(error, LoadError::NoLibrary);
    assert!(error.to_string().contains("apt-get install libibverbs1 ibverbs-providers"), "{error}");
}

#[test]
fn a_library_without_the_functions_names_the_first_that_is_missing() {
    let library = Library::open(c"libc.so.6").expect("every program on Linux has it open");
    let error = Functions::find(library).expect_err("the C library has no verbs");
    assert_eq!(error, LoadError::NoSymbol("ibv_get_device_list"));
    assert!(error.to_string().contains("`ibv_get_device_list`"), "{error}");
}

#[test]
fn the_library_is_opened_once() {
    let tables: std::vec::Vec<_> = std::thread::scope(|scope| {
        let threads: std::vec::Vec<_> = (0..4).map(|_| scope.spawn(Functions::load)).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    match tables[0] {
        Ok(first) => {
            assert!(tables.iter().all(|table| table.is_ok_and(|table| core::ptr::eq(table, first))));
        }
        Err(error) => {
            assert_eq!(error, LoadError::NoLibrary);
            std::println!("the table was not looked at: {error}");
        }
    }
}
