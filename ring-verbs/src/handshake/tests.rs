use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;

use proptest::prelude::*;

use super::{Endpoint, EndpointError, HandshakeError};
use crate::memory::RemoteMemory;
use crate::sys::{Mtu, QpType};

const REGION: RemoteMemory = RemoteMemory { address: 0x0102_0304_0506_0708, bytes: 0x1000, key: 0x2122_2324 };

/// As the table in the module's documentation has it.
fn written() -> [u8; Endpoint::BYTES] {
    let mut bytes = [0; Endpoint::BYTES];
    bytes[..24]
        .copy_from_slice(b"RVhs\x00\x01\x01\x02\x00\x12\x34\x56\x00\xab\xcd\xef\x00\x07\x04\x10\x01\0\0\0");
    bytes[24..40].copy_from_slice(b"\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\x00\x02\x01");
    bytes[40..60]
        .copy_from_slice(b"\x01\x02\x03\x04\x05\x06\x07\x08\x00\x00\x00\x00\x00\x00\x10\x00\x21\x22\x23\x24");
    bytes
}

fn with(changes: &[(usize, &[u8])]) -> [u8; Endpoint::BYTES] {
    let mut bytes = written();
    for (offset, change) in changes {
        bytes[*offset..offset + change.len()].copy_from_slice(change);
    }
    bytes
}

fn endpoint() -> Endpoint {
    Endpoint::from_bytes(&written()).unwrap()
}

fn unreliable() -> Endpoint {
    Endpoint::from_bytes(&with(&[(7, &[3])])).unwrap()
}

#[test]
fn the_format_is_the_one_of_the_table() {
    assert_eq!(Endpoint::BYTES, 200);
    let endpoint = endpoint();
    assert_eq!(endpoint.transport(), QpType::RC);
    assert_eq!(endpoint.queue_pair(), 0x12_3456);
    assert_eq!(endpoint.packet_number(), 0xab_cdef);
    assert_eq!(endpoint.lid(), 7);
    assert_eq!(endpoint.mtu(), Mtu::MTU_2048);
    assert_eq!(endpoint.reads(), 16);
    assert_eq!(endpoint.gid().to_string(), "::ffff:192.0.2.1");
    assert_eq!(endpoint.regions(), [REGION]);
    assert_eq!(endpoint.to_bytes(), written());
}

#[test]
fn eight_regions_have_room() {
    let full = (1..8).fold(endpoint(), |endpoint, _| endpoint.with_region(REGION));
    assert_eq!(full.regions(), [REGION; 8]);
    assert_eq!(Endpoint::from_bytes(&full.to_bytes()), Ok(full));
}

#[test]
fn every_field_is_checked() {
    let refused = |changes: &[(usize, &[u8])]| Endpoint::from_bytes(&with(changes)).unwrap_err();
    assert_eq!(refused(&[(0, b"HTTP")]), EndpointError::Foreign { found: *b"HTTP" });
    assert_eq!(refused(&[(5, &[2])]), EndpointError::Version { found: 2 });
    let field = |changes: &[(usize, &[u8])]| match refused(changes) {
        EndpointError::Field { field, value } => (field, value),
        error => panic!("{error}"),
    };
    assert_eq!(field(&[(6, &[2])]), ("step", 2));
    assert_eq!(field(&[(7, &[4])]), ("transport", 4));
    assert_eq!(field(&[(8, &[1])]), ("queue pair", 0x0112_3456));
    assert_eq!(field(&[(8, &[0, 0, 0, 1])]), ("queue pair", 1));
    assert_eq!(field(&[(8, &[0, 255, 255, 255])]), ("queue pair", 0xff_ffff));
    assert_eq!(field(&[(12, &[1])]), ("packet number", 0x01ab_cdef));
    assert_eq!(field(&[(18, &[0])]), ("MTU", 0));
    assert_eq!(field(&[(18, &[6])]), ("MTU", 6));
    assert_eq!(field(&[(20, &[9])]), ("number of regions", 9));
    assert_eq!(field(&[(20, &[0])]), ("number of regions", 0));
    assert_eq!(field(&[(23, &[1])]), ("reserved byte", 1));
    assert_eq!(field(&[(24, &[255])]), ("address, in its first byte,", 255));
    assert_eq!(field(&[(16, &[0; 2]), (24, &[0; 16])]), ("address, in its first byte,", 0));
    assert_eq!(field(&[(40, &[255; 8])]), ("length of a region", 0x1000));
    assert_eq!(field(&[(199, &[1])]), ("number of regions", 1));
    // Inside an InfiniBand subnet no global address is needed.
    assert!(Endpoint::from_bytes(&with(&[(24, &[0; 16])])).is_ok());
}

