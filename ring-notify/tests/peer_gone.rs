//! A process is killed while another waits for it: who waits is told, within its slice and the time that the kernel
//! takes to release a lock, whatever it waits for. A successor goes on.

mod common;

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use common::{ASLEEP, Bed, LONG, Other, Started, WAIT_WORDS, attach, in_time, soon, started, unlocked, word};
use ring_core::{bytes, mpmc, spsc};
use ring_notify::{AnyOf, Barrier, Options, RecvError, SendError, Strategy, WaitAnyError, WaitError};
use ring_shm::{Claim, Error, Locks, Segment};

const SLICE: Duration = Duration::from_millis(20);

type Tx = spsc::Producer<u64, Claim>;
type Rx = spsc::Consumer<u64, Claim>;

fn layout() -> spsc::Layout<u64> {
    spsc::Layout::new(1).unwrap()
}

/// As `attach`, once the kernel has released the locks of who had the role.
fn attach_soon<S: ring_shm::Side>(segment: &Segment) -> S {
    let mut side = None;
    soon(|| match unlocked().attach_ring_fd(segment.inheritable().unwrap(), LONG) {
        Ok(attached) => {
            side = Some(attached);
            true
        }
        Err(Error::RoleTaken { .. }) => false,
        Err(error) => panic!("{error:?}"),
    });
    side.unwrap()
}

/// A process that has taken a side of the ring and done something with it, and keeps it until it is killed.
fn owner<S: ring_shm::Side>(segment: &Segment, act: impl FnOnce(&mut S)) -> Other {
    let is_ready = unlocked().create_anonymous(64).unwrap().publish();
    let owner = Other::fork(|| {
        let mut side: S = attach(segment);
        act(&mut side);
        word(&is_ready, 0).store(1, Ordering::Release);
        loop {
            std::thread::sleep(LONG);
        }
    });
    soon(|| word(&is_ready, 0).load(Ordering::Acquire) == 1);
    owner
}

fn options(bed: &Bed, claim: &Claim) -> Options<Locks> {
    bed.options(Barrier::Asymmetric).slice(Some(SLICE)).liveness(claim.liveness())
}

/// Kills a process while the thread sleeps that waits for it, and gives what the thread has then.
fn kill_while_asleep<T>(owner: Other, waiting: Started<T>) -> T {
    waiting.wait_until_it_sleeps();
    std::thread::sleep(3 * SLICE);
    assert!(waiting.is_over_within(Duration::ZERO).is_none(), "it is alive");
    let start = Instant::now();
    owner.kill();
    let found = waiting.end();
    assert!(start.elapsed() < Duration::from_secs(5), "not until {:?}", start.elapsed());
    found
}

#[test]
fn who_waits_for_messages_is_told_of_a_death_and_goes_on_with_the_successor() {
    for bed in Bed::each() {
        let consumer: Rx = unlocked().create_anonymous_ring(&layout()).unwrap();
        let segment = Arc::clone(consumer.region().segment());
        let mut receiver = options(&bed, consumer.region()).receiver(consumer).unwrap();
        let owner = owner(&segment, |producer: &mut Tx| producer.try_push(1).unwrap());
        let waiting = started(move || {
            assert_eq!(receiver.recv(), Ok(1), "what it had sent is there");
            let end = receiver.recv();
            (receiver, end)
        });
        let (mut receiver, end) = kill_while_asleep(owner, waiting);
        assert_eq!(end, Err(RecvError::PeerGone));
        assert_eq!(receiver.ready(None), Err(WaitError::PeerGone), "so it is told again");
        let successor: Tx = attach_soon(&segment);
        let mut sender = bed.options(Barrier::Asymmetric).sender(successor).unwrap();
        let waiting = started(move || receiver.recv());
        waiting.wait_until_it_sleeps();
        sender.send(2).unwrap();
        assert_eq!(waiting.end(), Ok(2));
    }
}

#[test]
fn who_waits_for_room_is_told_of_a_death_and_goes_on_with_the_successor() {
    for bed in Bed::each() {
        let producer: Tx = unlocked().create_anonymous_ring(&layout()).unwrap();
        let segment = Arc::clone(producer.region().segment());
        let mut sender = options(&bed, producer.region()).sender(producer).unwrap();
        sender.send(1).unwrap();
        let owner = owner(&segment, |_: &mut Rx| ());
        let waiting = started(move || {
            let end = sender.send(2);
            (sender, end)
        });
        let (mut sender, end) = kill_while_asleep(owner, waiting);
        assert_eq!(end, Err(SendError::PeerGone(2)), "and gets its message back");
        let successor: Rx = attach_soon(&segment);
        let mut receiver = bed.options(Barrier::Asymmetric).receiver(successor).unwrap();
        let waiting = started(move || sender.send(3));
        waiting.wait_until_it_sleeps();
        assert_eq!((receiver.recv(), receiver.recv()), (Ok(1), Ok(3)));
        assert_eq!(waiting.end(), Ok(()));
    }
}

