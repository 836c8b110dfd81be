//! Codes: numbers of which an unknown one is no error, with constants for those that have a name.

use core::fmt;

/// Declares newtypes with one constant a name, each with its C prefix for who compares them with the header.
macro_rules! codes {
    ($(
        $(#[$meta:meta])*
        $name:ident($type:ty) $prefix:literal { $($(#[$note:meta])* $constant:ident = $value:literal,)* }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $type);

        impl $name {
            $($(#[$note])* pub const $constant: Self = Self($value);)*

            /// What the C names begin with.
            pub const C_PREFIX: &'static str = $prefix;

            /// Every constant, with what follows the prefix in C.
            pub const NAMED: &'static [(&'static str, Self)] =
                &[$((stringify!($constant), Self::$constant)),*];

            /// The constant's name, where the number has one.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                Self::NAMED.iter().find(|(_, code)| *code == self).map(|(name, _)| *name)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => formatter.write_str(name),
                    None => write!(formatter, concat!(stringify!($name), "({})"), self.0),
                }
            }
        }
    )*};
}

codes! {
    /// How a work request ended (`enum ibv_wc_status`).
    WcStatus(u32) "IBV_WC_" {
        SUCCESS = 0,
        LOC_LEN_ERR = 1,
        LOC_QP_OP_ERR = 2,
        LOC_EEC_OP_ERR = 3,
        LOC_PROT_ERR = 4,
        WR_FLUSH_ERR = 5,
        MW_BIND_ERR = 6,
        BAD_RESP_ERR = 7,
        LOC_ACCESS_ERR = 8,
        REM_INV_REQ_ERR = 9,
        REM_ACCESS_ERR = 10,
        REM_OP_ERR = 11,
        RETRY_EXC_ERR = 12,
        RNR_RETRY_EXC_ERR = 13,
        LOC_RDD_VIOL_ERR = 14,
        REM_INV_RD_REQ_ERR = 15,
        REM_ABORT_ERR = 16,
        INV_EECN_ERR = 17,
        INV_EEC_STATE_ERR = 18,
        FATAL_ERR = 19,
        RESP_TIMEOUT_ERR = 20,
        GENERAL_ERR = 21,
        TM_ERR = 22,
        TM_RNDV_INCOMPLETE = 23,
    }

    /// What has completed (`enum ibv_wc_opcode`); of a failed completion it means nothing.
    WcOpcode(u32) "IBV_WC_" {
        SEND = 0,
        RDMA_WRITE = 1,
        RDMA_READ = 2,
        COMP_SWAP = 3,
        FETCH_ADD = 4,
        BIND_MW = 5,
        LOCAL_INV = 6,
        TSO = 7,
        ATOMIC_WRITE = 9,
        /// The bit that every completion of a receive has.
        RECV = 128,
        RECV_RDMA_WITH_IMM = 129,
        TM_ADD = 130,
        TM_DEL = 131,
        TM_SYNC = 132,
        TM_RECV = 133,
        TM_NO_TAG = 134,
        DRIVER1 = 135,
        DRIVER2 = 136,
        DRIVER3 = 137,
    }

    /// What a send request asks for (`enum ibv_wr_opcode`).
    WrOpcode(u32) "IBV_WR_" {
        RDMA_WRITE = 0,
        RDMA_WRITE_WITH_IMM = 1,
        SEND = 2,
        SEND_WITH_IMM = 3,
        RDMA_READ = 4,
        ATOMIC_CMP_AND_SWP = 5,
        ATOMIC_FETCH_AND_ADD = 6,
        LOCAL_INV = 7,
        BIND_MW = 8,
        SEND_WITH_INV = 9,
        TSO = 10,
        DRIVER1 = 11,
        ATOMIC_WRITE = 15,
    }

    /// Where a queue pair stands (`enum ibv_qp_state`).
    QpState(u32) "IBV_QPS_" {
        RESET = 0,
        INIT = 1,
        RTR = 2,
        RTS = 3,
        SQD = 4,
        SQE = 5,
        ERR = 6,
        UNKNOWN = 7,
    }

    /// The transport of a queue pair (`enum ibv_qp_type`).
    QpType(u32) "IBV_QPT_" {
        RC = 2,
        UC = 3,
        UD = 4,
        RAW_PACKET = 8,
        XRC_SEND = 9,
        XRC_RECV = 10,
        DRIVER = 255,
    }

    /// How far the migration to another path has come (`enum ibv_mig_state`).
    MigState(u32) "IBV_MIG_" {
        MIGRATED = 0,
        REARM = 1,
        ARMED = 2,
    }

    /// The largest payload of a packet, encoded (`enum ibv_mtu`).
    Mtu(u32) "IBV_" {
        MTU_256 = 1,
        MTU_512 = 2,
        MTU_1024 = 3,
        MTU_2048 = 4,
        MTU_4096 = 5,
    }

    /// The logical state of a port (`enum ibv_port_state`).
    PortState(u32) "IBV_PORT_" {
        NOP = 0,
        DOWN = 1,
        INIT = 2,
        ARMED = 3,
        ACTIVE = 4,
        ACTIVE_DEFER = 5,
    }

    /// What a port is attached to; RoCE is Ethernet.
    LinkLayer(u8) "IBV_LINK_LAYER_" {
        UNSPECIFIED = 0,
        INFINIBAND = 1,
        ETHERNET = 2,
    }

    /// What an asynchronous event says (`enum ibv_event_type`).
    EventType(u32) "IBV_EVENT_" {
        CQ_ERR = 0,
        QP_FATAL = 1,
        QP_REQ_ERR = 2,
        QP_ACCESS_ERR = 3,
        COMM_EST = 4,
        SQ_DRAINED = 5,
        PATH_MIG = 6,
        PATH_MIG_ERR = 7,
        DEVICE_FATAL = 8,
        PORT_ACTIVE = 9,
        PORT_ERR = 10,
        LID_CHANGE = 11,
        PKEY_CHANGE = 12,
        SM_CHANGE = 13,
        SRQ_ERR = 14,
        SRQ_LIMIT_REACHED = 15,
        QP_LAST_WQE_REACHED = 16,
        CLIENT_REREGISTER = 17,
        GID_CHANGE = 18,
        WQ_FATAL = 19,
    }

    /// Which protocol a GID stands for (`enum ibv_gid_type`).
    GidType(u32) "IBV_GID_TYPE_" {
        IB = 0,
        ROCE_V1 = 1,
        ROCE_V2 = 2,
    }

    /// What kind of device it is (`enum ibv_node_type`).
    NodeType(i32) "IBV_NODE_" {
        UNKNOWN = -1,
        CA = 1,
        SWITCH = 2,
        ROUTER = 3,
        RNIC = 4,
        USNIC = 5,
        USNIC_UDP = 6,
        UNSPECIFIED = 7,
    }

    /// Which family of transports a device speaks (`enum ibv_transport_type`); RoCE counts as InfiniBand.
    TransportType(i32) "IBV_TRANSPORT_" {
        UNKNOWN = -1,
        IB = 0,
        IWARP = 1,
        USNIC = 2,
        USNIC_UDP = 3,
        UNSPECIFIED = 4,
    }

    /// Among whom a device's atomic operations are atomic (`enum ibv_atomic_cap`).
    AtomicCap(u32) "IBV_ATOMIC_" {
        NONE = 0,
        /// Among the operations of this device only.
        HCA = 1,
        /// With the processors' as well.
        GLOB = 2,
    }

    /// How a memory window is bound (`enum ibv_mw_type`).
    MwType(u32) "IBV_MW_" {
        TYPE_1 = 1,
        TYPE_2 = 2,
    }

    /// What a shared receive queue is for (`enum ibv_srq_type`).
    SrqType(u32) "IBV_SRQT_" {
        BASIC = 0,
        XRC = 1,
        TM = 2,
    }

    /// Whether the library protects registered memory from a fork (`enum ibv_fork_status`).
    ForkStatus(u32) "IBV_FORK_" {
        DISABLED = 0,
        ENABLED = 1,
        /// The kernel copies registered pages when it forks.
        UNNEEDED = 2,
    }

    /// What is left of a region whose re-registration has failed (`enum ibv_rereg_mr_err_code`).
    ReregMrError(i32) "IBV_REREG_MR_ERR_" {
        /// The arguments were refused; the region is as before.
        INPUT = -1,
        /// The new pages could not be protected from a fork; the region is as before.
        DONT_FORK_NEW = -2,
        /// The region is changed; the old pages are still protected from a fork.
        DO_FORK_OLD = -3,
        /// The command failed; the region is not to be used.
        CMD = -4,
        /// As before, and the new pages' state after a fork is not known.
        CMD_AND_DO_FORK_NEW = -5,
    }
}

impl Mtu {
    /// The size in bytes, where the encoding is known.
    #[must_use]
    pub fn bytes(self) -> Option<u32> {
        matches!(self.0, 1..=5).then(|| 128 << self.0)
    }
}

impl fmt::Display for WcStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(_) => formatter.write_str(self.description()),
            None => write!(formatter, "{}: {}", self.description(), self.0),
        }
    }
}

