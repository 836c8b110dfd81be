use serde_json::json;

use super::*;

fn core_dependencies() -> Vec<Value> {
    let names = ["memoffset", "static_assertions", "thiserror", "zerocopy"];
    let mut dependencies: Vec<Value> =
        names.iter().map(|name| json!({ "name": name, "kind": null, "target": null })).collect();
    dependencies.push(json!({ "name": "loom", "kind": null, "target": "cfg(loom)" }));
    dependencies.push(json!({ "name": "proptest", "kind": "dev", "target": null }));
    dependencies
}

fn objections(name: &str, dependencies: &[Value]) -> Vec<String> {
    let package = json!({ "name": name, "source": null, "dependencies": dependencies });
    let foreign = json!({ "name": "libc", "source": "registry", "dependencies": [{ "name": "ring-core" }] });
    check(&json!({ "packages": [package, foreign] }))
}

fn depends(name: &str) -> Value {
    json!({ "name": name, "kind": null, "target": null })
}

#[test]
fn the_design_is_good() {
    assert_eq!(objections("ring-core", &core_dependencies()), [""; 0]);
    assert_eq!(objections("ring-shm", &[depends("ring-core"), depends("libc")]), [""; 0]);
    let optional = json!({ "name": "tokio", "kind": null, "target": "cfg(not(loom))", "optional": true });
    let for_tests = json!({ "name": "ring-shm", "kind": "dev", "target": null });
    assert_eq!(objections("ring-notify", &[depends("ring-core"), optional, for_tests]), [""; 0]);
    assert_eq!(objections("ring-tune", &[depends("libc")]), [""; 0]);
    assert_eq!(objections("xtask", &[depends("ring-core"), depends("ring-tune")]), [""; 0]);
}

#[test]
fn ring_core_has_exactly_its_list() {
    let mut more = core_dependencies();
    more.push(depends("libc"));
    assert_eq!(objections("ring-core", &more).len(), 1);
    assert_eq!(objections("ring-core", &core_dependencies()[1..]).len(), 1);
}

#[test]
fn loom_is_there_for_loom_only() {
    let mut always = core_dependencies();
    always[4]["target"] = Value::Null;
    assert_eq!(objections("ring-core", &always).len(), 1);
}

#[test]
fn arrows_point_one_way() {
    for (name, other) in [
        ("ring-tune", "ring-core"),
        ("ring-shm", "ring-notify"),
        ("ring-notify", "ring-shm"),
        ("ring-core", "ring-shm"),
    ] {
        let found = objections(name, &[depends(other)]);
        assert!(found.contains(&format!("{name} must not depend on {other}")), "{found:?}");
    }
}

#[test]
fn a_crate_nobody_thought_of() {
    assert_eq!(objections("ring-new", &[]).len(), 1);
}

#[test]
fn rivals_stay_out() {
    let rival = |name: &str| check(&json!({ "packages": [{ "name": name, "source": "registry" }] }));
    for name in ["rtrb", "crossbeam-queue", "iceoryx2-bb-posix"] {
        assert_eq!(rival(name).len(), 1, "{name}");
    }
    assert!(rival("crossbeam-utils").is_empty());
}