proptest! {
    #[test]
    fn any_bytes_are_an_endpoint_or_an_error(
        mut bytes in proptest::collection::vec(any::<u8>(), Endpoint::BYTES),
        is_version_1: bool,
    ) {
        if is_version_1 {
            bytes[..8].copy_from_slice(&written()[..8]);
        }
        let bytes: [u8; Endpoint::BYTES] = bytes.try_into().unwrap();
        match Endpoint::from_bytes(&bytes) {
            Ok(endpoint) => prop_assert_eq!(endpoint.to_bytes(), bytes),
            Err(EndpointError::Foreign { found }) => prop_assert!(!is_version_1 && found != *b"RVhs"),
            Err(_) => {}
        }
    }

    /// What is taken is written down the same: nothing of it was passed over.
    #[test]
    fn changed_bytes_are_read_in_full(changes in proptest::collection::vec((6..Endpoint::BYTES, any::<u8>()), 1..4)) {
        let mut bytes = written();
        for (offset, byte) in changes {
            bytes[offset] = byte;
        }
        if let Ok(endpoint) = Endpoint::from_bytes(&bytes) {
            prop_assert_eq!(endpoint.to_bytes(), bytes);
            prop_assert!(endpoint.regions().len() <= Endpoint::REGIONS_MAX);
            prop_assert!(endpoint.mtu().bytes().is_some());
        }
    }
}

#[test]
fn two_ends_learn_of_each_other() {
    let (mut a, mut b) = UnixStream::pair().unwrap();
    let other = endpoint().with_mtu(Mtu::MTU_1024).with_reads(3);
    let expected = other.clone();
    let thread = thread::spawn(move || {
        let peer = other.exchange(&mut b).unwrap();
        other.ready(&mut b).unwrap();
        peer
    });
    let peer = endpoint().exchange(&mut a).unwrap();
    endpoint().ready(&mut a).unwrap();
    assert_eq!(peer, expected);
    assert_eq!(thread.join().unwrap(), endpoint());
    assert_eq!(endpoint().common_mtu(&peer), Mtu::MTU_1024);
    assert_eq!(peer.common_mtu(&endpoint()), Mtu::MTU_1024);
}

#[test]
fn ends_of_different_transports_do_not_come_together() {
    let (mut a, mut b) = UnixStream::pair().unwrap();
    b.write_all(&unreliable().to_bytes()).unwrap();
    let error = endpoint().exchange(&mut a).unwrap_err();
    let (ours, theirs) = match error {
        HandshakeError::OtherTransport { ours, theirs } => (ours, theirs),
        error => panic!("{error}"),
    };
    assert_eq!((ours, theirs), (QpType::RC, QpType::UC));
}

#[test]
fn who_is_ready_too_early_is_refused() {
    let (mut a, b) = UnixStream::pair().unwrap();
    let header = super::Step::Ready.header(QpType::RC);
    (&b).write_all(&header).unwrap();
    let error = endpoint().exchange(&mut a).unwrap_err();
    let is_step = |error| matches!(error, EndpointError::Field { field: "step", value: 2 });
    assert!(matches!(error, HandshakeError::Endpoint(error) if is_step(error)));
}

/// Says this, then nothing, and never hangs up. Counts what is read.
struct Peer {
    says: Vec<u8>,
    read: usize,
}

impl Read for Peer {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = bytes.len().min(3).min(self.says.len() - self.read);
        if count == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        bytes[..count].copy_from_slice(&self.says[self.read..][..count]);
        self.read += count;
        Ok(count)
    }
}

impl Write for Peer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn no_more_is_read_than_the_message_has() {
    let mut peer = Peer { says: [&written()[..], &[7; 10_000]].concat(), read: 0 };
    endpoint().exchange(&mut peer).unwrap();
    assert_eq!(peer.read, Endpoint::BYTES);
    endpoint().ready(&mut peer).unwrap_err();
    assert_eq!(peer.read, Endpoint::BYTES + 8);
}

#[test]
fn a_foreign_peer_is_found_out_by_its_first_bytes() {
    let mut peer = Peer { says: b"+OK ready\r\n".to_vec(), read: 0 };
    let error = endpoint().exchange(&mut peer).unwrap_err();
    let is_foreign = |error| matches!(error, EndpointError::Foreign { found } if &found == b"+OK ");
    assert!(matches!(error, HandshakeError::Endpoint(error) if is_foreign(error)));
}

#[test]
fn a_peer_that_hangs_up_or_is_silent_is_named() {
    let (mut a, b) = UnixStream::pair().unwrap();
    a.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let silent = endpoint().exchange(&mut a).unwrap_err().to_string();
    assert!(silent.contains("has not answered in the stream's time-out"), "{silent}");
    (&b).write_all(&written()[..150]).unwrap();
    drop(b);
    let gone = endpoint().exchange(&mut a).unwrap_err().to_string();
    assert!(gone.contains("has hung up") || gone.contains("roken pipe"), "{gone}");
}
