use super::*;
use crate::check::finding::Finding;
use crate::check::{Profile, Target};
use crate::laid_out::LaidOut;

/// One port of a NIC behind a root port; the counters of a second sample are to be added.
const FILES: &str = "
=== sys/devices/system/cpu/online
0-1
=== earlier/seconds
0.5
=== sys/devices/pci0000:40/0000:40:02.0/max_link_speed
16.0 GT/s PCIe
=== sys/devices/pci0000:40/0000:40:02.0/max_link_width
16
=== sys/devices/pci0000:40/0000:40:02.0/0000:41:00.0/current_link_speed
8.0 GT/s PCIe
=== sys/devices/pci0000:40/0000:40:02.0/0000:41:00.0/current_link_width
16
=== sys/devices/pci0000:40/0000:40:02.0/0000:41:00.0/max_link_speed
16.0 GT/s PCIe
=== sys/devices/pci0000:40/0000:40:02.0/0000:41:00.0/max_link_width
16
=== sys/class/infiniband/mlx5_0/device -> ../../../devices/pci0000:40/0000:40:02.0/0000:41:00.0
=== sys/class/infiniband/mlx5_0/ports/1/state
4: ACTIVE
";
const PORT: &str = "sys/class/infiniband/mlx5_0/ports/1";
const ROOT_PORT: &str = "sys/devices/pci0000:40/0000:40:02.0";
const NIC: &str = "sys/devices/pci0000:40/0000:40:02.0/0000:41:00.0";

fn find(files: &LaidOut, id: &str) -> (Verdict, String, String) {
    let target = Target { profile: Profile::Rdma, cpus: None, root: Some(files.path().into()) };
    let host = Host::look(&target).unwrap();
    let row = ROWS.iter().find(|row| row.id == id).unwrap();
    let Finding { judged, .. } = row.find(&host);
    (judged.verdict, judged.actual, judged.note)
}

fn count(files: &LaidOut, path: &str, before: &str, after: &str) {
    files.write(&format!("earlier/{path}"), before);
    files.write(path, after);
}

#[test]
fn a_slow_link_fails_where_it_does_not_idle() {
    let files = LaidOut::of(FILES);
    count(&files, &format!("{PORT}/counters/port_rcv_data"), "0", "249000");
    assert_eq!(find(&files, "pcie-link").0, Verdict::Warn, "less than a megabyte in words of four bytes");
    count(&files, &format!("{PORT}/counters/port_rcv_data"), "0", "260000");
    let (verdict, actual, _) = find(&files, "pcie-link");
    assert_eq!((verdict, actual.as_str()), (Verdict::Fail, "mlx5_0: 8.0 GT/s x16"));
}

#[test]
fn a_slot_may_be_the_limit_and_lanes_are_never_saved() {
    let files = LaidOut::of(FILES);
    files.write(&format!("{ROOT_PORT}/max_link_speed"), "8.0 GT/s PCIe");
    let (verdict, _, note) = find(&files, "pcie-link");
    assert!(verdict == Verdict::Warn && note.contains("slot"), "{note}");
    files.write(&format!("{NIC}/current_link_width"), "8");
    assert_eq!(find(&files, "pcie-link").0, Verdict::Fail);
    files.write(&format!("{ROOT_PORT}/max_link_width"), "8");
    assert_eq!(find(&files, "pcie-link").0, Verdict::Warn);
    files.write(&format!("{NIC}/current_link_speed"), "Unknown");
    assert_eq!(find(&files, "pcie-link").0, Verdict::Skip, "a function that is lent to a virtual machine");
}

#[test]
fn a_configuration_space_that_ends_early_needs_privilege() {
    let files = LaidOut::of(FILES);
    let mut header = [0; 64];
    header[0x06] = 0x10;
    header[0x34] = 0x60;
    files.write(&format!("{NIC}/config"), header);
    let (verdict, actual, _) = find(&files, "pcie-payload");
    assert!(verdict == Verdict::Unknown && actual.contains("root"), "{actual}");
    files.write("sys/module/pcie_aspm/parameters/policy", "default performance [powersave] powersupersave");
    assert_eq!(find(&files, "aspm"), (Verdict::Warn, "mlx5_0: policy powersave".into(), String::new()));
}

#[test]
fn counters_that_are_no_numbers_or_were_set_back_have_not_moved() {
    let files = LaidOut::of(FILES);
    count(&files, &format!("{PORT}/counters/port_rcv_errors"), "N/A (no PMA)", "N/A (no PMA)");
    assert_eq!(find(&files, "rdma-counters").0, Verdict::Skip, "nothing was counted");
    count(&files, &format!("{PORT}/hw_counters/out_of_buffer"), "7", "2");
    count(&files, &format!("{PORT}/hw_counters/lifespan"), "10", "20");
    assert_eq!(find(&files, "rdma-counters").1, "none in 0.50 s");
}

#[test]
fn of_many_counters_the_largest_are_told() {
    let files = LaidOut::of(FILES);
    for number in 0..9 {
        let after = if number == 7 { u64::MAX } else { 10 - number };
        count(&files, &format!("{PORT}/hw_counters/rnr_{number}"), "0", &after.to_string());
    }
    let (verdict, actual, _) = find(&files, "rdma-counters");
    assert_eq!(verdict, Verdict::Warn);
    assert!(actual.starts_with(&format!("mlx5_0/1 rnr_7 +{}, mlx5_0/1 rnr_0 +10, ", u64::MAX)), "{actual}");
    assert!(actual.ends_with(", 3 more in 0.50 s"), "{actual}");
}

#[test]
fn whatever_the_files_say_each_row_has_a_verdict() {
    let texts: [&[u8]; 6] =
        [b"", b"-1", b"99999999999999999999", b"\xff\xfe", b"a: b: c\n: \n", b"0-99999999"];
    for text in texts {
        let files = LaidOut::of(FILES);
        for name in
            ["current_link_speed", "max_link_width", "config", "numa_node", "local_cpulist", "link/l1_aspm"]
        {
            files.write(&format!("{NIC}/{name}"), text);
        }
        files.write(&format!("{NIC}/net/ib0/statistics/rx_errors"), text);
        files.write("ethtool/ib0/coalesce", text);
        files.write("ethtool/ib0/statistics", text);
        files.write("earlier/ethtool/ib0/statistics", text);
        files.write("earlier/seconds", text);
        files.write("sys/module/pcie_aspm/parameters/policy", text);
        for row in ROWS {
            find(&files, row.id);
        }
    }
}
