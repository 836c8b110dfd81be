//! Where unsafe code and `cfg(loom)` may be.

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::source::Source;

/// A file that allows unsafe code says in its documentation what that rests on, and allows it for all of it.
pub(super) fn check_unsafe(sources: &[Source]) -> Vec<String> {
    let mut objections = Vec::new();
    for source in sources {
        if source.facts.file_allows_unsafe && !source.module_doc().any(|line| line == "# Safety") {
            objections.push(format!(
                "{}: allows unsafe_code, but its module documentation has no `# Safety` section",
                source.path.display()
            ));
        }
        for line in &source.facts.items_that_allow_unsafe {
            objections.push(format!(
                "{}:{line}: unsafe code is allowed for a whole file, with a `# Safety` section, not for an item",
                source.path.display()
            ));
        }
    }
    objections
}

/// No algorithm knows of loom: only the shim does. Paths are relative to the crate's `src`.
pub(super) fn check_loom(sources: &[Source]) -> Vec<String> {
    let in_shim = |path: &Path| path == Path::new("sync.rs") || path.starts_with("sync");
    let outside = sources.iter().filter(|source| !in_shim(&source.path));
    outside
        .flat_map(|source| source.facts.loom_cfgs.iter().map(move |line| (source.path.display(), line)))
        .map(|(path, line)| format!("{path}:{line}: cfg(loom) belongs into sync.rs or sync/, or into tests"))
        .collect()
}
