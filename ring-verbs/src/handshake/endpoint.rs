//! One end of a connection, and how it is written down.

use crate::address::Route;
use crate::error::{Error, Operation};
use crate::gid::{Gid, GidEntry};
use crate::memory::RemoteMemory;
use crate::port::Port;
use crate::queue_pair::{Connected, QueuePair};
use crate::sys::{Mtu, QpType};
use crate::system;

const MAGIC: [u8; 4] = *b"RVhs";
const VERSION: u16 = 1;

/// Bytes that every message begins with.
pub(super) const HEADER_BYTES: usize = 8;

const REGION_BYTES: usize = 20;
const NO_REGION: RemoteMemory = RemoteMemory { address: 0, bytes: 0, key: 0 };

/// Which message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Endpoint = 1,
    Ready = 2,
}

impl Step {
    pub(super) fn header(self, transport: QpType) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(&MAGIC);
        header[4..6].copy_from_slice(&VERSION.to_be_bytes());
        header[6] = self as u8;
        // The transports that connect are 2 and 3.
        header[7] = u8::try_from(transport.0).unwrap_or(0);
        header
    }

    /// The transport, where a message of this step begins so.
    pub(super) fn check(self, header: &[u8]) -> Result<QpType, EndpointError> {
        let found = array(header, 0);
        if found != MAGIC {
            return Err(EndpointError::Foreign { found });
        }
        let found = u16::from_be_bytes(array(header, 4));
        if found != VERSION {
            return Err(EndpointError::Version { found });
        }
        let [step, transport] = array(header, 6);
        if step != self as u8 {
            return Err(field("step", step));
        }
        match QpType(transport.into()) {
            connected @ (QpType::RC | QpType::UC) => Ok(connected),
            _ => Err(field("transport", transport)),
        }
    }
}

/// One end of a connection: what the other has to know.
///
/// # As it is written down
///
/// Numbers are big endian. Both messages have a fixed length: 8 bytes for *ready*, 200 for an endpoint.
///
/// | offset | bytes | |
/// |---|---|---|
/// | 0 | 4 | `RVhs` |
/// | 4 | 2 | version: 1 |
/// | 6 | 1 | step: 1 = endpoint, 2 = ready |
/// | 7 | 1 | transport, as in `enum ibv_qp_type`: 2 = RC, 3 = UC |
/// | 8 | 4 | number of the queue pair: 2 to 2^24 - 2 |
/// | 12 | 4 | number of the first packet: below 2^24 |
/// | 16 | 2 | LID of the port; 0 on Ethernet |
/// | 18 | 1 | largest payload of a packet, as in `enum ibv_mtu`: 1 to 5 |
/// | 19 | 1 | reads and atomics of the other end that are served at a time |
/// | 20 | 1 | regions that follow: at most 8 |
/// | 21 | 3 | 0 |
/// | 24 | 16 | GID of the port |
/// | 40 | 8 × 20 | regions that the other end may use: address (8), bytes (8), key (4). Those that are not there are 0 |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    transport: QpType,
    queue_pair: u32,
    packet_number: u32,
    gid: Gid,
    lid: u16,
    mtu: Mtu,
    reads: u8,
    regions: [RemoteMemory; Self::REGIONS_MAX],
    region_count: u8,
}

impl Endpoint {
    /// The length in bytes of what it is written down in.
    pub const BYTES: usize = 40 + Self::REGIONS_MAX * REGION_BYTES;

    /// Regions that it can name.
    pub const REGIONS_MAX: usize = 8;

    /// That of a queue pair of ours, at an address of a port. Its first packet gets a number by chance, so that late
    /// packets of a former connection are not taken for its own.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], where the system has no random numbers.
    pub fn new<T: Connected, S, B>(
        queue_pair: &QueuePair<T, S, B>,
        port: &Port,
        gid: &GidEntry,
    ) -> Result<Self, Error> {
        let random = system::random().map_err(|errno| Error::of(Operation::ChoosePacketNumber, errno))?;
        Ok(Self {
            transport: T::TYPE,
            queue_pair: queue_pair.number(),
            packet_number: random & 0xff_ffff,
            gid: gid.gid,
            lid: port.lid(),
            mtu: port.active_mtu(),
            reads: 1,
            regions: [NO_REGION; Self::REGIONS_MAX],
            region_count: 0,
        })
    }

    /// The largest payload of a packet that this end wants. By default what its port has now.
    pub fn with_mtu(mut self, mtu: Mtu) -> Self {
        self.mtu = mtu;
        self
    }

    /// Reads and atomics of the peer's that this end serves at a time. By default 1.
    pub fn with_reads(mut self, reads: u8) -> Self {
        self.reads = reads;
        self
    }

    /// Names one more region that the peer may use.
    ///
    /// # Panics
    ///
    /// If there are [`REGIONS_MAX`](Self::REGIONS_MAX) already.
    pub fn with_region(mut self, region: RemoteMemory) -> Self {
        let place = self.regions.get_mut(usize::from(self.region_count));
        *place.expect("an endpoint names 8 regions at most") = region;
        self.region_count += 1;
        self
    }

    /// [`QpType::RC`] or [`QpType::UC`].
    pub fn transport(&self) -> QpType {
        self.transport
    }

    /// The number of its queue pair: 24 bits.
    pub fn queue_pair(&self) -> u32 {
        self.queue_pair
    }

    /// The number of the first packet that it sends: 24 bits.
    pub fn packet_number(&self) -> u32 {
        self.packet_number
    }

