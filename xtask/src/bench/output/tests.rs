use super::*;

#[test]
fn a_file_that_cannot_be_written_is_an_error_with_its_name() {
    let error = Output::create(Path::new("/nowhere/figures.json")).unwrap_err();
    assert!(error.to_string().contains("/nowhere/figures.json"));
}