impl WcStatus {
    /// What happened, in a few words.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::SUCCESS => "success",
            Self::LOC_LEN_ERR => "the message is longer than the buffer or the port allows",
            Self::LOC_QP_OP_ERR => "this queue pair cannot carry out the request as it is written",
            Self::LOC_EEC_OP_ERR => "this end-to-end context cannot carry out the request",
            Self::LOC_PROT_ERR => "a buffer of the request is not within its memory region, or lacks a right",
            Self::WR_FLUSH_ERR => "not carried out: the queue pair was in, or went into, the error state",
            Self::MW_BIND_ERR => "the memory window could not be bound",
            Self::BAD_RESP_ERR => "the peer answered with an opcode that does not belong here",
            Self::LOC_ACCESS_ERR => "the peer's data could not be written to the local buffer",
            Self::REM_INV_REQ_ERR => "the peer refused the request: its queue pair does not allow it",
            Self::REM_ACCESS_ERR => {
                "the peer refused the request: address, key or right do not fit its region"
            }
            Self::REM_OP_ERR => "the peer failed to carry out the request",
            Self::RETRY_EXC_ERR => "the peer does not answer: all retries are used up",
            Self::RNR_RETRY_EXC_ERR => "the peer has no receive posted: all retries are used up",
            Self::LOC_RDD_VIOL_ERR => "the queue pair and the end-to-end context differ in their domain",
            Self::REM_INV_RD_REQ_ERR => "the peer refused a reliable datagram",
            Self::REM_ABORT_ERR => "the peer gave the operation up",
            Self::INV_EECN_ERR => "there is no such end-to-end context",
            Self::INV_EEC_STATE_ERR => "the end-to-end context is in a state that does not allow it",
            Self::FATAL_ERR => "the device has failed",
            Self::RESP_TIMEOUT_ERR => "the peer's answer came too late",
            Self::GENERAL_ERR => "the transport has failed in a way that has no code",
            Self::TM_ERR => "the list of tags is out of step or full",
            Self::TM_RNDV_INCOMPLETE => "the tag has matched, and the message is still to be fetched",
            _ => "a status that this version does not know",
        }
    }
}

