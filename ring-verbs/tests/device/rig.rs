//! What the tests have in common: an open device, and queue pairs that are connected through it.

use core::time::Duration;
use std::env;
use std::time::Instant;

use ring_verbs::{
    AccessFlags, Buffer, Completion, CompletionQueue, CompletionQueueOptions, Connected, Context, GidEntry,
    Init, InitAttributes, Pool, PoolOptions, Port, ProtectionDomain, QueuePair, QueuePairOptions, Rc, Reset,
    Route, RtrAttributes, Rts, RtsAttributes, Slab, Transport, Uc,
};

/// No test waits longer for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn device_name() -> Option<String> {
    env::var("RING_VERBS_DEVICE").ok().filter(|name| !name.is_empty())
}

/// Whether tests may take minutes.
pub(crate) fn is_long() -> bool {
    env::var_os("RING_LONG").is_some_and(|value| value == "1")
}

/// The names of two more devices, joined by the interfaces `va` and `vb`.
pub(crate) fn pair_names() -> Option<(String, String)> {
    let names = env::var("RING_VERBS_PAIR").ok()?;
    let (near, far) = names.split_once(',')?;
    Some((near.to_owned(), far.to_owned()))
}

/// An open device, and what most tests need of it.
pub(crate) struct Rig {
    pub(crate) context: Context,
    pub(crate) domain: ProtectionDomain,
    pub(crate) port: Port,
    pub(crate) gid: GidEntry,
    pub(crate) pool: Pool,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::of(&device_name().expect("a device"))
    }

    pub(crate) fn of(device: &str) -> Self {
        let context = Context::open(device).expect("it opens");
        let domain = ProtectionDomain::new(&context).expect("a domain");
        let port = context.port(1).expect("a port");
        port.require_active().expect("it is active");
        let gid = port.choose_gid().expect("an address");
        let pool = PoolOptions::new(4096, 64).build(&domain).expect("a pool");
        Self { context, domain, port, gid, pool }
    }

    pub(crate) fn completion_queue<B: Buffer>(&self, entries: u32) -> CompletionQueue<B> {
        CompletionQueueOptions::new(entries).build(&self.context).expect("a completion queue")
    }

    pub(crate) fn slab(&self, bytes: &[u8]) -> Slab {
        let mut slab = self.pool.take().expect("a slab");
        slab.truncate(u32::try_from(bytes.len()).expect("short"));
        slab.copy_from_slice(bytes);
        slab
    }

    pub(crate) fn route(&self) -> Route {
        Route::new(&self.gid, self.gid.gid)
    }

    /// Two queue pairs, each the other's peer, and the queue where all of theirs ends.
    pub(crate) fn pair<T: Ready>(&self, options: &QueuePairOptions) -> Pair<T> {
        let queue = self.completion_queue(256);
        let [a, b] = [(); 2].map(|()| options.build(&self.domain, &queue, &queue).expect("a queue pair"));
        let (a, b) = self.connect(a, b);
        Pair { a, b, queue }
    }

    pub(crate) fn connect<T: Ready, B>(
        &self,
        a: QueuePair<T, Reset, B>,
        b: QueuePair<T, Reset, B>,
    ) -> (QueuePair<T, Rts, B>, QueuePair<T, Rts, B>) {
        let rights = if T::IS_RELIABLE { all_rights() } else { AccessFlags::REMOTE_WRITE };
        let init = InitAttributes::new(self.port.number()).access(rights);
        let [a, b] = [a, b].map(|pair| pair.into_init(&init).map_err(|failed| failed.error).expect("INIT"));
        let (to_a, to_b) = (self.to(a.number()), self.to(b.number()));
        (T::ready(a, &to_b), T::ready(b, &to_a))
    }

    fn to(&self, queue_pair: u32) -> RtrAttributes {
        RtrAttributes::new(self.route(), self.port.active_mtu(), queue_pair, PACKET_NUMBER).reads(4)
    }
}

