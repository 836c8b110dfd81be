//! Every structure with its fields, every code and flag, as Rust has them.
//!
//! # Safety
//!
//! Fields are measured in memory that is never read: addresses alone are taken.
#![allow(unsafe_code)]

use core::any::type_name;
use core::mem::MaybeUninit;
use std::borrow::ToOwned as _;
use std::format;
use std::string::String;
use std::vec::Vec;

use bitflags::Flags;

use crate::sys::*;

/// A structure or a union.
pub(super) struct Layout {
    pub(super) c_name: &'static str,
    pub(super) growth: Growth,
    pub(super) size: usize,
    pub(super) align: usize,
    pub(super) fields: Vec<Field>,
}

/// Where later versions of the header add fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Growth {
    Never,
    AtEnd,
    AtBeginning,
}

pub(super) struct Field {
    /// As C names it, from the structure on.
    pub(super) c_path: &'static str,
    pub(super) offset: usize,
    pub(super) size: usize,
    /// As the compiler spells it.
    pub(super) rust_type: &'static str,
}

fn field<T, F>(base: *const T, field: *const F, c_path: &'static str) -> Field {
    Field { c_path, offset: field.addr() - base.addr(), size: size_of::<F>(), rust_type: type_name::<F>() }
}

/// C's name of a field, if it is another one.
macro_rules! c_path {
    ($($part:ident).+) => {
        concat!($(".", stringify!($part)),+).split_at(1).1
    };
    ($($part:ident).+ $path:literal) => {
        $path
    };
}

/// Measures structures. Their own fields are all named, or it does not compile; those of structures within them,
/// which C gives no name, come after a semicolon.
macro_rules! layouts {
    ($(
        $kind:ident $name:ident $growth:ident {
            $($field:ident $(as $c:literal)?),+ $(; $($($part:ident).+ $(as $inner_c:literal)?),+)?
        }
    )*) => {
        pub(super) fn layouts() -> Vec<Layout> {
            Vec::from([$({
                complete!($kind $name { $($field),+ });
                let memory = MaybeUninit::<$name>::uninit();
                let base = memory.as_ptr();
                Layout {
                    c_name: concat!(stringify!($kind), " ", stringify!($name)),
                    growth: Growth::$growth,
                    size: size_of::<$name>(),
                    align: align_of::<$name>(),
                    fields: Vec::from([
                        // SAFETY: `base` points to memory of that size.
                        $($(field(base, unsafe { &raw const (*base).$($part).+ },
                            c_path!($($part).+ $($inner_c)?)),)+)?
                        // SAFETY: as above.
                        $(field(base, unsafe { &raw const (*base).$field }, c_path!($field $($c)?)),)+
                    ]),
                }
            }),*])
        }
    };
}

/// Does not compile where a field of a structure is left out.
macro_rules! complete {
    (struct $name:ident { $($field:ident),+ }) => {
        let _ = |$name { $($field: _),+ }: $name| ();
    };
    (union $name:ident { $($field:ident),+ }) => {};
}