#[test]
fn who_waits_by_a_byte_ring_is_told_of_a_death() {
    for bed in Bed::each() {
        let layout = bytes::Layout::new(64).unwrap();
        let consumer: bytes::Consumer<Claim> = unlocked().create_anonymous_ring(&layout).unwrap();
        let segment = Arc::clone(consumer.region().segment());
        let mut receiver = options(&bed, consumer.region()).receiver(consumer).unwrap();
        let owner = owner(&segment, |_: &mut bytes::Producer<Claim>| ());
        let waiting = started(move || receiver.recv(&mut [0; 8]));
        assert_eq!(kill_while_asleep(owner, waiting), Err(RecvError::PeerGone));
    }
}

#[test]
fn a_doorbell_is_told_as_well() {
    let consumer: Rx = unlocked().create_anonymous_ring(&layout()).unwrap();
    let segment = Arc::clone(consumer.region().segment());
    let options = options(&Bed::Futex, consumer.region()).strategy(Strategy::doorbell());
    let mut receiver = options.receiver(consumer).unwrap();
    let owner = owner(&segment, |_: &mut Tx| ());
    owner.kill();
    in_time(move || assert_eq!(receiver.recv(), Err(RecvError::PeerGone)));
}

/// Waits that are each shorter than a slice ask as often in all.
#[test]
fn who_waits_for_a_short_time_again_and_again_is_told_as_well() {
    for bed in Bed::each() {
        let consumer: Rx = unlocked().create_anonymous_ring(&layout()).unwrap();
        let segment = Arc::clone(consumer.region().segment());
        let mut receiver = options(&bed, consumer.region()).receiver(consumer).unwrap();
        let owner = owner(&segment, |_: &mut Tx| ());
        owner.kill();
        in_time(move || while receiver.recv_timeout(SLICE / 20) != Err(RecvError::PeerGone) {});
    }
}

/// The same for several, and where others hold up who waits in between.
#[test]
fn who_waits_for_several_for_a_short_time_is_told_as_well() {
    let consumer: Rx = unlocked().create_anonymous_ring(&layout()).unwrap();
    let segment = Arc::clone(consumer.region().segment());
    let mut receiver = options(&Bed::Futex, consumer.region()).receiver(consumer).unwrap();
    let owner = owner(&segment, |_: &mut Tx| ());
    owner.kill();
    in_time(move || {
        let mut any = AnyOf::new(Strategy::futex());
        while any.wait(&mut [&mut receiver], Some(SLICE / 20)) != Err(WaitAnyError::PeerGone { index: 0 }) {
            std::thread::sleep(SLICE);
        }
    });
}

/// However long a strategy spins or yields.
#[test]
fn who_spins_for_long_is_told_as_well() {
    for strategy in [Strategy::futex().spins(u32::MAX), Strategy::futex().yields(u32::MAX)] {
        let consumer: Rx = unlocked().create_anonymous_ring(&layout()).unwrap();
        let segment = Arc::clone(consumer.region().segment());
        let options = options(&Bed::Futex, consumer.region()).strategy(strategy);
        let mut receiver = options.receiver(consumer).unwrap();
        let owner = owner(&segment, |_: &mut Tx| ());
        owner.kill();
        in_time(move || {
            assert_eq!(receiver.recv(), Err(RecvError::PeerGone));
            let found = AnyOf::new(strategy).wait(&mut [&mut receiver], None);
            assert_eq!(found, Err(WaitAnyError::PeerGone { index: 0 }));
        });
    }
}

#[test]
fn who_waits_for_several_is_told_which_one_is_dead() {
    for bed in Bed::each() {
        let rings = [0; 2].map(|_| unlocked().create_anonymous_ring::<Rx>(&layout()).unwrap());
        let segments = rings.each_ref().map(|consumer| Arc::clone(consumer.region().segment()));
        let mut receivers =
            rings.map(|consumer| options(&bed, consumer.region()).receiver(consumer).unwrap());
        let owners = segments.each_ref().map(|segment| owner(segment, |_: &mut Tx| ()));
        let [stays, dies] = owners;
        let waiting = started(move || {
            let [one, other] = &mut receivers;
            AnyOf::new(bed.strategy()).wait(&mut [one, other], None)
        });
        assert_eq!(kill_while_asleep(dies, waiting), Err(WaitAnyError::PeerGone { index: 1 }));
        stays.kill();
    }
}

type ManyTx = mpmc::Producer<u64, Claim>;
type ManyRx = mpmc::Consumer<u64, Claim>;

