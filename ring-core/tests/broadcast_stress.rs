//! A producer at full speed and consumers that it overtakes again and again.
//!
//! With `RING_LONG=1` in the environment it takes a minute.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use ring_core::broadcast::{Consumer, Layout, PopError, create};
use ring_core::{HeapRegion, Message};

const SIZES: u32 = 5;

fn time_per_size() -> Duration {
    let is_long = std::env::var_os("RING_LONG").is_some_and(|long| long == "1");
    Duration::from_secs(if is_long { 60 } else { 1 }) / SIZES
}

/// A message that shows whether it is whole, and which one it is.
trait Numbered: Message + Clone + Sync + Send {
    fn numbered(number: u64) -> Self;
    fn number(&self) -> u64;
}

impl<const WORDS: usize> Numbered for [u64; WORDS]
where
    [u64; WORDS]: Message,
{
    fn numbered(number: u64) -> Self {
        // Odd, so that each number has words of its own in each place.
        core::array::from_fn(|place| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(place as u64))
    }

    fn number(&self) -> u64 {
        // The inverse of the factor above.
        let number = self[0].wrapping_mul(0xf1de_83e1_9937_733d);
        assert!(*self == Self::numbered(number), "half of one message and half of another: {self:x?}");
        number
    }
}

struct Seen {
    popped: u64,
    lost: u64,
    losses: u64,
}

/// Begins when it has been overtaken: where pushing is the slower half, as under a sanitizer, one that follows at once
/// may never be.
fn follow<T: Numbered>(mut consumer: Consumer<T, Arc<HeapRegion>>, depth: u64) -> Seen {
    let mut seen = Seen { popped: 0, lost: 0, losses: 0 };
    while consumer.lag().unwrap() <= depth {
        thread::yield_now();
    }
    loop {
        match consumer.try_pop() {
            Ok(message) => {
                assert_eq!(message.number(), seen.popped + seen.lost, "repeated, or out of order");
                seen.popped += 1;
            }
            Err(PopError::Lost { messages }) => {
                seen.lost += messages;
                seen.losses += 1;
            }
            Err(PopError::Empty) => core::hint::spin_loop(),
            Err(PopError::Closed) => return seen,
            Err(PopError::Corrupted) => panic!("corrupted"),
        }
    }
}

fn overtakes<T: Numbered>(depth: u64) {
    let layout = Layout::<T>::new(depth).unwrap();
    let region = Arc::new(HeapRegion::new(layout.bytes()));
    let (mut producer, first) = create(Arc::clone(&region), &layout).unwrap();
    let second = Consumer::join(Arc::clone(&region)).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) || producer.tail() <= depth {
                let message = T::numbered(producer.tail());
                producer.push(&message);
            }
            let sent = producer.tail();
            producer.close();
            sent
        });
        // Some come and go: each begins with a message that is there, or is told what it lost.
        let visitors = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for join in [Consumer::<T, _>::join, Consumer::join_oldest] {
                    let mut visitor = join(Arc::clone(&region)).unwrap();
                    let position = visitor.head();
                    if let Ok(message) = visitor.try_pop() {
                        assert_eq!(message.number(), position);
                    }
                    assert!(visitor.lag().is_ok());
                }
                thread::yield_now();
            }
        });
        let receivers = [first, second].map(|consumer| scope.spawn(move || follow(consumer, depth)));
        let start = Instant::now();
        while start.elapsed() < time_per_size() {
            thread::sleep(Duration::from_millis(1));
        }
        is_over.store(true, Ordering::Relaxed);
        let sent = sender.join().unwrap();
        // Not left to the scope, whose wait ThreadSanitizer does not see.
        visitors.join().unwrap();
        for seen in receivers.map(|receiver| receiver.join().unwrap()) {
            assert_eq!(seen.popped + seen.lost, sent, "all of them, popped or told to be lost");
            assert!(seen.popped > 0);
            assert!(seen.losses > 0, "it was never overtaken, so nothing was shown");
        }
    });
}

#[test]
fn every_message_is_whole_or_lost() {
    overtakes::<[u64; 1]>(1);
    overtakes::<[u64; 7]>(16);
    overtakes::<[u64; 8]>(2);
    overtakes::<[u64; 25]>(4);
    overtakes::<[u64; 512]>(8);
}
