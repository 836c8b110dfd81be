//! The end of a ring, for all who push and pop.

use super::*;

/// Pops until the ring ends.
fn pop_all(consumer: &mut Rx) -> Vec<u64> {
    let mut seen = Vec::new();
    loop {
        match consumer.try_pop() {
            Ok(value) => seen.push(value),
            Err(PopError::Empty | PopError::Busy) => thread::yield_now(),
            Err(PopError::Closed) => return seen,
            Err(PopError::Corrupted) => panic!("corrupted"),
        }
    }
}

#[test]
fn all_that_was_pushed_before_the_close_arrives() {
    for depth in [1, 2] {
        model(move || {
            let (mut producer, mut consumer) = ring(depth);
            let sender = thread::spawn(move || {
                for value in 1..=depth {
                    producer.try_push(value).unwrap();
                }
                producer.close();
                assert_eq!(producer.try_push(9), Err(PushError::Closed(9)));
            });
            assert!(pop_all(&mut consumer).into_iter().eq(1..=depth));
            sender.join().unwrap();
        });
    }
}

#[test]
fn a_push_beside_the_close_is_refused_or_arrives() {
    for depth in [1, 2] {
        model(move || {
            let (mut producer, mut consumer) = ring(depth);
            let sender = thread::spawn(move || match producer.try_push(1) {
                Ok(()) => 1,
                Err(error) => {
                    assert_eq!(error, PushError::Closed(1));
                    0
                }
            });
            consumer.close();
            let seen = pop_all(&mut consumer);
            assert_eq!(seen.len(), sender.join().unwrap());
        });
    }
}

#[test]
fn both_consumers_see_the_end() {
    model(|| {
        let (mut producer, mut consumer) = ring(2);
        let mut other = more_rx(&consumer);
        push(&mut producer, 1);
        producer.close();
        let other = thread::spawn(move || pop_all(&mut other));
        let mut seen = pop_all(&mut consumer);
        seen.extend(other.join().unwrap());
        assert_eq!(seen, [1]);
        assert!(matches!(Producer::<u64, _>::attach(Arc::clone(consumer.region())), Err(Error::Closed)));
    });
}
