//! Long random sequences of operations, some of them cut short by a death, compared with a queue that does the same.
//!
//! # Safety
//!
//! Only handles that were forgotten are declared gone.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use ring_core::mpmc::{Consumer, Layout, PopError, Producer, PushError, UnfinishedPops};
use ring_core::{HeapRegion, Owner, Registry, Role};

/// Two producers, two consumers, and no place too many: a dead one's is needed.
const PLACES: u16 = 4;

type Tx = Producer<u64, Arc<HeapRegion>>;
type Rx = Consumer<u64, Arc<HeapRegion>>;
type Gone = Registry<{ PLACES as usize }>;

#[derive(Debug, Clone)]
enum Operation {
    Push(usize),
    PushSlice(usize, usize),
    Reserve {
        who: usize,
        commit: bool,
    },
    Pop(usize),
    PopSlice(usize, usize),
    Drain(usize, usize),
    Peek {
        who: usize,
        release: bool,
    },
    /// The grant is leaked; the handle goes on.
    Leak(usize),
    Restart(usize),
    /// Dies at rest, or with a claimed slot; the successor comes in one of three ways.
    KillProducer {
        who: usize,
        claimed: bool,
        way: u8,
    },
    KillConsumer {
        who: usize,
        claimed: bool,
        way: u8,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    let who = || 0..2_usize;
    let kill = || (who(), any::<bool>(), 0..3_u8);
    prop_oneof![
        6 => who().prop_map(Operation::Push),
        3 => (who(), 0..9_usize).prop_map(|(who, many)| Operation::PushSlice(who, many)),
        3 => (who(), any::<bool>()).prop_map(|(who, commit)| Operation::Reserve { who, commit }),
        6 => who().prop_map(Operation::Pop),
        3 => (who(), 0..9_usize).prop_map(|(who, many)| Operation::PopSlice(who, many)),
        3 => (who(), 0..9_usize).prop_map(|(who, most)| Operation::Drain(who, most)),
        3 => (who(), any::<bool>()).prop_map(|(who, release)| Operation::Peek { who, release }),
        1 => (0..4_usize).prop_map(Operation::Leak),
        1 => (0..4_usize).prop_map(Operation::Restart),
        1 => kill().prop_map(|(who, claimed, way)| Operation::KillProducer { who, claimed, way }),
        1 => kill().prop_map(|(who, claimed, way)| Operation::KillConsumer { who, claimed, way }),
    ]
}

/// First positions near every wrap-around that words of 32 or 64 bits, or laps of 52 bits, can have.
fn start() -> impl Strategy<Value = u64> {
    let near = |point: u64| (0..40_u64).prop_map(move |offset| point.wrapping_sub(20).wrapping_add(offset));
    prop_oneof![near(0), near(1 << 32), near(1 << 52), near(1 << 54), near(1 << 63), any::<u64>()]
}

/// A queue that is obviously right, while everything happens one after the other.
struct Oracle {
    depth: u64,
    /// Slots claimed so far by producers.
    claimed: u64,
    /// What waits, by the number of its claim.
    waiting: BTreeMap<u64, u64>,
    /// Those of them that a consumer had claimed before.
    put_back: BTreeSet<u64>,
    next_value: u64,
}

impl Oracle {
    /// Whether the next claim finds no message of the lap before in its slot.
    fn has_room(&self) -> bool {
        self.claimed < self.depth || !self.waiting.contains_key(&(self.claimed - self.depth))
    }

    fn push(&mut self) -> bool {
        let has_room = self.has_room();
        if has_room {
            self.waiting.insert(self.claimed, self.next_value);
            self.claimed += 1;
            self.next_value += 1;
        }
        has_room
    }

    /// A claim without a message.
    fn skip(&mut self) {
        self.claimed += 1;
    }

    /// The number of a popped message, which must be the first, or one that was put back.
    fn number(&self, value: u64) -> u64 {
        let (&number, _) = self.waiting.iter().find(|&(_, &waiting)| waiting == value).expect("waits");
        let first = self.waiting.keys().find(|number| !self.put_back.contains(number));
        assert!(self.put_back.contains(&number) || first == Some(&number), "out of order");
        number
    }

