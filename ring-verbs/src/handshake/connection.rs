//! A queue pair from RESET to RTS, with a peer at the other end of a stream.

use std::io::{Read, Write};
use std::vec::Vec;

use super::{Endpoint, HandshakeError};
use crate::gid::GidEntry;
use crate::memory::RemoteMemory;
use crate::port::Port;
use crate::queue_pair::{
    Connected, Driven, Init, InitAttributes, QueuePair, Reset, RtrAttributes, Rts, RtsAttributes,
};
use crate::sys::{AccessFlags, Mtu};
use crate::timing::{AckTimeout, Retries, RnrTimer};

/// How queue pairs are connected: from one address of ours, with any peer that does the same.
///
/// ```no_run
/// use ring_verbs::{
///     AccessFlags, CompletionQueue, CompletionQueueOptions, Connection, Context, ExposedRegion, PoolOptions,
///     ProtectionDomain, QueuePair, QueuePairOptions, Rc, Request, Slab,
/// };
///
/// let context = Context::open("mlx5_0")?;
/// let port = context.port(1)?;
/// let gid = port.choose_gid()?;
/// let domain = ProtectionDomain::new(&context)?;
/// let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
/// let inbox = ExposedRegion::new(&domain, vec![0; 4096], access)?;
/// let pool = PoolOptions::new(4096, 16).build(&domain)?;
/// let mut queue: CompletionQueue<Slab> = CompletionQueueOptions::new(32).build(&context)?;
///
/// let pair: QueuePair<Rc, _> = QueuePairOptions::new(16, 16).build(&domain, &queue, &queue)?;
/// let connection = Connection::new(&port, &gid).access(AccessFlags::REMOTE_WRITE).region(inbox.remote());
/// let mut pair = connection.init(pair)?;
/// pair.post_receive(pool.take().expect("there are 16"))?; // before the peer can send
///
/// let mut stream = std::net::TcpStream::connect("peer:18515")?;
/// let (mut pair, peer) = connection.finish(&mut stream, pair)?;
/// pair.post(&Request::write(peer.regions()[0]), pool.take().expect("there are 16"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Connection<'a> {
    port: &'a Port,
    gid: GidEntry,
    access: AccessFlags,
    mtu: Mtu,
    reads: u8,
    timeout: AckTimeout,
    retries: Retries,
    receiver_not_ready: Retries,
    timer: RnrTimer,
    service_level: u8,
    traffic_class: u8,
    regions: Vec<RemoteMemory>,
}

impl<'a> Connection<'a> {
    /// From an address of a port, without rights for the peer.
    pub fn new(port: &'a Port, gid: &GidEntry) -> Self {
        Self {
            port,
            gid: *gid,
            access: AccessFlags::empty(),
            mtu: port.active_mtu(),
            reads: 1,
            timeout: AckTimeout::default(),
            retries: Retries::Times(6),
            receiver_not_ready: Retries::Forever,
            timer: RnrTimer::default(),
            service_level: 0,
            traffic_class: 0,
            regions: Vec::new(),
        }
    }

    /// What the peer may do through the queue pair, as in [`InitAttributes::access`]. By default nothing.
    pub fn access(mut self, access: AccessFlags) -> Self {
        self.access = access;
        self
    }

    /// The largest payload of a packet, unless the peer's is smaller. By default what the port has now.
    pub fn mtu(mut self, mtu: Mtu) -> Self {
        self.mtu = mtu;
        self
    }

    /// Reads and atomics at a time, of the peer's that are served, and of ours unless the peer serves fewer. By default
    /// 1. Unreliable connections have none.
    pub fn reads(mut self, reads: u8) -> Self {
        self.reads = reads;
        self
    }

    /// How long an acknowledgement may take. By default 67.1 ms.
    pub fn timeout(mut self, timeout: AckTimeout) -> Self {
        self.timeout = timeout;
        self
    }

    /// How often it is sent again where no acknowledgement comes. By default 6 times.
    pub fn retries(mut self, retries: Retries) -> Self {
        self.retries = retries;
        self
    }

