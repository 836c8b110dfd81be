//! The sizes of pages, asked for and tried.

use core::ffi::c_uint;

/// The pages that a new segment is made of.
///
/// Huge pages come from pools that an administrator fills: there is one for each size, and for each NUMA node. The
/// length of a segment is rounded up to whole pages. Whoever asks for pages "if available" finds in the
/// [`Report`](crate::Report) which they are, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pages {
    /// The system's own: 4 KiB on x86-64 and most others.
    Base,
    /// 2 MiB, from the pool that /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages sets, or else the system's
    /// own.
    Huge2MiBIfAvailable,
    /// 2 MiB, or [`Error::NoHugePages`](crate::Error::NoHugePages).
    Huge2MiBRequired,
    /// 1 GiB, from the pool that /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages sets, or else 2 MiB, or else
    /// the system's own. The smallest segment takes 1 GiB where there is a page.
    Huge1GiBIfAvailable,
    /// 1 GiB, or [`Error::NoHugePages`](crate::Error::NoHugePages).
    Huge1GiBRequired,
}

impl Pages {
    /// What to try first, in this order, and what last.
    pub(crate) fn sizes(self) -> (&'static [PageSize], PageSize) {
        use PageSize::{Base, Huge1GiB, Huge2MiB};
        match self {
            Self::Base => (&[], Base),
            Self::Huge2MiBIfAvailable => (&[Huge2MiB], Base),
            Self::Huge2MiBRequired => (&[], Huge2MiB),
            Self::Huge1GiBIfAvailable => (&[Huge1GiB, Huge2MiB], Base),
            Self::Huge1GiBRequired => (&[], Huge1GiB),
        }
    }
}

/// Pages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageSize {
    Base,
    Huge2MiB,
    Huge1GiB,
}

impl PageSize {
    /// The huge pages of a hugetlbfs mount, if a segment can be made of them.
    pub(crate) fn huge(bytes: u64) -> Option<Self> {
        [Self::Huge2MiB, Self::Huge1GiB].into_iter().find(|pages| pages.huge_bytes() == Some(bytes))
    }

    /// How long they are, unless they are the system's own.
    pub(crate) fn huge_bytes(self) -> Option<u64> {
        match self {
            Self::Base => None,
            Self::Huge2MiB => Some(2 << 20),
            Self::Huge1GiB => Some(1 << 30),
        }
    }

    /// What `memfd_create` is to be told.
    pub(crate) fn memfd_flags(self) -> c_uint {
        match self {
            Self::Base => 0,
            Self::Huge2MiB => libc::MFD_HUGETLB | libc::MFD_HUGE_2MB,
            Self::Huge1GiB => libc::MFD_HUGETLB | libc::MFD_HUGE_1GB,
        }
    }
}
