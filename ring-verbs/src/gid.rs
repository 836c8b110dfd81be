//! Addresses of ports, and which one to take.

use core::fmt;
use core::net::Ipv6Addr;

use crate::sys::GidType;

/// A device's or a port's number, the same everywhere and for ever.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Guid(pub u64);

impl fmt::Display for Guid {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = [48, 32, 16, 0].map(|shift| self.0 >> shift & 0xffff);
        write!(to, "{a:04x}:{b:04x}:{c:04x}:{d:04x}")
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, to)
    }
}

/// The address of a port: 16 bytes, as an IPv6 address. RoCE v2 has IP addresses here, IPv4 ones as `::ffff:a.b.c.d`.
///
/// ```
/// use std::net::IpAddr;
///
/// let gid = ring_verbs::Gid::from(IpAddr::from([192, 0, 2, 1]));
/// assert!(gid.is_ipv4() && !gid.is_link_local());
/// assert_eq!(gid.to_string(), "::ffff:192.0.2.1");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// As an IPv6 address.
    pub fn to_ipv6(self) -> Ipv6Addr {
        Ipv6Addr::from(self.0)
    }

    /// Whether it stands for an IPv4 address.
    pub fn is_ipv4(self) -> bool {
        self.to_ipv6().to_ipv4_mapped().is_some()
    }

    /// Whether it reaches no further than the link, as each interface has one by itself.
    pub fn is_link_local(self) -> bool {
        self.0[0] == 0xfe && self.0[1] & 0xc0 == 0x80
    }
}

impl From<core::net::IpAddr> for Gid {
    fn from(address: core::net::IpAddr) -> Self {
        match address {
            core::net::IpAddr::V4(address) => Self(address.to_ipv6_mapped().octets()),
            core::net::IpAddr::V6(address) => Self(address.octets()),
        }
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.to_ipv6(), to)
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, to)
    }
}

/// An entry of a port's table of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GidEntry {
    /// The address.
    pub gid: Gid,
    /// Its place in the table: what queue pairs and address handles name it by.
    pub index: u32,
    /// The port.
    pub port: u8,
    /// What protocol packets from it have.
    pub kind: GidType,
    /// The network interface, as in `if_nametoindex`; 0: none.
    pub interface: u32,
}

/// The best of a port's addresses for RoCE v2: one of an interface, IPv4 before IPv6, and none that is link-local.
pub(crate) fn choose(entries: &[GidEntry]) -> Option<&GidEntry> {
    let usable = |entry: &&GidEntry| entry.kind == GidType::ROCE_V2 && !entry.gid.is_link_local();
    // The first of the best: the order of the table decides between equals.
    entries
        .iter()
        .filter(usable)
        .min_by_key(|entry| (entry.interface == 0, !entry.gid.is_ipv4(), entry.index))
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use core::net::IpAddr;

    use super::{Gid, GidEntry, GidType, choose};

    fn entry(index: u32, address: &str, kind: GidType, interface: u32) -> GidEntry {
        let address: IpAddr = address.parse().expect("an address");
        GidEntry { gid: address.into(), index, port: 1, kind, interface }
    }

    #[test]
    fn the_choice_is_a_routable_address_of_an_interface() {
        let link_local = entry(0, "fe80::1", GidType::ROCE_V2, 2);
        let old = entry(1, "192.0.2.1", GidType::ROCE_V1, 2);
        let lost = entry(2, "192.0.2.1", GidType::ROCE_V2, 0);
        let six = entry(3, "2001:db8::1", GidType::ROCE_V2, 2);
        let four = entry(4, "192.0.2.1", GidType::ROCE_V2, 2);
        let other = entry(5, "192.0.2.9", GidType::ROCE_V2, 2);
        assert_eq!(choose(&[link_local, old]), None);
        assert_eq!(choose(&[link_local, old, lost]), Some(&lost));
        assert_eq!(choose(&[link_local, old, lost, six]), Some(&six));
        assert_eq!(choose(&[link_local, old, lost, six, four, other]), Some(&four));
    }

    #[test]
    fn addresses_are_shown_as_people_write_them() {
        assert_eq!(Gid::from("192.0.2.1".parse::<IpAddr>().unwrap()).to_string(), "::ffff:192.0.2.1");
        assert_eq!(super::Guid(0x5054_00ff_fe00_0001).to_string(), "5054:00ff:fe00:0001");
    }
}
