//! The functions of a scripted device.
//!
//! # Safety
//!
//! They are called as the manual pages ask: with objects of this device that are there, and lists that end with NULL.
#![allow(unsafe_code)]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one promise of the caller covers an object's fields"
)]

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr;

use ring_verbs::sys::{
    AccessFlags, QpAttrMask, QpState, ReregMrFlags, SendFlags, ibv_comp_channel, ibv_context, ibv_cq,
    ibv_device, ibv_device_attr, ibv_mr, ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_init_attr, ibv_recv_wr,
    ibv_send_wr, ibv_sge, ibv_srq, ibv_srq_init_attr, ibv_wc,
};

use super::state::{Answer, Bad, Call, Kind, Posted, Refusal};
use super::{Modified, Registered, Scripted, set_errno};
use crate::heap;

const NAME: &CStr = c"scripted0";

/// More than any test asks for.
const MANY: c_int = 1 << 20;

/// What a function returns that was told to fail.
fn code(answer: Answer) -> c_int {
    set_errno(answer.errno);
    answer.returned
}

/// As `code`, where the result is a pointer.
fn null<T>(answer: Answer) -> *mut T {
    set_errno(answer.errno);
    ptr::null_mut()
}

macro_rules! device_of {
    ($object:ident) => {{
        // SAFETY: the object is there.
        let context = unsafe { (*$object).context };
        // SAFETY: it is of a scripted device.
        unsafe { Scripted::of(context) }
    }};
}

/// Ends an object of the library and frees it, unless it is used or is to fail.
macro_rules! end {
    ($object:ident, $call:expr) => {{
        let device = device_of!($object);
        let mut state = device.state();
        if let Some(answer) = state.answer($call) {
            return code(answer);
        }
        // SAFETY: the object is there.
        let number = unsafe { (*$object).handle };
        if !state.end(number) {
            return libc::EBUSY;
        }
        // SAFETY: it was made of a box, and is ended once.
        drop(unsafe { Box::from_raw($object) });
        0
    }};
}

pub(super) unsafe extern "C" fn get_device_name(_: *mut ibv_device) -> *const c_char {
    NAME.as_ptr()
}

pub(super) unsafe extern "C" fn close_device(context: *mut ibv_context) -> c_int {
    // SAFETY: it is of a scripted device.
    let device = unsafe { Scripted::of(context) };
    let mut state = device.state();
    assert!(!state.is_closed, "it is closed once");
    state.busy += u32::from(!state.live().is_empty());
    state.is_closed = true;
    0
}

pub(super) unsafe extern "C" fn query_device(context: *mut ibv_context, to: *mut ibv_device_attr) -> c_int {
    // SAFETY: it is of a scripted device.
    let device = unsafe { Scripted::of(context) };
    if let Some(answer) = device.state().answer(Call::QueryDevice) {
        return code(answer);
    }
    let attributes = ibv_device_attr {
        max_qp_wr: MANY,
        max_sge: 16,
        max_cqe: MANY,
        max_srq_wr: MANY,
        max_srq_sge: 16,
        phys_port_cnt: 1,
        ..ibv_device_attr::default()
    };
    // SAFETY: it can be written.
    unsafe { to.write(attributes) };
    0
}

pub(super) unsafe extern "C" fn alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    // SAFETY: it is of a scripted device.
    let device = unsafe { Scripted::of(context) };
    let mut state = device.state();
    if let Some(answer) = state.answer(Call::AllocateDomain) {
        return null(answer);
    }
    let handle = state.make(Kind::Domain, vec![]);
    Box::into_raw(Box::new(ibv_pd { context, handle }))
}

pub(super) unsafe extern "C" fn dealloc_pd(domain: *mut ibv_pd) -> c_int {
    end!(domain, Call::FreeDomain)
}