    /// The address of its port.
    pub fn gid(&self) -> Gid {
        self.gid
    }

    /// The address of its port in an InfiniBand subnet; 0 on Ethernet.
    pub fn lid(&self) -> u16 {
        self.lid
    }

    /// The largest payload of a packet that it takes. A connection has the smaller one of both ends.
    pub fn mtu(&self) -> Mtu {
        self.mtu
    }

    /// Reads and atomics of the other end's that it serves at a time.
    pub fn reads(&self) -> u8 {
        self.reads
    }

    /// Memory that the other end may use, in the order in which it was named.
    pub fn regions(&self) -> &[RemoteMemory] {
        &self.regions[..usize::from(self.region_count)]
    }

    /// The way to it from an address of ours.
    ///
    /// # Panics
    ///
    /// As [`Route::new`].
    pub fn route_from(&self, local: &GidEntry) -> Route {
        Route::new(local, self.gid).lid(self.lid)
    }

    /// The largest payload of a packet that both ends take.
    pub fn common_mtu(&self, other: &Self) -> Mtu {
        Mtu(self.mtu.0.min(other.mtu.0))
    }

    /// As it goes over the wire; the source of the module has the table.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&Step::Endpoint.header(self.transport));
        bytes[8..12].copy_from_slice(&self.queue_pair.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.packet_number.to_be_bytes());
        bytes[16..18].copy_from_slice(&self.lid.to_be_bytes());
        bytes[18] = u8::try_from(self.mtu.0).unwrap_or(0);
        bytes[19] = self.reads;
        bytes[20] = self.region_count;
        bytes[24..40].copy_from_slice(&self.gid.0);
        for (place, region) in bytes[40..].chunks_exact_mut(REGION_BYTES).zip(&self.regions) {
            place[..8].copy_from_slice(&region.address.to_be_bytes());
            place[8..16].copy_from_slice(&region.bytes.to_be_bytes());
            place[16..].copy_from_slice(&region.key.to_be_bytes());
        }
        bytes
    }

    /// What a peer has written down.
    ///
    /// # Errors
    ///
    /// [`EndpointError`], where one of its fields is not what it can be.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Result<Self, EndpointError> {
        let transport = Step::Endpoint.check(bytes)?;
        let mut regions = [NO_REGION; Self::REGIONS_MAX];
        for (region, place) in regions.iter_mut().zip(bytes[40..].chunks_exact(REGION_BYTES)) {
            *region = RemoteMemory {
                address: u64::from_be_bytes(array(place, 0)),
                bytes: u64::from_be_bytes(array(place, 8)),
                key: u32::from_be_bytes(array(place, 16)),
            };
        }
        let endpoint = Self {
            transport,
            queue_pair: u32::from_be_bytes(array(bytes, 8)),
            packet_number: u32::from_be_bytes(array(bytes, 12)),
            gid: Gid(array(bytes, 24)),
            lid: u16::from_be_bytes(array(bytes, 16)),
            mtu: Mtu(bytes[18].into()),
            reads: bytes[19],
            regions,
            region_count: bytes[20],
        };
        endpoint.check()?;
        match bytes[21..24].iter().find(|byte| **byte != 0) {
            Some(byte) => Err(field("reserved byte", *byte)),
            None => Ok(endpoint),
        }
    }

    fn check(&self) -> Result<(), EndpointError> {
        // 0 and 1 are the subnet's own, and the last one stands for a multicast group's.
        if !(2..0xff_ffff).contains(&self.queue_pair) {
            return Err(field("queue pair", self.queue_pair));
        }
        if self.packet_number > 0xff_ffff {
            return Err(field("packet number", self.packet_number));
        }
        if self.mtu.bytes().is_none() {
            return Err(field("MTU", self.mtu.0));
        }
        // Nothing reaches a peer without an address, and a group of them is none.
        if self.gid == Gid::default() && self.lid == 0 || self.gid.0[0] == 0xff {
            return Err(field("address, in its first byte,", self.gid.0[0]));
        }
        let count = usize::from(self.region_count);
        let Some((named, others)) = self.regions.split_at_checked(count) else {
            return Err(field("number of regions", self.region_count));
        };
        if let Some(region) = named.iter().find(|region| region.address.checked_add(region.bytes).is_none()) {
            return Err(field("length of a region", region.bytes));
        }
        match others.iter().find(|region| **region != NO_REGION) {
            Some(_) => Err(field("number of regions", self.region_count)),
            None => Ok(()),
        }
    }
}

/// Bytes that are no endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// Something else listens there.
    #[error("the peer speaks something else: it begins with {found:02x?}; is it the right port?")]
    Foreign {
        /// What it has sent first.
        found: [u8; 4],
    },
    /// A peer of another release.
    #[error(
        "the peer speaks version {found} of the hand-shake, this program version {}: build both of one release",
        VERSION
    )]
    Version {
        /// What the peer speaks.
        found: u16,
    },
    /// A value that the field cannot have: a broken or hostile peer.
    #[error("the peer's {field} is {value:#x}, which none can be")]
    Field {
        /// Which one.
        field: &'static str,
        /// What is there.
        value: u64,
    },
}

fn field(field: &'static str, value: impl Into<u64>) -> EndpointError {
    EndpointError::Field { field, value: value.into() }
}

/// The `N` bytes from `offset` on, which are there.
fn array<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[offset..offset + N]);
    array
}
