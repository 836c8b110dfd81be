//! Counters, by whose they are and by their names.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

/// Whose counters they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Whose {
    Process(u32),
    /// Its number is used again, the time of its start is not.
    Thread {
        id: u32,
        start: u64,
    },
    Cpu(usize),
    Machine,
    Device(String),
}

/// The counters of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) whose: Whose,
    /// What a process or thread calls itself now.
    pub(super) name: String,
    pub(super) counts: Vec<Count>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Count {
    /// Of many kinds of the same; empty where there is one.
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) count: u64,
}

/// What was counted until one moment, in the order in which it is shown.
#[derive(Debug, Default)]
pub(super) struct Counts(Vec<Group>);

impl Counts {
    /// The group of `whose`, begun where there is none.
    pub(super) fn of(&mut self, whose: Whose) -> &mut Group {
        let place = self.0.iter().position(|group| group.whose == whose).unwrap_or_else(|| {
            self.push(Group::new(whose, String::new()));
            self.0.len() - 1
        });
        &mut self.0[place]
    }

    /// Adds a group of which there is none yet.
    pub(super) fn push(&mut self, group: Group) {
        self.0.push(group);
    }

    /// What has changed since. A thread that is new counts from nothing; all else that could not be read before has
    /// nothing to be compared with. What went back, as after the reset of a device, counts nothing.
    pub(super) fn since(&self, before: &Self) -> Vec<Group> {
        let earlier: HashMap<&Whose, &Group> = before.0.iter().map(|group| (&group.whose, group)).collect();
        let changed = self.0.iter().map(|group| match earlier.get(&group.whose) {
            Some(earlier) => group.since(earlier),
            None if matches!(group.whose, Whose::Thread { .. }) => group.keep(|count| Some(count.count)),
            None => group.keep(|_| None),
        });
        changed.filter(|group| !group.counts.is_empty()).collect()
    }

    /// The devices that were there before.
    pub(super) fn devices_gone<'a>(&self, before: &'a Self) -> impl Iterator<Item = &'a str> {
        let has_gone = |group: &&Group| self.0.iter().all(|now| now.whose != group.whose);
        before.0.iter().filter(has_gone).filter_map(|group| match &group.whose {
            Whose::Device(name) => Some(name.as_str()),
            _ => None,
        })
    }
}

impl Group {
    pub(super) fn new(whose: Whose, name: String) -> Self {
        Self { whose, name, counts: vec![] }
    }

    /// Adds what could be read.
    pub(super) fn add(&mut self, name: impl Into<String>, count: Option<u64>) {
        self.add_kind("", name, count);
    }

    pub(super) fn add_kind(&mut self, kind: &'static str, name: impl Into<String>, count: Option<u64>) {
        self.counts.extend(count.map(|count| Count { kind, name: name.into(), count }));
    }

    fn since(&self, before: &Self) -> Self {
        let earlier: HashMap<_, _> =
            before.counts.iter().map(|count| ((count.kind, &count.name), count.count)).collect();
        let mut group =
            self.keep(|count| Some(count.count.saturating_sub(*earlier.get(&(count.kind, &count.name))?)));
        // Nobody says what a process was called when it has gone.
        if group.name.is_empty() {
            group.name.clone_from(&before.name);
        }
        group
    }

    /// With other counts, those that are nothing left out.
    fn keep(&self, count: impl Fn(&Count) -> Option<u64>) -> Self {
        let counts = self
            .counts
            .iter()
            .filter_map(|old| Some(Count { count: count(old).filter(|&count| count > 0)?, ..old.clone() }));
        Self { counts: counts.collect(), ..Self::new(self.whose.clone(), self.name.clone()) }
    }
}

impl Count {
    /// The name with its kind.
    pub(super) fn full_name(&self) -> String {
        if self.kind.is_empty() { self.name.clone() } else { format!("{} {}", self.kind, self.name) }
    }
}
