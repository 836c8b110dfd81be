//! What the findings ask for.

use anyhow::ensure;
use ring_tune::Tree;
use serde::Serialize;

use super::command_line;
use crate::check::{Finding, Host, Row, Verdict};
use crate::say::plain;
use crate::snapshot::REDACTED;

/// All that is to be done.
#[derive(Debug)]
pub(super) struct Plan {
    /// The rows that are to be mended.
    pub(super) findings: Vec<Finding>,
    /// The files that are to be written, each once.
    pub(super) steps: Vec<Step>,
    /// Parameters of the kernel's command line, each once.
    pub(super) parameters: Vec<String>,
    /// The whole of that line; none where it cannot be read, or may lack some of it.
    pub(super) command_line: Option<String>,
}

/// A file that is to be written.
#[derive(Debug, Serialize)]
pub(super) struct Step {
    pub(super) row: &'static str,
    /// Without a slash at the front, and without links.
    pub(super) path: String,
    pub(super) value: String,
    #[serde(skip)]
    pub(super) device: Option<Device>,
}

/// The device whose attribute a file is, as udev knows it.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) subsystem: String,
    pub(super) name: String,
    pub(super) attribute: String,
}

impl Plan {
    /// The rows named, or all that fail or warn.
    pub(super) fn of(host: &Host, rows: &[String]) -> anyhow::Result<Self> {
        are_known(rows, |_| false)?;
        let asked = |row: &&Row| rows.is_empty() || rows.iter().any(|id| row.id == id);
        let found = Row::all().filter(asked).map(|row| row.find(host));
        let findings: Vec<Finding> = found.filter(|finding| is_to_mend(finding, rows)).collect();
        let mut steps: Vec<Step> = vec![];
        let mut parameters = vec![];
        for Finding { row, judged } in &findings {
            for change in &judged.changes {
                let path = host.tree.resolve(&change.path).unwrap_or_else(|_| change.path.clone());
                // The first row that names a file decides.
                if steps.iter().all(|step| step.path != path) {
                    let device = device(&host.tree, &path);
                    steps.push(Step { row: row.id, path, value: change.value.clone(), device });
                }
            }
            let words = judged.boot.iter().flat_map(|parameter| command_line::words(parameter));
            parameters.extend(words.map(str::to_owned));
        }
        let parameters = command_line::merged(&[], &parameters);
        // A machine that gets what a snapshot has of it does not start.
        let is_whole = |line: &String| !command_line::words(line).contains(&REDACTED);
        let line = host.tree.text("proc/cmdline").ok().filter(is_whole);
        let command_line = line.map(|line| command_line::with(&line, &parameters));
        Ok(Self { findings, steps, parameters, command_line })
    }

    /// Those that no file mends at run time, or not alone.
    pub(super) fn by_hand(&self) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(|Finding { judged, .. }| judged.changes.is_empty() || !judged.commands.is_empty())
    }
}

/// Whether the rows are those of a check, or others that are known for another reason.
pub(super) fn are_known(rows: &[String], is_known: impl Fn(&str) -> bool) -> anyhow::Result<()> {
    for id in rows {
        let ids = || Row::all().map(|row| row.id).collect::<Vec<_>>().join(", ");
        ensure!(
            Row::all().any(|row| row.id == id) || is_known(id),
            "--row {}: there is no such row, but {}",
            plain(id),
            ids()
        );
    }
    Ok(())
}

/// A row that is named is mended too where it is only good to know for this profile.
fn is_to_mend(finding: &Finding, rows: &[String]) -> bool {
    match finding.judged.verdict {
        Verdict::Fail | Verdict::Warn => true,
        Verdict::Info => !rows.is_empty() && !finding.judged.changes.is_empty(),
        _ => false,
    }
}

/// The nearest folder above a file of sysfs that belongs to a class or a bus.
fn device(tree: &Tree, path: &str) -> Option<Device> {
    let mut folder = path.strip_prefix("sys/devices/").and_then(|_| path.rsplit_once('/'))?.0;
    loop {
        let (above, name) = folder.rsplit_once('/')?;
        if let Ok(subsystem) = tree.resolve(&format!("{folder}/subsystem")) {
            let subsystem = subsystem.rsplit('/').next()?.to_owned();
            let attribute = path.get(folder.len() + 1..)?.to_owned();
            return Some(Device { subsystem, name: name.to_owned(), attribute });
        }
        folder = above;
    }
}
