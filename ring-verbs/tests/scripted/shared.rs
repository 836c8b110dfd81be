//! Receives that several queue pairs share, and the room that they claim of a completion queue.

use ring_verbs::sys::{WcOpcode, WcStatus, ibv_wc};
use ring_verbs::{
    CompletionQueueOptions, Errno, Error, QueuePair, QueuePairOptions, Rc, Reset, SharedReceiveQueue,
};

use crate::device::{Answer, Call, Kind, Posted};
use crate::drops::orders;
use crate::rig::{Rig, Tracked, drain, numbers};

/// Of the completion queue of a rig.
const ENTRIES: u32 = 64;

/// Receives of a shared queue here, and sends of a queue pair.
const RECEIVES: u32 = 32;
const SENDS: u32 = 8;

type Shared = SharedReceiveQueue<Tracked>;
type Pair = QueuePair<Rc, Reset, Tracked>;

impl Rig {
    fn shared(&self) -> Shared {
        SharedReceiveQueue::new(&self.domain, RECEIVES, 1).unwrap()
    }

    fn try_sharing(&self, sends: u32, shared: &Shared) -> Result<Pair, Error> {
        QueuePairOptions::new(sends, 0).build_shared(&self.domain, &self.queue, &self.queue, shared)
    }

    fn sharing(&self, shared: &Shared) -> Pair {
        self.try_sharing(SENDS, shared).unwrap()
    }

    /// What nobody has claimed of the completion queue.
    fn room(&self) -> u32 {
        let options = QueuePairOptions::new(ENTRIES + 1, 0);
        match options.build::<Rc, _>(&self.domain, &self.queue, &self.queue) {
            Err(Error::CompletionQueueFull { room, .. }) => room,
            other => panic!("more than there can be room for: {other:?}"),
        }
    }

    /// A message has come to a queue pair, into this receive.
    fn receive(&self, posted: &Posted, pair: &Pair) {
        let wc = ibv_wc {
            wr_id: posted.wr_id,
            status: WcStatus::SUCCESS,
            opcode: WcOpcode::RECV,
            qp_num: pair.number(),
            byte_len: 3,
            ..ibv_wc::default()
        };
        self.device.push(self.queue_number(), wc);
    }
}

#[test]
fn ten_thousand_queues_one_after_the_other_need_the_room_of_one() {
    let mut rig = Rig::new();
    for turn in 0..10_000 {
        let mut shared = rig.shared();
        let pair = rig.try_sharing(ENTRIES - RECEIVES, &shared).unwrap();
        shared.post_receive(rig.buffer(1)).unwrap();
        shared.post_receive(rig.buffer(2)).unwrap();
        rig.receive(&rig.device.posted()[0], &pair);
        if turn % 2 == 0 {
            drop(pair);
            assert_eq!(numbers(&rig.drain()), [1], "it came before the queue pair was gone");
            assert_eq!(shared.into_buffers().map(|buffers| buffers.len()), Some(1));
        } else {
            drop(shared);
            drop(pair);
            assert_eq!(numbers(&rig.drain()), [], "the buffers went with the shared queue");
        }
        assert_eq!((rig.alive(), rig.room()), (0, ENTRIES));
    }
    assert_eq!(rig.queue.unknown(), 5_000, "completions of shared queues that were gone");
    assert_eq!(rig.device.state().count(Kind::SharedQueue), 0);
}

/// Two queue pairs that share, the queue that they share, and polls in between.
#[test]
fn the_room_is_back_once_the_last_queue_pair_is_gone_and_the_queue_was_seen_empty() {
    const POLL: usize = 3;
    orders(5, &mut |order| {
        let mut rig = Rig::new();
        let shared = rig.shared();
        let mut pairs = [0, 1].map(|_| Some(rig.sharing(&shared)));
        let mut shared = Some(shared);
        // What polls have not taken notice of yet.
        let mut claimed = [SENDS, SENDS, RECEIVES];
        for &step in order {
            match step {
                0 | 1 => pairs[step] = None,
                2 => shared = None,
                POLL.. => {
                    assert!(rig.queue.poll().unwrap().is_none());
                    for (pair, claimed) in pairs.iter().zip(&mut claimed) {
                        *claimed = if pair.is_some() { SENDS } else { 0 };
                    }
                    claimed[2] = if pairs.iter().any(Option::is_some) { RECEIVES } else { 0 };
                }
            }
            assert_eq!(rig.room(), ENTRIES - claimed.iter().sum::<u32>(), "{step} of {order:?}");
        }
        drop(shared);
        assert!(rig.queue.poll().unwrap().is_none());
        assert_eq!(rig.room(), ENTRIES);
        let Rig { device, context, domain, queue, .. } = rig;
        drop((context, domain, queue));
        device.require_ended();
    });
}

