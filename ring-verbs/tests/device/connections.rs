//! What a connection can do, and what comes back.

use ring_verbs::{
    AccessFlags, ExposedRegion, Failure, Opcode, QueuePairOptions, Rc, Rejection, Request, Uc, WcStatus,
};

use crate::Tests;
use crate::rig::{PATIENCE, Ready, Rig, completions, completions_of};

pub(crate) const TESTS: Tests = &[
    ("rc_sends_arrive", sends_arrive::<Rc>),
    ("uc_sends_arrive", sends_arrive::<Uc>),
    ("rc_writes_arrive", writes_arrive::<Rc>),
    ("uc_writes_arrive", writes_arrive::<Uc>),
    ("reads_bring_what_is_there", reads_bring_what_is_there),
    ("atomics_bring_what_was_there", atomics_bring_what_was_there),
    ("a_full_queue_gives_the_buffer_back", a_full_queue_gives_the_buffer_back),
    ("unsignaled_buffers_come_back_with_a_later_one", unsignaled_buffers_come_back_with_a_later_one),
    ("an_error_flushes_everything", an_error_flushes_everything),
    ("a_dropped_pair_leaves_its_buffers_to_the_queue", a_dropped_pair_leaves_its_buffers_to_the_queue),
    ("a_batch_goes_with_one_ring", a_batch_goes_with_one_ring),
];

fn options() -> QueuePairOptions {
    QueuePairOptions::new(16, 16).max_inline(64)
}

fn sends_arrive<T: Ready>() {
    let rig = Rig::new();
    let mut pair = rig.pair::<T>(&options());
    for _ in 0..3 {
        pair.b.post_receive(rig.pool.take().unwrap()).unwrap();
    }
    pair.a.post(&Request::send(), rig.slab(b"plain")).unwrap();
    pair.a.post(&Request::send_with_immediate(0x0102_0304).solicited(), rig.slab(b"with")).unwrap();
    pair.a.post_inline(&Request::send(), b"inline").unwrap();

    let (sent, received) = completions_of(&mut pair.queue, 6, pair.a.number());
    for (index, completion) in sent.iter().enumerate() {
        completion.result().unwrap();
        assert_eq!(completion.opcode(), Opcode::Send);
        assert_eq!(completion.ticket().number(), index as u64);
        assert_eq!(completion.buffer.is_some(), index < 2);
    }
    let expected = [(b"plain".as_slice(), None), (b"with", Some(0x0102_0304)), (b"inline", None)];
    for (completion, (bytes, immediate)) in received.iter().zip(expected) {
        completion.result().unwrap();
        assert_eq!(completion.opcode(), Opcode::Receive);
        assert_eq!(completion.immediate(), immediate);
        assert_eq!(&completion.buffer.as_ref().unwrap()[..completion.bytes() as usize], bytes);
    }
    assert_eq!(received.len(), 3);
    drop((sent, received));
    assert_eq!(rig.pool.out(), 0);
}

fn writes_arrive<T: Ready>() {
    let rig = Rig::new();
    let mut pair = rig.pair::<T>(&options());
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
    let target = ExposedRegion::new(&rig.domain, vec![0; 64], access).unwrap();
    pair.b.post_receive(rig.pool.take().unwrap()).unwrap();
    let second = target.remote().part(16, 16).unwrap();
    pair.a.post(&Request::write(target.remote()), rig.slab(b"one way")).unwrap();
    pair.a.post(&Request::write_with_immediate(second, 9), rig.slab(b"and told")).unwrap();

    let (sent, received) = completions_of(&mut pair.queue, 3, pair.a.number());
    assert!(sent.iter().all(|completion| completion.result().is_ok()));
    assert_eq!(sent[0].opcode(), Opcode::Write);
    assert_eq!(sent[1].opcode(), Opcode::WriteWithImmediate);
    assert_eq!(received[0].opcode(), Opcode::ReceiveImmediateOfWrite);
    assert_eq!(received[0].immediate(), Some(9));
    let mut bytes = [0; 24];
    target.read(0, &mut bytes);
    assert_eq!(&bytes, b"one way\0\0\0\0\0\0\0\0\0and told");
}

fn reads_bring_what_is_there() {
    let rig = Rig::new();
    let mut pair = rig.pair::<Rc>(&options());
    let source =
        ExposedRegion::new(&rig.domain, b"what is there".to_vec(), AccessFlags::REMOTE_READ).unwrap();
    pair.a.post(&Request::read(source.remote()).fenced(), rig.slab(&[0; 13])).unwrap();
    let completion = completions(&mut pair.queue, 1).pop().unwrap();
    completion.result().unwrap();
    assert_eq!((completion.opcode(), completion.bytes()), (Opcode::Read, 13));
    assert_eq!(&completion.buffer.unwrap()[..], b"what is there");
}

fn atomics_bring_what_was_there() {
    let rig = Rig::new();
    let mut pair = rig.pair::<Rc>(&options());
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_ATOMIC;
    let memory = ring_verbs::PageMemory::new(8, ring_verbs::Pages::Small, None).unwrap();
    let word = ExposedRegion::new(&rig.domain, memory, access).unwrap();
    word.write(0, &40_u64.to_ne_bytes());
    let mut do_it = |request| {
        pair.a.post(&request, rig.slab(&[0; 8])).unwrap();
        let completion = completions(&mut pair.queue, 1).pop().unwrap();
        completion.result().unwrap();
        let before = completion.buffer.as_ref().unwrap()[..].try_into().unwrap();
        (completion.opcode(), u64::from_ne_bytes(before))
    };
    assert_eq!(do_it(Request::fetch_and_add(word.remote(), 2)), (Opcode::FetchAndAdd, 40));
    assert_eq!(do_it(Request::compare_and_swap(word.remote(), 41, 1)), (Opcode::CompareAndSwap, 42));
    assert_eq!(do_it(Request::compare_and_swap(word.remote(), 42, 1)), (Opcode::CompareAndSwap, 42));
    assert_eq!(word.word(0).load(core::sync::atomic::Ordering::Relaxed), 1);
}

