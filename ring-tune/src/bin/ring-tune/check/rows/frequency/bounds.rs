//! Bounds of the frequency.

use ring_tune::{CpuSet, Unread};

use super::super::per_cpu::{grouped, path};
use crate::check::Host;
use crate::check::finding::Judged;
use crate::check::profile::Profile;

const LOWEST: &str = "cpufreq/scaling_min_freq";
const HIGHEST: &str = "cpufreq/scaling_max_freq";

/// Of one CPU, in kHz.
struct Bounds {
    cpu: usize,
    lowest: i64,
    highest: i64,
    /// What the hardware can do.
    most: i64,
}

impl Bounds {
    fn read(host: &Host, cpu: usize) -> Result<Self, Unread> {
        let number = |file| host.tree.number(&path(cpu, file));
        let most = number("cpufreq/cpuinfo_max_freq")?;
        Ok(Self { cpu, lowest: number(LOWEST)?, highest: number(HIGHEST)?, most })
    }

    fn is_capped(&self) -> bool {
        self.highest < self.most
    }

    fn is_fixed(&self) -> bool {
        self.lowest == self.highest
    }

    fn text(&self) -> String {
        let [lowest, highest, most] = [self.lowest, self.highest, self.most].map(|khz| khz / 1_000);
        match (self.is_fixed(), self.is_capped()) {
            (true, false) => format!("{highest} MHz"),
            (true, true) => format!("{highest} of {most} MHz"),
            (false, false) => format!("{lowest} to {highest} MHz"),
            (false, true) => format!("{lowest} to {highest} of {most} MHz"),
        }
    }
}

/// The kernel's admin-guide/pm/cpufreq.rst. A fixed frequency below the highest is what a measurement wants.
pub(super) fn bounds(host: &Host) -> Result<Judged, Unread> {
    let mut bounds = vec![];
    let mut absent = None;
    for cpu in host.cpus.iter() {
        match Bounds::read(host, cpu) {
            Ok(read) => bounds.push(read),
            Err(error) if error.is_absent() => absent = absent.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    if let Some(error) = absent.filter(|_| bounds.is_empty()) {
        return Err(error);
    }
    let texts: Vec<(usize, String)> = bounds.iter().map(|bounds| (bounds.cpu, bounds.text())).collect();
    let actual = grouped(texts.iter().map(|(cpu, text)| (*cpu, text.as_str())));
    Ok(match host.profile {
        Profile::Bench => repeatable(&bounds, actual),
        _ => fast(&bounds, actual),
    })
}

fn repeatable(bounds: &[Bounds], actual: String) -> Judged {
    let wanted = "one frequency";
    let wandering = bounds.iter().filter(|bounds| !bounds.is_fixed());
    let changes = wandering.map(|bounds| (path(bounds.cpu, LOWEST), bounds.highest.to_string()));
    let changes: Vec<_> = changes.collect();
    match changes.is_empty() {
        true => Judged::ok(actual, wanted),
        false => changes
            .into_iter()
            .fold(Judged::warn(actual, wanted), |judged, (path, value)| judged.change(path, value)),
    }
}

fn fast(bounds: &[Bounds], actual: String) -> Judged {
    let capped: Vec<&Bounds> = bounds.iter().filter(|bounds| bounds.is_capped()).collect();
    if capped.is_empty() {
        return match bounds.iter().all(Bounds::is_fixed) {
            true => Judged::ok(actual, "up to the highest"),
            false => Judged::info(actual).note("the governor decides between them"),
        };
    }
    let cpus: CpuSet = capped.iter().map(|bounds| bounds.cpu).collect();
    let note = format!("something holds {cpus} below what the hardware can do");
    let judged = Judged::warn(actual, "up to the highest").note(note);
    let changes = capped.iter().map(|bounds| (path(bounds.cpu, HIGHEST), bounds.most.to_string()));
    changes.fold(judged, |judged, (path, value)| judged.change(path, value))
}
