//! What a queue pair is told on its way: exactly what the specification asks for, since a bit too many is refused.

use core::time::Duration;
use ring_verbs::sys::{AccessFlags, Mtu, QpAttrMask, QpState, WcStatus};
use ring_verbs::{
    AckTimeout, Connected, Errno, Error, Failure, Gid, GidEntry, GidType, Init, InitAttributes, Operation,
    QueuePair, Rc, Request, Retries, RnrTimer, Route, RtrAttributes, RtsAttributes, Uc, Ud,
};

use crate::device::{Answer, Call, Modified};
use crate::rig::{Rig, Tracked, numbers, options};

fn modified(rig: &Rig) -> Vec<Modified> {
    core::mem::take(&mut rig.device.state().modified)
}

fn route() -> Route {
    let local = GidEntry { gid: Gid([1; 16]), index: 3, port: 2, kind: GidType::ROCE_V2, interface: 1 };
    Route::new(&local, Gid([2; 16])).traffic_class(0x68).flow_label(0x12345).hop_limit(9).service_level(3)
}

fn to_rtr() -> RtrAttributes {
    let timer = RnrTimer::at_least(Duration::from_micros(10));
    RtrAttributes::new(route(), Mtu::MTU_2048, 0x0123, 0x0abc_def0).reads(4).receiver_not_ready(timer)
}

fn to_rts() -> RtsAttributes {
    let timeout = AckTimeout::at_least(Duration::from_millis(16));
    let attributes = RtsAttributes::new(0x77).reads(5).timeout(timeout);
    attributes.retries(Retries::Times(2)).receiver_not_ready(Retries::Forever)
}

const RTR: QpAttrMask = QpAttrMask::STATE
    .union(QpAttrMask::AV)
    .union(QpAttrMask::PATH_MTU)
    .union(QpAttrMask::DEST_QPN)
    .union(QpAttrMask::RQ_PSN);

const RTS: QpAttrMask = QpAttrMask::STATE.union(QpAttrMask::SQ_PSN);

fn to_init<T: Connected>(rig: &Rig) -> QueuePair<T, Init, Tracked> {
    let access = AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ;
    let pair = rig.fresh::<T>(&options());
    let pair = pair.into_init(&InitAttributes::new(2).partition_index(1).access(access)).unwrap();
    let init = modified(rig).remove(0);
    let expected = QpAttrMask::STATE | QpAttrMask::PKEY_INDEX | QpAttrMask::PORT | QpAttrMask::ACCESS_FLAGS;
    assert_eq!((init.attributes.qp_state, init.mask), (QpState::INIT, expected));
    assert_eq!((init.attributes.port_num, init.attributes.pkey_index), (2, 1));
    assert_eq!(init.attributes.qp_access_flags, access);
    pair
}

fn require_rtr(rtr: &Modified) {
    let told = &rtr.attributes;
    assert_eq!((told.qp_state, told.path_mtu), (QpState::RTR, Mtu::MTU_2048));
    assert_eq!((told.dest_qp_num, told.rq_psn), (0x0123, 0xbc_def0));
    let way = &told.ah_attr;
    assert_eq!((way.is_global, way.port_num, way.sl), (1, 2, 3));
    assert_eq!((way.grh.sgid_index, way.grh.hop_limit, way.grh.traffic_class), (3, 9, 0x68));
    assert_eq!(way.grh.flow_label, 0x12345);
}

#[test]
fn a_reliable_connection_is_told_what_it_needs() {
    let rig = Rig::new();
    let pair = to_init::<Rc>(&rig).into_rtr(&to_rtr()).unwrap();
    let rtr = modified(&rig).remove(0);
    assert_eq!(rtr.mask, RTR | QpAttrMask::MAX_DEST_RD_ATOMIC | QpAttrMask::MIN_RNR_TIMER);
    require_rtr(&rtr);
    assert_eq!((rtr.attributes.max_dest_rd_atomic, rtr.attributes.min_rnr_timer), (4, 1));

    let _pair = pair.into_rts(&to_rts()).unwrap();
    let rts = modified(&rig).remove(0);
    let reliable =
        QpAttrMask::MAX_QP_RD_ATOMIC | QpAttrMask::RETRY_CNT | QpAttrMask::RNR_RETRY | QpAttrMask::TIMEOUT;
    assert_eq!(rts.mask, RTS | reliable);
    let told = &rts.attributes;
    assert_eq!((told.qp_state, told.sq_psn, told.max_rd_atomic), (QpState::RTS, 0x77, 5));
    assert_eq!((told.timeout, told.retry_cnt, told.rnr_retry), (12, 2, 7));
}

