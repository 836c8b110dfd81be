use std::path::PathBuf;

use super::*;

/// A program that says what a test runner would.
fn fate_of(says: &str) -> Fate {
    let mut child = Command::new("printf").arg(says).stdout(Stdio::piped()).spawn().unwrap();
    let fate = watch(&mut child).unwrap();
    child.wait().unwrap();
    fate
}

#[test]
fn a_model_that_fails_kills_and_an_end_in_the_middle_as_well() {
    let passed = "test a::b ... ok\n";
    let end = "test result: ok. 1 passed; 0 failed\n";
    assert_eq!(fate_of(&format!("{passed}{end}")), Fate::Survived);
    assert_eq!(fate_of(&format!("{passed}test a::c ... FAILED\n{end}")), Fate::Killed("a::c".into()));
    assert_eq!(fate_of(passed), Fate::Killed("an abort".into()));
    let mut child = Command::new("printf").arg(end).stdout(Stdio::piped()).spawn().unwrap();
    assert!(watch(&mut child).is_err(), "no model ran");
    child.wait().unwrap();
}

#[test]
fn a_folder_judges_its_own_and_all_judge_what_has_no_models() {
    let models =
        ["mpmc::tests::deaths::places::a", "mpmc::tests::b", "spsc::tests::c", "word::inner::tests::d"];
    let all = Models {
        name: "ring-core".into(),
        program: PathBuf::new(),
        names: models.map(str::to_owned).to_vec(),
    };
    let judges = |path: &str| models_for(&all, Path::new(path));
    assert_eq!(judges("mpmc/seat.rs"), [vec![models[1]], vec![models[0]]]);
    assert_eq!(judges("mpmc.rs"), [vec![models[1]], vec![models[0]]]);
    assert_eq!(judges("spsc/producer.rs"), [vec![models[2]], vec![]]);
    let each = [models[1..].to_vec(), vec![models[0]]];
    assert_eq!(judges("pair.rs"), each);
    assert_eq!(judges("word/inner.rs"), each, "models deeper down are not the folder's");
}
