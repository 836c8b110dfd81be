//! What a scripted device has seen, and what it is to do.

use core::ffi::c_int;
use std::collections::{BTreeMap, HashMap, VecDeque};

use ring_verbs::sys::{
    EventType, SendFlags, WrOpcode, ibv_async_event, ibv_cq_init_attr_ex, ibv_modify_cq_attr, ibv_qp,
    ibv_sge, ibv_srq_attr, ibv_wc,
};

use super::{Modified, Registered, Reregistered};

/// A function that can be told what to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    QueryDevice,
    QueryExtended,
    AllocateDomain,
    FreeDomain,
    AllocateThread,
    FreeThread,
    AllocateParent,
    Register,
    Reregister,
    Deregister,
    CreateCompletionQueue,
    CreateExtendedQueue,
    DestroyCompletionQueue,
    Moderate,
    Poll,
    StartPoll,
    NextPoll,
    EndPoll,
    CreateSharedQueue,
    ModifySharedQueue,
    DestroySharedQueue,
    NextEvent,
    CreateQueuePair,
    ModifyQueuePair,
    QueryQueuePair,
    DestroyQueuePair,
}

/// What a function returns, where it returns a number, and what it leaves in `errno`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) returned: c_int,
    pub(crate) errno: c_int,
}

impl Answer {
    /// The error number itself, as most functions have it; NULL and `errno`, where the result is a pointer.
    pub(crate) const fn errno(errno: c_int) -> Self {
        Self { returned: errno, errno }
    }

    /// The three ways in which drivers say the same.
    pub(crate) fn ways(errno: c_int) -> [Self; 3] {
        let stale = libc::ENOENT;
        [
            Self { returned: errno, errno: stale },
            Self { returned: -errno, errno: stale },
            Self { returned: -1, errno },
        ]
    }
}

/// How a post fails.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal {
    /// Requests that are taken before.
    pub(crate) taken: usize,
    pub(crate) answer: Answer,
    pub(crate) bad: Bad,
}

/// What a post that fails says of where.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bad {
    /// The first request that was not taken.
    Named,
    /// Nothing.
    Nothing,
    /// A request that nobody has posted.
    Foreign,
}

/// What a device makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Domain,
    Thread,
    Region,
    CompletionQueue,
    SharedQueue,
    QueuePair,
}

/// A request that the device has got.
#[derive(Debug, Clone)]
pub(crate) struct Posted {
    pub(crate) wr_id: u64,
    /// 0 of a shared receive: which one takes it is not known yet.
    pub(crate) queue_pair: u32,
    /// As above.
    pub(crate) completion_queue: u32,
    /// None of a receive.
    pub(crate) opcode: Option<WrOpcode>,
    pub(crate) flags: SendFlags,
    pub(crate) pieces: Vec<ibv_sge>,
    /// What was in the pieces when it was posted.
    pub(crate) data: Vec<u8>,
}

impl Posted {
    pub(crate) fn bytes(&self) -> u32 {
        self.pieces.iter().map(|piece| piece.length).sum()
    }
}

/// A completion, and when the device saw it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamped {
    pub(crate) wc: ibv_wc,
    pub(crate) ticks: u64,
}

/// Something that happens.
pub(super) struct Event {
    pub(super) raw: ibv_async_event,
    /// What it is about, where that is a queue pair: one that is there until the event is acknowledged.
    pub(super) pair: Option<*mut ibv_qp>,
}

/// Something that was made and not ended.
struct Object {
    kind: Kind,
    uses: Vec<u32>,
    users: u32,
}

/// By number, which a library's object has as its handle.
#[derive(Default)]
pub(crate) struct State {
    objects: BTreeMap<u32, Object>,
    made: u32,
    pub(crate) ended: Vec<Kind>,
    /// How often something was to be ended that was used.
    pub(crate) busy: u32,
    pub(crate) is_closed: bool,
    pub(crate) answers: Vec<(Call, Answer)>,
    pub(crate) refusal: Option<Refusal>,
    /// Calls of `post_send` and `post_recv`.
    pub(crate) rings: u32,
    pub(crate) posted: Vec<Posted>,
    pub(crate) completions: HashMap<u32, VecDeque<Stamped>>,
    pub(crate) modified: Vec<Modified>,
    pub(crate) registered: Vec<Registered>,
    pub(crate) reregistered: Vec<Reregistered>,
    /// How extended completion queues were to be made.
    pub(crate) extended: Vec<ibv_cq_init_attr_ex>,
    pub(crate) moderated: Vec<ibv_modify_cq_attr>,
    /// What shared receive queues were told.
    pub(crate) limits: Vec<ibv_srq_attr>,
    /// What the device's clock counts, in thousands a second.
    pub(crate) clock_khz: u64,
    /// What the device's clock says at the next completion. It goes on by one with each.
    pub(crate) ticks: u64,
    /// Calls that poll an extended queue.
    pub(crate) turns: Vec<Call>,
    /// Polls that were begun, and what they stand at.
    pub(super) polls: HashMap<u32, Option<Stamped>>,
    /// What has happened and was not told yet.
    pub(super) events: VecDeque<Event>,
    /// What was told and is to be acknowledged.
    pub(super) told: Vec<Event>,
    pub(crate) acknowledged: Vec<EventType>,
}

impl State {
    /// What is there.
    pub(crate) fn live(&self) -> Vec<Kind> {
        self.objects.values().map(|object| object.kind).collect()
    }

    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.objects.values().filter(|object| object.kind == kind).count()
    }

    /// Takes the next completion out of a queue.
    pub(super) fn next(&mut self, completion_queue: u32) -> Option<Stamped> {
        self.completions.get_mut(&completion_queue)?.pop_front()
    }

    /// What the call is to answer, if anything but success.
    pub(super) fn answer(&mut self, call: Call) -> Option<Answer> {
        let index = self.answers.iter().position(|(scripted, _)| *scripted == call)?;
        Some(self.answers.remove(index).1)
    }

    pub(super) fn make(&mut self, kind: Kind, uses: Vec<u32>) -> u32 {
        assert!(!self.is_closed, "the device is closed");
        for used in &uses {
            self.objects.get_mut(used).expect("what is used is there").users += 1;
        }
        self.made += 1;
        self.objects.insert(self.made, Object { kind, uses, users: 0 });
        self.made
    }

    /// Ends an object; not if it is used, as the kernel has it.
    pub(super) fn end(&mut self, number: u32) -> bool {
        let object = self.objects.get(&number).expect("it is ended once");
        if object.users > 0 {
            self.busy += 1;
            return false;
        }
        let object = self.objects.remove(&number).expect("it is there");
        for used in &object.uses {
            self.objects.get_mut(used).expect("what is used is there").users -= 1;
        }
        self.ended.push(object.kind);
        true
    }
}
