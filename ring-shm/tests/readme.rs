//! The workspace's README shows the examples as they are.

const README: &str = include_str!("../../README.md");

#[test]
fn the_readme_shows_the_examples() {
    for example in [include_str!("../examples/sender.rs"), include_str!("../examples/receiver.rs")] {
        let block = format!("\n```rust,no_run\n{example}```\n");
        assert!(README.contains(&block), "not in README.md:\n{example}");
    }
}
