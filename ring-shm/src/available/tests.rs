use super::*;

fn sum_of(text: &str) -> Option<u64> {
    let mut rest = text.as_bytes();
    sum(Lines::new(|buffer: &mut [u8]| {
        let count = buffer.len().min(rest.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        rest = &rest[count..];
        count
    }))
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
