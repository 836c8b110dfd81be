//! PCI Express functions: their link, and what their configuration space says.

#[cfg(test)]
mod tests;

use core::fmt;

use ring_tune::{Tree, Unread};

/// Where the list of capabilities begins, and what it consists of; linux/pci_regs.h.
const STATUS: usize = 0x06;
const STATUS_HAS_CAPABILITIES: u16 = 1 << 4;
const FIRST_CAPABILITY: usize = 0x34;
const EXPRESS: u8 = 0x10;
/// Within the capability of PCI Express.
const DEVICE_CAPABILITIES: usize = 0x04;
const DEVICE_CONTROL: usize = 0x08;
const LINK_CONTROL: usize = 0x10;

/// As many as fit behind the header, so that a ring of them ends.
const MOST_CAPABILITIES: usize = 48;

/// What a user without privilege may read of a configuration space.
const HEADER_BYTES: usize = 64;

/// A speed and a width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    /// Tenths of GT/s for each lane.
    pub(crate) speed: u32,
    /// Lanes.
    pub(crate) width: u32,
}

impl fmt::Display for Link {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{} GT/s x{}", self.speed / 10, self.speed % 10, self.width)
    }
}

/// What a link runs at, or can do at most, by the files `current_link_*` or `max_link_*` of a function; none where
/// the function does not know, as those that a NIC lends to virtual machines.
pub(crate) fn link(tree: &Tree, function: &str, which: &str) -> Result<Option<Link>, Unread> {
    let path = format!("{function}/{which}_link_speed");
    let text = tree.text(&path)?;
    let width = tree.number(&format!("{function}/{which}_link_width"))?;
    if text.starts_with("Unknown") {
        return Ok(None);
    }
    let speed = text.split_whitespace().next().and_then(tenths);
    let speed = speed.ok_or_else(|| Unread::strange(&path, "says no speed such as 8.0 GT/s PCIe"))?;
    // 255 is what a function reads as that has gone.
    Ok(u32::try_from(width).ok().filter(|width| (1..255).contains(width)).map(|width| Link { speed, width }))
}

/// `8.0` and, from older kernels, `8`, in tenths.
fn tenths(number: &str) -> Option<u32> {
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    whole.parse::<u32>().ok()?.checked_mul(10)?.checked_add(part.parse().ok().filter(|part| *part < 10)?)
}

/// The PCI functions on the way from a device to the root, the nearest first; none for a device that is none, nor
/// drives one directly, as one on a USB.
pub(crate) fn functions(tree: &Tree, device: &str) -> Result<Vec<String>, Unread> {
    let path = tree.resolve(device)?;
    let mut functions = vec![];
    let mut folder = path.as_str();
    while let Some((above, name)) = folder.rsplit_once('/') {
        if is_address(name) {
            functions.push(folder.to_owned());
        } else if !functions.is_empty() {
            break;
        } else if !(name.starts_with("virtio") || name.starts_with("mlx5_core")) {
            return Ok(vec![]);
        }
        folder = above;
    }
    Ok(functions)
}

/// Domain, bus, device, function: `0000:41:00.0`.
fn is_address(name: &str) -> bool {
    let mut parts = name.split([':', '.']);
    let mut is_part = |digits: usize| {
        parts.next().is_some_and(|part| part.len() >= digits && part.chars().all(|c| c.is_ascii_hexdigit()))
    };
    is_part(4) && is_part(2) && is_part(2) && is_part(1) && parts.next().is_none()
}

/// What the capability of PCI Express says; PCI Express Base Specification, 7.5.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Express {
    /// Bytes that a packet may carry, as the function can, and as it is set.
    pub(crate) payload_at_most: u32,
    pub(crate) payload: u32,
    /// Bytes that one read may ask for.
    pub(crate) read_request: u32,
    /// Bit 0 for L0s, bit 1 for L1.
    pub(crate) aspm: u16,
}

/// Reads a function's configuration space; none for a function that is not on PCI Express.
pub(crate) fn express(tree: &Tree, function: &str) -> Result<Option<Express>, Unread> {
    let path = format!("{function}/config");
    let bytes = tree.bytes(&path)?;
    let missing = || match bytes.len() {
        ..=HEADER_BYTES => Unread::Denied { path: path.clone() },
        _ => Unread::strange(&path, "ends before its capabilities do"),
    };
    let byte = |at: usize| bytes.get(at).copied().ok_or_else(missing);
    let word = |at: usize| Ok(u16::from_le_bytes([byte(at)?, byte(at + 1)?]));
    if word(STATUS)? & STATUS_HAS_CAPABILITIES == 0 {
        return Ok(None);
    }
    let mut at = usize::from(byte(FIRST_CAPABILITY)? & !3);
    for _ in 0..MOST_CAPABILITIES {
        if at == 0 {
            return Ok(None);
        }
        if byte(at)? == EXPRESS {
            let control = word(at + DEVICE_CONTROL)?;
            return Ok(Some(Express {
                payload_at_most: bytes_of(word(at + DEVICE_CAPABILITIES)?),
                payload: bytes_of(control >> 5),
                read_request: bytes_of(control >> 12),
                aspm: word(at + LINK_CONTROL)? & 3,
            }));
        }
        at = usize::from(byte(at + 1)? & !3);
    }
    Err(Unread::strange(&path, "has a ring of capabilities"))
}

/// Sizes are powers of two from 128 on, in three bits.
fn bytes_of(code: u16) -> u32 {
    128 << (code & 7)
}
