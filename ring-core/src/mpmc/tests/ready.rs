//! Whether a pop is worth a try, beside others that work.

use super::{model, more_rx, ring, thread};

/// A message that is put back during the look is found by the look, or by the next one.
#[test]
fn what_was_put_back_is_worth_a_try() {
    model(|| {
        let (mut producer, mut consumer) = ring(2);
        let mut other = more_rx(&consumer);
        producer.try_push(1).unwrap();
        let putting_back = thread::spawn(move || {
            drop(other.try_peek().unwrap());
            other
        });
        // Either the message is at the head, or it is claimed, or it lies behind.
        let _ = consumer.is_ready();
        let _other = putting_back.join().unwrap();
        assert!(consumer.is_ready());
        assert_eq!(consumer.try_pop(), Ok(1));
    });
}