fn a_full_queue_gives_the_buffer_back() {
    let rig = Rig::new();
    let mut pair = rig.pair::<Rc>(&QueuePairOptions::new(4, 4));
    for _ in 0..4 {
        pair.b.post_receive(rig.pool.take().unwrap()).unwrap();
        pair.a.post(&Request::send(), rig.slab(b"x")).unwrap();
    }
    let rejected = pair.a.post(&Request::send(), rig.slab(b"one more")).unwrap_err();
    assert_eq!(rejected.reason, Rejection::Full);
    assert_eq!(&rejected.buffer[..], b"one more");
    let rejected = pair.b.post_receive(rig.pool.take().unwrap()).unwrap_err();
    assert_eq!(rejected.reason, Rejection::Full);
    assert_eq!(completions(&mut pair.queue, 8).len(), 8);
    pair.a.post(&Request::send(), rig.slab(b"again")).unwrap();
}

fn unsignaled_buffers_come_back_with_a_later_one() {
    let rig = Rig::new();
    let mut pair = rig.pair::<Rc>(&options().signal_every(4));
    for _ in 0..8 {
        pair.b.post_receive(rig.pool.take().unwrap()).unwrap();
    }
    for index in 0..8_u8 {
        pair.a.post(&Request::send(), rig.slab(&[index])).unwrap();
    }
    let (sent, received) = completions_of(&mut pair.queue, 16, pair.a.number());
    for (index, completion) in sent.into_iter().enumerate() {
        completion.result().unwrap();
        assert_eq!(completion.buffer.unwrap()[0] as usize, index);
    }
    assert_eq!(received.len(), 8);
    pair.b.post_receive(rig.pool.take().unwrap()).unwrap();
    pair.a.post(&Request::send().signaled(), rig.slab(b"now")).unwrap();
    completions(&mut pair.queue, 2);
}

fn an_error_flushes_everything() {
    let rig = Rig::new();
    let mut pair = rig.pair::<Rc>(&options());
    for _ in 0..3 {
        pair.b.post_receive(rig.pool.take().unwrap()).unwrap();
    }
    let mut b = pair.b.into_error().unwrap();
    let mut flushed = Vec::new();
    assert!(b.drain(&mut [&mut pair.queue], PATIENCE, |completion| flushed.push(completion)).unwrap());
    assert_eq!(flushed.len(), 3);
    for completion in &flushed {
        assert_eq!(completion.result().unwrap_err().status(), Some(WcStatus::WR_FLUSH_ERR));
    }
    assert_eq!(b.receives_in_flight(), 0);
    drop(flushed);
    assert_eq!(rig.pool.out(), 0);
}

fn a_dropped_pair_leaves_its_buffers_to_the_queue() {
    let rig = Rig::new();
    let mut pair = rig.pair::<Rc>(&options());
    for index in 0..5 {
        pair.b.post_receive(rig.slab(&[index])).unwrap();
    }
    drop(pair.b);
    for (index, completion) in completions(&mut pair.queue, 5).into_iter().enumerate() {
        assert_eq!(completion.result(), Err(Failure::Discarded));
        assert_eq!(completion.buffer.unwrap()[0] as usize, index);
    }
    assert!(pair.queue.poll().unwrap().is_none());
    assert_eq!(rig.pool.out(), 0);
}

fn a_batch_goes_with_one_ring() {
    let rig = Rig::new();
    let mut pair = rig.pair::<Rc>(&options());
    for _ in 0..4 {
        pair.b.post_receive(rig.pool.take().unwrap()).unwrap();
    }
    let mut batch = pair.a.batch();
    for index in 0..3_u8 {
        batch.push(&Request::send(), rig.slab(&[index])).unwrap();
    }
    batch.push_inline(&Request::send(), &[3]).unwrap();
    batch.post().unwrap();
    let (sent, received) = completions_of(&mut pair.queue, 8, pair.a.number());
    assert!(sent.iter().all(|completion| completion.result().is_ok()));
    for (index, completion) in received.into_iter().enumerate() {
        assert_eq!(completion.buffer.unwrap()[0] as usize, index);
    }

    let mut batch = pair.a.batch();
    batch.push(&Request::send(), rig.slab(b"never")).unwrap();
    drop(batch);
    drop(sent);
    assert_eq!(rig.pool.out(), 0);

    // A batch that was forgotten is not posted later, when the bytes of its requests are gone.
    let bytes = vec![9; 8];
    let mut batch = pair.a.batch();
    batch.push(&Request::send(), rig.slab(b"never")).unwrap();
    batch.push_inline(&Request::send(), &bytes).unwrap();
    core::mem::forget(batch);
    drop(bytes);
    pair.b.post_receive(rig.pool.take().unwrap()).unwrap();
    pair.a.post(&Request::send(), rig.slab(b"only")).unwrap();
    let (sent, received) = completions_of(&mut pair.queue, 2, pair.a.number());
    assert_eq!((sent.len(), &received[0].buffer.as_ref().unwrap()[..4]), (1, b"only".as_slice()));
    drop((sent, received));
    assert_eq!(rig.pool.out(), 0);
}
