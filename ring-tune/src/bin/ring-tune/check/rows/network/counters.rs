//! What NICs count when something goes wrong, between the two samples.

use std::collections::BTreeMap;

use ring_tune::Unread;

use crate::check::Host;
use crate::check::finding::Judged;
use crate::check::nic::{self, RDMA as DEVICES, is_trouble};
use crate::check::profile::Profile;
use crate::check::row::{Group, Row};

pub(super) const RDMA: Row = Row {
    id: "rdma-counters",
    group: Group::Network,
    what: "RDMA congestion, retries and missing receive requests",
    source: "/sys/class/infiniband/*/ports/*/{counters,hw_counters}/*",
    profiles: Profile::ALL,
    // InfiniBand Architecture Specification, volume 1, 9.7.5.2.8 and 9.7.6.1.3.
    why: "a retry after a time-out costs milliseconds (4.096 µs times 2 to the power of the queue pair's \
          time-out), a receiver that was not ready 10 µs and more, and a notification of congestion makes the \
          sender slow down",
    price: "none",
    now: "out_of_buffer, rnr, wqe: post more receives, or sooner; seq and timeout: look for lost packets; cnp, \
          ecn: look for the crowded switch port",
    boot: "",
    judge: rdma,
};

pub(super) const NIC: Row = Row {
    id: "nic-counters",
    group: Group::Network,
    what: "drops, errors and pauses of the NIC",
    source: "/sys/class/net/*/statistics/*, ethtool -S",
    profiles: Profile::ALL,
    // https://github.com/NVIDIA/daqiri/pull/252
    why: "what was dropped is sent again after a time-out; pauses stop the sender without any drop: 21.7 % of a \
          400 Gbit/s link in one report (NVIDIA/daqiri 252)",
    price: "none",
    now: "drops: larger rings (ethtool -G), more queues, a CPU that is not busy; pauses: look at the receiver that \
          sends them, and at PFC of that priority",
    boot: "",
    judge: nic,
};

/// Parts of names: mlx5's as NVIDIA's list of counters has them, which other drivers share or vary.
const RDMA_NAMES: &[&str] = &[
    "out_of_buffer",
    "out_of_seq",
    "seq_err",
    "rnr",
    "timeout",
    "retry",
    "retrans",
    "slow_restart",
    "cnp",
    "ecn_marked",
    "wqe",
    "discard",
    "port_rcv_errors",
    "symbol_error",
    "link_error",
    "link_downed",
    "overrun",
];

/// The kernel's answer for a port that does not count: `N/A (no PMA)`; drivers/infiniband/core/sysfs.c.
const NOT_COUNTED: &str = "N/A";

/// What is told of many that counted.
const MOST_TOLD: usize = 6;

fn rdma(host: &Host) -> Result<Judged, Unread> {
    let devices = host.tree.names(DEVICES)?;
    if devices.is_empty() {
        return Ok(Judged::skip("no RDMA device"));
    }
    let mut moved = Moved::default();
    for folder in ["counters", "hw_counters"] {
        for path in host.tree.find(&format!("{DEVICES}/*/ports/*/{folder}/*"))? {
            let mut parts = path.split('/').skip(3);
            let (Some(device), _, Some(port), Some(name)) =
                (parts.next(), parts.next(), parts.next(), parts.nth(1))
            else {
                continue;
            };
            if RDMA_NAMES.iter().any(|part| name.contains(part)) {
                moved.add_file(host, &path, format!("{device}/{port} {name}"))?;
            }
        }
    }
    moved.judge(host)
}