fn register(domain: *mut ibv_pd, registered: Registered) -> *mut ibv_mr {
    let device = device_of!(domain);
    let mut state = device.state();
    if let Some(answer) = state.answer(Call::Register) {
        return null(answer);
    }
    // SAFETY: the domain is there.
    let handle = state.make(Kind::Region, vec![unsafe { (*domain).handle }]);
    state.registered.push(registered);
    // SAFETY: as above.
    let context = unsafe { (*domain).context };
    let (addr, length) = (ptr::without_provenance_mut(registered.base), registered.bytes);
    Box::into_raw(Box::new(ibv_mr {
        context,
        pd: domain,
        addr,
        length,
        handle,
        lkey: 0x100 + handle,
        rkey: 0x200 + handle,
    }))
}

pub(super) unsafe extern "C" fn reg_mr(
    domain: *mut ibv_pd,
    base: *mut c_void,
    bytes: usize,
    access: c_int,
) -> *mut ibv_mr {
    let access = AccessFlags::from_bits_retain(u32::from_ne_bytes(access.to_ne_bytes()));
    register(domain, Registered { base: base.expose_provenance(), bytes, access, is_optional: false })
}

pub(super) unsafe extern "C" fn reg_mr_iova2(
    domain: *mut ibv_pd,
    base: *mut c_void,
    bytes: usize,
    _: u64,
    access: c_uint,
) -> *mut ibv_mr {
    let access = AccessFlags::from_bits_retain(access);
    register(domain, Registered { base: base.expose_provenance(), bytes, access, is_optional: true })
}

pub(super) unsafe extern "C" fn rereg_mr(
    region: *mut ibv_mr,
    _: ReregMrFlags,
    _: *mut ibv_pd,
    _: *mut c_void,
    _: usize,
    access: c_int,
) -> c_int {
    let device = device_of!(region);
    let mut state = device.state();
    if let Some(answer) = state.answer(Call::Reregister) {
        return code(answer);
    }
    // SAFETY: the region is there.
    let (base, bytes) = unsafe { ((*region).addr.addr(), (*region).length) };
    let access = AccessFlags::from_bits_retain(u32::from_ne_bytes(access.to_ne_bytes()));
    state.registered.push(Registered { base, bytes, access, is_optional: false });
    0
}

pub(super) unsafe extern "C" fn dereg_mr(region: *mut ibv_mr) -> c_int {
    end!(region, Call::Deregister)
}

pub(super) unsafe extern "C" fn create_cq(
    context: *mut ibv_context,
    entries: c_int,
    _: *mut c_void,
    channel: *mut ibv_comp_channel,
    _: c_int,
) -> *mut ibv_cq {
    // SAFETY: it is of a scripted device.
    let device = unsafe { Scripted::of(context) };
    let mut state = device.state();
    if let Some(answer) = state.answer(Call::CreateCompletionQueue) {
        return null(answer);
    }
    let handle = state.make(Kind::CompletionQueue, vec![]);
    Box::into_raw(Box::new(ibv_cq { context, channel, handle, cqe: entries, ..ibv_cq::default() }))
}

pub(super) unsafe extern "C" fn destroy_cq(queue: *mut ibv_cq) -> c_int {
    end!(queue, Call::DestroyCompletionQueue)
}

pub(super) unsafe extern "C" fn poll_cq(queue: *mut ibv_cq, most: c_int, to: *mut ibv_wc) -> c_int {
    let device = device_of!(queue);
    // SAFETY: the queue is there.
    let number = unsafe { (*queue).handle };
    heap::of_the_device(|| {
        let mut state = device.state();
        if let Some(answer) = state.answer(Call::Poll) {
            return code(answer);
        }
        let Some(completions) = state.completions.get_mut(&number) else { return 0 };
        let count = usize::try_from(most).expect("not negative").min(completions.len());
        for (index, wc) in completions.drain(..count).enumerate() {
            // SAFETY: there is room for as many as were asked for.
            let at = unsafe { to.add(index) };
            // SAFETY: as above.
            unsafe { at.write(wc) };
        }
        c_int::try_from(count).expect("not more than asked for")
    })
}

