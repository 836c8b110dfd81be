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

/// Files and folders that may know of loom, by crate: ring-core's atomics and payloads, ring-notify's system calls,
/// ring-verbs' cells.
const SHIMS: [(&str, &[&str]); 3] =
    [("ring-core", &["sync.rs", "sync/"]), ("ring-notify", &["sys.rs"]), ("ring-verbs", &["sync.rs"])];

/// No algorithm knows of loom: only the crate's shim does. Paths are relative to its `src`.
pub(super) fn check_loom(name: &str, sources: &[Source]) -> Vec<String> {
    let shim = SHIMS.iter().find(|(shimmed, _)| *shimmed == name).map_or(&[] as &[_], |(_, shim)| shim);
    let in_shim = |path: &Path| {
        let is_it =
            |part: &&str| if part.ends_with('/') { path.starts_with(part) } else { path == Path::new(part) };
        shim.iter().any(is_it)
    };
    let places: Vec<&str> = shim.iter().copied().chain(["tests"]).collect();
    let places = places.join(" or ");
    let outside = sources.iter().filter(|source| !in_shim(&source.path));
    outside
        .flat_map(|source| source.facts.loom_cfgs.iter().map(move |line| (source.path.display(), line)))
        .map(|(path, line)| format!("{path}:{line}: cfg(loom) belongs into {places}"))
        .collect()
}
