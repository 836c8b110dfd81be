use super::*;

#[test]
fn each_crate_has_a_program_of_its_own() {
    let artifact = |folder: &str, executable: &str, test: bool| {
        format!(
            r#"{{"manifest_path":"/rings/{folder}/Cargo.toml","profile":{{"test":{test}}},"executable":{executable}}}"#
        )
    };
    let messages = [
        artifact("ring-core", "null", false),
        artifact("ring-core", r#""/target/core""#, true),
        artifact("ring-notify", r#""/target/no-test""#, false),
        artifact("ring-notify", r#""/target/notify""#, true),
        r#"{"reason":"build-finished","success":true}"#.into(),
    ];
    let expected = [("ring-core", "/target/core"), ("ring-notify", "/target/notify")];
    assert_eq!(programs(&messages.join("\n")), expected.map(|(name, path)| (name.into(), path.into())));
}

#[test]
fn those_that_take_longest_come_first() {
    let mut models =
        ["spsc::tests::a", "mpmc::tests::deaths::b", "tests::wakes::a_producer_wakes_two_sleepers"];
    models.sort_by_key(|model| place_from_slowest(model));
    assert_eq!(models.map(is_slow), [true, true, false]);
    assert_eq!(models[1], "mpmc::tests::deaths::b");
}
