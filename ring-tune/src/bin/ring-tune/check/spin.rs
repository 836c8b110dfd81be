//! A short spin loop on one CPU: how long did something else run?

#[cfg(test)]
mod tests;

use core::time::Duration;
use std::sync::mpsc;
use std::thread;

use ring_tune::{Clock, Unread, pin_to};

/// Half of the time that a check may take for it; the clock takes the rest for its calibration.
const SPIN_NS: f64 = 25_000_000.0;

/// Longer than any turn of the loop, and shorter than an interrupt takes.
const GAP_NS: f64 = 500.0;

/// A thread that may not run for so long, under a real-time task that spins, is not waited for.
const PATIENCE: Duration = Duration::from_millis(250);

/// What a spin loop on a CPU missed, as lines `name: value`. It takes the CPU from others as any thread does: ask on a
/// CPU that idles.
pub(crate) fn gaps(cpu: &str) -> Result<String, Unread> {
    let path = format!("spin/{cpu}");
    let absent = || Unread::Absent { path: path.clone() };
    let cpu: usize = cpu.parse().map_err(|_| absent())?;
    let clock = Clock::new();
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new()
        .spawn(move || {
            // Nobody listens once the patience is over.
            let _ = sender.send(pin_to(cpu).map(|()| spin(clock)));
        })
        .map_err(|_| Unread::strange(&path, "cannot be measured: no thread can be started"))?;
    match receiver.recv_timeout(PATIENCE) {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(error)) => Err(Unread::Strange { path, why: format!("cannot be measured: {error}") }),
        Err(_) => {
            let all_ns = PATIENCE.as_nanos();
            Ok(lines(all_ns as f64, 1, all_ns as f64, all_ns as f64))
        }
    }
}

fn spin(clock: Clock) -> String {
    let (mut count, mut lost_ns, mut longest_ns) = (0_u64, 0.0, 0.0_f64);
    let begin = clock.start();
    let mut last = begin;
    while clock.ticks_to_ns(last.saturating_sub(begin)) < SPIN_NS {
        let now = clock.start();
        let gap_ns = clock.ticks_to_ns(now.saturating_sub(last));
        if gap_ns > GAP_NS {
            count += 1;
            lost_ns += gap_ns;
            longest_ns = longest_ns.max(gap_ns);
        }
        last = now;
    }
    let spun_ns = clock.ticks_to_ns(last.saturating_sub(begin));
    lines(spun_ns, count, lost_ns, longest_ns)
}

fn lines(spun_ns: f64, count: u64, lost_ns: f64, longest_ns: f64) -> String {
    format!("spun-ns: {spun_ns:.0}\ngaps: {count}\nlost-ns: {lost_ns:.0}\nlongest-ns: {longest_ns:.0}\n")
}
