//! The kernel's command line: the kernel's admin-guide/kernel-parameters.rst.

use ring_tune::CpuSet;

/// Parameters whose CPUs are put together; words such as `managed_irq` may stand before them.
const LISTS: &[&str] = &["isolcpus", "nohz_full", "rcu_nocbs"];

/// What the boot loader adds by itself.
const OF_THE_LOADER: &[&str] = &["BOOT_IMAGE", "initrd"];

/// The parameters of a line; white space within quotes parts nothing.
pub(super) fn words(line: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let parts = line.split(|letter: char| {
        is_quoted ^= letter == '"';
        !is_quoted && letter.is_ascii_whitespace()
    });
    parts.filter(|word| !word.is_empty()).collect()
}

/// A whole line with further parameters; what stands behind `--` is for the first process.
pub(super) fn with(line: &str, more: &[String]) -> String {
    let words = words(line);
    let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let (kernel, init) = words.split_at(end);
    let kernel: Vec<&str> =
        kernel.iter().filter(|word| !OF_THE_LOADER.contains(&name(word))).copied().collect();
    let mut line = merged(&kernel, more);
    line.extend(init.iter().map(|&word| word.to_owned()));
    line.join(" ")
}

/// Parameters and further ones, which count where both name one; lists of CPUs are put together.
pub(super) fn merged(words: &[&str], more: &[String]) -> Vec<String> {
    let mut merged: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    for parameter in more {
        // The last of several counts for the kernel too.
        let known = merged.iter_mut().rev().find(|known| name(known) == name(parameter));
        match known {
            None => merged.push(parameter.clone()),
            Some(known) if LISTS.contains(&name(parameter)) => *known = union(known, parameter),
            Some(known) => known.clone_from(parameter),
        }
    }
    merged
}

/// To the kernel a dash and an underscore are the same in names; they are left as they are, and told apart here.
fn name(parameter: &str) -> &str {
    parameter.split_once('=').map_or(parameter, |(name, _)| name)
}

fn union(one: &str, other: &str) -> String {
    let mut words: Vec<&str> = vec![];
    let mut cpus = CpuSet::default();
    for parameter in [one, other] {
        let Some((_, value)) = parameter.split_once('=') else { continue };
        for part in value.split(',') {
            match part.parse::<CpuSet>() {
                Ok(set) => cpus = cpus.union(&set),
                Err(_) if !words.contains(&part) => words.push(part),
                Err(_) => {}
            }
        }
    }
    let list = cpus.to_string();
    words.extend((!cpus.is_empty()).then_some(list.as_str()));
    format!("{}={}", name(one), words.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_merged_with_what_is_there() {
        let line =
            "BOOT_IMAGE=/vmlinuz root=UUID=1 isolcpus=managed_irq,4 quiet dyndbg=\"file a +p\" -- --quiet";
        let more = ["isolcpus=domain,managed_irq,2-3", "skew_tick=1", "quiet"].map(String::from);
        assert_eq!(
            with(line, &more),
            "root=UUID=1 isolcpus=managed_irq,domain,2-4 quiet dyndbg=\"file a +p\" skew_tick=1 -- --quiet"
        );
        assert_eq!(with("", &more[1..2]), "skew_tick=1");
        assert_eq!(with("skew_tick=0", &more[1..2]), "skew_tick=1");
    }

    #[test]
    fn parameters_of_several_rows_become_one() {
        let rows = ["nohz_full=2", "rcu_nocbs=2", "nohz_full=3", "idle=poll", "idle=halt"].map(String::from);
        assert_eq!(merged(&[], &rows), ["nohz_full=2-3", "rcu_nocbs=2", "idle=halt"]);
        assert_eq!(union("isolcpus", "isolcpus=1"), "isolcpus=1");
        assert_eq!(union("nohz_full=all", "nohz_full=1"), "nohz_full=all,1");
    }
}
