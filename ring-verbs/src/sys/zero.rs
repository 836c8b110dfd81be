//! [`Default`] for structures that begin as zeroes, as the manual pages ask of what is passed to the library.
//!
//! # Safety
//!
//! Every field of the structures named here is an integer, a raw pointer, an optional function, a newtype of an
//! integer, a lock of the C library (whose initial value is zero on Linux), or a structure or union of these. All of
//! them may be zero.
#![allow(unsafe_code)]

use core::mem::zeroed;

use super::*;

/// Implements [`Default`] as zeroes.
macro_rules! zeroes {
    ($($name:ident)*) => {$(
        impl Default for $name {
            fn default() -> Self {
                // SAFETY: each of the types named below may be all zeroes, by the section above.
                unsafe { zeroed() }
            }
        }
    )*};
}

zeroes! {
    ibv_gid ibv_gid_entry ibv_global_route ibv_grh ibv_ah_attr ibv_ah
    ibv_device ibv_device_attr ibv_port_attr ibv_context_ops ibv_context verbs_context
    ibv_query_device_ex_input ibv_odp_caps ibv_device_attr_ex ibv_values_ex
    ibv_pd ibv_td_init_attr ibv_td ibv_parent_domain_init_attr ibv_mr ibv_mw ibv_mw_bind_info ibv_mw_bind
    ibv_comp_channel ibv_cq ibv_poll_cq_attr ibv_wc_tm_info ibv_cq_ex ibv_cq_init_attr_ex ibv_moderate_cq
    ibv_modify_cq_attr ibv_wc_imm ibv_wc
    ibv_srq ibv_srq_attr ibv_srq_init_attr ibv_tm_cap ibv_srq_init_attr_ex
    ibv_qp ibv_qp_ex ibv_qp_cap ibv_qp_init_attr ibv_rx_hash_conf ibv_qp_init_attr_ex ibv_qp_attr
    ibv_sge ibv_data_buf ibv_send_wr_imm ibv_send_wr_wr ibv_send_wr_qp_type ibv_send_wr_bind_or_tso ibv_send_wr
    ibv_recv_wr ibv_async_event
}