pub(super) unsafe extern "C" fn create_srq(domain: *mut ibv_pd, _: *mut ibv_srq_init_attr) -> *mut ibv_srq {
    let device = device_of!(domain);
    let mut state = device.state();
    if let Some(answer) = state.answer(Call::CreateSharedQueue) {
        return null(answer);
    }
    // SAFETY: the domain is there.
    let handle = state.make(Kind::SharedReceiveQueue, vec![unsafe { (*domain).handle }]);
    // SAFETY: as above.
    let context = unsafe { (*domain).context };
    Box::into_raw(Box::new(ibv_srq {
        context,
        srq_context: ptr::null_mut(),
        pd: domain,
        handle,
        mutex: libc::PTHREAD_MUTEX_INITIALIZER,
        cond: libc::PTHREAD_COND_INITIALIZER,
        events_completed: 0,
    }))
}

pub(super) unsafe extern "C" fn destroy_srq(queue: *mut ibv_srq) -> c_int {
    end!(queue, Call::DestroySharedQueue)
}

pub(super) unsafe extern "C" fn create_qp(
    domain: *mut ibv_pd,
    attributes: *mut ibv_qp_init_attr,
) -> *mut ibv_qp {
    let device = device_of!(domain);
    let mut state = device.state();
    if let Some(answer) = state.answer(Call::CreateQueuePair) {
        return null(answer);
    }
    // SAFETY: the attributes are there.
    let ibv_qp_init_attr { send_cq, recv_cq, srq, qp_type, .. } = unsafe { attributes.read() };
    // SAFETY: all of them are there.
    let mut uses = unsafe { vec![(*domain).handle, (*send_cq).handle, (*recv_cq).handle] };
    // SAFETY: as above, where there is one.
    uses.extend(unsafe { srq.as_ref() }.map(|queue| queue.handle));
    let handle = state.make(Kind::QueuePair, uses);
    // SAFETY: the domain is there.
    let context = unsafe { (*domain).context };
    Box::into_raw(Box::new(ibv_qp {
        context,
        pd: domain,
        send_cq,
        recv_cq,
        srq,
        handle,
        qp_num: 0x1000 + handle,
        state: QpState::RESET,
        qp_type,
        ..ibv_qp::default()
    }))
}

pub(super) unsafe extern "C" fn modify_qp(
    pair: *mut ibv_qp,
    attributes: *mut ibv_qp_attr,
    mask: QpAttrMask,
) -> c_int {
    let device = device_of!(pair);
    let mut state = device.state();
    // SAFETY: the attributes are there.
    let attributes = unsafe { attributes.read() };
    state.modified.push(Modified { attributes, mask });
    if let Some(answer) = state.answer(Call::ModifyQueuePair) {
        return code(answer);
    }
    // SAFETY: the pair is there, and only this writes its state.
    unsafe { (*pair).state = attributes.qp_state };
    0
}

pub(super) unsafe extern "C" fn query_qp(
    pair: *mut ibv_qp,
    to: *mut ibv_qp_attr,
    _: QpAttrMask,
    _: *mut ibv_qp_init_attr,
) -> c_int {
    let device = device_of!(pair);
    if let Some(answer) = device.state().answer(Call::QueryQueuePair) {
        return code(answer);
    }
    // SAFETY: the pair is there.
    let qp_state = unsafe { (*pair).state };
    // SAFETY: it can be written.
    unsafe { to.write(ibv_qp_attr { qp_state, ..ibv_qp_attr::default() }) };
    0
}

pub(super) unsafe extern "C" fn destroy_qp(pair: *mut ibv_qp) -> c_int {
    end!(pair, Call::DestroyQueuePair)
}

/// A request of either kind.
trait WorkRequest: Copy {
    fn next(&self) -> *mut Self;
    /// `queue_pair` is null of a shared receive.
    fn posted(&self, queue_pair: *mut ibv_qp) -> Posted;
}

