//! A model of a thread that ends without giving its role back.
//!
//! # Safety
//!
//! An owner is declared gone by the thread that forgot its handle.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::ptr::NonNull;

use crate::spsc::{Layout, Producer, create};
use crate::testing::{heap, model, thread};
use crate::{Liveness, Owner, Registry, Role};

#[test]
fn a_successor_sees_all_that_the_gone_owner_wrote() {
    model(|| {
        let layout = Layout::<u64>::new(2).unwrap();
        let region = heap(layout.bytes());
        let (mut producer, consumer) = create(Arc::clone(&region), &layout).unwrap();
        let incarnation = consumer.peer().incarnation;
        let registry = Arc::new(Registry::<0>::new());

        let known = Arc::clone(&registry);
        let gone = thread::spawn(move || {
            producer.try_push(7).unwrap();
            core::mem::forget(producer);
            // SAFETY: forgotten just now.
            unsafe { known.declare_gone(Role::Producer, incarnation) };
        });
        let successor = loop {
            match Producer::<u64, _>::take_over(Arc::clone(&region), &*registry) {
                Ok(successor) => break successor,
                Err(_) => thread::yield_now(),
            }
        };
        assert_eq!(successor.tail(), 1);
        gone.join().unwrap();
    });
}

fn owner(incarnation: u64) -> Owner {
    Owner { incarnation, held: true, process: 0 }
}

#[test]
fn only_what_was_declared_gone_is() {
    model(|| {
        let (registry, ring) = (Registry::<2>::new(), NonNull::dangling());
        let roles = [Role::Producer, Role::Consumer, Role::Participant(1), Role::Participant(2)];
        for role in roles {
            assert!(!registry.is_gone(ring, role, owner(1)));
            // SAFETY: there is no ring.
            unsafe { registry.declare_gone(role, 3) };
            assert_eq!(
                [2, 3, 4].map(|number| registry.is_gone(ring, role, owner(number))),
                [true, true, false]
            );
        }
        for beyond in [Role::Participant(0), Role::Participant(3)] {
            assert!(!registry.is_gone(ring, beyond, owner(1)));
        }
    });
}