    fn pop(&mut self, value: u64) {
        let number = self.number(value);
        self.waiting.remove(&number);
        self.put_back.remove(&number);
    }
}

fn declare_gone(gone: &Gone, owner: Option<Owner>, id: u16) {
    // SAFETY: the caller forgets the handle.
    unsafe { gone.declare_gone(Role::Participant(id), owner.unwrap().incarnation) };
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn behaves_as_a_queue(
        depth_log in 0..6_u32,
        start in start(),
        redeliver in any::<bool>(),
        operations in prop::collection::vec(operation(), 1..400),
    ) {
        let depth = 1_u64 << depth_log;
        let unfinished = if redeliver { UnfinishedPops::Redeliver } else { UnfinishedPops::Skip };
        let layout = Layout::<u64>::new(depth)?.start(start).participants(PLACES)?.unfinished_pops(unfinished);
        let region = Arc::new(HeapRegion::new(layout.bytes()));
        layout.init(&region)?;
        let attach = || Ok::<_, ring_core::Error>((Tx::attach(Arc::clone(&region))?, Rx::attach(Arc::clone(&region))?));
        let [(tx_a, rx_a), (tx_b, rx_b)] = [attach()?, attach()?];
        let mut producers = [tx_a, tx_b];
        let mut consumers = [rx_a, rx_b];
        let gone = Gone::new();
        let mut oracle = Oracle {
            depth,
            claimed: 0,
            waiting: BTreeMap::new(),
            put_back: BTreeSet::new(),
            next_value: 0,
        };

        for operation in operations {
            match operation {
                Operation::Push(who) => {
                    let value = oracle.next_value;
                    let expected = if oracle.push() { Ok(()) } else { Err(PushError::Full(value)) };
                    prop_assert_eq!(producers[who].try_push(value), expected);
                }
                Operation::PushSlice(who, many) => {
                    let values: Vec<u64> = (oracle.next_value..).take(many).collect();
                    let fit = (0..many).take_while(|_| oracle.push()).count();
                    let expected = if fit == 0 && many > 0 { Err(PushError::Full(())) } else { Ok(fit) };
                    prop_assert_eq!(producers[who].push_slice(&values), expected);
                }
                Operation::Reserve { who, commit } => match producers[who].try_reserve() {
                    Ok(mut grant) => {
                        prop_assert!(oracle.has_room());
                        *grant = oracle.next_value;
                        if commit {
                            grant.commit();
                            oracle.push();
                        } else {
                            drop(grant);
                            oracle.skip();
                        }
                    }
                    Err(error) => {
                        prop_assert_eq!(error, PushError::Full(()));
                        prop_assert!(!oracle.has_room());
                    }
                },
                Operation::Pop(who) => match consumers[who].try_pop() {
                    Ok(value) => oracle.pop(value),
                    Err(error) => {
                        prop_assert_eq!(error, PopError::Empty);
                        prop_assert!(oracle.waiting.is_empty());
                    }
                },
                Operation::PopSlice(who, many) => {
                    let mut values = vec![0; many];
                    match consumers[who].pop_slice(&mut values) {
                        Ok(popped) => {
                            prop_assert_eq!(popped, many.min(oracle.waiting.len()));
                            values[..popped].iter().for_each(|&value| oracle.pop(value));
                        }
                        Err(error) => {
                            prop_assert_eq!(error, PopError::Empty);
                            prop_assert!(oracle.waiting.is_empty() && many > 0);
                        }
                    }
                }
                Operation::Drain(who, most) => {
                    let expected = most.min(oracle.waiting.len());
                    let values: Vec<u64> = consumers[who].drain(most).collect();
                    prop_assert_eq!(values.len(), expected);
                    values.into_iter().for_each(|value| oracle.pop(value));
                }
                Operation::Peek { who, release } => match consumers[who].try_peek() {
                    Ok(grant) => {
                        let value = grant.read();
                        prop_assert_eq!(*grant, value);
                        if release {
                            grant.release();
                            oracle.pop(value);
                        } else {
                            drop(grant);
                            let number = oracle.number(value);
                            oracle.put_back.insert(number);
                        }
                    }
                    Err(error) => {
                        prop_assert_eq!(error, PopError::Empty);
                        prop_assert!(oracle.waiting.is_empty());
                    }
                },
                Operation::Leak(who @ 0..2) => {
                    if let Ok(grant) = producers[who].try_reserve() {
                        core::mem::forget(grant);
                        oracle.skip();
                    }
                    // The next call ends it, also one that does nothing else.
                    let value = oracle.next_value;
                    let expected = if oracle.push() { Ok(()) } else { Err(PushError::Full(value)) };
                    prop_assert_eq!(producers[who].try_push(value), expected);
                }
                Operation::Leak(who) => {
                    let consumer = &mut consumers[who - 2];
                    if let Ok(grant) = consumer.try_peek() {
                        let number = oracle.number(grant.read());
                        core::mem::forget(grant);
                        oracle.put_back.insert(number);
                    }
                    match consumer.try_pop() {
                        Ok(value) => oracle.pop(value),
                        Err(_) => prop_assert!(oracle.waiting.is_empty()),
                    }
                }
                Operation::Restart(who @ 0..2) => {
                    let [mine, other] = producers;
                    let (mine, other) = if who == 0 { (mine, other) } else { (other, mine) };
                    drop(mine);
                    producers = [Tx::attach(Arc::clone(&region))?, other];
                }
                Operation::Restart(who) => {
                    let [mine, other] = consumers;
                    let (mine, other) = if who == 2 { (mine, other) } else { (other, mine) };
                    drop(mine);
                    consumers = [Rx::attach(Arc::clone(&region))?, other];
                }
                Operation::KillProducer { who, claimed, way } => {
                    let [mine, other] = producers;
                    let (mut killed, other) = if who == 0 { (mine, other) } else { (other, mine) };
                    if claimed {
                        if let Ok(grant) = killed.try_reserve() {
                            core::mem::forget(grant);
                            oracle.skip();
                        }
                    }
                    let id = killed.id();
                    declare_gone(&gone, killed.participant(id), id);
                    core::mem::forget(killed);
                    let successor = match way {
                        0 => Tx::attach_with(Arc::clone(&region), &gone)?,
                        1 => Tx::take_over(Arc::clone(&region), id, &gone)?,
                        _ => {
                            prop_assert!(other.recover(&gone)? <= 1);
                            Tx::attach(Arc::clone(&region))?
                        }
                    };
                    prop_assert_eq!(successor.id(), id);
                    producers = [successor, other];
                }
                Operation::KillConsumer { who, claimed, way } => {
                    let [mine, other] = consumers;
                    let (mut killed, other) = if who == 0 { (mine, other) } else { (other, mine) };
                    if claimed {
                        if let Ok(grant) = killed.try_peek() {
                            let value = grant.read();
                            core::mem::forget(grant);
                            if redeliver {
                                oracle.put_back.insert(oracle.number(value));
                            } else {
                                oracle.pop(value);
                            }
                        }
                    }
                    let id = killed.id();
                    declare_gone(&gone, killed.participant(id), id);
                    core::mem::forget(killed);
                    let successor = match way {
                        0 => Rx::attach_with(Arc::clone(&region), &gone)?,
                        1 => Rx::take_over(Arc::clone(&region), id, &gone)?,
                        _ => {
                            prop_assert!(other.recover(&gone)? <= 1);
                            Rx::attach(Arc::clone(&region))?
                        }
                    };
                    prop_assert_eq!(successor.id(), id);
                    consumers = [successor, other];
                }
            }
            prop_assert_eq!(consumers[0].len(), oracle.waiting.len() as u64);
            prop_assert_eq!(producers[0].is_empty(), oracle.waiting.is_empty());
        }

        producers[0].close();
        let value = oracle.next_value;
        prop_assert_eq!(producers[1].try_push(value), Err(PushError::Closed(value)));
        for _ in 0..oracle.waiting.len() {
            oracle.pop(consumers[1].try_pop().unwrap());
        }
        prop_assert_eq!(consumers[0].try_pop(), Err(PopError::Closed));
        prop_assert_eq!(consumers[1].try_pop(), Err(PopError::Closed));
    }
}
