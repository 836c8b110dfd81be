use measure::usage::Used;
use measure::{Pace, Reader, Samples, Slice, Timer};
use ring_tune::Clock;
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::*;
use crate::bench::session::lacks_huge_pages;

const ROUND_TRIPS: Slice = Slice::RoundTrips { warm_up: 1, blocks: 1, singles: 4 };

/// Runs slices over one arm, with the peer in another thread and in a mapping of its own.
fn run(spec: Spec, slices: &[Slice]) -> Vec<Samples> {
    // Both sides spin: one pair at a time.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut memory = Memory::default();
    for kind in [Kind::Usual, Kind::Base] {
        let parts = spec.parts();
        let lengths: Vec<usize> = parts.iter().filter(|part| part.0 == kind).map(|part| part.1).collect();
        memory.create(kind, Pages::Base, &lengths).unwrap();
    }
    let LeadSide { arm: mut lead, for_peer } = spec.lead(&mut memory, Pages::Base).unwrap();
    let segments = memory.inheritable().unwrap();

    thread::scope(|scope| {
        scope.spawn(move || {
            let mut memory = Memory::default();
            for (kind, descriptor) in segments {
                memory.attach(kind, descriptor).unwrap();
            }
            let mut peer = spec.peer(&mut memory, for_peer).unwrap();
            for &slice in slices {
                peer.follow(slice);
            }
        });
        // The peer makes a clock of its own, and stamps of both have to be of one kind.
        let timer = Timer::new(Clock::new());
        slices.iter().map(|&slice| lead.lead(slice, timer)).collect()
    })
}

fn check_round_trips(spec: Spec) {
    for samples in run(spec, &[ROUND_TRIPS; 2]) {
        assert_eq!((samples.centre.len(), samples.tails.len(), samples.messages), (1, 4, 4), "{spec:?}");
        assert!(samples.centre.iter().all(|&ns| ns >= 0.0), "{spec:?}");
    }
}

#[test]
fn floors_exchange_words() {
    for kind in [Kind::Usual, Kind::Base] {
        check_round_trips(Spec::SameLine { kind });
        check_round_trips(Spec::Rotating { kind, lines: 8 });
    }
}

#[test]
fn rings_exchange_messages_whatever_is_changed_about_them() {
    for change in [
        Change::None,
        Change::PrefetchOff,
        Change::WideSlots,
        Change::OrderedBySeqCst,
        Change::FencePerMessage,
        Change::Eventfd,
    ] {
        check_round_trips(Spec::Spsc { kind: Kind::Usual, depth: 8, change });
    }
}

#[test]
fn rings_through_ring_shm_exchange_messages_in_segments_of_their_own() {
    let spec = Spec::Shm { depth: 16 };
    assert_eq!(spec.parts(), [], "nothing of the suite's segment");
    check_round_trips(spec);
}

#[test]
fn a_ring_through_ring_shm_in_pages_that_there_are_not_is_refused() {
    // 128 GiB, more than a pool holds where tests run.
    let error = Spec::Shm { depth: 1 << 31 }.lead(&mut Memory::default(), Pages::Huge2MiBRequired);
    let error = error.err().unwrap();
    assert!(lacks_huge_pages(&error), "a run would go on in pages of the system's own: {error:#}");
}

#[test]
fn the_kernel_carries_messages() {
    for channel in [Channel::Pipe, Channel::Unix, Channel::Eventfd] {
        check_round_trips(Spec::Kernel(channel));
    }
}

const WAYS: [Way; 9] = [
    Way::Doorbell,
    Way::Futex,
    Way::Eventfd,
    Way::Adaptive,
    Way::Stream,
    Way::StreamPlain,
    Way::BareFutex,
    Way::Kernel(Channel::Pipe),
    Way::Kernel(Channel::Unix),
];

