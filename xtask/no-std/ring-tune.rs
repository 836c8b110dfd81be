//! Pins the thread and reads the clock without std.
#![no_std]
#![no_main]

mod hosted;

fn main() {
    let cpu = ring_tune::allowed_cpus().unwrap().iter().next().unwrap();
    ring_tune::pin_to(cpu).unwrap();
    assert_eq!(ring_tune::current_cpu(), Ok(cpu));

    let clock = ring_tune::Clock::new();
    let start = clock.start();
    assert!(clock.between_ns(start, clock.stop()) >= 0.0);
    assert!(clock.measure_cost_ns() >= 0.0);
}
