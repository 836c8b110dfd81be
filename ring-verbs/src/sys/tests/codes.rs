use std::format;
use std::string::ToString;

use crate::sys::{AccessFlags, EventType, LinkLayer, Mtu, NodeType, QpAttrMask, WcStatus, ibv_gid, ibv_wc};

#[test]
fn a_code_prints_its_name_and_an_unknown_one_its_number() {
    assert_eq!(format!("{:?}", WcStatus::RNR_RETRY_EXC_ERR), "RNR_RETRY_EXC_ERR");
    assert_eq!(format!("{:?}", WcStatus(99)), "WcStatus(99)");
    assert_eq!(format!("{:?}", NodeType(-1)), "UNKNOWN");
    assert_eq!(format!("{:?}", LinkLayer(2)), "ETHERNET");
}

#[test]
fn every_status_and_every_event_has_a_description_of_its_own() {
    let unknown = WcStatus(u32::MAX).description();
    for (name, status) in WcStatus::NAMED {
        let same = WcStatus::NAMED.iter().filter(|(_, other)| other.description() == status.description());
        assert_eq!(same.count(), 1, "{name}");
        assert_ne!(status.description(), unknown, "{name}");
        assert_eq!(status.to_string(), status.description());
    }
    assert_eq!(WcStatus(99).to_string(), format!("{}: 99", unknown));
    let unknown = EventType(u32::MAX).description();
    for (name, event) in EventType::NAMED {
        let same = EventType::NAMED.iter().filter(|(_, other)| other.description() == event.description());
        assert_eq!(same.count(), 1, "{name}");
        assert_ne!(event.description(), unknown, "{name}");
    }
}

#[test]
fn an_mtu_knows_its_bytes() {
    let bytes = [256, 512, 1024, 2048, 4096];
    assert_eq!(Mtu::NAMED.len(), bytes.len());
    for ((name, mtu), bytes) in Mtu::NAMED.iter().zip(bytes) {
        assert_eq!(mtu.bytes(), Some(bytes));
        assert_eq!(*name, format!("MTU_{bytes}"));
    }
    assert_eq!(Mtu(0).bytes(), None);
    assert_eq!(Mtu(6).bytes(), None);
}

#[test]
fn flags_keep_the_bits_that_have_no_name() {
    assert_eq!(AccessFlags::from_bits_retain(1 << 30).bits(), 1 << 30);
    assert!(AccessFlags::OPTIONAL.contains(AccessFlags::RELAXED_ORDERING));
    assert_eq!(format!("{:?}", QpAttrMask::STATE | QpAttrMask::PORT), "QpAttrMask(STATE | PORT)");
}

#[test]
fn unions_of_integers_are_read_safely() {
    let address = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1];
    let gid = ibv_gid::from(address);
    assert_eq!(gid.bytes(), address);
    assert_eq!(format!("{gid:?}"), "::ffff:192.0.2.1");
    assert_ne!(gid, ibv_gid::default());

    let mut completion = ibv_wc::default();
    completion.imm.imm_data = 7_u32.to_be();
    assert_eq!(u32::from_be(completion.imm.bits()), 7);
}
