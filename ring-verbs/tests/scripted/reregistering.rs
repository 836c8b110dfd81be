//! Changing what a registration allows, which is also how a registration is lost.

use ring_verbs::sys::{AccessFlags, ReregMrError, ReregMrFlags};
use ring_verbs::{Errno, Error, ExposedRegion, Operation, ProtectionDomain};

use crate::device::{Answer, Call, Kind, Reregistered, Scripted};

const LOCAL: AccessFlags = AccessFlags::LOCAL_WRITE;
const READS: AccessFlags = LOCAL.union(AccessFlags::REMOTE_READ);
const WRITES: AccessFlags = LOCAL.union(AccessFlags::REMOTE_WRITE);

fn setting() -> (Scripted, ProtectionDomain, ExposedRegion<Vec<u8>>) {
    let (device, context) = Scripted::open();
    let domain = ProtectionDomain::new(&context).unwrap();
    let region = ExposedRegion::new(&domain, vec![7; 4096], READS).unwrap();
    (device, domain, region)
}

#[test]
fn a_region_gets_other_rights_and_nothing_else() {
    let (device, domain, region) = setting();
    let (before, local) = (region.remote(), region.local_key());
    let region = region.change_access(WRITES).unwrap();
    // Domain and memory stay: the flags say that neither is looked at.
    let told =
        Reregistered { flags: ReregMrFlags::CHANGE_ACCESS, domain: 0, base: 0, bytes: 0, access: WRITES };
    assert_eq!(device.state().reregistered, [told]);
    // The device has given it other keys, which peers are told from now on.
    let after = region.remote();
    assert_eq!((after.address, after.bytes), (before.address, before.bytes));
    assert_eq!((after.key, region.local_key()), (before.key + 0x1000, local + 0x1000));
    assert_eq!(device.state().count(Kind::Region), 1);
    region.write(4095, &[9]);
    let memory = region.into_memory().unwrap();
    assert_eq!((memory[0], memory[4095]), (7, 9));
    drop(domain);
    device.require_ended();
}

/// In some classes of failure the old registration is there as it was, in one the new one is, and in others the region
/// must not be used: it is given back in all of them, as the manual page asks, and nobody has to tell them apart.
#[test]
fn a_region_whose_change_fails_is_ended_and_its_memory_comes_back() {
    let classes = ReregMrError::NAMED.iter().map(|(_, class)| class.0);
    // And what no manual page knows.
    for returned in classes.chain([-6, libc::EINVAL]) {
        let (device, domain, region) = setting();
        device.answer(Call::Reregister, Answer { returned, errno: libc::EBUSY });
        let refused = region.change_access(WRITES).unwrap_err();
        let operation = Operation::Reregister;
        assert_eq!(refused.error, Error::Refused { operation, errno: Errno(libc::EBUSY) }, "{returned}");
        assert!(refused.error.to_string().starts_with("cannot change the registration: EBUSY"));
        assert_eq!(refused.memory.unwrap(), [7; 4096]);
        assert_eq!(device.state().ended, [Kind::Region]);
        drop(domain);
        device.require_ended();
    }
}

#[test]
fn a_driver_that_cannot_change_regions_says_so() {
    let (device, domain, region) = setting();
    let ReregMrError(returned) = ReregMrError::CMD;
    device.answer(Call::Reregister, Answer { returned, errno: libc::EOPNOTSUPP });
    let refused = region.change_access(WRITES).unwrap_err();
    assert_eq!(refused.error, Error::NotSupported { operation: Operation::Reregister });
    assert_eq!(refused.memory.unwrap(), [7; 4096]);
    drop(domain);
    device.require_ended();
}

/// A peer may have a way to it, under the old rights or the new ones.
#[test]
fn memory_whose_change_fails_and_that_the_device_keeps_is_not_freed() {
    let (device, domain, region) = setting();
    let ReregMrError(returned) = ReregMrError::CMD;
    device.answer(Call::Reregister, Answer { returned, errno: libc::EIO });
    device.answer(Call::Deregister, Answer::errno(libc::EBUSY));
    let refused = region.change_access(WRITES).unwrap_err();
    assert_eq!(refused.error.errno(), Some(Errno(libc::EIO)), "the first error is the one that is told");
    assert!(refused.memory.is_none());
    drop((refused, domain));
    let state = device.state();
    assert_eq!((state.live(), state.is_closed, state.busy), (vec![Kind::Domain, Kind::Region], false, 0));
}

#[test]
fn rights_that_do_not_go_together_end_a_region_without_asking() {
    let (device, domain, region) = setting();
    let refused = region.change_access(AccessFlags::REMOTE_WRITE).unwrap_err();
    assert_eq!(refused.error, Error::RemoteWithoutLocal);
    assert_eq!(refused.memory.unwrap(), [7; 4096]);
    assert_eq!(device.state().reregistered, []);
    drop(domain);
    device.require_ended();
}
