//! Sends and completions by ring-verbs, over the functions of `provider.c`.

mod table;

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use ring_verbs::sys::{
    Functions, QpAttrMask, ibv_comp_channel, ibv_context, ibv_cq, ibv_device_attr, ibv_mr, ibv_pd, ibv_qp,
    ibv_qp_attr, ibv_qp_init_attr,
};
use ring_verbs::{
    CompletionQueue, CompletionQueueOptions, Context, InitAttributes, Mtu, Pool, PoolOptions, ProtectionDomain, QueuePair, QueuePairOptions, Rc,
    Request, Route, RtrAttributes, Rts, RtsAttributes, Slab,
};

unsafe extern "C" {
    fn provider_context() -> *mut ibv_context;
    fn provider_query_device(context: *mut ibv_context, attributes: *mut ibv_device_attr) -> c_int;
    fn provider_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd;
    fn provider_reg_mr(domain: *mut ibv_pd, base: *mut c_void, bytes: usize, access: c_int) -> *mut ibv_mr;
    fn provider_create_cq(
        context: *mut ibv_context,
        entries: c_int,
        cq_context: *mut c_void,
        channel: *mut ibv_comp_channel,
        vector: c_int,
    ) -> *mut ibv_cq;
    fn provider_create_qp(domain: *mut ibv_pd, attributes: *mut ibv_qp_init_attr) -> *mut ibv_qp;
    fn provider_modify_qp(pair: *mut ibv_qp, attributes: *mut ibv_qp_attr, mask: QpAttrMask) -> c_int;
}

static FUNCTIONS: Functions = Functions {
    ibv_query_device: provider_query_device,
    ibv_alloc_pd: provider_alloc_pd,
    ibv_reg_mr: provider_reg_mr,
    ibv_create_cq: provider_create_cq,
    ibv_create_qp: provider_create_qp,
    ibv_modify_qp: provider_modify_qp,
    ..table::UNSCRIPTED
};

fn main() {
    let messages: u64 = std::env::args().nth(1).map_or(0, |count| count.parse().expect("a number"));
    // SAFETY: it has no arguments.
    let context = NonNull::new(unsafe { provider_context() }).expect("it is static");
    // SAFETY: the table is this provider's, and nothing is closed.
    let context = unsafe { Context::from_raw(&FUNCTIONS, context) };
    let domain = ProtectionDomain::new(&context).expect("a domain");
    let pool = PoolOptions::new(64, 1).build(&domain).expect("a pool");
    let mut queue = CompletionQueueOptions::new(64).build(&context).expect("a completion queue");
    let pair = QueuePairOptions::new(64, 0).build::<Rc, Slab>(&domain, &queue, &queue).expect("a pair");
    let to = RtrAttributes::new(Route::within_subnet(1, 1), Mtu::MTU_1024, 17, 0);
    let pair = pair.into_init(&InitAttributes::new(1)).expect("INIT").into_rtr(&to).expect("RTR");
    let mut pair = pair.into_rts(&RtsAttributes::new(0)).expect("RTS");

    let request = Request::send();
    exchange(&mut pair, &mut queue, &request, &pool, messages);
    // The provider has nothing to end.
    std::process::exit(0);
}

/// Sends a slab, and sends it again when it has come back.
#[inline(never)]
fn exchange(
    pair: &mut QueuePair<Rc, Rts>,
    queue: &mut CompletionQueue<Slab>,
    request: &Request<Rc>,
    pool: &Pool,
    messages: u64,
) {
    let mut slab = pool.take().expect("a slab");
    for _ in 0..messages {
        if pair.post(request, slab).is_err() {
            std::process::exit(1);
        }
        let completion = loop {
            match queue.poll() {
                Ok(None) => {}
                Ok(Some(completion)) => break completion,
                Err(_) => std::process::exit(1),
            }
        };
        let (Ok(()), Some(sent)) = (completion.result(), completion.buffer) else { std::process::exit(1) };
        slab = sent;
    }
}