    /// How often it is sent again where the peer has posted no buffer, and how long the peer waits between, where we
    /// have posted none. By default for ever, and 0.64 ms.
    pub fn receiver_not_ready(mut self, retries: Retries, timer: RnrTimer) -> Self {
        (self.receiver_not_ready, self.timer) = (retries, timer);
        self
    }

    /// As in [`Route::service_level`](crate::Route::service_level). By default 0.
    pub fn service_level(mut self, level: u8) -> Self {
        self.service_level = level;
        self
    }

    /// As in [`Route::traffic_class`](crate::Route::traffic_class). By default 0.
    pub fn traffic_class(mut self, class: u8) -> Self {
        self.traffic_class = class;
        self
    }

    /// Tells the peer of one more region that it may use.
    ///
    /// # Panics
    ///
    /// If there are [`Endpoint::REGIONS_MAX`] already.
    pub fn region(mut self, region: RemoteMemory) -> Self {
        assert!(
            self.regions.len() < Endpoint::REGIONS_MAX,
            "an endpoint names {} regions at most",
            Endpoint::REGIONS_MAX
        );
        self.regions.push(region);
        self
    }

    /// The first step, after which receives can be posted. Post those that the peer's first messages need.
    ///
    /// # Errors
    ///
    /// As [`QueuePair::into_init`].
    pub fn init<T: Connected, B>(&self, queue_pair: QueuePair<T, Reset, B>) -> Driven<T, Reset, Init, B> {
        queue_pair.into_init(&InitAttributes::new(self.port.number()).access(self.access))
    }

    /// All other steps: exchanges endpoints with the peer, drives the queue pair to RTS with the smaller MTU and
    /// number of reads of both, and returns when the peer has done the same. Both ends call it.
    ///
    /// Set the stream's time-outs, where the peer may be silent.
    ///
    /// # Errors
    ///
    /// [`HandshakeError`]. The queue pair is dropped, so that its receives come out of the completion queue.
    pub fn finish<T: Connected, B, S: Read + Write + ?Sized>(
        &self,
        stream: &mut S,
        queue_pair: QueuePair<T, Init, B>,
    ) -> Result<(QueuePair<T, Rts, B>, Endpoint), HandshakeError> {
        let ours =
            Endpoint::new(&queue_pair, self.port, &self.gid)?.with_mtu(self.mtu).with_reads(self.reads);
        let ours = self.regions.iter().fold(ours, |ours, region| ours.with_region(*region));
        let theirs = ours.exchange(stream)?;

        let route = theirs.route_from(&self.gid);
        let route = route.service_level(self.service_level).traffic_class(self.traffic_class);
        let mtu = ours.common_mtu(&theirs);
        let to_receive = RtrAttributes::new(route, mtu, theirs.queue_pair(), theirs.packet_number())
            .reads(self.reads)
            .receiver_not_ready(self.timer);
        let to_send = RtsAttributes::new(ours.packet_number())
            .reads(self.reads.min(theirs.reads()))
            .timeout(self.timeout)
            .retries(self.retries)
            .receiver_not_ready(self.receiver_not_ready);
        let queue_pair = queue_pair.into_rtr(&to_receive).map_err(|failed| failed.error)?;
        let queue_pair = queue_pair.into_rts(&to_send).map_err(|failed| failed.error)?;
        ours.ready(stream)?;
        Ok((queue_pair, theirs))
    }

    /// Both in one, for a queue pair that is not sent to before its end has posted receives: one of writes and reads
    /// only, or a reliable one, where the peer tries again.
    ///
    /// # Errors
    ///
    /// As [`Self::finish`].
    pub fn connect<T: Connected, B, S: Read + Write + ?Sized>(
        &self,
        stream: &mut S,
        queue_pair: QueuePair<T, Reset, B>,
    ) -> Result<(QueuePair<T, Rts, B>, Endpoint), HandshakeError> {
        let queue_pair = self.init(queue_pair).map_err(|failed| failed.error)?;
        self.finish(stream, queue_pair)
    }
}