layouts! {
    union ibv_gid Never { raw, global; global.subnet_prefix, global.interface_id }
    struct ibv_gid_entry Never { gid, gid_index, port_num, gid_type, ndev_ifindex }
    struct ibv_global_route Never { dgid, flow_label, sgid_index, hop_limit, traffic_class }
    struct ibv_grh Never { version_tclass_flow, paylen, next_hdr, hop_limit, sgid, dgid }
    struct ibv_ah_attr Never { grh, dlid, sl, src_path_bits, static_rate, is_global, port_num }
    struct ibv_ah Never { context, pd, handle }

    struct ibv_device Never {
        _ops, node_type, transport_type, name, dev_name, dev_path, ibdev_path; _ops._dummy1, _ops._dummy2
    }
    struct ibv_device_attr Never {
        fw_ver, node_guid, sys_image_guid, max_mr_size, page_size_cap, vendor_id, vendor_part_id, hw_ver, max_qp,
        max_qp_wr, device_cap_flags, max_sge, max_sge_rd, max_cq, max_cqe, max_mr, max_pd, max_qp_rd_atom,
        max_ee_rd_atom, max_res_rd_atom, max_qp_init_rd_atom, max_ee_init_rd_atom, atomic_cap, max_ee, max_rdd,
        max_mw, max_raw_ipv6_qp, max_raw_ethy_qp, max_mcast_grp, max_mcast_qp_attach, max_total_mcast_qp_attach,
        max_ah, max_fmr, max_map_per_fmr, max_srq, max_srq_wr, max_srq_sge, max_pkeys, local_ca_ack_delay,
        phys_port_cnt
    }
    struct ibv_port_attr AtEnd {
        state, max_mtu, active_mtu, gid_tbl_len, port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr,
        pkey_tbl_len, lid, sm_lid, lmc, max_vl_num, sm_sl, subnet_timeout, init_type_reply, active_width,
        active_speed, phys_state, link_layer, flags, port_cap_flags2
    }
    struct ibv_context_ops Never {
        _compat_query_device, _compat_query_port, _compat_alloc_pd, _compat_dealloc_pd, _compat_reg_mr,
        _compat_rereg_mr, _compat_dereg_mr, alloc_mw, bind_mw, dealloc_mw, _compat_create_cq, poll_cq,
        req_notify_cq, _compat_cq_event, _compat_resize_cq, _compat_destroy_cq, _compat_create_srq,
        _compat_modify_srq, _compat_query_srq, _compat_destroy_srq, post_srq_recv, _compat_create_qp,
        _compat_query_qp, _compat_modify_qp, _compat_destroy_qp, post_send, post_recv, _compat_create_ah,
        _compat_destroy_ah, _compat_attach_mcast, _compat_detach_mcast, _compat_async_event
    }
    struct ibv_context Never { device, ops, cmd_fd, async_fd, num_comp_vectors, mutex, abi_compat }
    struct verbs_context AtBeginning {
        query_port, advise_mr, alloc_null_mr, read_counters, attach_counters_point_flow, create_counters,
        destroy_counters, reg_dm_mr, alloc_dm, free_dm, modify_flow_action_esp, destroy_flow_action,
        create_flow_action_esp, modify_qp_rate_limit, alloc_parent_domain, dealloc_td, alloc_td, modify_cq,
        post_srq_ops, destroy_rwq_ind_table, create_rwq_ind_table, destroy_wq, modify_wq, create_wq,
        query_rt_values, create_cq_ex, priv_ as "priv", query_device_ex, ibv_destroy_flow, ABI_placeholder2,
        ibv_create_flow, ABI_placeholder1, open_qp, create_qp_ex, get_srq_num, create_srq_ex, open_xrcd,
        close_xrcd, _ABI_placeholder3, sz, context
    }

    struct ibv_query_device_ex_input AtEnd { comp_mask }
    struct ibv_odp_caps Never {
        general_caps, per_transport_caps; per_transport_caps.rc_odp_caps, per_transport_caps.uc_odp_caps,
        per_transport_caps.ud_odp_caps
    }
    struct ibv_tso_caps Never { max_tso, supported_qpts }
    struct ibv_rss_caps Never {
        supported_qpts, max_rwq_indirection_tables, max_rwq_indirection_table_size, rx_hash_fields_mask,
        rx_hash_function
    }
    struct ibv_packet_pacing_caps Never { qp_rate_limit_min, qp_rate_limit_max, supported_qpts }
    struct ibv_tm_caps Never { max_rndv_hdr_size, max_num_tags, flags, max_ops, max_sge }
    struct ibv_cq_moderation_caps Never { max_cq_count, max_cq_period }
    struct ibv_pci_atomic_caps Never { fetch_add, swap, compare_swap }
    struct ibv_device_attr_ex AtEnd {
        orig_attr, comp_mask, odp_caps, completion_timestamp_mask, hca_core_clock, device_cap_flags_ex, tso_caps,
        rss_caps, max_wq_type_rq, packet_pacing_caps, raw_packet_caps, tm_caps, cq_mod_caps, max_dm_size,
        pci_atomic_caps, xrc_odp_caps, phys_port_cnt_ex
    }
    struct ibv_values_ex AtEnd { comp_mask, raw_clock; raw_clock.tv_sec, raw_clock.tv_nsec }

    struct ibv_pd Never { context, handle }
    struct ibv_td_init_attr AtEnd { comp_mask }
    struct ibv_td Never { context }
    struct ibv_parent_domain_init_attr AtEnd { pd, td, comp_mask, alloc, free, pd_context }
    struct ibv_mr Never { context, pd, addr, length, handle, lkey, rkey }
    struct ibv_mw Never { context, pd, rkey, handle, type_ as "type" }
    struct ibv_mw_bind_info Never { mr, addr, length, mw_access_flags }
    struct ibv_mw_bind Never { wr_id, send_flags, bind_info }

    struct ibv_comp_channel Never { context, fd, refcnt }
    struct ibv_cq Never {
        context, channel, cq_context, handle, cqe, mutex, cond, comp_events_completed, async_events_completed
    }
    struct ibv_poll_cq_attr AtEnd { comp_mask }
    struct ibv_wc_tm_info Never { tag, priv_ as "priv" }
    struct ibv_cq_ex AtEnd {
        context, channel, cq_context, handle, cqe, mutex, cond, comp_events_completed, async_events_completed,
        comp_mask, status, wr_id, start_poll, next_poll, end_poll, read_opcode, read_vendor_err, read_byte_len,
        read_imm_data, read_qp_num, read_src_qp, read_wc_flags, read_slid, read_sl, read_dlid_path_bits,
        read_completion_ts, read_cvlan, read_flow_tag, read_tm_info, read_completion_wallclock_ns
    }
    struct ibv_cq_init_attr_ex AtEnd {
        cqe, cq_context, channel, comp_vector, wc_flags, comp_mask, flags, parent_domain
    }
    struct ibv_moderate_cq Never { cq_count, cq_period }
    struct ibv_modify_cq_attr AtEnd { attr_mask, moderate }
    struct ibv_wc Never {
        wr_id, status, opcode, vendor_err, byte_len, imm as "imm_data", qp_num, src_qp, wc_flags, pkey_index,
        slid, sl, dlid_path_bits; imm.invalidated_rkey as "invalidated_rkey"
    }

    struct ibv_srq Never { context, srq_context, pd, handle, mutex, cond, events_completed }
    struct ibv_srq_attr Never { max_wr, max_sge, srq_limit }
    struct ibv_srq_init_attr Never { srq_context, attr }
    struct ibv_tm_cap Never { max_num_tags, max_ops }
    struct ibv_srq_init_attr_ex AtEnd { srq_context, attr, comp_mask, srq_type, pd, xrcd, cq, tm_cap }

    struct ibv_qp Never {
        context, qp_context, pd, send_cq, recv_cq, srq, handle, qp_num, state, qp_type, mutex, cond,
        events_completed
    }
    struct ibv_qp_ex AtEnd {
        qp_base, comp_mask, wr_id, wr_flags, wr_atomic_cmp_swp, wr_atomic_fetch_add, wr_bind_mw, wr_local_inv,
        wr_rdma_read, wr_rdma_write, wr_rdma_write_imm, wr_send, wr_send_imm, wr_send_inv, wr_send_tso,
        wr_set_ud_addr, wr_set_xrc_srqn, wr_set_inline_data, wr_set_inline_data_list, wr_set_sge, wr_set_sge_list,
        wr_start, wr_complete, wr_abort, wr_atomic_write
    }
    struct ibv_qp_cap Never { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data }
    struct ibv_qp_init_attr Never { qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all }
    struct ibv_rx_hash_conf Never { rx_hash_function, rx_hash_key_len, rx_hash_key, rx_hash_fields_mask }
    struct ibv_qp_init_attr_ex AtEnd {
        qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all, comp_mask, pd, xrcd, create_flags,
        max_tso_header, rwq_ind_tbl, rx_hash_conf, source_qpn, send_ops_flags
    }
    struct ibv_qp_attr Never {
        qp_state, cur_qp_state, path_mtu, path_mig_state, qkey, rq_psn, sq_psn, dest_qp_num, qp_access_flags,
        cap, ah_attr, alt_ah_attr, pkey_index, alt_pkey_index, en_sqd_async_notify, sq_draining, max_rd_atomic,
        max_dest_rd_atomic, min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout,
        rate_limit
    }

    struct ibv_sge Never { addr, length, lkey }
    struct ibv_data_buf Never { addr, length }
    struct ibv_send_wr Never {
        wr_id, next, sg_list, num_sge, opcode, send_flags, imm as "imm_data", wr, qp_type,
        bind_or_tso as "bind_mw";
        imm.invalidate_rkey as "invalidate_rkey",
        wr.rdma, wr.rdma.remote_addr, wr.rdma.rkey,
        wr.atomic, wr.atomic.remote_addr, wr.atomic.compare_add, wr.atomic.swap, wr.atomic.rkey,
        wr.ud, wr.ud.ah, wr.ud.remote_qpn, wr.ud.remote_qkey,
        qp_type.xrc, qp_type.xrc.remote_srqn,
        bind_or_tso.bind_mw.mw as "bind_mw.mw", bind_or_tso.bind_mw.rkey as "bind_mw.rkey",
        bind_or_tso.bind_mw.bind_info as "bind_mw.bind_info",
        bind_or_tso.tso as "tso", bind_or_tso.tso.hdr as "tso.hdr", bind_or_tso.tso.hdr_sz as "tso.hdr_sz",
        bind_or_tso.tso.mss as "tso.mss"
    }
    struct ibv_recv_wr Never { wr_id, next, sg_list, num_sge }

    struct ibv_async_event Never {
        element, event_type; element.cq, element.qp, element.srq, element.wq, element.port_num
    }
}

