//! Models of one who leaves a queue and one who polls. The same bodies run under loom and natively.
//!
//! # Safety
//!
//! Each flight has one poster.
#![allow(unsafe_code)]

use alloc::sync::Arc;

use super::Departures;
use crate::flight::{Flight, Poster};
use crate::testing::{model, thread};

/// Else what a queue that was left has in flight would stay there until another is left.
#[test]
fn a_queue_is_found_or_there_is_still_one_to_look_for() {
    model(|| {
        let flight = Arc::new(Flight::<u64, ()>::new(1, 17, 1));
        // SAFETY: it is the only one.
        let poster = unsafe { Poster::new(Arc::clone(&flight), 1) };
        let departures = Arc::new(Departures::new());
        let theirs = Arc::clone(&departures);
        let leaver = thread::spawn(move || {
            poster.leave();
            theirs.say(1);
        });
        let looked_for = departures.so_far();
        let is_found = flight.is_left();
        leaver.join().unwrap();
        assert!(is_found || departures.are_more_than(looked_for), "it was left and is not looked for");
        assert!(flight.is_left() && departures.so_far() == 1);
    });
}
