//! What a row found.

use core::fmt;

use ring_tune::Unread;
use serde::Serialize;

use super::row::Row;

/// How a row ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Verdict {
    /// It costs what the row says, and should be mended.
    Fail,
    /// It may cost something.
    Warn,
    /// It could not be read, or says something strange.
    Unknown,
    /// Good to know; nothing to mend.
    Info,
    /// As wanted.
    Ok,
    /// This machine does not have it.
    Skip,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Fail => "FAIL",
            Self::Warn => "WARN",
            Self::Unknown => "UNKNOWN",
            Self::Info => "INFO",
            Self::Ok => "OK",
            Self::Skip => "SKIP",
        })
    }
}

/// A file that is to say something else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Change {
    /// Below the root, without a slash at the front.
    pub(crate) path: String,
    pub(crate) value: String,
}

/// What the function of a row says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    pub(crate) actual: String,
    pub(crate) wanted: String,
    /// More than the two, such as who is to blame.
    pub(crate) note: String,
    /// What mends it at run time by writing files; the row's text tells the rest.
    pub(crate) changes: Vec<Change>,
    /// What mends it at run time besides, as commands of a shell with the names of this machine.
    pub(crate) commands: Vec<String>,
    /// Parameters of the kernel's command line that mend it at boot.
    pub(crate) boot: Vec<String>,
}

impl Judged {
    pub(crate) fn ok(actual: impl Into<String>, wanted: impl Into<String>) -> Self {
        Self::new(Verdict::Ok, actual, wanted)
    }

    pub(crate) fn warn(actual: impl Into<String>, wanted: impl Into<String>) -> Self {
        Self::new(Verdict::Warn, actual, wanted)
    }

    pub(crate) fn fail(actual: impl Into<String>, wanted: impl Into<String>) -> Self {
        Self::new(Verdict::Fail, actual, wanted)
    }

    pub(crate) fn info(actual: impl Into<String>) -> Self {
        Self::new(Verdict::Info, actual, "")
    }

    /// `why`: what this machine does not have.
    pub(crate) fn skip(why: impl Into<String>) -> Self {
        Self::new(Verdict::Skip, why, "")
    }

    fn new(verdict: Verdict, actual: impl Into<String>, wanted: impl Into<String>) -> Self {
        let (note, changes, commands, boot) = Default::default();
        Self { verdict, actual: actual.into(), wanted: wanted.into(), note, changes, commands, boot }
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Adds a file that mends it when `value` is written there.
    pub(crate) fn change(mut self, path: impl Into<String>, value: impl Into<String>) -> Self {
        self.changes.push(Change { path: path.into(), value: value.into() });
        self
    }

    /// Adds a command that mends it; names from outside in it are to be [`word`](crate::say::word)s.
    pub(crate) fn command(mut self, command: impl Into<String>) -> Self {
        self.commands.push(command.into());
        self
    }

    /// Adds a parameter of the kernel's command line that mends it.
    pub(crate) fn boot(mut self, parameter: impl Into<String>) -> Self {
        self.boot.push(parameter.into());
        self
    }
}

/// A row and what it found.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) row: &'static Row,
    pub(crate) judged: Judged,
}

impl Finding {
    /// What could not be read has a verdict too.
    pub(crate) fn of(row: &'static Row, result: Result<Judged, Unread>) -> Self {
        let mut judged = result.unwrap_or_else(|unread| match unread {
            Unread::Absent { .. } => Judged::skip(unread.to_string()),
            _ => Judged::new(Verdict::Unknown, unread.to_string(), ""),
        });
        for text in [&mut judged.actual, &mut judged.wanted, &mut judged.note] {
            shorten(text);
        }
        Self { row, judged }
    }
}

/// More than any machine has to tell: the list of each other CPU of some thousand.
const LONGEST_BYTES: usize = 4_096;

/// Of a file that holds something else than it should, the beginning is enough.
pub(super) fn shorten(text: &mut String) {
    if text.len() > LONGEST_BYTES {
        let end = (0..=LONGEST_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
}
