//! Pins the thread, asks for priority and memory, and reads the clock without std.
#![no_std]
#![no_main]

mod hosted;

use ring_tune::{Error, Fifo, MemoryPolicy};

fn main() {
    let allowed = ring_tune::allowed_cpus().unwrap();
    ring_tune::pin_to_set(&allowed).unwrap();
    let cpu = allowed.iter().next().unwrap();
    ring_tune::pin_to(cpu).unwrap();
    assert_eq!(ring_tune::current_cpu(), Ok(cpu));

    let clock = ring_tune::Clock::new();
    let start = clock.start();
    assert!(clock.between_ns(start, clock.stop()) >= 0.0);
    assert!(clock.measure_cost_ns() >= 0.0);

    ask_for_privileges();
}

/// Whether they are granted depends on the user; the answer is one of two.
fn ask_for_privileges() {
    match Fifo::begin(1) {
        Ok(fifo) => assert_eq!(fifo.priority(), 1),
        Err(error) => assert!(matches!(error, Error::Fifo { priority: 1, .. })),
    }
    match ring_tune::lock_all_memory() {
        Ok(()) => ring_tune::unlock_all_memory().unwrap(),
        Err(error) => assert!(matches!(error, Error::LockMemory { .. })),
    }
    match ring_tune::memory_policy() {
        Ok(_) => ring_tune::set_memory_policy(MemoryPolicy::Local).unwrap(),
        Err(error) => assert!(matches!(error, Error::ReadMemoryPolicy { .. })),
    }
    let _ = ring_tune::bind_memory(&[0], 0);
}