/// Connects two queue pairs, of the same device or of two that reach each other: with these rights for the peer, and
/// sending so.
pub(crate) fn connect_across<B>(
    [(a_rig, a), (b_rig, b)]: [(&Rig, QueuePair<Rc, Reset, B>); 2],
    rights: AccessFlags,
    rts: &RtsAttributes,
) -> [QueuePair<Rc, Rts, B>; 2] {
    let numbers = [a.number(), b.number()];
    let drive = |rig: &Rig, peer: &Rig, pair: QueuePair<Rc, Reset, B>, number| {
        let init = InitAttributes::new(rig.port.number()).access(rights);
        let route = Route::new(&rig.gid, peer.gid.gid);
        let rtr = RtrAttributes::new(route, rig.port.active_mtu(), number, PACKET_NUMBER).reads(4);
        let pair = pair.into_init(&init).map_err(|failed| failed.error).expect("INIT");
        let pair = pair.into_rtr(&rtr).map_err(|failed| failed.error).expect("RTR");
        pair.into_rts(rts).map_err(|failed| failed.error).expect("RTS")
    };
    [drive(a_rig, b_rig, a, numbers[1]), drive(b_rig, a_rig, b, numbers[0])]
}

/// What every queue pair here begins with.
pub(crate) const PACKET_NUMBER: u32 = 7;

/// Everything that a peer can be allowed.
pub(crate) fn all_rights() -> AccessFlags {
    AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ | AccessFlags::REMOTE_ATOMIC
}

pub(crate) struct Pair<T> {
    pub(crate) a: QueuePair<T, Rts>,
    pub(crate) b: QueuePair<T, Rts>,
    pub(crate) queue: CompletionQueue<Slab>,
}

/// A transport with one peer, and how it gets there.
pub(crate) trait Ready: Transport + Connected + Send + Sized {
    const IS_RELIABLE: bool;

    fn ready<B>(pair: QueuePair<Self, Init, B>, to: &RtrAttributes) -> QueuePair<Self, Rts, B>;
}

impl Ready for Rc {
    const IS_RELIABLE: bool = true;

    fn ready<B>(pair: QueuePair<Self, Init, B>, to: &RtrAttributes) -> QueuePair<Self, Rts, B> {
        let pair = pair.into_rtr(to).map_err(|failed| failed.error).expect("RTR");
        pair.into_rts(&RtsAttributes::new(PACKET_NUMBER).reads(4))
            .map_err(|failed| failed.error)
            .expect("RTS")
    }
}

impl Ready for Uc {
    const IS_RELIABLE: bool = false;

    fn ready<B>(pair: QueuePair<Self, Init, B>, to: &RtrAttributes) -> QueuePair<Self, Rts, B> {
        let pair = pair.into_rtr(to).map_err(|failed| failed.error).expect("RTR");
        pair.into_rts(&RtsAttributes::new(PACKET_NUMBER)).map_err(|failed| failed.error).expect("RTS")
    }
}

/// The next completions, in the order in which they come.
pub(crate) fn completions<B>(queue: &mut CompletionQueue<B>, count: usize) -> Vec<Completion<B>> {
    let begin = Instant::now();
    let mut completions = Vec::new();
    while completions.len() < count {
        match queue.poll().expect("it polls") {
            Some(completion) => completions.push(completion),
            None => {
                let came = completions
                    .iter()
                    .map(|completion: &Completion<B>| (completion.opcode(), completion.result()));
                let came: Vec<_> = came.collect();
                assert!(begin.elapsed() < PATIENCE, "{} of {count} completions came: {came:?}", came.len());
                std::thread::yield_now();
            }
        }
    }
    completions
}

/// The next completions, by queue pair.
pub(crate) fn completions_of<B>(
    queue: &mut CompletionQueue<B>,
    count: usize,
    queue_pair: u32,
) -> (Vec<Completion<B>>, Vec<Completion<B>>) {
    completions(queue, count).into_iter().partition(|completion| completion.queue_pair() == queue_pair)
}