/// Names every function of the library with its type, or it does not compile.
macro_rules! exported {
    ($($name:ident),+) => {
        pub(super) fn exported() -> Vec<(&'static str, &'static str)> {
            fn type_of<F>(_field: fn(Functions) -> F) -> &'static str {
                type_name::<F>()
            }
            let _ = |Functions { $($name: _),+ }: Functions| ();
            Vec::from([$((stringify!($name), type_of(|functions| functions.$name))),+])
        }
    };
}

exported! {
    ibv_get_device_list, ibv_free_device_list, ibv_get_device_name, ibv_get_device_guid, ibv_open_device,
    ibv_close_device, ibv_get_async_event, ibv_ack_async_event, ibv_query_device, ibv_query_port, ibv_query_gid,
    _ibv_query_gid_ex, _ibv_query_gid_table, ibv_query_pkey, ibv_get_pkey_index, ibv_alloc_pd, ibv_dealloc_pd,
    ibv_reg_mr, ibv_reg_mr_iova, ibv_reg_mr_iova2, ibv_rereg_mr, ibv_dereg_mr, ibv_create_comp_channel,
    ibv_destroy_comp_channel, ibv_create_cq, ibv_resize_cq, ibv_destroy_cq, ibv_get_cq_event, ibv_ack_cq_events,
    ibv_create_srq, ibv_modify_srq, ibv_query_srq, ibv_destroy_srq, ibv_create_qp, ibv_qp_to_qp_ex, ibv_modify_qp,
    ibv_query_qp, ibv_query_qp_data_in_order, ibv_destroy_qp, ibv_create_ah, ibv_init_ah_from_wc,
    ibv_create_ah_from_wc, ibv_destroy_ah, ibv_fork_init, ibv_is_fork_initialized
}