#[test]
fn a_queue_that_is_used_again_keeps_its_room_and_its_completions() {
    let mut rig = Rig::new();
    let mut shared = rig.shared();
    let former = rig.sharing(&shared);
    shared.post_receive(rig.buffer(1)).unwrap();
    shared.post_receive(rig.buffer(2)).unwrap();
    let posted = rig.device.posted();
    rig.receive(&posted[0], &former);
    drop(former);
    let pair = rig.sharing(&shared);
    assert_eq!(numbers(&rig.drain()), [1], "it came before the queue pair was gone");
    assert_eq!(rig.room(), ENTRIES - SENDS - RECEIVES, "as before");
    rig.receive(&posted[1], &pair);
    assert_eq!(numbers(&rig.drain()), [2]);
    assert_eq!((rig.queue.unknown(), rig.alive()), (0, 0));

    // Also after the room was back.
    drop(pair);
    assert!(rig.drain().is_empty());
    assert_eq!(rig.room(), ENTRIES);
    let pair = rig.sharing(&shared);
    shared.post_receive(rig.buffer(3)).unwrap();
    rig.receive(&rig.device.posted()[0], &pair);
    assert_eq!(numbers(&rig.drain()), [3]);
    assert_eq!(rig.room(), ENTRIES - SENDS - RECEIVES);
}

#[test]
fn a_queue_pair_that_cannot_be_made_claims_nothing() {
    let mut rig = Rig::new();
    let mut shared = rig.shared();
    let refuse = |rig: &Rig, shared: &Shared| {
        rig.device.answer(Call::CreateQueuePair, Answer::errno(libc::ENOMEM));
        let error = rig.try_sharing(SENDS, shared).unwrap_err();
        assert_eq!(error.errno(), Some(Errno(libc::ENOMEM)));
    };
    for _ in 0..3 {
        refuse(&rig, &shared);
        assert_eq!(rig.room(), ENTRIES, "at once");
    }
    let full = rig.try_sharing(ENTRIES - RECEIVES + 1, &shared).unwrap_err();
    assert_eq!(full, Error::CompletionQueueFull { room: RECEIVES - 1, needed: RECEIVES });
    assert_eq!(rig.room(), ENTRIES);

    // Beside one that uses it, nothing changes for that one.
    let pair = rig.sharing(&shared);
    refuse(&rig, &shared);
    assert_eq!(rig.room(), ENTRIES - SENDS - RECEIVES);
    shared.post_receive(rig.buffer(1)).unwrap();
    rig.receive(&rig.device.posted()[0], &pair);

    // What came for one that is gone is still there, so the room is, until it was polled.
    drop(pair);
    refuse(&rig, &shared);
    assert_eq!(rig.room(), ENTRIES - SENDS - RECEIVES);
    assert_eq!(numbers(&rig.drain()), [1]);
    assert_eq!((rig.room(), rig.alive()), (ENTRIES, 0));
}

#[test]
fn a_queue_pair_that_the_device_keeps_keeps_the_room() {
    let mut rig = Rig::new();
    let shared = rig.shared();
    let pair = rig.sharing(&shared);
    rig.device.answer(Call::DestroyQueuePair, Answer::errno(libc::EBUSY));
    drop(pair);
    drop(shared);
    assert!(rig.drain().is_empty());
    assert_eq!(rig.room(), ENTRIES - SENDS - RECEIVES);
    assert_eq!(rig.device.state().count(Kind::SharedQueue), 1);
}

#[test]
fn each_completion_queue_has_its_room_back_for_itself() {
    let mut rig = Rig::new();
    let mut other = CompletionQueueOptions::new(RECEIVES).build(&rig.context).unwrap();
    let shared = rig.shared();
    let options = QueuePairOptions::new(SENDS, 0);
    let here = rig.sharing(&shared);
    let there: Pair = options.build_shared(&rig.domain, &rig.queue, &other, &shared).unwrap();
    assert_eq!(rig.room(), ENTRIES - 2 * SENDS - RECEIVES);
    drop(here);
    assert!(rig.drain().is_empty());
    assert_eq!(rig.room(), ENTRIES - SENDS);
    let full = options.build::<Rc, _>(&rig.domain, &other, &rig.queue).unwrap_err();
    assert_eq!(full, Error::CompletionQueueFull { room: 0, needed: SENDS });
    drop(there);
    assert!(drain(&mut other).is_empty());
    drop(options.build::<Rc, _>(&rig.domain, &other, &rig.queue).unwrap());
}
