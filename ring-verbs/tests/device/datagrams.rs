//! Datagrams: to anybody, with a key.

use ring_verbs::{AddressHandle, Opcode, QueuePair, QueuePairOptions, Request, Slab, Ud};

use crate::Tests;
use crate::rig::{self, Rig};

pub(crate) const TESTS: Tests = &[("sends_arrive", sends_arrive)];

const KEY: u32 = 0x1111;

fn sends_arrive() {
    let rig = Rig::new();
    let mut queue = rig.completion_queue::<Slab>(64);
    let ready = || {
        let pair: QueuePair<Ud, _> = QueuePairOptions::new(8, 8).build(&rig.domain, &queue, &queue).unwrap();
        pair.into_init(rig.port.number(), KEY).unwrap().into_rtr().unwrap().into_rts().unwrap()
    };
    let (mut a, mut b) = (ready(), ready());
    b.post_receive(rig.pool.take().unwrap()).unwrap();
    let handle = AddressHandle::new(&rig.domain, &rig.route()).unwrap();
    let request = Request::send_to_with_immediate(&handle, b.number(), KEY, 5);
    drop(handle);
    a.post(&request, rig.slab(b"datagram")).unwrap();
    let completions = rig::completions(&mut queue, 2);
    let received = completions.iter().find(|completion| completion.opcode() == Opcode::Receive).unwrap();
    assert_eq!(received.bytes(), 40 + 8);
    assert_eq!(&received.buffer.as_ref().unwrap()[40..48], b"datagram");
    assert_eq!(received.immediate(), Some(5));
    let source = received.source().unwrap();
    assert_eq!(source.queue_pair, a.number());

    let header = received.buffer.as_ref().unwrap()[..40].try_into().unwrap();
    let back = AddressHandle::to_sender(&rig.domain, rig.port.number(), &source, &header).unwrap();
    a.post_receive(rig.pool.take().unwrap()).unwrap();
    b.post(&Request::send_to(&back, source.queue_pair, KEY), rig.slab(b"answer")).unwrap();
    let answered = rig::completions(&mut queue, 2);
    let answer = answered.iter().find(|completion| completion.opcode() == Opcode::Receive).unwrap();
    assert_eq!(&answer.buffer.as_ref().unwrap()[40..46], b"answer");

    // A wrong key is dropped in silence, on both sides.
    b.post(&Request::send_to(&back, source.queue_pair, KEY + 1), rig.slab(b"nobody")).unwrap();
    a.post_receive(rig.pool.take().unwrap()).unwrap();
    rig::completions(&mut queue, 1).pop().unwrap().result().unwrap();
    assert_eq!((a.receives_in_flight(), queue.poll().unwrap().is_none()), (1, true));
}
