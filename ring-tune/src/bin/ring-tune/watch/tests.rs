use super::*;
use crate::laid_out::LaidOut;

#[test]
fn ticks_do_not_drift() {
    let begin = Instant::now();
    let at = |ms| begin + Duration::from_millis(ms);
    let every = Duration::from_millis(100);
    assert_eq!(next(at(100), every, at(107)), at(200), "a late tick does not move the next one");
    assert_eq!(next(at(100), every, at(430)), at(500), "those that were missed are left out");
    assert_eq!(next(at(100), every, at(99)), at(100));
}

/// What changes between two trees, as the names of groups and counts.
fn changed(before: &str, after: &str, add: impl Fn(&Tree, &mut Counts)) -> Vec<(String, u64)> {
    let [before, after] = [before, after].map(|text| {
        let laid_out = LaidOut::of(text);
        let mut counts = Counts::default();
        add(&Tree::below(laid_out.path()).unwrap(), &mut counts);
        counts
    });
    let mut list = vec![];
    for group in after.since(&before) {
        let whose = format!("{:?}", group.whose);
        list.extend(group.counts.iter().map(|count| (format!("{whose} {}", count.full_name()), count.count)));
    }
    list
}

/// Names as in networking/statistics and infiniband/hw/mlx5 of the kernel; `N/A (no PMA)` as its sysfs writes it.
const DEVICES: &str = "\
=== sys/class/net/none1/statistics/rx_dropped
10
=== sys/class/net/none1/statistics/rx_packets
1000
=== sys/class/net/none1/statistics/tx_errors
18446744073709551614
=== sys/class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent
7
=== sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_buffer
5000
=== sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_errors
N/A (no PMA)
=== sys/class/infiniband/mlx5_0/ports/2/hw_counters/np_cnp_sent
3
";

#[test]
fn devices_are_asked_by_port_and_a_reset_is_no_huge_number() {
    let after = DEVICES
        .replace("\n10\n", "\n12\n")
        .replace("\n1000\n", "\n9999\n")
        .replace("614\n", "615\n")
        .replace("\n7\n", "\n11\n")
        .replace("\n5000\n", "\n2\n")
        .replace("N/A (no PMA)", "400");
    let all = changed(DEVICES, &after, |tree, counts| devices::add(tree, &[], counts));
    let whose = |what: &str, count| (format!("Device({what}"), count);
    assert_eq!(
        all,
        [
            whose("\"none1\") rx_dropped", 2),
            whose("\"none1\") tx_errors", 1),
            whose("\"mlx5_0\") port 1 np_cnp_sent", 4)
        ]
    );
    let named = changed(DEVICES, &after, |tree, counts| devices::add(tree, &["mlx5_0".into()], counts));
    assert_eq!(named, all[2..]);
}

#[test]
fn devices_are_names_and_not_paths() {
    let laid_out = LaidOut::of(DEVICES);
    let tree = Tree::below(laid_out.path()).unwrap();
    let exist = ["none1", "mlx5_0", "none2", "", ".", "..", "none1/statistics"];
    assert_eq!(
        exist.map(|name| devices::exists(&tree, name)),
        [true, true, false, false, false, false, false]
    );
}

/// A line of softnet_stat for each CPU that is online, as this kernel (6.18) writes it.
const HOST: &str = "\
=== proc/stat
cpu  1 2 3 4 5 6 7 20 0 0
cpu0 1 2 3 4 5 6 7 8 0 0
cpu2 1 2 3 4 5 6 7 12 0 0
ctxt 1000
=== proc/net/softnet_stat
0000009e 00000000 00000002 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
00001923 0000000a 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000002 00000000 00000000
=== proc/interrupts
           CPU0       CPU2
 24:          5         50 PCI-MSIX-0000:00:04.0   1-edge      virtio3-rx
LOC:        100        200   Local timer interrupts
=== proc/pressure/cpu
some avg10=0.00 avg60=0.12 avg300=0.13 total=500
";

