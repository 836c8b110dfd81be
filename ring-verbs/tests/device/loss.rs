//! A network that loses and delays packets: netem on the veth pair between two devices.

use core::time::Duration;
use std::process::Command;
use std::time::Instant;

use ring_verbs::{
    AckTimeout, CompletionQueue, Opcode, QpState, QueuePair, QueuePairOptions, Rc, Request, Reset, Retries,
    Rts, RtsAttributes, Slab, WcStatus,
};

use crate::Tests;
use crate::objects::nothing_is_left;
use crate::rig::{PACKET_NUMBER, PATIENCE, Rig, all_rights, completions, connect_across, pair_names};

pub(crate) const TESTS: Tests = &[
    ("messages_arrive_once_and_in_order", messages_arrive_once_and_in_order),
    ("a_dead_network_is_told_in_time", a_dead_network_is_told_in_time),
    ("a_pair_that_has_failed_is_connected_again", a_pair_that_has_failed_is_connected_again),
];

/// What netem does with packets in both directions, to be undone by the drop.
struct Netem;

impl Netem {
    fn new(what: &str) -> Self {
        let netem = Self;
        for interface in ["va", "vb"] {
            tc(&format!("qdisc replace dev {interface} root netem {what}"));
        }
        netem
    }

    /// Packets that it has dropped so far.
    fn dropped(&self) -> u64 {
        let dropped = ["va", "vb"].map(|interface| {
            let statistics = tc(&format!("-s qdisc show dev {interface}"));
            let (_, after) = statistics.split_once("(dropped ").expect("a count of drops");
            after.split_once(',').and_then(|(count, _)| count.parse::<u64>().ok()).expect("a number")
        });
        dropped.iter().sum()
    }
}

impl Drop for Netem {
    fn drop(&mut self) {
        for interface in ["va", "vb"] {
            tc(&format!("qdisc del dev {interface} root"));
        }
    }
}

