//! Two ends that come together over a stream.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::thread;

use ring_verbs::{
    AccessFlags, CompletionQueue, Connection, Endpoint, ExposedRegion, Failure, HandshakeError, Init, Mtu,
    Opcode, QueuePair, QueuePairOptions, Rc, Request, RtrAttributes, Rts, RtsAttributes, Slab, Transport, Uc,
};

use crate::Tests;
use crate::rig::{Ready, Rig, completions, completions_of};

pub(crate) const TESTS: Tests = &[
    ("rc_connects", connects::<Rc>),
    ("uc_connects", connects::<Uc>),
    ("the_smaller_mtu_is_agreed_on", the_smaller_mtu_is_agreed_on),
    ("what_is_exchanged_serves_by_hand", what_is_exchanged_serves_by_hand),
    ("packet_numbers_are_chosen_by_chance", packet_numbers_are_chosen_by_chance),
    ("a_peer_that_hangs_up_costs_no_buffer", a_peer_that_hangs_up_costs_no_buffer),
    ("other_transports_are_refused_at_both_ends", other_transports_are_refused_at_both_ends),
];

fn build<T: Transport>(rig: &Rig, queue: &CompletionQueue<Slab>) -> QueuePair<T, ring_verbs::Reset> {
    QueuePairOptions::new(8, 8).build(&rig.domain, queue, queue).unwrap()
}

type Connected<T> = (QueuePair<T, Rts>, Endpoint);

/// Both ends at a time, as in two programs.
fn finish<T: Ready>(
    a: (&Connection<'_>, QueuePair<T, Init>),
    b: (&Connection<'_>, QueuePair<T, Init>),
) -> (Connected<T>, Connected<T>) {
    let (mut to_b, mut to_a) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        let b = scope.spawn(move || b.0.finish(&mut to_a, b.1).unwrap());
        let a = a.0.finish(&mut to_b, a.1).unwrap();
        (a, b.join().unwrap())
    })
}

fn connects<T: Ready>() {
    let rig = Rig::new();
    let mut queue = rig.completion_queue(64);
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
    let inbox = ExposedRegion::new(&rig.domain, vec![0; 64], access).unwrap();
    let plain = Connection::new(&rig.port, &rig.gid);
    let exposing = plain.clone().access(AccessFlags::REMOTE_WRITE).region(inbox.remote());
    let a = plain.init(build::<T>(&rig, &queue)).unwrap();
    let mut b = exposing.init(build::<T>(&rig, &queue)).unwrap();
    b.post_receive(rig.pool.take().unwrap()).unwrap();

    let ((mut a, peer_of_a), (b, peer_of_b)) = finish((&plain, a), (&exposing, b));
    assert_eq!(peer_of_a.queue_pair(), b.number());
    assert_eq!(peer_of_b.queue_pair(), a.number());
    assert_eq!(peer_of_a.gid(), rig.gid.gid);
    assert_eq!(peer_of_a.regions(), [inbox.remote()]);
    assert!(peer_of_b.regions().is_empty());

    a.post(&Request::write(peer_of_a.regions()[0]), rig.slab(b"written")).unwrap();
    a.post(&Request::send(), rig.slab(b"sent")).unwrap();
    let (sent, received) = completions_of(&mut queue, 3, a.number());
    assert!(sent.iter().all(|completion| completion.result().is_ok()));
    assert_eq!(received[0].opcode(), Opcode::Receive);
    assert_eq!(&received[0].buffer.as_ref().unwrap()[..4], b"sent");
    let mut bytes = [0; 7];
    inbox.read(0, &mut bytes);
    assert_eq!(&bytes, b"written");
}

fn the_smaller_mtu_is_agreed_on() {
    let rig = Rig::new();
    let queue = rig.completion_queue(64);
    let large = Connection::new(&rig.port, &rig.gid).reads(4);
    let small = large.clone().mtu(Mtu::MTU_256).reads(2);
    let pair = |connection: &Connection<'_>| connection.init(build::<Rc>(&rig, &queue)).unwrap();
    let ((a, peer_of_a), (b, peer_of_b)) = finish((&large, pair(&large)), (&small, pair(&small)));
    assert_eq!((peer_of_a.mtu(), peer_of_a.reads()), (Mtu::MTU_256, 2));
    assert_eq!((peer_of_b.mtu(), peer_of_b.reads()), (rig.port.active_mtu(), 4));
    assert!(rig.port.active_mtu().bytes() > Mtu::MTU_256.bytes());
    assert_eq!(a.attributes().unwrap().path_mtu, Mtu::MTU_256);
    assert_eq!(b.attributes().unwrap().path_mtu, Mtu::MTU_256);
    // No more reads at a time than the other end serves.
    assert_eq!(a.attributes().unwrap().max_rd_atomic, 2);
    assert_eq!(b.attributes().unwrap().max_rd_atomic, 2);
}

