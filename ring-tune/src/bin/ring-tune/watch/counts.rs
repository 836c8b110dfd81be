//! Counters by their name.

#[cfg(test)]
mod tests;

/// What was counted until one moment, in the order in which it is shown.
#[derive(Debug, Default)]
pub(super) struct Counts(Vec<(String, u64)>);

impl Counts {
    pub(super) fn add(&mut self, name: impl Into<String>, count: u64) {
        self.0.push((name.into(), count));
    }

    /// What has changed since. What is new counts from nothing, such as a thread's; what went back, as after the reset of
    /// a device, counts nothing.
    pub(super) fn since(&self, before: &Self) -> Vec<(String, u64)> {
        let earlier: std::collections::HashMap<&str, u64> =
            before.0.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        let deltas = self.0.iter().map(|(name, count)| {
            let since = earlier.get(name.as_str()).copied().unwrap_or(0);
            (name.clone(), count.saturating_sub(since))
        });
        deltas.filter(|(_, count)| *count > 0).collect()
    }
}
