//! Flags, each a type of the width that C's field or argument has. Bits that have no name are kept.

use core::ffi::{c_int, c_uint};

/// Declares types of flags, each with its C prefix for who compares them with the header.
macro_rules! flags {
    ($(
        $(#[$meta:meta])*
        $name:ident($type:ty) $prefix:literal { $($(#[$note:ident $($said:tt)*])* $flag:ident = $value:expr,)* }
    )*) => {$(
        bitflags::bitflags! {
            $(#[$meta])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
            #[repr(transparent)]
            pub struct $name: $type {
                $($(#[$note $($said)*])* const $flag = $value;)*
            }
        }

        impl $name {
            /// What the C names begin with.
            pub const C_PREFIX: &'static str = $prefix;
        }
    )*};
}

flags! {
    /// What may be done with a memory region, or through a queue pair (`enum ibv_access_flags`).
    AccessFlags(c_uint) "IBV_ACCESS_" {
        LOCAL_WRITE = 1,
        REMOTE_WRITE = 1 << 1,
        REMOTE_READ = 1 << 2,
        REMOTE_ATOMIC = 1 << 3,
        MW_BIND = 1 << 4,
        ZERO_BASED = 1 << 5,
        ON_DEMAND = 1 << 6,
        HUGETLB = 1 << 7,
        /// Writes may arrive out of order; a device without it ignores it.
        RELAXED_ORDERING = 1 << 20,
    }

    /// How a send request is carried out (`enum ibv_send_flags`).
    SendFlags(c_uint) "IBV_SEND_" {
        FENCE = 1,
        SIGNALED = 1 << 1,
        SOLICITED = 1 << 2,
        INLINE = 1 << 3,
        IP_CSUM = 1 << 4,
    }

    /// Which fields of [`ibv_qp_attr`](super::ibv_qp_attr) count (`enum ibv_qp_attr_mask`).
    QpAttrMask(c_int) "IBV_QP_" {
        STATE = 1,
        CUR_STATE = 1 << 1,
        EN_SQD_ASYNC_NOTIFY = 1 << 2,
        ACCESS_FLAGS = 1 << 3,
        PKEY_INDEX = 1 << 4,
        PORT = 1 << 5,
        QKEY = 1 << 6,
        AV = 1 << 7,
        PATH_MTU = 1 << 8,
        TIMEOUT = 1 << 9,
        RETRY_CNT = 1 << 10,
        RNR_RETRY = 1 << 11,
        RQ_PSN = 1 << 12,
        MAX_QP_RD_ATOMIC = 1 << 13,
        ALT_PATH = 1 << 14,
        MIN_RNR_TIMER = 1 << 15,
        SQ_PSN = 1 << 16,
        MAX_DEST_RD_ATOMIC = 1 << 17,
        PATH_MIG_STATE = 1 << 18,
        CAP = 1 << 19,
        DEST_QPN = 1 << 20,
        RATE_LIMIT = 1 << 25,
    }

    /// Which fields of [`ibv_qp_init_attr_ex`](super::ibv_qp_init_attr_ex) count.
    QpInitAttrMask(u32) "IBV_QP_INIT_ATTR_" {
        PD = 1,
        XRCD = 1 << 1,
        CREATE_FLAGS = 1 << 2,
        MAX_TSO_HEADER = 1 << 3,
        IND_TABLE = 1 << 4,
        RX_HASH = 1 << 5,
        SEND_OPS_FLAGS = 1 << 6,
    }

    /// Properties of a new queue pair (`enum ibv_qp_create_flags`).
    QpCreateFlags(u32) "IBV_QP_CREATE_" {
        BLOCK_SELF_MCAST_LB = 1 << 1,
        SCATTER_FCS = 1 << 8,
        CVLAN_STRIPPING = 1 << 9,
        SOURCE_QPN = 1 << 10,
        PCI_WRITE_END_PADDING = 1 << 11,
    }

    /// What an extended queue pair is to post (`enum ibv_qp_create_send_ops_flags`).
    QpSendOpsFlags(u64) "IBV_QP_EX_WITH_" {
        RDMA_WRITE = 1,
        RDMA_WRITE_WITH_IMM = 1 << 1,
        SEND = 1 << 2,
        SEND_WITH_IMM = 1 << 3,
        RDMA_READ = 1 << 4,
        ATOMIC_CMP_AND_SWP = 1 << 5,
        ATOMIC_FETCH_AND_ADD = 1 << 6,
        LOCAL_INV = 1 << 7,
        BIND_MW = 1 << 8,
        SEND_WITH_INV = 1 << 9,
        TSO = 1 << 10,
        ATOMIC_WRITE = 1 << 12,
    }

    /// What a completion brings (`enum ibv_wc_flags`).
    WcFlags(c_uint) "IBV_WC_" {
        GRH = 1,
        WITH_IMM = 1 << 1,
        IP_CSUM_OK = 1 << 2,
        WITH_INV = 1 << 3,
        TM_SYNC_REQ = 1 << 4,
        TM_MATCH = 1 << 5,
        TM_DATA_VALID = 1 << 6,
    }

    /// What can be read of the completions of an extended queue (`enum ibv_create_cq_wc_flags`).
    CqWcFlags(u64) "IBV_WC_EX_WITH_" {
        BYTE_LEN = 1,
        IMM = 1 << 1,
        QP_NUM = 1 << 2,
        SRC_QP = 1 << 3,
        SLID = 1 << 4,
        SL = 1 << 5,
        DLID_PATH_BITS = 1 << 6,
        COMPLETION_TIMESTAMP = 1 << 7,
        CVLAN = 1 << 8,
        FLOW_TAG = 1 << 9,
        TM_INFO = 1 << 10,
        COMPLETION_TIMESTAMP_WALLCLOCK = 1 << 11,
    }

    /// Properties of a new extended completion queue (`enum ibv_create_cq_attr_flags`).
    CqCreateFlags(u32) "IBV_CREATE_CQ_ATTR_" {
        SINGLE_THREADED = 1,
        IGNORE_OVERRUN = 1 << 1,
    }

    /// Which fields of [`ibv_cq_init_attr_ex`](super::ibv_cq_init_attr_ex) count.
    CqInitAttrMask(u32) "IBV_CQ_INIT_ATTR_MASK_" {
        FLAGS = 1,
        PD = 1 << 1,
    }

    /// Which fields of [`ibv_modify_cq_attr`](super::ibv_modify_cq_attr) count.
    CqAttrMask(u32) "IBV_CQ_ATTR_" {
        MODERATE = 1,
    }

    /// Which fields of [`ibv_srq_attr`](super::ibv_srq_attr) count (`enum ibv_srq_attr_mask`).
    SrqAttrMask(c_int) "IBV_SRQ_" {
        MAX_WR = 1,
        LIMIT = 1 << 1,
    }

    /// Which fields of [`ibv_srq_init_attr_ex`](super::ibv_srq_init_attr_ex) count.
    SrqInitAttrMask(u32) "IBV_SRQ_INIT_ATTR_" {
        TYPE = 1,
        PD = 1 << 1,
        XRCD = 1 << 2,
        CQ = 1 << 3,
        TM = 1 << 4,
    }

    /// What a re-registration changes (`enum ibv_rereg_mr_flags`).
    ReregMrFlags(c_int) "IBV_REREG_MR_" {
        CHANGE_TRANSLATION = 1,
        CHANGE_PD = 1 << 1,
        CHANGE_ACCESS = 1 << 2,
    }

    /// Which fields of [`ibv_parent_domain_init_attr`](super::ibv_parent_domain_init_attr) count.
    ParentDomainInitAttrMask(u32) "IBV_PARENT_DOMAIN_INIT_ATTR_" {
        ALLOCATORS = 1,
        PD_CONTEXT = 1 << 1,
    }

    /// Which values of [`ibv_values_ex`](super::ibv_values_ex) are asked for, and answered.
    ValuesMask(u32) "IBV_VALUES_MASK_" {
        RAW_CLOCK = 1,
    }

    /// What a device can do (`enum ibv_device_cap_flags`).
    DeviceCapFlags(c_uint) "IBV_DEVICE_" {
        RESIZE_MAX_WR = 1,
        BAD_PKEY_CNTR = 1 << 1,
        BAD_QKEY_CNTR = 1 << 2,
        RAW_MULTI = 1 << 3,
        AUTO_PATH_MIG = 1 << 4,
        CHANGE_PHY_PORT = 1 << 5,
        UD_AV_PORT_ENFORCE = 1 << 6,
        CURR_QP_STATE_MOD = 1 << 7,
        SHUTDOWN_PORT = 1 << 8,
        INIT_TYPE = 1 << 9,
        PORT_ACTIVE_EVENT = 1 << 10,
        SYS_IMAGE_GUID = 1 << 11,
        RC_RNR_NAK_GEN = 1 << 12,
        SRQ_RESIZE = 1 << 13,
        N_NOTIFY_CQ = 1 << 14,
        MEM_WINDOW = 1 << 17,
        UD_IP_CSUM = 1 << 18,
        XRC = 1 << 20,
        MEM_MGT_EXTENSIONS = 1 << 21,
        MEM_WINDOW_TYPE_2A = 1 << 23,
        MEM_WINDOW_TYPE_2B = 1 << 24,
        RC_IP_CSUM = 1 << 25,
        RAW_IP_CSUM = 1 << 26,
        MANAGED_FLOW_STEERING = 1 << 29,
    }

    /// The same in [`ibv_device_attr_ex`](super::ibv_device_attr_ex), whose lower half is [`DeviceCapFlags`].
    DeviceCapFlagsEx(u64) "IBV_DEVICE_" {
        RAW_SCATTER_FCS = 1 << 34,
        PCI_WRITE_END_PADDING = 1 << 36,
    }

    /// Whether a device fetches pages on demand (`enum ibv_odp_general_caps`).
    OdpCaps(u64) "IBV_ODP_" {
        SUPPORT = 1,
        SUPPORT_IMPLICIT = 1 << 1,
    }

    /// Which operations may touch pages that are fetched on demand (`enum ibv_odp_transport_cap_bits`).
    OdpTransportCaps(u32) "IBV_ODP_SUPPORT_" {
        SEND = 1,
        RECV = 1 << 1,
        WRITE = 1 << 2,
        READ = 1 << 3,
        ATOMIC = 1 << 4,
        SRQ_RECV = 1 << 5,
    }

    /// What a port can do (`enum ibv_port_cap_flags`).
    PortCapFlags(u32) "IBV_PORT_" {
        SM = 1 << 1,
        NOTICE_SUP = 1 << 2,
        TRAP_SUP = 1 << 3,
        OPT_IPD_SUP = 1 << 4,
        AUTO_MIGR_SUP = 1 << 5,
        SL_MAP_SUP = 1 << 6,
        MKEY_NVRAM = 1 << 7,
        PKEY_NVRAM = 1 << 8,
        LED_INFO_SUP = 1 << 9,
        SYS_IMAGE_GUID_SUP = 1 << 11,
        PKEY_SW_EXT_PORT_TRAP_SUP = 1 << 12,
        EXTENDED_SPEEDS_SUP = 1 << 14,
        CAP_MASK2_SUP = 1 << 15,
        CM_SUP = 1 << 16,
        SNMP_TUNNEL_SUP = 1 << 17,
        REINIT_SUP = 1 << 18,
        DEVICE_MGMT_SUP = 1 << 19,
        VENDOR_CLASS_SUP = 1 << 20,
        DR_NOTICE_SUP = 1 << 21,
        CAP_MASK_NOTICE_SUP = 1 << 22,
        BOOT_MGMT_SUP = 1 << 23,
        LINK_LATENCY_SUP = 1 << 24,
        CLIENT_REG_SUP = 1 << 25,
        IP_BASED_GIDS = 1 << 26,
    }

    /// What a port can do besides (`enum ibv_port_cap_flags2`).
    PortCapFlags2(u16) "IBV_PORT_" {
        SET_NODE_DESC_SUP = 1,
        INFO_EXT_SUP = 1 << 1,
        VIRT_SUP = 1 << 2,
        SWITCH_PORT_STATE_TABLE_SUP = 1 << 3,
        LINK_WIDTH_2X_SUP = 1 << 4,
        LINK_SPEED_HDR_SUP = 1 << 5,
        LINK_SPEED_NDR_SUP = 1 << 10,
    }

    /// What a port asks of queue pairs.
    PortFlags(u8) "IBV_QPF_" {
        GRH_REQUIRED = 1,
    }
}

impl AccessFlags {
    /// Flags that a device or kernel without them ignores: registration drops them where they are unknown.
    pub const OPTIONAL: Self = Self::from_bits_retain(0x3ff0_0000);
}

impl CqWcFlags {
    /// What every extended queue can tell (`IBV_WC_STANDARD_FLAGS`).
    pub const STANDARD: Self = Self::from_bits_retain(0x7f);
}