#[test]
fn a_host_is_asked_by_cpu() {
    let after = HOST
        .replace("7 12 0 0", "7 15 0 0")
        .replace("ctxt 1000", "ctxt 1007")
        .replace("0000000a", "0000001b")
        .replace("200   Local", "230   Local")
        .replace("50 PCI", "51 PCI")
        .replace("total=500", "total=620");
    let cpus = "2".parse::<CpuSet>().unwrap();
    let expected = [
        ("Cpu(2) steal_ms", 30),
        ("Cpu(2) softnet_dropped", 17),
        ("Cpu(2) interrupt 24 PCI-MSIX-0000:00:04.0 1-edge virtio3-rx", 1),
        ("Cpu(2) interrupt LOC Local timer interrupts", 30),
        ("Machine context_switches", 7),
        ("Machine cpu_pressure_us", 120),
    ];
    let found = changed(HOST, &after, |tree, counts| host::add(tree, &cpus, counts));
    assert_eq!(found, expected.map(|(name, count)| (name.to_owned(), count)));
}

#[test]
fn what_could_not_be_read_before_has_not_changed() {
    let cpus = "0,2".parse::<CpuSet>().unwrap();
    let offline = HOST
        .replace("cpu2 1 2 3 4 5 6 7 12 0 0\n", "")
        .replace("       CPU2", "")
        .replace("        50 PCI", "PCI")
        .replace("       200   Local", "  Local");
    let found = changed(&offline, HOST, |tree, counts| host::add(tree, &cpus, counts));
    assert_eq!(found, []);
    let found = changed("=== proc/version\nLinux", HOST, |tree, counts| host::add(tree, &cpus, counts));
    assert_eq!(found, []);
    // Nothing of this is a number, or of a CPU.
    let strange = HOST.replace(|letter: char| letter.is_ascii_digit(), "?");
    let found = changed(&strange, HOST, |tree, counts| host::add(tree, &cpus, counts));
    assert_eq!(found, []);
}

/// The process with this number, 77, calls itself `x) S 1 2`, and has begun at 400.
const PROCESS: &str = "\
=== proc/77/stat
77 (x) S 1 2) S 1 1 1 0 -1 4194560 100 0 5 0 30 40 0 0 20 0 1 0 400 0 0
=== proc/77/task/77/stat
77 (x) S 1 2) S 1 1 1 0 -1 4194560 100 0 5 0 30 40 0 0 20 0 1 0 400 0 0
=== proc/77/task/77/status
Name:	x) S 1 2
voluntary_ctxt_switches:	10
nonvoluntary_ctxt_switches:	20
=== proc/77/task/77/schedstat
1000 2000 3
=== proc/77/task/77/sched
se.nr_migrations                             :                    4
";

#[test]
fn a_process_is_asked_by_thread_whatever_it_calls_itself() {
    let after = PROCESS
        .replace("4194560 100 0 5 0 30 40", "4194560 103 0 6 0 31 42")
        .replace("switches:\t10", "switches:\t18")
        .replace("switches:\t20", "switches:\t21")
        .replace("1000 2000", "1500 2001")
        .replace("   4\n", "   6\n");
    let process = |tree: &Tree, counts: &mut Counts| Process::fixture(77, 400).add(tree, counts);
    let found = changed(PROCESS, &after, process);
    let thread = |name| format!("Thread {{ id: 77, start: 400 }} {name}");
    let expected = [
        ("Process(77) minor_faults".to_owned(), 3),
        ("Process(77) major_faults".to_owned(), 1),
        ("Process(77) user_ms".to_owned(), 10),
        ("Process(77) system_ms".to_owned(), 20),
        (thread("voluntary_switches"), 8),
        (thread("involuntary_switches"), 1),
        (thread("migrations"), 2),
        (thread("minor_faults"), 3),
        (thread("major_faults"), 1),
        (thread("cpu_ns"), 500),
        (thread("run_queue_ns"), 1),
    ];
    assert_eq!(found, expected);
    // Somebody else has the number now.
    let other = after.replace(" 400 ", " 401 ");
    assert_eq!(changed(PROCESS, &other, process), []);
}