impl EventType {
    /// What happened, in a few words.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::CQ_ERR => "a completion queue has failed; it may have overflowed",
            Self::QP_FATAL => "a queue pair has failed and is in the error state",
            Self::QP_REQ_ERR => "a queue pair has received a request that it does not allow",
            Self::QP_ACCESS_ERR => "a queue pair has received a request without the right to the memory",
            Self::COMM_EST => "a queue pair that is ready to receive has received its first message",
            Self::SQ_DRAINED => "a send queue has finished what it had begun",
            Self::PATH_MIG => "a connection goes over its other path",
            Self::PATH_MIG_ERR => "a connection could not change to its other path",
            Self::DEVICE_FATAL => "the device has failed",
            Self::PORT_ACTIVE => "a port is up",
            Self::PORT_ERR => "a port is down",
            Self::LID_CHANGE => "a port has another local identifier",
            Self::PKEY_CHANGE => "a port's table of partition keys has changed",
            Self::SM_CHANGE => "a port has another subnet manager",
            Self::SRQ_ERR => "a shared receive queue has failed",
            Self::SRQ_LIMIT_REACHED => "a shared receive queue holds fewer receives than its limit",
            Self::QP_LAST_WQE_REACHED => "a queue pair takes no more from its shared receive queue",
            Self::CLIENT_REREGISTER => "the subnet manager asks for all registrations again",
            Self::GID_CHANGE => "a port's table of GIDs has changed",
            Self::WQ_FATAL => "a work queue has failed",
            _ => "an event that this version does not know",
        }
    }
}