fn tc(arguments: &str) -> String {
    let output = Command::new("tc").args(arguments.split(' ')).output().expect("tc (iproute2) runs");
    assert!(output.status.success(), "tc {arguments}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// A reliable connection between the two devices, `near` at `va`.
struct Line {
    near_rig: Rig,
    far_rig: Rig,
    near_queue: CompletionQueue<Slab>,
    far_queue: CompletionQueue<Slab>,
}

type Ends<S> = [QueuePair<Rc, S>; 2];

/// Requests in flight, at most.
const DEPTH: u32 = 32;

impl Line {
    fn new() -> Self {
        let (near, far) = pair_names().expect("two devices");
        let (near_rig, far_rig) = (Rig::of(&near), Rig::of(&far));
        let (near_queue, far_queue) = (near_rig.completion_queue(64), far_rig.completion_queue(64));
        Self { near_rig, far_rig, near_queue, far_queue }
    }

    fn pairs(&self) -> Ends<Reset> {
        let options = QueuePairOptions::new(DEPTH, DEPTH);
        [(&self.near_rig, &self.near_queue), (&self.far_rig, &self.far_queue)]
            .map(|(rig, queue)| options.build(&rig.domain, queue, queue).expect("a queue pair"))
    }

    fn connect(&self, [near, far]: Ends<Reset>, timeout: AckTimeout, retries: u8) -> Ends<Rts> {
        let rts =
            RtsAttributes::new(PACKET_NUMBER).reads(4).timeout(timeout).retries(Retries::Times(retries));
        connect_across([(&self.near_rig, near), (&self.far_rig, far)], all_rights(), &rts)
    }

    /// Sends so many numbered messages from near to far, and checks that each arrives, once and in order.
    fn carry(&mut self, ends: &mut Ends<Rts>, messages: u64) {
        let (mut sent, mut done, mut offered, mut received) = (0, 0, 0, 0);
        let mut last = Instant::now();
        let [near, far] = ends;
        while done < messages || received < messages {
            while offered < messages && far.receives_in_flight() < DEPTH {
                far.post_receive(self.far_rig.pool.take().expect("a slab")).unwrap();
                offered += 1;
            }
            while sent < messages && near.sends_in_flight() < DEPTH {
                near.post(&Request::send(), self.near_rig.slab(&u64::to_ne_bytes(sent))).unwrap();
                sent += 1;
            }
            if let Some(completion) = self.near_queue.poll().unwrap() {
                completion.result().unwrap_or_else(|failure| panic!("send {done}: {failure}"));
                assert_eq!(completion.opcode(), Opcode::Send);
                done += 1;
                last = Instant::now();
            }
            if let Some(completion) = self.far_queue.poll().unwrap() {
                completion.result().unwrap_or_else(|failure| panic!("receive {received}: {failure}"));
                assert_eq!(completion.bytes(), 8);
                let bytes = completion.buffer.expect("a buffer")[..8].try_into().unwrap();
                assert_eq!(u64::from_ne_bytes(bytes), received);
                received += 1;
                last = Instant::now();
            }
            assert!(last.elapsed() < PATIENCE, "{done} sent and {received} received of {messages}");
        }
        assert!(self.near_queue.poll().unwrap().is_none());
        assert!(self.far_queue.poll().unwrap().is_none());
        assert_eq!((self.near_rig.pool.out(), self.far_rig.pool.out()), (0, 0));
    }

    /// Posts sends into a network that carries nothing; how long it took until the first failed. All have ended then.
    fn fails(&mut self, ends: &mut Ends<Rts>, sends: u32) -> Duration {
        let begin = Instant::now();
        for _ in 0..sends {
            ends[0].post(&Request::send(), self.near_rig.slab(b"nobody hears")).unwrap();
        }
        let mut ended = completions(&mut self.near_queue, 1);
        let elapsed = begin.elapsed();
        ended.extend(completions(&mut self.near_queue, sends as usize - 1));
        let statuses =
            ended.iter().map(|completion| completion.result().unwrap_err().status().expect("a status"));
        let mut expected = vec![WcStatus::WR_FLUSH_ERR; sends as usize];
        expected[0] = WcStatus::RETRY_EXC_ERR;
        assert_eq!(statuses.collect::<Vec<_>>(), expected);
        assert_eq!(ends[0].state().unwrap(), QpState::ERR);
        elapsed
    }
}

fn encoded(timeout: u32) -> AckTimeout {
    let timeout = AckTimeout::at_least(Duration::from_nanos(4096 << timeout));
    assert!(timeout.duration().is_some());
    timeout
}

fn messages_arrive_once_and_in_order() {
    const MESSAGES: u64 = 10_000;
    nothing_is_left(|| {
        let mut line = Line::new();
        let pairs = line.pairs();
        let mut ends = line.connect(pairs, encoded(12), 6);
        let netem = Netem::new("loss 5% delay 1ms");
        let begin = Instant::now();
        line.carry(&mut ends, MESSAGES);
        let (elapsed, dropped) = (begin.elapsed(), netem.dropped());
        println!("{MESSAGES} messages in {elapsed:?}, {dropped} packets lost");
        assert!(dropped > 0, "nothing was lost");
        // Nobody sends faster than the network delays.
        assert!(elapsed >= Duration::from_millis(2) * u32::try_from(MESSAGES).unwrap() / DEPTH);
    });
}

fn a_dead_network_is_told_in_time() {
    nothing_is_left(|| {
        for (exponent, retries) in [(12, 3), (14, 2)] {
            let mut line = Line::new();
            let timeout = encoded(exponent);
            assert_eq!(u32::from(timeout.encoding()), exponent);
            let pairs = line.pairs();
            let mut ends = line.connect(pairs, timeout, retries);
            let _netem = Netem::new("loss 100%");
            let elapsed = line.fails(&mut ends, 1);
            let one = timeout.duration().expect("it ends");
            let most = 4 * one * (u32::from(retries) + 1);
            println!("timeout {one:?}, {retries} retries: {elapsed:?}, at most {most:?}");
            assert!(elapsed <= most, "{elapsed:?} instead of at most {most:?}");
            assert!(
                elapsed >= one * u32::from(retries),
                "{elapsed:?}: it has not tried {retries} times again"
            );
        }
    });
}

fn a_pair_that_has_failed_is_connected_again() {
    nothing_is_left(|| {
        let mut line = Line::new();
        let pairs = line.pairs();
        let mut ends = line.connect(pairs, encoded(10), 2);
        line.carry(&mut ends, 100);
        for _ in 0..3 {
            {
                let _netem = Netem::new("loss 100%");
                line.fails(&mut ends, 5);
            }
            // What the other end was ready to take.
            for _ in 0..4 {
                ends[1].post_receive(line.far_rig.slab(b"")).unwrap();
            }
            let [near, far] = ends.map(|end| end.into_error().unwrap());
            while far.receives_in_flight() > 0 {
                let completion = completions(&mut line.far_queue, 1).pop().expect("one");
                assert_eq!(completion.result().unwrap_err().status(), Some(WcStatus::WR_FLUSH_ERR));
            }
            assert_eq!(near.sends_in_flight() + near.receives_in_flight() + far.sends_in_flight(), 0);
            let pairs = [near, far].map(|end| end.into_reset().unwrap());
            ends = line.connect(pairs, encoded(10), 2);
            line.carry(&mut ends, 100);
        }
    });
}
