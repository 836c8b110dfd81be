//! What the extended query tells of a device.

use libc::timespec;
use memoffset::offset_of;
use static_assertions::const_assert_eq;

use super::{OdpCaps, OdpTransportCaps, ValuesMask, ibv_device_attr};

/// What is asked for: nothing yet, so that `comp_mask` is 0.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_query_device_ex_input {
    pub comp_mask: u32,
}

/// Which operations may touch pages that are fetched on demand, by transport.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_odp_per_transport_caps {
    pub rc_odp_caps: OdpTransportCaps,
    pub uc_odp_caps: OdpTransportCaps,
    pub ud_odp_caps: OdpTransportCaps,
}

/// Whether the device fetches pages on demand.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_odp_caps {
    pub general_caps: OdpCaps,
    pub per_transport_caps: ibv_odp_per_transport_caps,
}

const_assert_eq!(size_of::<ibv_odp_caps>(), 24);

/// Segmentation by the device.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_tso_caps {
    pub max_tso: u32,
    pub supported_qpts: u32,
}

/// Spreading what arrives over several queues.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_rss_caps {
    pub supported_qpts: u32,
    pub max_rwq_indirection_tables: u32,
    pub max_rwq_indirection_table_size: u32,
    pub rx_hash_fields_mask: u64,
    pub rx_hash_function: u8,
}

const_assert_eq!(size_of::<ibv_rss_caps>(), 32);

/// Limits of the rate of sending, in kbit/s.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_packet_pacing_caps {
    pub qp_rate_limit_min: u32,
    pub qp_rate_limit_max: u32,
    pub supported_qpts: u32,
}

/// Matching of tags by the device.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_tm_caps {
    pub max_rndv_hdr_size: u32,
    pub max_num_tags: u32,
    pub flags: u32,
    pub max_ops: u32,
    pub max_sge: u32,
}

/// The largest moderation of completion events.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_cq_moderation_caps {
    pub max_cq_count: u16,
    /// In microseconds.
    pub max_cq_period: u16,
}

/// Sizes of atomic operations over PCI, as bits.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_pci_atomic_caps {
    pub fetch_add: u16,
    pub swap: u16,
    pub compare_swap: u16,
}

/// What a device can do, and what it has besides.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ibv_device_attr_ex {
    pub orig_attr: ibv_device_attr,
    pub comp_mask: u32,
    pub odp_caps: ibv_odp_caps,
    /// The bits of a completion's time stamp; 0 where there is none.
    pub completion_timestamp_mask: u64,
    /// In kHz.
    pub hca_core_clock: u64,
    /// [`DeviceCapFlags`](super::DeviceCapFlags), and [`DeviceCapFlagsEx`](super::DeviceCapFlagsEx).
    pub device_cap_flags_ex: u64,
    pub tso_caps: ibv_tso_caps,
    pub rss_caps: ibv_rss_caps,
    pub max_wq_type_rq: u32,
    pub packet_pacing_caps: ibv_packet_pacing_caps,
    pub raw_packet_caps: u32,
    pub tm_caps: ibv_tm_caps,
    pub cq_mod_caps: ibv_cq_moderation_caps,
    pub max_dm_size: u64,
    pub pci_atomic_caps: ibv_pci_atomic_caps,
    pub xrc_odp_caps: OdpTransportCaps,
    pub phys_port_cnt_ex: u32,
}

const_assert_eq!(size_of::<ibv_device_attr_ex>(), 400);
const_assert_eq!(offset_of!(ibv_device_attr_ex, completion_timestamp_mask), 264);

/// Values of a device that change: its clock.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_values_ex {
    pub comp_mask: ValuesMask,
    pub raw_clock: timespec,
}

#[cfg(target_pointer_width = "64")]
const_assert_eq!(size_of::<ibv_values_ex>(), 24);
