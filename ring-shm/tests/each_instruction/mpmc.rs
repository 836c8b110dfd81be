//! Many producers, many consumers.

use ring_core::mpmc::{Consumer, Layout, PopError, Producer, UnfinishedPops};
use ring_core::{AssumeAlive, Role};
use ring_shm::Segment;

use crate::{Message, anyone, gone, killed_at_each_instruction, message, new_segment};

const DEPTH: u64 = 8;

/// Messages before the operation: around the ring.
const BEFORE: u64 = 11;
const WAITING: u64 = 5;

/// The place of who is killed.
const VICTIM: u16 = 3;

type Tx<'a> = Producer<Message, &'a Segment>;
type Rx<'a> = Consumer<Message, &'a Segment>;

fn used_ring(segment: &Segment, unfinished: UnfinishedPops) -> (Tx<'_>, Rx<'_>) {
    let layout = Layout::<Message>::new(DEPTH).unwrap().participants(4).unwrap();
    layout.unfinished_pops(unfinished).init_over(&segment, &anyone()).unwrap();
    let mut producer = Tx::attach(segment).unwrap();
    let mut consumer = Rx::attach(segment).unwrap();
    for number in 0..BEFORE {
        producer.try_push(message(number)).unwrap();
        if number >= WAITING {
            assert_eq!(consumer.try_pop(), Ok(message(number - WAITING)));
        }
    }
    (producer, consumer)
}

/// The numbers of all messages that are there.
fn pop_all(consumer: &mut Rx<'_>) -> Vec<u64> {
    let mut numbers = vec![];
    loop {
        match consumer.try_pop() {
            Ok(found) => numbers.push((0..=BEFORE).find(|&number| message(number) == found).expect("whole")),
            Err(error) => {
                assert_eq!(error, PopError::Empty, "nobody is in the way");
                return numbers;
            }
        }
    }
}

/// Every slot and every place is of use.
fn go_on<'a>(segment: &'a Segment, mut producer: Tx<'a>, mut consumer: Rx<'a>) {
    let mut successor = Tx::take_over(segment, VICTIM, &AssumeAlive).unwrap();
    for _ in 0..2 {
        for number in 0..DEPTH {
            let producer = if number % 2 == 0 { &mut producer } else { &mut successor };
            producer.try_push(message(number)).unwrap();
        }
        assert!(producer.try_push(message(0)).is_err());
        assert_eq!(pop_all(&mut consumer), (0..DEPTH).collect::<Vec<_>>());
    }
}

fn producer_dies(is_pushed: bool, operation: fn(&mut Tx<'_>)) {
    let segment = new_segment();
    killed_at_each_instruction(
        &segment,
        |segment| used_ring(segment, UnfinishedPops::Redeliver),
        |segment, mark| {
            let mut producer = Tx::take_over(segment, VICTIM, &AssumeAlive).unwrap();
            mark();
            operation(&mut producer);
            mark();
        },
        |segment, (producer, mut consumer), is_through| {
            for number in BEFORE - WAITING..BEFORE {
                assert_eq!(
                    consumer.try_pop(),
                    Ok(message(number)),
                    "what others pushed needs no clearing up"
                );
            }
            let finished = consumer.recover(&gone(Role::Participant(VICTIM))).unwrap();
            let found = pop_all(&mut consumer);
            assert!(found.is_empty() || found == [BEFORE] && finished == 0 && is_pushed, "{found:?}");
            assert!(!is_through || is_pushed != found.is_empty());
            go_on(segment, producer, consumer);
        },
    );
}

fn consumer_dies(unfinished: UnfinishedPops, is_popped: bool, operation: fn(&mut Rx<'_>)) {
    let segment = new_segment();
    killed_at_each_instruction(
        &segment,
        |segment| used_ring(segment, unfinished),
        |segment, mark| {
            let mut consumer = Rx::take_over(segment, VICTIM, &AssumeAlive).unwrap();
            mark();
            operation(&mut consumer);
            mark();
        },
        |segment, (producer, mut consumer), is_through| {
            let had_claim = consumer.recover(&gone(Role::Participant(VICTIM))).unwrap() == 1;
            let mut found = pop_all(&mut consumer);
            found.sort_unstable();
            let comes = found.first() == Some(&(BEFORE - WAITING));
            let first = BEFORE - WAITING + u64::from(!comes);
            assert_eq!(found, (first..BEFORE).collect::<Vec<_>>(), "each once");
            if had_claim {
                assert_eq!(comes, unfinished == UnfinishedPops::Redeliver);
            }
            assert!(!is_through || had_claim != is_popped);
            assert!(!is_through || !is_popped || !comes, "twice");
            go_on(segment, producer, consumer);
        },
    );
}

#[test]
fn push_is_killed() {
    producer_dies(true, |producer| producer.try_push(message(BEFORE)).unwrap());
}

#[test]
fn claim_is_killed() {
    producer_dies(false, |producer| core::mem::forget(producer.try_reserve().unwrap()));
}

#[test]
fn commit_is_killed() {
    producer_dies(true, |producer| {
        let mut grant = producer.try_reserve().unwrap();
        grant.write(&message(BEFORE));
        grant.commit();
    });
}

const POLICIES: [UnfinishedPops; 2] = [UnfinishedPops::Redeliver, UnfinishedPops::Skip];

#[test]
fn pop_is_killed() {
    for unfinished in POLICIES {
        consumer_dies(unfinished, true, |consumer| assert!(consumer.try_pop().is_ok()));
    }
}

#[test]
fn peek_is_killed() {
    for unfinished in POLICIES {
        consumer_dies(unfinished, false, |consumer| core::mem::forget(consumer.try_peek().unwrap()));
    }
}

#[test]
fn release_is_killed() {
    for unfinished in POLICIES {
        consumer_dies(unfinished, true, |consumer| consumer.try_peek().unwrap().release());
    }
}
