//! Both sides on one CPU, where whoever spins keeps the other from running.
//!
//! With `RING_LONG=1` in the environment, in a release build: a million messages with each strategy that can sleep, in
//! rounds in which all take their turn, and in the median of the rounds none takes more than twice as long as one that
//! sleeps at once.

mod common;

use core::fmt;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use common::{Bed, Other, in_time, is_long, mapped_again, segment};
use ring_core::spsc;
use ring_notify::{Barrier, Options, RecvError, Strategy};
use ring_shm::Segment;
use ring_tune::{allowed_cpus, pin_to};

const ROUNDS: usize = 7;

/// As many times as long as a strategy may take that sleeps at once.
const BOUND: f64 = 2.0;

/// The first is what the others are measured by.
const STRATEGIES: [(&str, Strategy); 11] = [
    ("futex, no spinning", Strategy::futex().spins(0)),
    ("futex", Strategy::futex()),
    ("futex, yields", Strategy::futex().yields(5)),
    ("futex, yields, no spinning", Strategy::futex().spins(0).yields(5)),
    ("futex, long spinning", Strategy::futex().spins(20_000)),
    ("futex, adaptive", Strategy::futex().adaptive()),
    ("futex, adaptive, yields", Strategy::futex().adaptive().yields(5)),
    ("event, no spinning", Strategy::event().spins(0)),
    ("event", Strategy::event()),
    ("event, yields", Strategy::event().yields(5)),
    ("event, adaptive", Strategy::event().adaptive()),
];

/// What passes between the two.
#[derive(Debug, Clone, Copy)]
enum Traffic {
    /// One message at a time, there and back.
    PingPong,
    /// As fast as they go, through a ring of this depth.
    Stream { depth: u64 },
}

impl fmt::Display for Traffic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PingPong => formatter.write_str("ping-pong"),
            Self::Stream { depth } => write!(formatter, "stream/{depth}"),
        }
    }
}

fn new_ring(depth: u64) -> Segment {
    let layout = spsc::Layout::<u64>::new(depth).unwrap();
    segment(layout.bytes(), |new| layout.init(new))
}

type Sender<'a> = ring_notify::Sender<spsc::Producer<u64, &'a Segment>>;
type Receiver<'a> = ring_notify::Receiver<spsc::Consumer<u64, &'a Segment>>;

fn sender(ring: &Segment, options: Options) -> Sender<'_> {
    options.sender(spsc::Producer::attach(ring).unwrap()).unwrap()
}

fn receiver(ring: &Segment, options: Options) -> Receiver<'_> {
    options.receiver(spsc::Consumer::attach(ring).unwrap()).unwrap()
}

/// How long so many messages take between two processes on this CPU.
fn run(traffic: Traffic, strategy: Strategy, messages: u64, cpu: usize) -> Duration {
    let (depth, is_echoed) = match traffic {
        Traffic::PingPong => (1, true),
        Traffic::Stream { depth } => (depth, false),
    };
    let [to, from] = [new_ring(depth), new_ring(1)];
    let [to_options, from_options] =
        [0; 2].map(|_| Bed::events().options(Barrier::Asymmetric).strategy(strategy));
    let exchanges = if is_echoed { messages / 2 } else { messages };
    let other = Other::fork(|| {
        pin_to(cpu).unwrap();
        let [to, from] = [mapped_again(&to), mapped_again(&from)];
        let mut receiver = receiver(&to, to_options.clone());
        let mut sender = sender(&from, from_options.clone());
        sender.send(0).unwrap();
        for number in 0..exchanges {
            assert_eq!(receiver.recv(), Ok(number));
            if is_echoed {
                sender.send(number).unwrap();
            }
        }
        sender.send(exchanges).unwrap();
        assert_eq!(receiver.recv(), Err(RecvError::Ring(spsc::PopError::Closed)));
    });
    let time = in_time(move || {
        pin_to(cpu).unwrap();
        let (mut sender, mut receiver) = (sender(&to, to_options), receiver(&from, from_options));
        assert_eq!(receiver.recv(), Ok(0));
        let start = Instant::now();
        for number in 0..exchanges {
            sender.send(number).unwrap();
            if is_echoed {
                assert_eq!(receiver.recv(), Ok(number));
            }
        }
        assert_eq!(receiver.recv(), Ok(exchanges));
        let time = start.elapsed();
        sender.close();
        time
    });
    other.finish();
    time
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One test at a time has the CPU.
static TURN: Mutex<()> = Mutex::new(());

fn each_strategy(traffic: Traffic) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let cpu = allowed_cpus().unwrap().iter().next().unwrap();
    if !is_long() {
        for (_, strategy) in STRATEGIES {
            run(traffic, strategy, 10_000, cpu);
        }
        return;
    }
    let messages = 1_000_000_u64.div_ceil(ROUNDS as u64);
    let mut ratios = STRATEGIES.map(|_| Vec::new());
    let mut of_messages = STRATEGIES.map(|_| Vec::new());
    for round in 0..ROUNDS {
        let mut times = STRATEGIES.map(|_| 0.0);
        for turn in 0..STRATEGIES.len() {
            // Each time another one begins.
            let index = (turn + round) % STRATEGIES.len();
            times[index] = run(traffic, STRATEGIES[index].1, messages, cpu).as_secs_f64();
        }
        for (index, time) in times.into_iter().enumerate() {
            ratios[index].push(time / times[0]);
            of_messages[index].push(time / messages as f64 * 1e9);
        }
    }
    let mut worse = Vec::new();
    for (index, (name, _)) in STRATEGIES.into_iter().enumerate() {
        let (ratio, each_ns) = (median(&mut ratios[index]), median(&mut of_messages[index]));
        println!("{traffic}: {name}: {each_ns:.0} ns a message, {ratio:.2} times as long");
        if ratio > BOUND {
            worse.push((name, ratio));
        }
    }
    assert!(cfg!(debug_assertions) || worse.is_empty(), "{traffic}: {worse:?}");
}

#[test]
fn ping_pong() {
    each_strategy(Traffic::PingPong);
}

#[test]
fn a_deep_stream() {
    each_strategy(Traffic::Stream { depth: 1024 });
}

#[test]
fn a_shallow_stream() {
    each_strategy(Traffic::Stream { depth: 16 });
}
