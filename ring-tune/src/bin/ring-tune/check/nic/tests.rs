use super::*;
use crate::laid_out::LaidOut;

const FILES: &str = "
=== sys/devices/pci0000:00/0000:00:03.0/vendor
0x1af4
=== sys/devices/pci0000:00/0000:00:03.0/virtio2/net/eth0/operstate
up
=== sys/devices/pci0000:00/0000:00:03.0/virtio2/net/eth0/device -> ../..
=== sys/devices/virtual/net/lo/operstate
unknown
=== sys/class/net/lo -> ../../devices/virtual/net/lo
=== sys/class/net/eth0 -> ../../devices/pci0000:00/0000:00:03.0/virtio2/net/eth0
";

const RDMA_FILES: &str = "
=== sys/devices/pci0000:40/0000:41:00.0/net/ib0/operstate
up
=== sys/devices/pci0000:40/0000:41:00.0/infiniband/mlx5_0/device -> ../..
=== sys/devices/pci0000:40/0000:41:00.1/net/ib1/operstate
up
=== sys/devices/pci0000:40/0000:41:00.1/infiniband/mlx5_1/device -> ../..
=== sys/devices/pci0000:40/0000:41:00.0/infiniband/mlx5_0/ports/1/state
1: DOWN
=== sys/devices/pci0000:40/0000:41:00.1/infiniband/mlx5_1/ports/1/state
4: ACTIVE
=== sys/devices/virtual/infiniband/rxe0/parent
eth0
=== sys/class/infiniband/rxe0 -> ../../devices/virtual/infiniband/rxe0
=== sys/class/infiniband/mlx5_{0-1} -> ../../devices/pci0000:40/0000:41:00.{}/infiniband/mlx5_{}
";

fn found(files: &LaidOut) -> Vec<Nic> {
    in_use(&Tree::below(files.path()).unwrap()).unwrap()
}

#[test]
fn a_device_without_hardware_is_none() {
    let files = LaidOut::of(FILES);
    let nics = found(&files);
    assert_eq!(nics.len(), 1);
    assert_eq!(nics[0].name, "eth0");
    assert_eq!(nics[0].netdevs, ["eth0"]);
    assert_eq!(nics[0].functions, ["sys/devices/pci0000:00/0000:00:03.0"]);

    files.write("sys/devices/pci0000:00/0000:00:03.0/virtio2/net/eth0/operstate", "down");
    assert!(found(&files).is_empty());
}

#[test]
fn rdma_devices_that_are_up_count_alone() {
    let files = LaidOut::of(FILES);
    files.add(RDMA_FILES);
    let names = |files: &LaidOut| found(files).into_iter().map(|nic| nic.name).collect::<Vec<_>>();
    assert_eq!(names(&files), ["mlx5_1"]);
    assert_eq!(found(&files)[0].netdevs, ["ib1"]);

    files.write("sys/devices/pci0000:40/0000:41:00.1/infiniband/mlx5_1/ports/1/state", "1: DOWN");
    assert_eq!(names(&files), ["mlx5_0", "mlx5_1"], "with all of them down, each may be the one");
}

#[test]
fn a_machine_without_a_network_has_none() {
    let files = LaidOut::of("=== proc/version\nLinux");
    assert!(found(&files).is_empty());
}
