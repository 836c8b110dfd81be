//! The first of two samples of what the kernel counts.

use core::time::Duration;
use std::collections::BTreeMap;
use std::thread;
use std::time::Instant;

use ring_tune::{Tree, Unread};

use super::asked;

/// The files that hold counters: a check reads them twice, and a snapshot holds them twice.
pub(crate) const COUNTERS: &[&str] = &[
    "proc/interrupts",
    "proc/softirqs",
    "proc/stat",
    "proc/vmstat",
    "proc/pressure/*",
    "sys/class/net/*/statistics/*",
    "sys/class/infiniband/*/ports/*/counters/*",
    "sys/class/infiniband/*/ports/*/hw_counters/*",
];

/// Long enough for rare events to show now and then, short enough for a command that people wait for.
const BETWEEN_SAMPLES: Duration = Duration::from_millis(150);

/// More than the counters of the largest machines, less than what a hostile tree could have this process hold.
const MOST_BYTES: usize = 256 << 20;

/// Where a saved tree keeps its first sample.
pub(crate) const FOLDER: &str = "earlier";

/// What the counters were a while ago.
#[derive(Debug)]
pub(crate) struct Earlier {
    texts: BTreeMap<String, Result<String, Unread>>,
    when: When,
}

#[derive(Debug)]
enum When {
    At(Instant),
    /// So long before the second sample; none in a tree that holds one sample.
    Saved(Option<Duration>),
}

impl Earlier {
    /// Takes the first sample of this machine, or reads that of a saved tree.
    pub(crate) fn read(tree: &Tree) -> Self {
        let folder = if tree.is_live() { String::new() } else { format!("{FOLDER}/") };
        let when = if tree.is_live() {
            When::At(Instant::now())
        } else {
            let seconds = tree.text(&format!("{FOLDER}/seconds")).ok().and_then(|text| text.parse().ok());
            When::Saved(seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()))
        };
        let mut texts = BTreeMap::new();
        let mut bytes = 0;
        // A live machine has no such files, and is asked below.
        for pattern in COUNTERS.iter().chain(asked::COUNTERS) {
            for path in tree.find(&format!("{folder}{pattern}")).unwrap_or_default() {
                let mut text = tree.text(&path);
                bytes += text.as_ref().map_or(0, String::len);
                if bytes > MOST_BYTES {
                    text = Err(Unread::strange(&path, "is one of more counters than any machine has"));
                }
                let path = path.strip_prefix(&folder).unwrap_or(&path);
                texts.insert(path.to_owned(), text);
            }
        }
        if tree.is_live() {
            for path in asked::counters(tree) {
                let text = asked::text(tree, &path);
                texts.insert(path, text);
            }
        }
        Self { texts, when }
    }

    /// How long the second sample comes after this one, once it may be read: waits until the time between the samples
    /// has passed. None where there is but one.
    pub(crate) fn wait(&self) -> Option<Duration> {
        match self.when {
            When::At(begin) => {
                thread::sleep(BETWEEN_SAMPLES.saturating_sub(begin.elapsed()));
                Some(begin.elapsed())
            }
            When::Saved(length) => length,
        }
    }

    /// The files of the first sample, with what they said.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &Result<String, Unread>)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text))
    }

    /// What a file said.
    pub(crate) fn text(&self, path: &str) -> Result<&str, Unread> {
        match self.texts.get(path) {
            Some(text) => text.as_deref().map_err(Clone::clone),
            None => Err(Unread::Absent { path: path.into() }),
        }
    }
}