#[test]
fn whoever_waits_gets_all_messages_at_every_pace() {
    // A gap that nobody spins for, and paces in any order over one arm.
    let paces = [Pace::Every { ns: 2_000_000 }, Pace::BackToBack, Pace::Every { ns: 0 }, Pace::BackToBack];
    let slices = paces.map(|pace| Slice::Paced { pace, warm_up: 2, messages: 130 });
    for way in WAYS {
        let seen = run(Spec::Notify(way), &slices);
        for (samples, pace) in seen.into_iter().zip(paces) {
            // Blocks of 64, 64 and 2.
            let centre = if pace == Pace::BackToBack { 3 } else { 130 };
            assert_eq!((samples.centre.len(), samples.tails.len()), (centre, 130), "{way:?} {pace:?}");
            assert_eq!(samples.messages, 130);
            let Used { messages, receiver, sender } = samples.used.unwrap();
            assert_eq!(
                (messages, receiver.syscalls, sender.syscalls),
                (130, 0, 0),
                "nobody counts calls here"
            );
            if pace == paces[0] {
                assert!(sender.cpu_ns > 0, "the sender spins");
            }
        }
    }
}

#[test]
fn a_flood_and_a_stream_arrive_too() {
    let flood = Slice::Paced { pace: Pace::Flood, warm_up: 100, messages: 3_000 };
    let stream = Slice::Stream { reader: Reader::Equal, messages: 2_000 };
    for way in WAYS {
        let seen = run(Spec::Notify(way), &[flood, stream, flood]);
        assert_eq!(seen.iter().map(|samples| samples.messages).collect::<Vec<_>>(), [3_000, 2_000, 3_000]);
        assert!(seen[0].centre.is_empty(), "no latencies of a flood");
    }
}

#[test]
fn a_message_that_is_late_counts_from_when_it_was_due() {
    // All are due at once, so each waits for those before it.
    let slice = Slice::Paced { pace: Pace::Every { ns: 0 }, warm_up: 1, messages: 2_000 };
    let samples = run(Spec::Notify(Way::Kernel(Channel::Pipe)), &[slice]).remove(0);
    let (first, last) = (samples.tails[0], samples.tails[1_999]);
    // 2,000 times two system calls, of which none takes less than 20 ns.
    assert!(last - first > 2_000.0 * 20.0, "{first} … {last}");
}

#[test]
fn streams_arrive_in_order_with_every_reader() {
    let readers = [Reader::Fast, Reader::Equal, Reader::Slow];
    let slices = readers.map(|reader| Slice::Stream { reader, messages: 2_000 });
    for depth in [64, 1024] {
        let rings = [
            Spec::Spsc { kind: Kind::Usual, depth, change: Change::None },
            Spec::Shm { depth },
            Spec::Index { depth },
        ];
        for samples in rings.into_iter().flat_map(|spec| run(spec, &slices)) {
            // Of 2 blocks of 1,000 messages the first is dropped.
            assert_eq!((samples.centre.len(), samples.tails.len(), samples.messages), (1, 1, 2_000));
            assert_eq!(samples.centre, samples.tails, "the whole is the mean of its blocks, here one");
        }
    }
}

#[test]
fn a_ring_goes_on_from_one_mode_to_the_other() {
    let stream = Slice::Stream { reader: Reader::Equal, messages: 2_000 };
    run(
        Spec::Spsc { kind: Kind::Usual, depth: 8, change: Change::None },
        &[stream, ROUND_TRIPS, stream, ROUND_TRIPS],
    );
}

#[test]
fn parts_without_a_peer_need_none() {
    for samples in run(Spec::PushAlone { depth: 16 }, &[ROUND_TRIPS; 2]) {
        assert_eq!((samples.centre.len(), samples.tails.len(), samples.messages), (1, 0, 16));
    }
    for samples in run(Spec::Syscall, &[ROUND_TRIPS; 2]) {
        assert_eq!((samples.centre.len(), samples.tails.len()), (1, 4));
    }
}

#[test]
fn memory_that_is_too_small_is_refused() {
    let mut memory = Memory::default();
    memory.create(Kind::Usual, Pages::Base, &[4096]).unwrap();
    let ring = Spec::Spsc { kind: Kind::Usual, depth: 1024, change: Change::None };
    assert!(ring.lead(&mut memory, Pages::Base).is_err());
    assert!(memory.cut(Kind::Base, 1).is_err(), "no such segment was made");
}
