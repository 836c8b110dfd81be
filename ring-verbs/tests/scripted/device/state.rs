//! What a scripted device has seen, and what it is to do.

use core::ffi::c_int;
use std::collections::{BTreeMap, HashMap, VecDeque};

use ring_verbs::sys::{SendFlags, WrOpcode, ibv_sge, ibv_wc};

use super::{Modified, Registered};

/// A function that can be told what to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    QueryDevice,
    AllocateDomain,
    FreeDomain,
    Register,
    Reregister,
    Deregister,
    CreateCompletionQueue,
    DestroyCompletionQueue,
    Poll,
    CreateSharedQueue,
    DestroySharedQueue,
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
    Region,
    CompletionQueue,
    SharedReceiveQueue,
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
    pub(crate) completions: HashMap<u32, VecDeque<ibv_wc>>,
    pub(crate) modified: Vec<Modified>,
    pub(crate) registered: Vec<Registered>,
}

impl State {
    /// What is there.
    pub(crate) fn live(&self) -> Vec<Kind> {
        self.objects.values().map(|object| object.kind).collect()
    }

    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.objects.values().filter(|object| object.kind == kind).count()
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
