//! `// ORDERING:` comments: each atomic access has one, and each edge names both of its ends.
//!
//! ```text
//! // ORDERING: Release (R1): publishes the payload written above; pairs with A1 in Consumer::try_pop.
//! ```
//!
//! - The comment stands directly above the statement, or within it above the ordering, and names the ordering.
//! - Relaxed says why. The others have a label in parentheses and name their partner, and in which function it is.
//! - A label belongs to its folder, the façade `spsc.rs` and the parts in `spsc/`; the façade's documentation
//!   draws its edge. Both ends lie in the folder, and each place at one end names the functions of all at the other.
//! - `SeqCst` appears only as a fence.

mod entry;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;

use entry::Entry;

use crate::source::{Access, Callee, Source, folder_of};

/// A place where an ordering with labels is used.
struct Site<'a> {
    folder: String,
    source: &'a Source,
    function: Option<&'a str>,
    line: usize,
    entry: Entry,
}

/// Objections to the files of one crate; paths are relative to its `src`.
pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let mut objections = Vec::new();
    let mut sites = Vec::new();
    for source in sources {
        check_file(source, &mut sites, &mut objections);
    }
    for site in &sites {
        check_partners(site, &sites, &mut objections);
        check_label(site, &sites, sources, &mut objections);
    }
    check_drawn_edges(sources, &sites, &mut objections);
    objections.sort();
    objections.dedup();
    objections
}

fn check_file<'a>(source: &'a Source, sites: &mut Vec<Site<'a>>, objections: &mut Vec<String>) {
    let mut used = Vec::new();
    for access in &source.facts.accesses {
        let mut object = |what: &str| objections.push(at(source, access.line, what));
        if access.ordering == "SeqCst" && !access.callee.as_ref().is_some_and(Callee::is_fence) {
            object("SeqCst is for fences only: say with Release and Acquire which edge is meant");
        }
        let comments = source.comments_at(access);
        used.extend(comments.iter().map(|comment| comment.line));
        let entries = comments.iter().flat_map(|comment| Entry::all_in(&comment.text));
        let mut named = entries.filter(|entry| entry.ordering == access.ordering).peekable();
        if named.peek().is_none() {
            object(&format!("no `// ORDERING: {}: …` comment above this access", access.ordering));
        }
        for entry in named {
            entry.objections().iter().for_each(|what| object(what));
            sites.push(Site::new(source, access, entry));
        }
    }
    for comment in source.comments() {
        if comment.text.contains("ORDERING:") && !used.contains(&comment.line) {
            objections.push(at(source, comment.line, "this ORDERING comment stands above no atomic access"));
        }
    }
    for &line in &source.facts.renamed_orderings {
        objections.push(at(source, line, "orderings keep their names, so that they can be found"));
    }
}

/// Looks for the other ends of a site's edges. Each of them that names the site's edge must name its function too.
fn check_partners(site: &Site<'_>, sites: &[Site<'_>], objections: &mut Vec<String>) {
    let entry = &site.entry;
    let partners_with = |partner: &String| {
        let is_there = |other: &&Site<'_>| other.entry.labels.contains(partner);
        sites.iter().filter(|other| other.folder == site.folder).filter(is_there).collect::<Vec<_>>()
    };
    let names_back =
        |other: &&Site<'_>| entry.labels.iter().any(|label| other.entry.partners.contains(label));
    let mut functions = BTreeSet::new();
    for partner in &entry.partners {
        let others = partners_with(partner);
        functions.extend(others.iter().filter_map(|other| other.function));
        if others.is_empty() {
            let what = format!("pairs with {partner}, which no ORDERING comment in {} has", site.folder);
            objections.push(at(site.source, site.line, &what));
        } else if !others.iter().any(names_back) {
            let what =
                format!("pairs with {partner}, which does not name {} back", entry.labels.join(" or "));
            objections.push(at(site.source, site.line, &what));
        }
        for other in others.into_iter().filter(names_back) {
            let named = |function: &str| other.entry.functions.iter().any(|name| name == function);
            if let Some(function) = site.function.filter(|function| !named(function)) {
                let what =
                    format!("pairs with {}, which is also in {function}: name it", entry.labels.join(" or "));
                objections.push(at(other.source, other.line, &what));
            }
        }
    }
    for function in entry.functions.iter().filter(|function| !functions.contains(function.as_str())) {
        let what = format!("{} is in no function {function}", entry.partners.join(" or "));
        objections.push(at(site.source, site.line, &what));
    }
}

fn check_label(site: &Site<'_>, sites: &[Site<'_>], sources: &[Source], objections: &mut Vec<String>) {
    for label in &site.entry.labels {
        let same = |other: &&Site<'_>| other.folder == site.folder && other.entry.labels.contains(label);
        if sites.iter().filter(same).any(|other| other.entry.ordering != site.entry.ordering) {
            let what = format!("{label} stands for different orderings in {}", site.folder);
            objections.push(at(site.source, site.line, &what));
        }
        let mut facades = sources.iter().filter(|source| is_facade(source, &site.folder));
        if !facades.any(|facade| drawn_edges(facade).any(|edge| edge.contains(label))) {
            let what = format!("the table of edges in {}.rs does not have {label}", site.folder);
            objections.push(at(site.source, site.line, &what));
        }
    }
}

/// The edges in the documentation must be there in the code.
fn check_drawn_edges(sources: &[Source], sites: &[Site<'_>], objections: &mut Vec<String>) {
    for source in sources {
        let folder = folder_of(&source.path);
        for label in drawn_edges(source).flatten() {
            if !sites.iter().any(|site| site.folder == folder && site.entry.labels.contains(&label)) {
                objections.push(at(
                    source,
                    1,
                    &format!("the table of edges has {label}, which no access has"),
                ));
            }
        }
    }
}

impl<'a> Site<'a> {
    fn new(source: &'a Source, access: &'a Access, entry: Entry) -> Self {
        let folder = folder_of(&source.path);
        Self { folder, source, function: access.function.as_deref(), line: access.line, entry }
    }
}

fn is_facade(source: &Source, folder: &str) -> bool {
    source.path == Path::new(&format!("{folder}.rs"))
}

/// The labels of each row `| R1 → A1 | …` in a module's documentation.
fn drawn_edges(source: &Source) -> impl Iterator<Item = Vec<String>> {
    let rows = source.module_doc().filter_map(|line| line.strip_prefix('|')?.split('|').next());
    rows.filter(|cell| cell.contains(['→', '↔'])).map(entry::labels_in)
}

fn at(source: &Source, line: usize, what: &str) -> String {
    format!("{}:{line}: {what}", source.path.display())
}
