//! What the commands print.
//!
//! `println!` panics when nobody reads on or the disk is full; here that is an error like any other.

use core::fmt::Arguments;
use std::io::{self, ErrorKind, IsTerminal, Write};

/// Prints text to standard output.
pub(crate) fn say(text: Arguments<'_>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_fmt(text).and_then(|()| out.flush())
}

/// Prints a value as JSON to standard output.
pub(crate) fn say_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    say(format_args!("{}\n", serde_json::to_string_pretty(value)?))?;
    Ok(())
}

/// Prints text to standard error. There is nobody to tell when that fails.
pub(crate) fn warn(text: Arguments<'_>) {
    let _ = io::stderr().write_fmt(text);
}

/// A name or text from outside as people may see it: it could move a terminal's cursor.
pub(crate) fn plain(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        match letter {
            '\'' | '"' | '\\' => text.push(letter),
            _ => text.extend(letter.escape_debug()),
        }
    }
    text
}

/// The shell's command that writes a value to a file below the root.
pub(crate) fn writing(path: &str, value: &str) -> String {
    plain(&format!("echo {} > {}", word(value), word(&format!("/{path}"))))
}

/// A word of the shell.
pub(crate) fn word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/_-.,:+".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Whether standard output takes colours; <https://no-color.org>.
pub(crate) fn has_colours() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether the reader of the output has gone, as `head` does: no failure to complain about.
pub(crate) fn nobody_reads(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_outside_end_no_quotes() {
        for (text, quoted) in
            [("a b", "'a b'"), ("$(reboot)", "'$(reboot)'"), ("it's", r"'it'\''s'"), ("", "''")]
        {
            assert_eq!(word(text), quoted);
        }
        assert_eq!(writing("sys/a\n$(b)/c", "0-1,8"), r"echo 0-1,8 > '/sys/a\n$(b)/c'");
    }
}
