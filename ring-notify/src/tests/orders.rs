//! Why taking the notice back and raising the epoch are one step: with a word for each, three orders lose a wake-up.
//!
//! Here stands that other protocol, with two who sleep and one who sends a message to each. In the right order nobody
//! sleeps on; of each wrong one a schedule is found in which somebody does.

use alloc::sync::Arc;

use ring_core::sync::{AtomicU64, Ordering, fence};

use super::{thread, wide_model};
use crate::sys;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Right,
    /// Whoever waits sleeps while the notice stands, instead of while the epoch is the same.
    SleepOnTheNotice,
    /// Whoever wakes raises the epoch, and then takes the notice back.
    RaiseFirst,
    /// Nothing keeps the two steps in order for others.
    RelaxedEpoch,
}

#[derive(Debug)]
struct Words {
    notice: AtomicU64,
    epoch: AtomicU64,
    messages: AtomicU64,
}

impl Words {
    /// Takes a message; sleeps until there is one.
    fn receive(&self, order: Order) {
        while !self.take() {
            let acquire = if order == Order::RelaxedEpoch { Ordering::Relaxed } else { Ordering::Acquire };
            // ORDERING: Acquire (A1): that a notice was taken back before; pairs with R1 in Words::send. Or not, to
            // fail.
            let epoch = self.epoch.load(acquire);
            // ORDERING: Relaxed: the fence orders it.
            self.notice.store(1, Ordering::Relaxed);
            // ORDERING: SeqCst (no label: no location carries it): between the notice and the look.
            fence(Ordering::SeqCst);
            if self.take() {
                return;
            }
            match order {
                Order::SleepOnTheNotice => sys::futex_wait(&self.notice, 1, None),
                _ => sys::futex_wait(&self.epoch, u32::try_from(epoch).unwrap(), None),
            };
        }
    }

    fn take(&self) -> bool {
        loop {
            // ORDERING: Relaxed: a message is a number here.
            let found = self.messages.load(Ordering::Relaxed);
            if found == 0 {
                return false;
            }
            // ORDERING: Relaxed: as above, also on failure.
            let taken =
                self.messages.compare_exchange(found, found - 1, Ordering::Relaxed, Ordering::Relaxed);
            if taken.is_ok() {
                return true;
            }
        }
    }

    fn send(&self, order: Order) {
        // ORDERING: Relaxed: a message is a number here.
        self.messages.fetch_add(1, Ordering::Relaxed);
        // ORDERING: SeqCst (no label: no location carries it): between the message and the look.
        fence(Ordering::SeqCst);
        // ORDERING: Relaxed: the fence orders it.
        if self.notice.load(Ordering::Relaxed) == 0 {
            return;
        }
        // ORDERING: Relaxed: the epoch carries it.
        let take_back = || self.notice.store(0, Ordering::Relaxed);
        let release = if order == Order::RelaxedEpoch { Ordering::Relaxed } else { Ordering::Release };
        // ORDERING: Release (R1): that the notice was taken back; pairs with A1 in Words::receive. Or not, to fail.
        let raise = || self.epoch.fetch_add(1, release);
        if order == Order::RaiseFirst {
            raise();
            take_back();
        } else {
            take_back();
            raise();
        }
        sys::futex_wake(if order == Order::SleepOnTheNotice { &self.notice } else { &self.epoch });
    }
}

fn two_receive_what_is_sent(order: Order) {
    wide_model(2, move || {
        let zero = || AtomicU64::new(0);
        let words = Arc::new(Words { notice: zero(), epoch: zero(), messages: zero() });
        let sleepers = [0; 2].map(|_| {
            let words = Arc::clone(&words);
            thread::spawn(move || words.receive(order))
        });
        words.send(order);
        words.send(order);
        for sleeper in sleepers {
            sleeper.join().unwrap();
        }
    });
}

#[test]
fn two_words_in_the_right_order_lose_no_wake_up() {
    two_receive_what_is_sent(Order::Right);
}

/// Natively a lost wake-up would hang, and hardly ever happen.
#[cfg(loom)]
mod wrong {
    use super::{Order, two_receive_what_is_sent};

    #[test]
    #[should_panic = "deadlock"]
    fn sleeping_on_the_notice_loses_a_wake_up() {
        two_receive_what_is_sent(Order::SleepOnTheNotice);
    }

    #[test]
    #[should_panic = "deadlock"]
    fn raising_before_taking_back_loses_a_wake_up() {
        two_receive_what_is_sent(Order::RaiseFirst);
    }

    #[test]
    #[should_panic = "deadlock"]
    fn a_relaxed_epoch_loses_a_wake_up() {
        two_receive_what_is_sent(Order::RelaxedEpoch);
    }
}
