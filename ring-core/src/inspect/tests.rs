//! Who looks at a ring while others work with it. The models of spsc, bytes and broadcast are with theirs.

use alloc::sync::Arc;

use super::{Inspector, Progress};
use crate::testing::{heap, model, scaled, thread};
use crate::{HeapRegion, mpmc};

/// Looks at the ring while `work` goes on beside, which closes it in the end at the position `last`.
pub(crate) fn watch(region: &Arc<HeapRegion>, most: u64, last: u64, work: impl FnOnce() + Send + 'static) {
    let inspector = Inspector::new(Arc::clone(region)).unwrap();
    let look = || {
        let progress = inspector.progress().expect("a ring of peers that keep to the protocol");
        let Progress { tail, head, fill, closed, .. } = progress;
        let head = head.unwrap();
        assert!(head <= tail && tail <= last && fill <= most, "{progress:?}");
        assert!(!closed || tail == last, "{progress:?}");
        (tail, head)
    };
    let worker = thread::spawn(work);
    let mut before = (0, 0);
    for _ in 0..scaled(1, 1000) {
        let now = look();
        assert!(before.0 <= now.0 && before.1 <= now.1, "{before:?} and then {now:?}");
        before = now;
        thread::yield_now();
    }
    worker.join().unwrap();
    assert_eq!(look().0, last);
}

/// Whoever closes an mpmc ring is not waited for by those who push, so only positions are looked at.
#[test]
fn an_mpmc_ring_is_seen_going_on() {
    model(|| {
        let layout = mpmc::Layout::<u64>::new(1).unwrap().participants(2).unwrap();
        let region = heap(layout.bytes());
        let (mut producer, mut consumer) = mpmc::create(Arc::clone(&region), &layout).unwrap();
        let messages = scaled(1, 10_000);
        watch(&region, 1, messages, move || {
            for value in 0..messages {
                producer.try_push(value).unwrap();
                assert_eq!(consumer.try_pop(), Ok(value));
            }
        });
    });
}
