use super::*;

const INTERRUPTS: &str = "\
           CPU0       CPU2
  0:         12          0   IO-APIC   2-edge      timer
 24:          1   99999999  PCI-MSI-0000:01:00.0   0-edge      mlx5_comp0@pci:0000:01:00.0
LOC:        345         67   Local timer interrupts
ERR:          3
";

#[test]
fn interrupts_are_counted_by_cpu() {
    let sources = by_cpu(INTERRUPTS).unwrap();
    assert_eq!(sources.len(), 3, "ERR is of no CPU");
    let counts = [1, 2].map(|cpu| sources[1].count(cpu));
    assert_eq!((sources[1].name.as_str(), counts), ("24", [None, Some(99_999_999)]));
    assert_eq!(sources[1].what, "PCI-MSI-0000:01:00.0 0-edge mlx5_comp0@pci:0000:01:00.0");
    assert_eq!(by_cpu("nonsense\n1: 2"), None);
    assert_eq!(by_cpu(""), None);
    let later = by_cpu(&INTERRUPTS.replace("67", "70")).unwrap();
    let counted = since(&sources, &later, |cpu| cpu == 2);
    assert_eq!(counted.len(), 1);
    assert_eq!((counted[0].0.name.as_str(), counted[0].1), ("LOC", 3));
    assert_eq!(since(&sources, &later, |cpu| cpu == 0), []);
    let both = by_cpu(&INTERRUPTS.replace("345         67", "346         70")).unwrap();
    let counted = since(&sources, &both, |_| true);
    assert_eq!(counted.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [4], "of both CPUs");
    let new = by_cpu(&format!("{INTERRUPTS} 25:  0  4  PCI-MSI\n")).unwrap();
    assert_eq!(
        since(&sources, &new, |cpu| cpu == 2).iter().map(|(_, count)| count).collect::<Vec<_>>(),
        [&4]
    );
    let offline = by_cpu("CPU0\n24: 1\nLOC: 345\n").unwrap();
    assert_eq!(
        since(&offline, &sources, |cpu| cpu == 2),
        [],
        "all since the start of the machine is not since then"
    );
    assert_eq!(since(&later, &sources, |cpu| cpu == 2), [], "back");
}

#[test]
fn steal_is_read_of_the_cpu_meant() {
    let stat = "cpu  1 2 3 4 5 6 7 99 9 10\ncpu1 1 2 3 4 5 6 7 8 9 10\ncpu10 1 2 3 4 5 6 7 70 9 10";
    let ticks = [1, 10, 2].map(|cpu| steal_ticks(stat, cpu));
    assert_eq!(ticks, [Some(8), Some(70), None]);
}

#[test]
fn fields_are_found_by_their_whole_name() {
    let text =
        "Name:\tcat\nVmSwap:\t       8 kB\nmodel name\t: A 9000\nflags\t\t: fpu\npgfault 12\npgfault_x 13";
    let found = ["Name", "VmSwap", "model name", "flags", "pgfault", "Vm"].map(|name| field(text, name));
    assert_eq!(found, [Some("cat"), Some("8 kB"), Some("A 9000"), Some("fpu"), Some("12"), None]);
}

#[test]
fn pressure_is_that_of_some() {
    let text =
        "some avg10=0.00 avg60=0.12 avg300=0.13 total=123456\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9";
    assert_eq!(pressure_us(text), Some(123_456));
    assert_eq!(pressure_us("full total=1"), None);
}
