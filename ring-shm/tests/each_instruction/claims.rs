//! A role that is claimed by its lock, by a process that is killed while it attaches and after: nobody has to promise that
//! it is gone.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use ring_core::{Role, broadcast, bytes, mpmc, spsc};
use ring_shm::{Claim, Presence, Segment, Side};

use crate::common::unlocked;
use crate::{Killed, Message, Pace, SOON, in_time, killed_at_each, message};

const DEPTH: u64 = 8;

/// Messages before the operation: around the ring.
const BEFORE: u64 = 11;
const WAITING: u64 = 5;

/// One side of a ring, whichever: messages are numbered.
trait Handle: Side {
    fn segment(&self) -> &Arc<Segment>;
}

trait Send: Handle {
    fn send(&mut self, number: u64);
}

trait Receive: Handle {
    /// Delivers each message at most once.
    fn once(self) -> Self;

    /// The number of the next message, which must be whole.
    fn receive(&mut self) -> Option<u64>;
}

fn number(found: Message) -> u64 {
    (0..4 * DEPTH).find(|&number| message(number) == found).expect("whole")
}

macro_rules! handles {
    ($($handle:ty),*) => {
        $(impl Handle for $handle {
            fn segment(&self) -> &Arc<Segment> {
                self.region().segment()
            }
        })*
    };
}

handles!(spsc::Producer<Message, Claim>, spsc::Consumer<Message, Claim>, bytes::Producer<Claim>);
handles!(bytes::Consumer<Claim>, mpmc::Producer<Message, Claim>, mpmc::Consumer<Message, Claim>);
handles!(broadcast::Producer<Message, Claim>);

impl Handle for broadcast::Consumer<Message, Arc<Segment>> {
    fn segment(&self) -> &Arc<Segment> {
        self.region()
    }
}

impl Send for spsc::Producer<Message, Claim> {
    fn send(&mut self, number: u64) {
        self.try_push(message(number)).unwrap();
    }
}

impl Send for mpmc::Producer<Message, Claim> {
    fn send(&mut self, number: u64) {
        self.try_push(message(number)).unwrap();
    }
}

impl Send for broadcast::Producer<Message, Claim> {
    fn send(&mut self, number: u64) {
        self.push(&message(number));
    }
}

impl Send for bytes::Producer<Claim> {
    fn send(&mut self, number: u64) {
        self.try_push(&message(number).map(u64::to_ne_bytes).concat()).unwrap();
    }
}

impl Receive for spsc::Consumer<Message, Claim> {
    fn once(self) -> Self {
        self.delivery(spsc::Delivery::AtMostOnce)
    }

    fn receive(&mut self) -> Option<u64> {
        self.try_pop().map(number).ok()
    }
}

impl Receive for mpmc::Consumer<Message, Claim> {
    fn once(self) -> Self {
        self
    }

    fn receive(&mut self) -> Option<u64> {
        self.try_pop().map(number).ok()
    }
}

impl Receive for broadcast::Consumer<Message, Arc<Segment>> {
    fn once(self) -> Self {
        self
    }

    fn receive(&mut self) -> Option<u64> {
        self.try_pop().map(number).ok()
    }
}

impl Receive for bytes::Consumer<Claim> {
    fn once(self) -> Self {
        self.delivery(bytes::Delivery::AtMostOnce)
    }

    fn receive(&mut self) -> Option<u64> {
        let mut buffer = [0; size_of::<Message>()];
        let length = self.try_pop(&mut buffer).ok()?;
        assert_eq!(length, buffer.len());
        let mut words = buffer.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
        Some(number(core::array::from_fn(|_| words.next().unwrap())))
    }
}

/// Attaches as a program does that was told the segment's descriptor.
fn attach<S: Side>(descriptor: OwnedFd) -> S {
    unlocked().attach_ring_fd(descriptor, SOON).unwrap()
}

fn descriptor(side: &impl Handle) -> OwnedFd {
    side.segment().inheritable().unwrap().into()
}

/// A ring that was used, with some messages in it.
fn used_ring<P: Send, C: Receive<Layout = P::Layout>>(layout: &P::Layout) -> (P, C) {
    let mut producer: P = unlocked().create_anonymous_ring(layout).unwrap();
    let mut consumer = attach::<C>(descriptor(&producer)).once();
    for number in 0..BEFORE {
        producer.send(number);
        if number >= WAITING {
            assert_eq!(consumer.receive(), Some(number - WAITING));
        }
    }
    (producer, consumer)
}

