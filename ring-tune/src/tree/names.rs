//! Names in a folder: patterns and their order.

use std::format;
use std::string::String;

/// Whether a name fits a pattern with stars.
pub(super) fn fits(name: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return name == pattern };
    let Some(name) = name.strip_prefix(start) else { return false };
    name.char_indices().map(|(place, _)| &name[place..]).chain([""]).any(|tail| fits(tail, rest))
}

/// A key that sorts numbers within names by value: digits of equal length, their number in front.
pub(super) fn by_number(name: &str) -> String {
    let mut key = String::new();
    let mut rest = name;
    while let Some(at) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let digits = rest[at..].find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len() - at);
        let number = rest[at..at + digits].trim_start_matches('0');
        key.push_str(&rest[..at]);
        key.push_str(&format!("{:03}{number}", number.len()));
        rest = &rest[at + digits..];
    }
    key.push_str(rest);
    key + "\0" + name
}