fn what_is_exchanged_serves_by_hand() {
    let rig = Rig::new();
    let mut queue = rig.completion_queue(64);
    let (mut to_b, mut to_a) = UnixStream::pair().unwrap();
    let init = ring_verbs::InitAttributes::new(rig.port.number());
    let [a, b] = [(); 2].map(|()| build::<Rc>(&rig, &queue).into_init(&init).unwrap());
    let [of_a, of_b] = [&a, &b].map(|pair| Endpoint::new(pair, &rig.port, &rig.gid).unwrap());
    to_b.write_all(&of_a.to_bytes()).unwrap();
    let at_b = of_b.exchange(&mut to_a).unwrap();
    let at_a = of_a.exchange(&mut to_b).unwrap();
    assert_eq!((&at_a, &at_b), (&of_b, &of_a));

    let ready = |pair: QueuePair<Rc, Init>, ours: &Endpoint, theirs: &Endpoint| {
        let route = theirs.route_from(&rig.gid);
        let mtu = ours.common_mtu(theirs);
        let to = RtrAttributes::new(route, mtu, theirs.queue_pair(), theirs.packet_number());
        pair.into_rtr(&to).unwrap().into_rts(&RtsAttributes::new(ours.packet_number())).unwrap()
    };
    let (mut a, mut b) = (ready(a, &of_a, &at_a), ready(b, &of_b, &at_b));
    b.post_receive(rig.pool.take().unwrap()).unwrap();
    a.post(&Request::send(), rig.slab(b"by hand")).unwrap();
    assert!(completions(&mut queue, 2).iter().all(|completion| completion.result().is_ok()));
}

fn packet_numbers_are_chosen_by_chance() {
    let rig = Rig::new();
    let pair = build::<Rc>(&rig, &rig.completion_queue(64));
    let mut numbers: Vec<u32> =
        (0..8).map(|_| Endpoint::new(&pair, &rig.port, &rig.gid).unwrap().packet_number()).collect();
    assert!(numbers.iter().all(|number| *number < 1 << 24));
    numbers.dedup();
    // That all are the same by chance happens once in 2^168 runs.
    assert!(numbers.len() > 1, "{numbers:?}");
}

fn a_peer_that_hangs_up_costs_no_buffer() {
    let rig = Rig::new();
    let mut queue = rig.completion_queue(64);
    let connection = Connection::new(&rig.port, &rig.gid);
    let other = connection.init(build::<Rc>(&rig, &queue)).unwrap();
    let theirs = Endpoint::new(&other, &rig.port, &rig.gid).unwrap();
    let mut pair = connection.init(build::<Rc>(&rig, &queue)).unwrap();
    pair.post_receive(rig.slab(b"mine")).unwrap();
    let (mut stream, peer) = UnixStream::pair().unwrap();
    (&peer).write_all(&theirs.to_bytes()).unwrap();
    peer.shutdown(std::net::Shutdown::Write).unwrap();

    let error = connection.finish(&mut stream, pair).unwrap_err();
    assert!(
        matches!(&error, HandshakeError::Stream { source } if source.kind() == std::io::ErrorKind::UnexpectedEof)
    );
    let completion = completions(&mut queue, 1).pop().unwrap();
    assert_eq!(completion.result(), Err(Failure::Discarded));
    assert_eq!(&completion.buffer.unwrap()[..], b"mine");
    assert_eq!(rig.pool.out(), 0);
}

fn other_transports_are_refused_at_both_ends() {
    let rig = Rig::new();
    let queue = rig.completion_queue(64);
    let connection = Connection::new(&rig.port, &rig.gid);
    let (a, b) = (build::<Rc>(&rig, &queue), build::<Uc>(&rig, &queue));
    let (mut to_b, mut to_a) = UnixStream::pair().unwrap();
    let (at_a, at_b) = thread::scope(|scope| {
        let b = scope.spawn(|| connection.connect(&mut to_a, b).unwrap_err());
        (connection.connect(&mut to_b, a).unwrap_err(), b.join().unwrap())
    });
    for error in [at_a, at_b] {
        assert!(matches!(error, HandshakeError::OtherTransport { .. }), "{error}");
    }
}