/// The survivor learns of the death by the lock, and a successor comes without asking anybody.
fn successor<S: Handle>(survivor: &impl Handle, role: Role) -> S {
    in_time(|| while survivor.segment().presence(role) != Ok(Presence::Gone) {});
    in_time(|| attach(descriptor(survivor)))
}

fn go_on(mut producer: impl Send, mut consumer: impl Receive) {
    for number in 2 * DEPTH..4 * DEPTH {
        producer.send(number);
        assert_eq!(consumer.receive(), Some(number));
    }
    assert_eq!(consumer.receive(), None);
}

fn producer_dies<P: Send, C: Receive<Layout = P::Layout>>(role: Role, layout: &P::Layout) {
    for pace in [Pace::Call, Pace::SomeInstruction] {
        killed_at_each(
            pace,
            || used_ring::<P, C>(layout).1,
            |consumer, mark| {
                let descriptor = descriptor(consumer);
                mark();
                let mut producer: P = attach(descriptor);
                producer.send(BEFORE);
                mark();
            },
            |mut consumer, Killed { is_through, .. }| {
                for number in BEFORE - WAITING..BEFORE {
                    assert_eq!(consumer.receive(), Some(number), "what others sent needs no clearing up");
                }
                let producer: P = successor(&consumer, role);
                let last = consumer.receive();
                assert!(last.is_none_or(|number| number == BEFORE), "{last:?}");
                assert!(last.is_some() || !is_through, "what was pushed is there");
                go_on(producer, consumer);
            },
        );
    }
}

fn consumer_dies<P: Send, C: Receive<Layout = P::Layout>>(role: Role, layout: &P::Layout) {
    for pace in [Pace::Call, Pace::SomeInstruction] {
        killed_at_each(
            pace,
            || used_ring::<P, C>(layout).0,
            |producer, mark| {
                let descriptor = descriptor(producer);
                mark();
                let mut consumer = attach::<C>(descriptor).once();
                assert_eq!(consumer.receive(), Some(BEFORE - WAITING));
                mark();
            },
            |producer, Killed { is_through, .. }| {
                let mut consumer = successor::<C>(&producer, role).once();
                let mut found: Vec<_> = core::iter::from_fn(|| consumer.receive()).collect();
                // What is put back comes late.
                found.sort_unstable();
                let comes_again = found.first() == Some(&(BEFORE - WAITING));
                let first = BEFORE - WAITING + u64::from(!comes_again);
                assert_eq!(found, (first..BEFORE).collect::<Vec<_>>(), "each once");
                assert!(!is_through || !comes_again, "twice");
                go_on(producer, consumer);
            },
        );
    }
}

fn spsc_layout() -> spsc::Layout<Message> {
    spsc::Layout::new(DEPTH).unwrap()
}

fn bytes_layout() -> bytes::Layout {
    bytes::Layout::new(1024).unwrap()
}

fn mpmc_layout() -> mpmc::Layout<Message> {
    mpmc::Layout::new(DEPTH).unwrap().participants(3).unwrap()
}

#[test]
fn who_claims_an_spsc_ring_is_killed() {
    type Tx = spsc::Producer<Message, Claim>;
    type Rx = spsc::Consumer<Message, Claim>;
    producer_dies::<Tx, Rx>(Role::Producer, &spsc_layout());
    consumer_dies::<Tx, Rx>(Role::Consumer, &spsc_layout());
}

#[test]
fn who_claims_a_byte_ring_is_killed() {
    type Tx = bytes::Producer<Claim>;
    type Rx = bytes::Consumer<Claim>;
    producer_dies::<Tx, Rx>(Role::Producer, &bytes_layout());
    consumer_dies::<Tx, Rx>(Role::Consumer, &bytes_layout());
}

/// The victim takes the first place that is free, which its forerunner had.
#[test]
fn who_claims_a_place_of_an_mpmc_ring_is_killed() {
    type Tx = mpmc::Producer<Message, Claim>;
    type Rx = mpmc::Consumer<Message, Claim>;
    producer_dies::<Tx, Rx>(Role::Participant(1), &mpmc_layout());
    consumer_dies::<Tx, Rx>(Role::Participant(2), &mpmc_layout());
}

#[test]
fn who_claims_a_broadcast_is_killed() {
    type Tx = broadcast::Producer<Message, Claim>;
    type Rx = broadcast::Consumer<Message, Arc<Segment>>;
    producer_dies::<Tx, Rx>(Role::Producer, &broadcast::Layout::new(DEPTH).unwrap());
}