/// Every constant of these codes and flags under its C name.
macro_rules! constants {
    (codes { $($code:ident)* } flags { $($flags:ident)* } others { $($name:literal = $value:expr;)* }) => {
        pub(super) fn constants() -> Vec<(String, i64)> {
            let mut constants = Vec::new();
            $(
                let named = $code::NAMED.iter();
                constants.extend(named.map(|(name, code)| {
                    (format!("{}{name}", $code::C_PREFIX), i64::from(code.0))
                }));
            )*
            $(
                let named = <$flags as Flags>::FLAGS.iter();
                constants.extend(named.map(|flag| {
                    let bits = i64::try_from(flag.value().bits()).expect("no flag is the sign");
                    (format!("{}{}", $flags::C_PREFIX, flag.name()), bits)
                }));
            )*
            $(constants.push(($name.to_owned(), i64::try_from($value).expect("it is small")));)*
            constants
        }
    };
}

constants! {
    codes {
        WcStatus WcOpcode WrOpcode QpState QpType MigState Mtu PortState LinkLayer EventType GidType NodeType
        TransportType AtomicCap MwType SrqType ForkStatus ReregMrError
    }
    flags {
        AccessFlags SendFlags QpAttrMask QpInitAttrMask QpCreateFlags QpSendOpsFlags WcFlags CqWcFlags
        CqCreateFlags CqInitAttrMask CqAttrMask SrqAttrMask SrqInitAttrMask ReregMrFlags ParentDomainInitAttrMask
        ValuesMask DeviceCapFlags DeviceCapFlagsEx OdpCaps OdpTransportCaps PortCapFlags PortCapFlags2 PortFlags
    }
    others {
        "IBV_ACCESS_OPTIONAL_RANGE" = AccessFlags::OPTIONAL.bits();
        "IBV_WC_STANDARD_FLAGS" = CqWcFlags::STANDARD.bits();
        "IBV_SYSFS_NAME_MAX" = IBV_SYSFS_NAME_MAX;
        "IBV_SYSFS_PATH_MAX" = IBV_SYSFS_PATH_MAX;
    }
}
