//! A Rust file as the comment rules see it: its atomic accesses, its attributes, its comments.
//!
//! Tokens come from `proc-macro2`, so that what macros are given is seen as well; comments, which are no tokens,
//! come from the lines.

#[cfg(test)]
mod tests;
mod walk;

use core::str::FromStr;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use proc_macro2::{TokenStream, TokenTree};

/// The memory orderings.
pub(crate) const ORDERINGS: [&str; 5] = ["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"];

/// One file, taken apart.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    lines: Vec<String>,
    /// Lines that begin within a literal, where `//` is no comment.
    literal_lines: BTreeSet<usize>,
    pub(crate) facts: Facts,
}

/// What the walk over the tokens finds; lines count from 1.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Outside of test modules, and of what loom alone sees.
    pub(crate) accesses: Vec<Access>,
    /// Each `cfg` that names loom and not test, outside of test modules.
    pub(crate) loom_cfgs: Vec<usize>,
    /// `#![allow(unsafe_code)]` for the whole file.
    pub(crate) file_allows_unsafe: bool,
    /// `#[allow(unsafe_code)]` for a part of it.
    pub(crate) items_that_allow_unsafe: Vec<usize>,
    /// Imports that give an ordering another name.
    pub(crate) renamed_orderings: Vec<usize>,
    /// Names of `#[cfg(test)] mod name;`, and of those for loom.
    pub(crate) test_modules: Vec<String>,
    /// First and last line of inline test modules, and of items for loom.
    pub(crate) test_spans: Vec<(usize, usize)>,
}

/// One ordering given to an atomic operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) ordering: String,
    /// Where the ordering is written, or the name of a fence that is told none.
    pub(crate) line: usize,
    /// Where the innermost statement that holds it begins.
    pub(crate) statement_line: usize,
    /// What it is an argument of.
    pub(crate) callee: Option<Callee>,
    pub(crate) function: Option<String>,
}

/// Fences that are told no ordering, which is SeqCst: one side of an edge, and the other, which pays for both.
const FENCES: [&str; 2] = ["light_fence", "heavy_barrier"];

/// The name of what is called, and where it stands; both count from 1, as in `core::panic::Location`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Callee {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// Consecutive comment lines, their text joined.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl Callee {
    pub(crate) fn is_fence(&self) -> bool {
        self.name == "fence" || FENCES.contains(&self.name.as_str())
    }
}

impl Source {
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self> {
        let tokens = TokenStream::from_str(text)
            .map_err(|error| anyhow!("{}:{}: {error}", path.display(), error.span().start().line))?;
        let mut literal_lines = BTreeSet::new();
        collect_literal_lines(tokens.clone(), &mut literal_lines);
        let facts = walk::facts(tokens);
        Ok(Self { path: path.into(), lines: text.lines().map(str::to_owned).collect(), literal_lines, facts })
    }

    /// Where the test modules lie that this file declares, without the extension.
    pub(crate) fn test_modules(&self) -> Vec<PathBuf> {
        let is_root = ["lib.rs", "main.rs", "mod.rs"].iter().any(|name| self.path.ends_with(name));
        let folder = if is_root { self.path.with_file_name("") } else { self.path.with_extension("") };
        self.facts.test_modules.iter().map(|name| folder.join(name)).collect()
    }

    /// The module documentation.
    pub(crate) fn module_doc(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| line.trim_start().strip_prefix("//!")).map(str::trim)
    }

    /// The comments that belong to an access: those that end directly above its statement, and
    /// those between the statement's first line and the ordering.
    pub(crate) fn comments_at(&self, access: &Access) -> Vec<Comment> {
        let mut first = access.statement_line;
        while first > 1 && self.comment_text(first - 1).is_some() {
            first -= 1;
        }
        let mut comments = self.comments_between(first, access.statement_line - 1);
        comments.extend(self.comments_between(access.statement_line, access.line));
        comments
    }

    /// All comments outside of inline test modules.
    pub(crate) fn comments(&self) -> Vec<Comment> {
        let in_test =
            |line| self.facts.test_spans.iter().any(|&(first, last)| (first..=last).contains(&line));
        let mut comments = self.comments_between(1, self.lines.len());
        comments.retain(|comment| !in_test(comment.line));
        comments
    }

    fn comments_between(&self, first: usize, last: usize) -> Vec<Comment> {
        let mut comments: Vec<Comment> = Vec::new();
        let mut continues = false;
        for line in first..=last {
            let Some(text) = self.comment_text(line) else {
                continues = false;
                continue;
            };
            match comments.last_mut().filter(|_| continues) {
                Some(comment) => {
                    comment.text.push(' ');
                    comment.text.push_str(text);
                }
                None => comments.push(Comment { line, text: text.to_owned() }),
            }
            continues = true;
        }
        comments
    }

    /// What a line says if it is a comment and nothing else; documentation is not one.
    fn comment_text(&self, line: usize) -> Option<&str> {
        let text = self.lines.get(line - 1)?.trim_start().strip_prefix("//")?;
        let is_doc = text.starts_with('/') || text.starts_with('!');
        (!is_doc && !self.literal_lines.contains(&line)).then_some(text.trim())
    }
}

/// The files of a library without its test modules and what stands for something under loom; paths are relative to
/// `folder`.
pub(crate) fn of_library(folder: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in rust_files(folder)? {
        let text = std::fs::read_to_string(&path)?;
        sources.push(Source::parse(path.strip_prefix(folder)?, &text)?);
    }
    let tests: Vec<PathBuf> = sources.iter().flat_map(Source::test_modules).collect();
    let is_test =
        |path: &Path| tests.iter().any(|test| path == test.with_extension("rs") || path.starts_with(test));
    sources.retain(|source| !is_test(&source.path));
    Ok(sources)
}

/// The folder of a library or command that a file belongs to: `spsc` for `spsc.rs` and for everything below `spsc/`,
/// `bin/NAME/topology` for `topology.rs` of a command and below.
pub(crate) fn folder_of(path: &Path) -> String {
    let of_command = if path.starts_with("bin") { 2 } else { 0 };
    let parts = path.components().take(of_command + 1).map(|part| part.as_os_str().to_string_lossy());
    parts.collect::<Vec<_>>().join("/").trim_end_matches(".rs").to_owned()
}

/// The Rust files in a folder and below, in order; none where it does not exist.
pub(crate) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if folder.is_dir() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                files.extend(rust_files(&path)?);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn collect_literal_lines(tokens: TokenStream, lines: &mut BTreeSet<usize>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => collect_literal_lines(group.stream(), lines),
            // A doc comment is a literal as well; its own rule knows it by its slashes.
            TokenTree::Literal(literal) => {
                let span = literal.span();
                lines.extend(span.start().line + 1..=span.end().line);
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}
