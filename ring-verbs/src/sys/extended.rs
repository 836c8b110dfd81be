//! The extended context: operations that came after the first version of the interface.

use core::ffi::{c_int, c_uint, c_void};

use memoffset::offset_of;
use static_assertions::const_assert_eq;

use super::{
    ibv_context, ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_device_attr_ex, ibv_modify_cq_attr, ibv_mr,
    ibv_parent_domain_init_attr, ibv_pd, ibv_port_attr, ibv_qp, ibv_qp_init_attr_ex,
    ibv_query_device_ex_input, ibv_sge, ibv_srq, ibv_srq_init_attr_ex, ibv_td, ibv_td_init_attr,
    ibv_values_ex,
};

/// Declares types that are only pointed to.
macro_rules! opaque {
    ($($(#[$meta:meta])* $name:ident)*) => {$(
        $(#[$meta])*
        #[repr(C)]
        pub struct $name {
            _opaque: [u8; 0],
        }
    )*};
}

opaque! {
    /// The state of a port as the first version had it: the beginning of `ibv_port_attr`.
    _compat_ibv_port_attr
    /// Properties of a piece of the device's own memory.
    ibv_alloc_dm_attr
    /// Where a counter goes.
    ibv_counter_attach_attr
    /// Counters of a flow.
    ibv_counters
    /// Properties of counters.
    ibv_counters_init_attr
    /// A piece of the device's own memory.
    ibv_dm
    /// A rule that steers packets.
    ibv_flow
    /// What a rule does with a packet.
    ibv_flow_action
    /// How packets are encrypted.
    ibv_flow_action_esp_attr
    /// Properties of a rule.
    ibv_flow_attr
    /// Requests to a queue that matches tags.
    ibv_ops_wr
    /// How a shared queue pair is opened.
    ibv_qp_open_attr
    /// The rate of a queue pair.
    ibv_qp_rate_limit_attr
    /// The table that spreads packets over queues.
    ibv_rwq_ind_table
    /// Properties of that table.
    ibv_rwq_ind_table_init_attr
    /// A work queue that belongs to no queue pair.
    ibv_wq
    /// What is to change of it.
    ibv_wq_attr
    /// Properties of it.
    ibv_wq_init_attr
    /// The domain of an extended connection.
    ibv_xrcd
    /// Properties of it.
    ibv_xrcd_init_attr
    /// What the library keeps for itself.
    verbs_ex_private
}

/// A context with what came later before it: the structure grows at its beginning.
#[repr(C)]
pub struct verbs_context {
    pub query_port: Option<unsafe extern "C" fn(*mut ibv_context, u8, *mut ibv_port_attr, usize) -> c_int>,
    pub advise_mr: Option<unsafe extern "C" fn(*mut ibv_pd, c_uint, u32, *mut ibv_sge, u32) -> c_int>,
    pub alloc_null_mr: Option<unsafe extern "C" fn(*mut ibv_pd) -> *mut ibv_mr>,
    pub read_counters: Option<unsafe extern "C" fn(*mut ibv_counters, *mut u64, u32, u32) -> c_int>,
    pub attach_counters_point_flow:
        Option<unsafe extern "C" fn(*mut ibv_counters, *mut ibv_counter_attach_attr, *mut ibv_flow) -> c_int>,
    pub create_counters:
        Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_counters_init_attr) -> *mut ibv_counters>,
    pub destroy_counters: Option<unsafe extern "C" fn(*mut ibv_counters) -> c_int>,
    pub reg_dm_mr: Option<unsafe extern "C" fn(*mut ibv_pd, *mut ibv_dm, u64, usize, c_uint) -> *mut ibv_mr>,
    pub alloc_dm: Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_alloc_dm_attr) -> *mut ibv_dm>,
    pub free_dm: Option<unsafe extern "C" fn(*mut ibv_dm) -> c_int>,
    pub modify_flow_action_esp:
        Option<unsafe extern "C" fn(*mut ibv_flow_action, *mut ibv_flow_action_esp_attr) -> c_int>,
    pub destroy_flow_action: Option<unsafe extern "C" fn(*mut ibv_flow_action) -> c_int>,
    pub create_flow_action_esp:
        Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_flow_action_esp_attr) -> *mut ibv_flow_action>,
    pub modify_qp_rate_limit: Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_qp_rate_limit_attr) -> c_int>,
    pub alloc_parent_domain:
        Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_parent_domain_init_attr) -> *mut ibv_pd>,
    pub dealloc_td: Option<unsafe extern "C" fn(*mut ibv_td) -> c_int>,
    pub alloc_td: Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_td_init_attr) -> *mut ibv_td>,
    pub modify_cq: Option<unsafe extern "C" fn(*mut ibv_cq, *mut ibv_modify_cq_attr) -> c_int>,
    pub post_srq_ops:
        Option<unsafe extern "C" fn(*mut ibv_srq, *mut ibv_ops_wr, *mut *mut ibv_ops_wr) -> c_int>,
    pub destroy_rwq_ind_table: Option<unsafe extern "C" fn(*mut ibv_rwq_ind_table) -> c_int>,
    pub create_rwq_ind_table: Option<
        unsafe extern "C" fn(*mut ibv_context, *mut ibv_rwq_ind_table_init_attr) -> *mut ibv_rwq_ind_table,
    >,
    pub destroy_wq: Option<unsafe extern "C" fn(*mut ibv_wq) -> c_int>,
    pub modify_wq: Option<unsafe extern "C" fn(*mut ibv_wq, *mut ibv_wq_attr) -> c_int>,
    pub create_wq: Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_wq_init_attr) -> *mut ibv_wq>,
    pub query_rt_values: Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_values_ex) -> c_int>,
    pub create_cq_ex:
        Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_cq_init_attr_ex) -> *mut ibv_cq_ex>,
    /// `priv` in C.
    pub priv_: *mut verbs_ex_private,
    pub query_device_ex: Option<
        unsafe extern "C" fn(
            *mut ibv_context,
            *const ibv_query_device_ex_input,
            *mut ibv_device_attr_ex,
            usize,
        ) -> c_int,
    >,
    pub ibv_destroy_flow: Option<unsafe extern "C" fn(*mut ibv_flow) -> c_int>,
    pub ABI_placeholder2: *mut c_void,
    pub ibv_create_flow: Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_flow_attr) -> *mut ibv_flow>,
    pub ABI_placeholder1: *mut c_void,
    pub open_qp: Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_qp_open_attr) -> *mut ibv_qp>,
    pub create_qp_ex: Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_qp_init_attr_ex) -> *mut ibv_qp>,
    pub get_srq_num: Option<unsafe extern "C" fn(*mut ibv_srq, *mut u32) -> c_int>,
    pub create_srq_ex:
        Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_srq_init_attr_ex) -> *mut ibv_srq>,
    pub open_xrcd: Option<unsafe extern "C" fn(*mut ibv_context, *mut ibv_xrcd_init_attr) -> *mut ibv_xrcd>,
    pub close_xrcd: Option<unsafe extern "C" fn(*mut ibv_xrcd) -> c_int>,
    pub _ABI_placeholder3: u64,
    /// The size of the whole, as the library knows it.
    pub sz: usize,
    pub context: ibv_context,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<verbs_context>(), 320 + size_of::<ibv_context>());
#[cfg(target_pointer_width = "64")]
const_assert_eq!(offset_of!(verbs_context, sz), 312);
const_assert_eq!(offset_of!(verbs_context, context) - offset_of!(verbs_context, sz), size_of::<usize>());