fn of_many() -> mpmc::Layout<u64> {
    mpmc::Layout::new(2).unwrap().participants(4).unwrap()
}

/// What the dead had claimed is put back meanwhile.
#[test]
fn of_many_one_may_die_and_the_others_go_on_until_nobody_is_left() {
    for bed in Bed::each() {
        let consumer: ManyRx = unlocked().create_anonymous_ring(&of_many()).unwrap();
        let segment = Arc::clone(consumer.region().segment());
        let mut receiver = options(&bed, consumer.region()).receiver(consumer).unwrap();
        let mut other: ManyTx = attach(&segment);
        let owner = owner(&segment, |producer: &mut ManyTx| {
            // In the way of all that come after it.
            core::mem::forget(producer.try_reserve().unwrap());
        });
        other.try_push(u64::MAX).unwrap();
        let mut sender = bed.options(Barrier::Asymmetric).sender(other).unwrap();
        let waiting = started(move || {
            let found = receiver.recv();
            (receiver, found)
        });
        let (mut receiver, found) = kill_while_asleep(owner, waiting);
        assert_eq!(found, Ok(u64::MAX), "what came behind the dead one's claim");
        let waiting = started(move || {
            let found = receiver.recv();
            (receiver, found)
        });
        waiting.wait_until_it_sleeps();
        sender.send(5).unwrap();
        let (mut receiver, found) = waiting.end();
        assert_eq!(found, Ok(5), "another one is alive");
        drop(sender);
        let last = self::owner(&segment, |_: &mut ManyTx| ());
        let waiting = started(move || receiver.recv());
        assert_eq!(kill_while_asleep(last, waiting), Err(RecvError::PeerGone), "nobody is left");
    }
}

/// Whoever wakes notices nothing, and a successor finds what was sent meanwhile.
#[test]
fn a_sleeper_is_killed_and_its_successor_goes_on() {
    for bed in Bed::each() {
        let producer: Tx = unlocked().create_anonymous_ring(&layout()).unwrap();
        let segment = Arc::clone(producer.region().segment());
        let mut sender = bed.options(Barrier::Asymmetric).sender(producer).unwrap();
        let sleeper = Other::fork(|| {
            let consumer: Rx = attach(&segment);
            let _ = bed.options(Barrier::Asymmetric).receiver(consumer).unwrap().recv();
        });
        let is_announced = || word(&*segment, WAIT_WORDS[0]).load(Ordering::Acquire) & ASLEEP != 0;
        soon(is_announced);
        sleeper.wait_until_it_sleeps();
        sleeper.kill();
        assert!(is_announced(), "its notice is still there");
        sender.send(1).unwrap();
        assert_eq!(sender.counters().wakes_sent, 1, "a wake in vain");
        let consumer: Rx = attach_soon(&segment);
        let mut receiver = bed.options(Barrier::Asymmetric).receiver(consumer).unwrap();
        let receiving =
            started(move || (1..=1000).for_each(|number| assert_eq!(receiver.recv(), Ok(number))));
        (2..=1000).for_each(|number| sender.send(number).unwrap());
        receiving.end();
    }
}

/// A side that leaves without closing the ring, by a panic say, is as gone as a dead one; one that never came is not.
#[test]
fn who_waits_is_told_of_one_who_left() {
    let consumer: Rx = unlocked().create_anonymous_ring(&layout()).unwrap();
    let segment = Arc::clone(consumer.region().segment());
    let mut receiver = options(&Bed::Futex, consumer.region()).receiver(consumer).unwrap();
    assert_eq!(receiver.recv_timeout(3 * SLICE), Err(RecvError::TimedOut), "nobody has come yet");

    let producer: Tx = attach(&segment);
    let mut sender = Options::new().sender(producer).unwrap();
    sender.send(1).unwrap();
    let leaving = std::thread::spawn(move || {
        let _sender = sender;
        std::panic::resume_unwind(Box::new("as a panic does"));
    });
    assert!(leaving.join().is_err());
    assert_eq!(receiver.recv(), Ok(1), "what it sent is there");
    assert_eq!(receiver.recv_timeout(LONG), Err(RecvError::PeerGone));

    let mut successor = Options::new().sender(attach::<Tx>(&segment)).unwrap();
    successor.send(2).unwrap();
    assert_eq!(receiver.recv_timeout(LONG), Ok(2));

    // The other way round.
    drop(successor);
    let producer: Tx = attach_soon(&segment);
    let mut sender = options(&Bed::Futex, producer.region()).sender(producer).unwrap();
    drop(receiver);
    sender.send(3).unwrap();
    assert_eq!(sender.send_timeout(4, LONG), Err(SendError::PeerGone(4)));
}
