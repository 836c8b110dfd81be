//! What the tests have in common.
//!
//! # Safety
//!
//! The scripted device reads a buffer's bytes while it takes the request, and never writes them.
#![allow(unsafe_code)]

use std::sync::Arc;

use ring_verbs::{
    Buffer, Completion, CompletionQueue, CompletionQueueOptions, Connected, Context, InitAttributes, Mtu,
    Pieces, ProtectionDomain, QueuePair, QueuePairOptions, Rc, Reset, Route, RtrAttributes, Rts,
    RtsAttributes,
};

use crate::device::Scripted;

/// A buffer of three bytes that is counted while it lives.
#[derive(Debug)]
pub(crate) struct Tracked {
    bytes: Box<[u8; 3]>,
    _alive: Arc<()>,
}

impl Tracked {
    pub(crate) fn number(&self) -> u8 {
        self.bytes[0]
    }
}

// SAFETY: the bytes are on the heap and the buffer's own.
unsafe impl Buffer for Tracked {
    fn add_pieces(&self, pieces: &mut Pieces) {
        // The device finds it by the number.
        self.bytes.as_ptr().expose_provenance();
        pieces.add(self.bytes.as_ptr(), 3, 0x77);
    }
}

/// A device, and what can be made with it alone.
pub(crate) struct Rig {
    pub(crate) device: Scripted,
    pub(crate) context: Context,
    pub(crate) domain: ProtectionDomain,
    pub(crate) queue: CompletionQueue<Tracked>,
    alive: Arc<()>,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let (device, context) = Scripted::open();
        let domain = ProtectionDomain::new(&context).unwrap();
        let queue = CompletionQueueOptions::new(64).build(&context).unwrap();
        Self { device, context, domain, queue, alive: Arc::default() }
    }

    pub(crate) fn buffer(&self, number: u8) -> Tracked {
        Tracked { bytes: Box::new([number, 0xaa, 0x55]), _alive: Arc::clone(&self.alive) }
    }

    /// What the device knows the completion queue by.
    pub(crate) fn queue_number(&self) -> u32 {
        // SAFETY: the queue is there, and nobody writes this.
        unsafe { (*self.queue.as_raw()).handle }
    }

    /// Buffers that are somewhere.
    pub(crate) fn alive(&self) -> usize {
        Arc::strong_count(&self.alive) - 1
    }

    /// A queue pair with room for eight requests each way.
    pub(crate) fn fresh<T: Connected>(&self, options: &QueuePairOptions) -> QueuePair<T, Reset, Tracked> {
        options.build(&self.domain, &self.queue, &self.queue).unwrap()
    }

    pub(crate) fn pair(&self, options: &QueuePairOptions) -> QueuePair<Rc, Rts, Tracked> {
        ready(self.fresh(options))
    }

    /// Everything that comes out.
    pub(crate) fn drain(&mut self) -> Vec<Completion<Tracked>> {
        drain(&mut self.queue)
    }
}

/// Drives it to where it can send.
pub(crate) fn ready<B: Buffer>(pair: QueuePair<Rc, Reset, B>) -> QueuePair<Rc, Rts, B> {
    let pair = pair.into_init(&InitAttributes::new(1)).map_err(|failed| failed.error).unwrap();
    let to = RtrAttributes::new(Route::within_subnet(1, 9), Mtu::MTU_1024, 0x1234, 5);
    let pair = pair.into_rtr(&to).map_err(|failed| failed.error).unwrap();
    pair.into_rts(&RtsAttributes::new(6)).map_err(|failed| failed.error).unwrap()
}

pub(crate) fn drain<B>(queue: &mut CompletionQueue<B>) -> Vec<Completion<B>> {
    core::iter::from_fn(|| queue.poll().unwrap()).collect()
}

/// The numbers of the buffers, in order.
pub(crate) fn numbers(completions: &[Completion<Tracked>]) -> Vec<u8> {
    completions.iter().map(|completion| completion.buffer.as_ref().expect("a buffer").number()).collect()
}

pub(crate) fn options() -> QueuePairOptions {
    QueuePairOptions::new(8, 8)
}