fn nic(host: &Host) -> Result<Judged, Unread> {
    let nics = nic::in_use(&host.tree)?;
    let netdevs: Vec<&String> = nics.iter().flat_map(|nic| &nic.netdevs).collect();
    if netdevs.is_empty() {
        return Ok(Judged::skip("no network device with hardware behind it is up"));
    }
    let mut moved = Moved::default();
    for netdev in netdevs {
        for path in host.tree.find(&format!("sys/class/net/{netdev}/statistics/*"))? {
            let name = path.rsplit('/').next().unwrap_or_default();
            if is_trouble(name) {
                moved.add_file(host, &path, format!("{netdev} {name}"))?;
            }
        }
        moved.add_lines(host, &format!("ethtool/{netdev}/statistics"), netdev)?;
    }
    moved.judge(host)
}

/// The counters that moved, by their names.
#[derive(Debug, Default)]
struct Moved {
    by: BTreeMap<String, u64>,
    has_read: bool,
    /// A counter that is there, and none.
    strange: Option<Unread>,
}

impl Moved {
    fn add_file(&mut self, host: &Host, path: &str, name: String) -> Result<(), Unread> {
        match both(host, path) {
            Ok(Some((before, after))) if self.add(name, &before, &after) => {}
            Ok(Some((_, after))) if after.starts_with(NOT_COUNTED) => {}
            Ok(Some(_)) => self.strange = Some(Unread::strange(path, "is no count")),
            Ok(None) => {}
            // Drivers answer that they cannot tell of one or the other.
            Err(error @ Unread::Strange { .. }) => self.strange = Some(error),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Of lines `name: value`, in the same order each time.
    fn add_lines(&mut self, host: &Host, path: &str, netdev: &str) -> Result<(), Unread> {
        let (before, after) = match both(host, path) {
            Ok(Some(both)) => both,
            Ok(None) => return Ok(()),
            Err(error @ Unread::Strange { .. }) => {
                self.strange = Some(error);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let earlier: BTreeMap<&str, &str> =
            before.lines().filter_map(|line| line.rsplit_once(": ")).collect();
        for (name, value) in after.lines().filter_map(|line| line.rsplit_once(": ")) {
            if let Some(earlier) = earlier.get(name).filter(|_| is_trouble(name)) {
                self.add(format!("{netdev} {}", name.trim()), earlier, value);
            }
        }
        Ok(())
    }

    /// Whether it is a counter. One that was set back has not moved.
    fn add(&mut self, name: String, before: &str, after: &str) -> bool {
        let (Ok(before), Ok(after)) = (before.trim().parse::<u64>(), after.trim().parse::<u64>()) else {
            return false;
        };
        self.has_read = true;
        let delta = after.saturating_sub(before);
        if delta > 0 {
            // The same counter may stand in both places.
            let most = self.by.entry(name).or_default();
            *most = delta.max(*most);
        }
        true
    }

    /// One counter that can be read is enough, and none that can is told.
    fn judge(self, host: &Host) -> Result<Judged, Unread> {
        let Some(window) = host.sampled() else {
            return Ok(Judged::skip("one sample of the counters does not tell"));
        };
        if !self.has_read {
            return self.strange.map_or(Ok(Judged::skip("there are no such counters")), Err);
        }
        let within = format!("in {:.2} s", window.as_secs_f64());
        let wanted = "none";
        if self.by.is_empty() {
            return Ok(Judged::ok(format!("none {within}"), wanted));
        }
        let mut moved: Vec<_> = self.by.into_iter().collect();
        // Stable: equal ones keep the order of their names.
        moved.sort_by_key(|(_, delta)| u64::MAX - delta);
        let more = moved.len().saturating_sub(MOST_TOLD);
        let mut told: Vec<String> =
            moved.iter().take(MOST_TOLD).map(|(name, delta)| format!("{name} +{delta}")).collect();
        if more > 0 {
            told.push(format!("{more} more"));
        }
        Ok(Judged::warn(format!("{} {within}", told.join(", ")), wanted))
    }
}

/// Both samples; none where there is no such counter, or one sample.
fn both(host: &Host, path: &str) -> Result<Option<(String, String)>, Unread> {
    match host.samples(path) {
        Ok(samples) => Ok(samples.map(|(before, after)| (before.to_owned(), after))),
        Err(Unread::Absent { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