#[test]
fn an_unreliable_connection_is_told_no_more_than_it_knows() {
    let rig = Rig::new();
    let pair = to_init::<Uc>(&rig).into_rtr(&to_rtr()).unwrap();
    let rtr = modified(&rig).remove(0);
    assert_eq!(rtr.mask, RTR);
    require_rtr(&rtr);
    let _pair = pair.into_rts(&to_rts()).unwrap();
    let rts = modified(&rig).remove(0);
    assert_eq!((rts.attributes.qp_state, rts.mask, rts.attributes.sq_psn), (QpState::RTS, RTS, 0x77));
}

#[test]
fn datagrams_have_a_key_and_no_peer() {
    let rig = Rig::new();
    let pair = options().build::<Ud, _>(&rig.domain, &rig.queue, &rig.queue).unwrap();
    let pair = pair.into_init(2, 0x1111_1111).unwrap().into_rtr().unwrap().into_rts().unwrap();
    let masks: Vec<_> = modified(&rig).iter().map(|told| (told.attributes.qp_state, told.mask)).collect();
    let init = QpAttrMask::STATE | QpAttrMask::PKEY_INDEX | QpAttrMask::PORT | QpAttrMask::QKEY;
    assert_eq!(masks, [(QpState::INIT, init), (QpState::RTR, QpAttrMask::STATE), (QpState::RTS, RTS)]);
    let pair = pair.into_error().unwrap();
    let _pair = pair.into_reset().unwrap();
    let masks: Vec<_> = modified(&rig).iter().map(|told| (told.attributes.qp_state, told.mask)).collect();
    assert_eq!(masks, [(QpState::ERR, QpAttrMask::STATE), (QpState::RESET, QpAttrMask::STATE)]);
}

#[test]
fn a_transition_that_fails_leaves_the_queue_pair_as_it_was() {
    let rig = Rig::new();
    for answer in Answer::ways(libc::EINVAL) {
        let pair = rig.fresh::<Rc>(&options());
        rig.device.answer(Call::ModifyQueuePair, answer);
        let failed = pair.into_init(&InitAttributes::new(1)).unwrap_err();
        let operation = Operation::Modify(QpState::INIT);
        assert_eq!(failed.error, Error::Refused { operation, errno: Errno(libc::EINVAL) });
        let pair = failed.queue_pair.into_init(&InitAttributes::new(1)).unwrap();

        rig.device.answer(Call::ModifyQueuePair, Answer::errno(libc::ETIMEDOUT));
        let failed = pair.into_rtr(&to_rtr()).unwrap_err();
        let operation = Operation::Modify(QpState::RTR);
        assert_eq!(failed.error, Error::Refused { operation, errno: Errno(libc::ETIMEDOUT) });
        assert_eq!(failed.queue_pair.state(), Ok(QpState::INIT));
        let mut pair = failed.queue_pair.into_rtr(&to_rtr()).unwrap();
        pair.post_receive(rig.buffer(1)).unwrap();
    }
}

/// Whether it was done, nobody knows. The buffers are back, and the queue pair begins anew.
#[test]
fn a_reset_discards_what_is_in_flight() {
    let mut rig = Rig::new();
    let mut pair = rig.pair(&options());
    pair.post(&Request::send(), rig.buffer(1)).unwrap();
    pair.post_receive(rig.buffer(2)).unwrap();
    let late = rig.device.posted();

    rig.device.answer(Call::ModifyQueuePair, Answer::errno(libc::EIO));
    let failed = pair.into_reset().unwrap_err();
    assert_eq!(failed.error.errno(), Some(Errno(libc::EIO)));
    assert_eq!(rig.drain().len(), 0, "the device has them still");

    let pair = failed.queue_pair.into_reset().unwrap();
    assert_eq!((pair.sends_in_flight(), pair.receives_in_flight()), (0, 0));
    let mut discarded = rig.drain();
    assert!(discarded.iter().all(|completion| completion.result() == Err(Failure::Discarded)));
    discarded.sort_by_key(|completion| completion.buffer.as_ref().map(Tracked::number));
    assert_eq!(numbers(&discarded), [1, 2]);

    // A device may have kept their completions; they are of the former life.
    let mut pair = crate::rig::ready(pair);
    pair.post(&Request::send(), rig.buffer(3)).unwrap();
    late.iter().for_each(|posted| rig.device.complete(posted, WcStatus::SUCCESS));
    assert_eq!(rig.drain().len(), 0);
    assert_eq!(rig.queue.unknown(), 2);
    rig.device.complete(&rig.device.posted()[0], WcStatus::SUCCESS);
    assert_eq!(numbers(&rig.drain()), [3]);
}