impl WorkRequest for ibv_send_wr {
    fn next(&self) -> *mut Self {
        self.next
    }

    fn posted(&self, queue_pair: *mut ibv_qp) -> Posted {
        // SAFETY: the pair is there, and so is its queue.
        let completion_queue = unsafe { (*(*queue_pair).send_cq).handle };
        let (opcode, flags) = (Some(self.opcode), self.send_flags);
        posted(queue_pair, self.wr_id, completion_queue, opcode, flags, self.sg_list, self.num_sge)
    }
}

impl WorkRequest for ibv_recv_wr {
    fn next(&self) -> *mut Self {
        self.next
    }

    fn posted(&self, queue_pair: *mut ibv_qp) -> Posted {
        // SAFETY: the pair is there, if it is not null, and so is its queue.
        let completion_queue = unsafe { queue_pair.as_ref().map_or(0, |pair| (*pair.recv_cq).handle) };
        let flags = SendFlags::SIGNALED;
        posted(queue_pair, self.wr_id, completion_queue, None, flags, self.sg_list, self.num_sge)
    }
}

fn posted(
    pair: *mut ibv_qp,
    wr_id: u64,
    completion_queue: u32,
    opcode: Option<ring_verbs::sys::WrOpcode>,
    flags: SendFlags,
    list: *mut ibv_sge,
    count: c_int,
) -> Posted {
    // SAFETY: the pair is there, if it is not null.
    let queue_pair = unsafe { pair.as_ref() }.map_or(0, |pair| pair.qp_num);
    let count = usize::try_from(count).expect("not negative");
    // SAFETY: the list has so many pieces.
    let pieces = unsafe { core::slice::from_raw_parts(list, count) }.to_vec();
    let mut data = Vec::new();
    for piece in &pieces {
        let at = ptr::with_exposed_provenance::<u8>(usize::try_from(piece.addr).expect("an address"));
        // SAFETY: a piece is memory that stays until the request has ended, or until this call has.
        data.extend_from_slice(unsafe { core::slice::from_raw_parts(at, piece.length as usize) });
    }
    Posted { wr_id, queue_pair, completion_queue, opcode, flags, pieces, data }
}

/// Takes a list of requests, as far as it is to.
fn post<W: WorkRequest>(device: Scripted, pair: *mut ibv_qp, mut next: *mut W, bad: *mut *mut W) -> c_int {
    heap::of_the_device(|| {
        let mut state = device.state();
        state.rings += 1;
        let refusal = state.refusal.take();
        let most = refusal.map_or(usize::MAX, |refusal| refusal.taken);
        for _ in 0..most {
            if next.is_null() {
                break;
            }
            // SAFETY: the list ends with NULL.
            let request = unsafe { next.read() };
            state.posted.push(request.posted(pair));
            next = request.next();
        }
        refusal.map_or(0, |refusal| refuse(refusal, next, bad))
    })
}

fn refuse<W>(refusal: Refusal, next: *mut W, bad: *mut *mut W) -> c_int {
    assert!(!next.is_null(), "there was nothing to refuse");
    let named = match refusal.bad {
        Bad::Named => next,
        Bad::Nothing => ptr::null_mut(),
        Bad::Foreign => ptr::dangling_mut(),
    };
    // SAFETY: it can be written.
    unsafe { bad.write(named) };
    code(refusal.answer)
}

pub(super) unsafe extern "C" fn post_send(
    pair: *mut ibv_qp,
    list: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    post(device_of!(pair), pair, list, bad)
}

pub(super) unsafe extern "C" fn post_recv(
    pair: *mut ibv_qp,
    list: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    post(device_of!(pair), pair, list, bad)
}

pub(super) unsafe extern "C" fn post_srq_recv(
    queue: *mut ibv_srq,
    list: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    post(device_of!(queue), ptr::null_mut(), list, bad)
}
