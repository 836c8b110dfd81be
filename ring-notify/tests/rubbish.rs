//! Whatever the words hold by which those agree who wait and who wake: everything arrives.

mod common;

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Arc;

use common::{Bed, Started, WAIT_WORDS, count, each_sleepy, in_time, one_slot, segment, started, word};
use proptest::prelude::*;
use ring_core::{Region, mpmc, spsc};
use ring_notify::{AnyOf, Barrier, Options, RecvError, Waits};
use ring_shm::Segment;

type Sender = ring_notify::Sender<spsc::Producer<u64, Arc<Segment>>>;
type Receiver = ring_notify::Receiver<spsc::Consumer<u64, Arc<Segment>>>;

/// A ring in which the words hold this.
fn one_slot_with(words: [u64; 2]) -> Arc<Segment> {
    let segment = one_slot();
    write(&segment, words);
    Arc::new(segment)
}

fn write(region: &impl Region, words: [u64; 2]) {
    for (index, value) in WAIT_WORDS.into_iter().zip(words) {
        word(region, index).store(value, Ordering::Relaxed);
    }
}

fn sides(segment: &Arc<Segment>, options: &Options) -> (Sender, Receiver) {
    let sender = options.clone().sender(spsc::Producer::attach(Arc::clone(segment)).unwrap()).unwrap();
    let receiver = options.clone().receiver(spsc::Consumer::attach(Arc::clone(segment)).unwrap()).unwrap();
    (sender, receiver)
}

/// Everything arrives, in order, though both sides sleep on the way.
fn pass(mut sender: Sender, mut receiver: Receiver) {
    const MESSAGES: u64 = 50;
    in_time(move || {
        let receiving = started(move || {
            (0..MESSAGES).for_each(|number| assert_eq!(receiver.recv(), Ok(number)));
            receiver.recv()
        });
        (0..MESSAGES).for_each(|number| sender.send(number).unwrap());
        sender.close();
        assert_eq!(receiving.end(), Err(RecvError::Ring(spsc::PopError::Closed)));
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_there_before(words in any::<[u64; 2]>()) {
        for options in each_sleepy() {
            let (sender, receiver) = sides(&one_slot_with(words), &options);
            pass(sender, receiver);
        }
    }

    /// Written between the two, as by who had the ring before.
    #[test]
    fn whatever_is_there_when_the_second_comes(words in any::<[u64; 2]>()) {
        for options in each_sleepy() {
            let segment = one_slot_with([0; 2]);
            let sender = options.clone().sender(spsc::Producer::attach(Arc::clone(&segment)).unwrap()).unwrap();
            write(&*segment, words);
            let receiver = options.receiver(spsc::Consumer::attach(Arc::clone(&segment)).unwrap()).unwrap();
            pass(sender, receiver);
        }
    }
}

/// Each flag by itself, and the ends of the epoch.
#[test]
fn each_bit_by_itself() {
    let bits = (0..64).map(|bit| 1 << bit);
    for value in bits.chain([u64::MAX, u64::MAX << 32, u64::MAX >> 32, (1 << 31) - 1]) {
        let (sender, receiver) = sides(&one_slot_with([value; 2]), &Bed::Futex.options(Barrier::Asymmetric));
        pass(sender, receiver);
    }
}

/// Somebody who writes whatever comes to its mind into the words, for as long as it lives.
struct Hostile {
    is_over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Hostile {
    fn start(segment: &Arc<Segment>) -> Self {
        let (is_over, segment) = (Arc::new(AtomicBool::new(false)), Arc::clone(segment));
        let must_end = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut state = u64::from(std::process::id()) | 1;
            while !must_end.load(Ordering::Relaxed) {
                // Xorshift64, Marsaglia 2003.
                for shift in [13, -7, 17] {
                    state ^= if shift > 0 { state << shift } else { state >> -shift };
                }
                write(&*segment, [state, state.rotate_left(32)]);
                if state % 8 == 0 {
                    std::thread::sleep(Duration::from_micros(state % 1024));
                }
            }
        });
        Self { is_over, thread: Some(thread) }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

const SLICE: Option<Duration> = Some(Duration::from_millis(1));

#[test]
fn a_hostile_peer_delays_by_a_slice_at_most() {
    let messages = count(300, 20_000);
    for options in each_sleepy() {
        let segment = one_slot_with([0; 2]);
        let (mut sender, mut receiver) = sides(&segment, &options.slice(SLICE));
        let hostile = Hostile::start(&segment);
        let receiving = started(move || {
            (0..messages).for_each(|number| assert_eq!(receiver.recv(), Ok(number)));
        });
        in_time(move || (0..messages).for_each(|number| sender.send(number).unwrap()));
        receiving.end();
        drop(hostile);
    }
}

#[test]
fn a_hostile_peer_delays_many_by_a_slice_at_most() {
    let each = count(150, 10_000);
    for options in each_sleepy() {
        let layout = mpmc::Layout::<u64>::new(1).unwrap().participants(4).unwrap();
        let segment = Arc::new(segment(layout.bytes(), |new| layout.init(new)));
        let options = options.slice(SLICE);
        let hostile = Hostile::start(&segment);
        let receiving = [0; 2].map(|_| {
            let consumer = mpmc::Consumer::<u64, _>::attach(Arc::clone(&segment)).unwrap();
            let mut receiver = options.clone().receiver(consumer).unwrap();
            started(move || core::iter::from_fn(|| receiver.recv().ok()).sum::<u64>())
        });
        let sending = [0; 2].map(|_| {
            let producer = mpmc::Producer::<u64, _>::attach(Arc::clone(&segment)).unwrap();
            let mut sender = options.clone().sender(producer).unwrap();
            started(move || {
                (1..=each).for_each(|number| sender.send(number).unwrap());
                sender
            })
        });
        let [one, other] = sending.map(Started::end);
        drop(one);
        other.close();
        assert_eq!(receiving.map(Started::end).iter().sum::<u64>(), each * (each + 1));
        drop(hostile);
    }
}

#[test]
fn a_hostile_peer_delays_who_waits_for_several_by_a_slice_at_most() {
    const MESSAGES: u64 = 200;
    for bed in Bed::each() {
        let options = bed.options(Barrier::Asymmetric).slice(SLICE);
        let segments = [one_slot_with([0; 2]), one_slot_with([0; 2])];
        let [(mut sender, mut one), (_other_sender, mut other)] =
            segments.each_ref().map(|segment| sides(segment, &options));
        let hostile = segments.each_ref().map(Hostile::start);
        let receiving = started(move || {
            let mut any = AnyOf::new(bed.strategy().spins(0));
            for number in 0..MESSAGES {
                let handles: &mut [&mut dyn Waits] = &mut [&mut other, &mut one];
                assert_eq!(any.wait(handles, None), Ok(1));
                assert_eq!(one.try_recv(), Ok(Some(number)));
            }
        });
        in_time(move || (0..MESSAGES).for_each(|number| sender.send(number).unwrap()));
        receiving.end();
        drop(hostile);
    }
}
