//! What is to be done, as text that can be used as it is.

use core::fmt::Write as _;

use serde_json::{Value, json};

use super::plan::{Plan, Step};
use crate::say::{plain, writing};

/// Which text is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// All of them: a shell script with the others as comments
    #[default]
    All,
    /// Shell commands for now
    Shell,
    /// A file for /etc/sysctl.d
    Sysctl,
    /// A file for /etc/tmpfiles.d, which systemd follows at boot
    Tmpfiles,
    /// A file for /etc/udev/rules.d, for attributes of devices
    Udev,
    /// The kernel's whole command line
    Cmdline,
}

pub(super) fn text(plan: &Plan, format: Format) -> String {
    match format {
        Format::All => all(plan),
        Format::Shell => shell(plan),
        Format::Sysctl => lines(plan, sysctl),
        Format::Tmpfiles => lines(plan, tmpfiles),
        Format::Udev => lines(plan, udev),
        Format::Cmdline => plan.command_line.as_ref().map(|line| format!("{line}\n")).unwrap_or_default(),
    }
}

/// Why there is no such text.
pub(super) fn absent(plan: &Plan, format: Format) -> &'static str {
    match format {
        Format::Cmdline if plan.command_line.is_none() => {
            "the machine's command line is not told whole: add the parameters that --print shows to it"
        }
        _ => "nothing that is to be mended goes there: --print shows where it does",
    }
}

pub(super) fn json(plan: &Plan) -> Value {
    let by_hand = plan.by_hand().map(|finding| {
        let (row, judged) = (finding.row, &finding.judged);
        json!({"row": row.id, "now": row.now, "commands": judged.commands, "boot": row.boot,
            "parameters": judged.boot})
    });
    json!({
        "report": "ring-tune fix",
        "action": "print",
        "files": plan.steps,
        "parameters": plan.parameters,
        "command_line": plan.command_line,
        "by_hand": by_hand.collect::<Vec<_>>(),
    })
}

fn all(plan: &Plan) -> String {
    if plan.findings.is_empty() {
        return "# nothing to mend\n".into();
    }
    let mut script = String::new();
    let mut section = |head: &str, body: &str| {
        if !body.is_empty() {
            let _ = write!(script, "{}## {head}\n{body}", if script.is_empty() { "" } else { "\n" });
        }
    };
    section("Now, as root in a shell; gone with the next restart", &shell(plan));
    for (head, format) in [
        ("/etc/sysctl.d/90-ring-tune.conf (--format sysctl)", Format::Sysctl),
        ("/etc/tmpfiles.d/ring-tune.conf (--format tmpfiles)", Format::Tmpfiles),
        ("/etc/udev/rules.d/90-ring-tune.rules (--format udev)", Format::Udev),
    ] {
        section(&format!("At boot: {head}"), &commented(&text(plan, format)));
    }
    if !plan.parameters.is_empty() {
        let mut body = format!("# {}\n", plain(&plan.parameters.join(" ")));
        if let Some(line) = &plan.command_line {
            let _ = writeln!(body, "# and with what is there (--format cmdline):\n# {}", plain(line));
        }
        section("At boot: parameters of the kernel's command line", &body);
    }
    let mut body = String::new();
    for finding in plan.by_hand() {
        let row = finding.row;
        let _ = writeln!(body, "# {}: {}: {}", row.id, row.what, plain(&finding.judged.actual));
        let commands = finding.judged.commands.join("; ");
        let now = if commands.is_empty() { row.now } else { &commands };
        for (when, how) in [("now", now), ("at boot", row.boot)] {
            if !how.is_empty() {
                let _ = writeln!(body, "#   {when}: {}", plain(how));
            }
        }
    }
    section("By hand", &body);
    script
}

fn commented(text: &str) -> String {
    text.lines().map(|line| format!("# {line}\n")).collect()
}

fn lines(plan: &Plan, line: fn(&Step) -> Option<String>) -> String {
    plan.steps.iter().filter_map(line).map(|line| line + "\n").collect()
}

fn shell(plan: &Plan) -> String {
    let mut text = String::new();
    for finding in &plan.findings {
        let (row, judged) = (finding.row, &finding.judged);
        let steps: Vec<&Step> = plan.steps.iter().filter(|step| step.row == row.id).collect();
        if steps.is_empty() {
            continue;
        }
        let _ = writeln!(
            text,
            "# {}: {}: {}; wanted: {}",
            row.id,
            row.what,
            plain(&judged.actual),
            plain(&judged.wanted)
        );
        for step in steps {
            let _ = writeln!(text, "{}", writing(&step.path, &step.value));
        }
    }
    text
}

/// sysctl.d(5): where a slash comes first, dots are a part of names, such as that of a VLAN's device.
fn sysctl(step: &Step) -> Option<String> {
    let key = step.path.strip_prefix("proc/sys/").filter(|_| is_plain(step))?;
    Some(format!("{key} = {}", step.value))
}

/// tmpfiles.d(5); a per cent sign would stand for something else. Interrupts have other numbers after a restart.
fn tmpfiles(step: &Step) -> Option<String> {
    let is_its = step.path.starts_with("sys/") && step.device.is_none() && is_plain(step);
    is_its.then(|| format!("w /{} - - - - {}", step.path, step.value))
}

/// udev(7): written again whenever the device appears.
fn udev(step: &Step) -> Option<String> {
    let device = step.device.as_ref().filter(|_| is_plain(step))?;
    let (subsystem, name, attribute) = (&device.subsystem, &device.name, &device.attribute);
    let value = &step.value;
    Some(format!(
        r#"ACTION=="add|change", SUBSYSTEM=="{subsystem}", KERNEL=="{name}", ATTR{{{attribute}}}="{value}""#
    ))
}

/// Whether nothing in it means something to a configuration file; other names are left to the shell.
fn is_plain(step: &Step) -> bool {
    let is_plain =
        |text: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric() || "/_-.,:+ ".contains(letter));
    !step.path.contains(' ') && is_plain(&step.path) && is_plain(&step.value)
}

#[cfg(test)]
mod tests {
    use super::super::plan::Device;
    use super::*;

    fn step(path: &str, value: &str) -> Step {
        Step { row: "a", path: path.into(), value: value.into(), device: None }
    }

    #[test]
    fn each_file_stands_where_its_reader_expects_it() {
        let vlan = step("proc/sys/net/ipv4/conf/eth0.100/x", "1");
        assert_eq!(sysctl(&vlan).unwrap(), "net/ipv4/conf/eth0.100/x = 1");
        assert_eq!(tmpfiles(&vlan), None);
        let run = step("sys/kernel/mm/ksm/run", "0");
        assert_eq!(tmpfiles(&run).unwrap(), "w /sys/kernel/mm/ksm/run - - - - 0");
        assert_eq!((sysctl(&run), udev(&run)), (None, None));
        let mut latency = step("sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us", "10");
        let [subsystem, name, attribute] =
            ["cpu", "cpu2", "power/pm_qos_resume_latency_us"].map(String::from);
        latency.device = Some(Device { subsystem, name, attribute });
        assert_eq!(tmpfiles(&latency), None);
        assert_eq!(
            udev(&latency).unwrap(),
            r#"ACTION=="add|change", SUBSYSTEM=="cpu", KERNEL=="cpu2", ATTR{power/pm_qos_resume_latency_us}="10""#
        );
    }

    #[test]
    fn names_from_outside_stand_in_no_configuration() {
        let hostile = step("sys/class/net/%h\"/x", "1");
        assert_eq!((tmpfiles(&hostile), udev(&hostile), sysctl(&hostile)), (None, None, None));
    }
}
