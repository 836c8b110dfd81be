//! What is told of a segment: for people in a line, for programs as JSON.

use core::fmt;
use core::time::Duration;
use std::time::SystemTime;

use ring_core::{Inspector, Kind, Owner, Role};
use ring_shm::{Error, Listed, Presence, Segment};
use serde_json::{Value, json};

use crate::say::plain;

/// A segment and the ring in it.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) listed: Listed,
    pub(crate) ring: Result<Ring, Nothing>,
}

/// Why there is nothing to tell of a ring.
#[derive(Debug)]
pub(crate) enum Nothing {
    Unpublished { is_used: bool },
    Failed(Error),
}

impl core::error::Error for Nothing {}

impl fmt::Display for Nothing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unpublished { is_used: true } => {
                formatter.write_str("not published: its creator is at work")
            }
            Self::Unpublished { is_used: false } => {
                formatter.write_str("not published, and its creator is dead: `ring-shm clean` removes it")
            }
            Self::Failed(error) => error.fmt(formatter),
        }
    }
}

/// Maps a segment that is published.
pub(crate) fn observe(listed: &Listed, any_owner: bool) -> Result<Segment, Nothing> {
    if !listed.is_published().map_err(Nothing::Failed)? {
        return Err(Nothing::Unpublished { is_used: listed.is_used().map_err(Nothing::Failed)? });
    }
    listed.observe(any_owner).map_err(Nothing::Failed)
}

/// What the ring is, and who has its roles.
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) kind: Kind,
    pub(crate) depth: u64,
    pub(crate) element_bytes: u64,
    pub(crate) owners: Vec<(Role, Owner, Presence)>,
}

impl Look {
    /// Looks into a segment that was found. Those of other users are mapped only if `any_owner` says so.
    pub(crate) fn of(listed: Listed, any_owner: bool) -> Self {
        let ring =
            observe(&listed, any_owner).and_then(|segment| Ring::of(&segment).map_err(Nothing::Failed));
        Self { listed, ring }
    }

    pub(crate) fn json(&self) -> Value {
        let listed = &self.listed;
        let ring = self.ring.as_ref().ok();
        json!({
            "name": listed.name(),
            "kind": ring.map(|ring| ring.kind.to_string()),
            "depth": ring.map(|ring| ring.depth),
            "element_bytes": ring.map(|ring| ring.element_bytes),
            "owners": ring.map(Ring::owners_json),
            "file_bytes": listed.file_bytes(),
            "page_bytes": listed.page_bytes(),
            "uid": listed.uid(),
            "used": listed.is_used().ok(),
            "published": listed.is_published().ok(),
            "age_seconds": age(listed).as_secs_f64(),
            "error": self.ring.as_ref().err().map(ToString::to_string),
        })
    }

    /// As cells of a table with the columns of [`COLUMNS`].
    pub(crate) fn cells(&self) -> [String; COLUMNS.len()] {
        let (listed, ring) = (&self.listed, self.ring.as_ref().ok());
        let or_nothing = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let yes_or_no = |answer: Result<bool, Error>| match answer {
            Ok(true) => "yes".to_owned(),
            Ok(false) => "no".to_owned(),
            Err(_) => "?".to_owned(),
        };
        [
            plain(listed.name()),
            or_nothing(ring.map(|ring| ring.kind.to_string())),
            or_nothing(ring.map(|ring| ring.depth.to_string())),
            or_nothing(ring.map(|ring| ring.element_bytes.to_string())),
            listed.file_bytes().to_string(),
            listed.page_bytes().to_string(),
            listed.uid().to_string(),
            yes_or_no(listed.is_used()),
            yes_or_no(listed.is_published()),
            short(age(listed)),
            match &self.ring {
                Ok(ring) => ring.owners(),
                Err(error) => error.to_string(),
            },
        ]
    }
}

/// What [`Look::cells`] tells.
pub(crate) const COLUMNS: [&str; 11] =
    ["NAME", "KIND", "DEPTH", "ELEMENT", "BYTES", "PAGE", "UID", "USED", "PUBLISHED", "AGE", "OWNERS"];

impl Ring {
    pub(crate) fn of(segment: &Segment) -> Result<Self, Error> {
        let inspector = Inspector::new(segment)?;
        let owners = inspector.roles().filter_map(|role| {
            Some((role, inspector.owner(role)?, segment.presence(role).unwrap_or(Presence::Unknown)))
        });
        Ok(Self {
            kind: inspector.kind(),
            depth: inspector.depth(),
            element_bytes: inspector.element_bytes(),
            owners: owners.collect(),
        })
    }

    /// Of the places of an mpmc ring those that somebody ever had.
    fn owners(&self) -> String {
        let is_worth_a_word = |(role, _, presence): &&(Role, Owner, Presence)| {
            *presence != Presence::NeverCame || !matches!(role, Role::Participant(_))
        };
        let words: Vec<_> = self.owners.iter().filter(is_worth_a_word).map(word).collect();
        if words.is_empty() { "nobody came".to_owned() } else { words.join(", ") }
    }

    pub(crate) fn owners_json(&self) -> Value {
        let owner = |(role, owner, presence): &(Role, Owner, Presence)| {
            json!({
                "role": role.to_string(),
                "state": state(*owner, *presence),
                "process": (owner.process != 0).then_some(owner.process),
                "incarnation": owner.incarnation,
            })
        };
        self.owners.iter().map(owner).collect()
    }
}

fn word((role, owner, presence): &(Role, Owner, Presence)) -> String {
    let state = state(*owner, *presence);
    match (owner.process, presence) {
        (0, _) | (_, Presence::NeverCame) => format!("{role} {state}"),
        (process, _) => format!("{role} {state} ({process})"),
    }
}

/// A killed owner leaves its word held, one that left does not.
fn state(owner: Owner, presence: Presence) -> &'static str {
    match presence {
        Presence::Alive => "alive",
        Presence::Gone if owner.held => "gone",
        Presence::Gone => "left",
        Presence::NeverCame => "never came",
        Presence::Unknown => "unknown",
    }
}

/// Time since the segment was made.
fn age(listed: &Listed) -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(listed.created())
}

/// A length of time in its largest unit.
fn short(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..100 => format!("{seconds}s"),
        seconds @ 100..6000 => format!("{}m", seconds / 60),
        seconds @ 6000..172_800 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}
