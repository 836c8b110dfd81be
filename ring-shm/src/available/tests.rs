use super::*;

fn lines(text: &str) -> Lines<impl FnMut(&mut [u8]) -> usize> {
    let mut rest = text.as_bytes();
    Lines::new(move |buffer: &mut [u8]| {
        let count = buffer.len().min(rest.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        rest = &rest[count..];
        count
    })
}

fn sum_of(text: &str) -> Option<u64> {
    sum(lines(text))
}

#[test]
fn memory_and_swap_space_count() {
    let text = "MemTotal:       24684416 kB\nMemFree:  1 kB\nMemAvailable:       1000 kB\n";
    assert_eq!(sum_of(text), Some(1_024_000));
    let text = "MemAvailable: 3 kB\nSwapTotal: 100 kB\nSwapFree:  4 kB\nVmallocTotal: 9 kB\n";
    assert_eq!(sum_of(text), Some(7 * 1024));
}

#[test]
fn what_the_kernel_does_not_say_is_not_made_up() {
    assert_eq!(sum_of(""), None);
    assert_eq!(sum_of("SwapFree: 4 kB\n"), None);
    assert_eq!(sum_of("MemAvailable: many kB\n"), None);
    assert_eq!(sum_of("MemAvailable: 18446744073709551615 kB\n"), None);
}

#[test]
fn the_estimate_is_below_the_total() {
    let available_bytes = available_bytes().unwrap();
    assert!(available_bytes > 0);
    assert!(available_bytes <= sys::memory_bytes().unwrap());
    assert_eq!(estimate().is_some(), std::path::Path::new("/proc/meminfo").exists());
}

#[test]
fn of_a_node_what_is_free_and_what_files_hold_counts() {
    let text = "Node 10 MemTotal: 99 kB\nNode 10 MemFree:  1 kB\nNode 10 Active(file): 2 kB\n\
                Node 10 Inactive(file): 4 kB\nNode 10 Shmem: 99 kB\nNode 10 SReclaimable: 8 kB\n";
    assert_eq!(sum_of_node(lines(text)), Some(15 * 1024));
    assert_eq!(sum_of_node(lines("Node 0 MemFree: 1 kB\n")), None, "not all fields");
    assert_eq!(available_on_node_bytes(1_000_000), None);
    let has_nodes = std::path::Path::new("/sys/devices/system/node/node0/meminfo").exists();
    let total_bytes = sys::memory_bytes().unwrap();
    let available_bytes = available_on_node_bytes(0).filter(|bytes| (1..=total_bytes).contains(bytes));
    assert_eq!(available_bytes.is_some(), has_nodes);
}
