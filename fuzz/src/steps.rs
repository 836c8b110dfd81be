//! The frame of every target: its steps, with or without a peer that spoils.

use std::sync::atomic::{AtomicBool, Ordering};

use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};

use crate::{Fenced, Spoil};

/// What a target is given: the ring that it makes, and the steps that it takes.
#[derive(Debug, Arbitrary)]
pub struct Input<S> {
    /// Smaller or larger; each target takes what it can of it.
    pub size: u8,
    pub start: u64,
    /// In an eighth of all cases another thread spoils.
    meanwhile: u8,
    steps: Vec<Step<S>>,
}

#[derive(Debug)]
enum Step<S> {
    Own(S),
    Spoil(Spoil),
}

/// The handles of a ring.
pub trait Target {
    type Step;

    /// Holds the handles to what they are to do, as long as the region is not spoiled.
    fn step(&mut self, step: &Self::Step);

    /// Looks whether anything is missing at the end of a ring that was not spoiled.
    fn finish(&mut self) {}
}

impl<S> Input<S> {
    /// Makes the handles and takes the steps.
    pub fn run<T: Target<Step = S>>(&self, region: &Fenced, make: impl FnOnce() -> T) {
        let work = || {
            let mut target = make();
            for step in &self.steps {
                match step {
                    Step::Own(step) => target.step(step),
                    Step::Spoil(spoil) => {
                        region.give_up();
                        region.spoil(spoil);
                    }
                }
            }
            if !region.is_spoiled() {
                target.finish();
            }
        };
        let spoils: Vec<_> = self.steps.iter().filter_map(Step::spoil).collect();
        if self.meanwhile >= 224 && !spoils.is_empty() {
            region.give_up();
            spoil_meanwhile(region, &spoils, work);
        } else {
            work();
        }
    }
}

impl<S> Step<S> {
    fn spoil(&self) -> Option<&Spoil> {
        if let Self::Spoil(spoil) = self { Some(spoil) } else { None }
    }
}

impl<'a, S: Arbitrary<'a>> Arbitrary<'a> for Step<S> {
    /// Seldom spoils, since after that little is looked at.
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        Ok(if bytes.ratio(15, 16)? { Self::Own(bytes.arbitrary()?) } else { Self::Spoil(bytes.arbitrary()?) })
    }
}

/// Works while another thread writes each of `spoils`, again and again.
fn spoil_meanwhile(region: &Fenced, spoils: &[&Spoil], work: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let peer = scope.spawn(|| {
            // ORDERING: Relaxed: it says when to stop, and nothing is read because of it.
            while !is_over.load(Ordering::Relaxed) {
                spoils.iter().for_each(|spoil| region.spoil(spoil));
            }
        });
        work();
        // ORDERING: Relaxed: as above.
        is_over.store(true, Ordering::Relaxed);
        // The scope waits for the closure alone, and LeakSanitizer would find what the thread has not freed yet.
        peer.join().expect("it only writes words");
    });
}
