//! The pools of huge pages that the tests draw from.

use std::fs::{self, File};
use std::path::Path;

use ring_shm::{Errno, Options, Pages, Report};

use crate::MIB;
use crate::common::{lock_file, unlocked};

/// Pages of one size.
pub(crate) struct Size {
    pub(crate) bytes: usize,
    /// Where the kernel keeps what it knows of their pool.
    pub(crate) pool: &'static str,
    pub(crate) mount_option: &'static str,
    pub(crate) text: &'static str,
    required: Pages,
    if_available: Pages,
    /// For the data of a segment.
    pub(crate) data_bytes: usize,
}

pub(crate) const SIZES: [Size; 2] = [
    Size {
        bytes: 2 * MIB,
        pool: "/sys/kernel/mm/hugepages/hugepages-2048kB",
        mount_option: "2M",
        text: "2 MiB",
        required: Pages::Huge2MiBRequired,
        if_available: Pages::Huge2MiBIfAvailable,
        data_bytes: 3 * MIB,
    },
    Size {
        bytes: 1024 * MIB,
        pool: "/sys/kernel/mm/hugepages/hugepages-1048576kB",
        mount_option: "1G",
        text: "1 GiB",
        required: Pages::Huge1GiBRequired,
        if_available: Pages::Huge1GiBIfAvailable,
        data_bytes: 3 * MIB,
    },
];

impl Size {
    pub(crate) fn required(&self) -> Options {
        unlocked().pages(self.required)
    }

    pub(crate) fn if_available(&self) -> Options {
        unlocked().pages(self.if_available)
    }

    /// Of a segment with `data_bytes`.
    pub(crate) fn pages(&self) -> usize {
        self.data_bytes / self.bytes + 1
    }

    pub(crate) fn mapped_bytes(&self) -> u64 {
        (self.pages() * self.bytes) as u64
    }

    pub(crate) fn count(&self, file: &str) -> usize {
        let path = Path::new(self.pool).join(file);
        fs::read_to_string(path).map_or(0, |text| text.trim().parse().unwrap())
    }

    /// Bytes that need more pages than there can be.
    pub(crate) fn more_than_all(&self) -> usize {
        (self.count("nr_hugepages") + self.count("nr_overcommit_hugepages")) * self.bytes + MIB
    }

    fn set_pool(&self, pages: usize) {
        let _ = fs::write(Path::new(self.pool).join("nr_hugepages"), pages.to_string());
    }

    pub(crate) fn reason(&self, report: &Report) -> Option<Errno> {
        match self.bytes {
            0x20_0000 => report.fall_back.from_2mib,
            _ => report.fall_back.from_1gib,
        }
    }
}

/// The pools, for one test at a time; put back as they were found.
pub(crate) struct Pools {
    found_pages: [usize; 2],
    _lock: File,
}

impl Pools {
    pub(crate) fn take() -> Self {
        // Something that every test process can open and nobody else locks.
        let lock = File::open("/dev/shm").unwrap();
        lock_file(&lock);
        Self { found_pages: SIZES.each_ref().map(|size| size.count("nr_hugepages")), _lock: lock }
    }

    /// Whether a segment has its pages, after making them if need be.
    pub(crate) fn has_free(&self, size: &Size) -> bool {
        let free = || size.count("free_hugepages").saturating_sub(size.count("resv_hugepages"));
        if free() < size.pages() {
            size.set_pool(size.count("nr_hugepages") + size.pages() - free());
        }
        free() >= size.pages()
    }
}

impl Drop for Pools {
    fn drop(&mut self) {
        for (size, found_pages) in SIZES.iter().zip(self.found_pages) {
            if size.count("nr_hugepages") != found_pages {
                size.set_pool(found_pages);
            }
        }
    }
}
