//! Huge pages: obtained, refused, or replaced, and always reported.

#[path = "../common/mod.rs"]
mod common;
mod mounts;
mod pools;

use core::sync::atomic::Ordering;
use std::fs::File;
use std::path::Path;

use common::{answer, can_bind, numa_policy, role, skip, smaps_field, word};
use pools::{Pools, SIZES, Size};
use ring_shm::{Errno, Error, Nodes, Region, Report};

const MIB: usize = 1 << 20;

#[test]
#[ignore = "the other process of the tests in this file"]
fn child() {
    let Some((role, argument)) = role() else { return };
    let (size, argument) = argument.split_once(' ').unwrap();
    let size = SIZES.iter().find(|known| known.mount_option == size).unwrap();
    match &*role {
        "use a mount" => mounts::use_a_mount(size, Path::new(argument)),
        "use many mounts" => mounts::use_many_mounts(Path::new(argument)),
        "do without a mount" => mounts::do_without_a_mount(size, Errno::NODEV),
        "do with a mount of others" => mounts::do_without_a_mount(size, Errno::ACCES),
        other => panic!("no such role: {other}"),
    }
    answer("done");
}

/// All pages on node 0, as far as anybody may ask.
fn assert_on_node_0(report: &Report, pages: usize) {
    match report.nodes {
        Nodes::Counted { node, there, elsewhere, absent, .. } => {
            assert_eq!((node, there, elsewhere, absent), (0, pages as u64, 0, 0), "{report}");
        }
        _ => panic!("{report}"),
    }
    assert_eq!(numa_policy(report.address).as_deref(), Some("bind:0"), "{report}");
}

#[test]
fn an_anonymous_segment_gets_them() {
    let pools = Pools::take();
    for size in &SIZES {
        if !pools.has_free(size) {
            skip(&format!("pages of {} obtained", size.text), "the pool is empty and cannot be enlarged");
            continue;
        }
        let free_pages = size.count("free_hugepages");
        let on_node = if can_bind() { size.required().numa_node(0) } else { size.required() };
        for options in [size.required(), size.if_available(), on_node, on_node.prefault(false)] {
            let segment = options.create_anonymous(size.data_bytes).unwrap().publish();
            let report = segment.report();
            assert_eq!((report.page_bytes, size.reason(&report)), (size.bytes as u64, None));
            assert_eq!(
                (report.mapped_bytes, report.reserved_bytes),
                (size.mapped_bytes(), size.mapped_bytes())
            );
            assert!(report.to_string().contains(&format!("pages     {}\n", size.text)), "{report}");
            assert_eq!(smaps_field(report.address, "KernelPageSize"), format!("{} kB", size.bytes >> 10));
            // The kernel counts a page of 1 GiB as shared, whoever has it.
            let kib =
                |field| smaps_field(report.address, field).trim_end_matches(" kB").parse::<u64>().unwrap();
            assert_eq!(kib("Private_Hugetlb") + kib("Shared_Hugetlb"), size.mapped_bytes() >> 10);
            assert!(report.prefaulted, "what is bound is present");
            if report.nodes != Nodes::NotAsked {
                assert_on_node_0(&report, size.pages());
            }
            assert!(report.sealed);
            let path = format!("/proc/self/fd/{}", segment.descriptor().raw());
            let file = File::options().read(true).write(true).open(path).unwrap();
            for pages in [0, size.pages() - 1, size.pages() + 1] {
                let error = file.set_len((pages * size.bytes) as u64).unwrap_err();
                assert_eq!(error.raw_os_error(), Some(Errno::PERM.0), "{pages} pages");
            }
            word(&segment, size.data_bytes / 8 - 1).store(1, Ordering::Relaxed);
        }
        assert_eq!(size.count("free_hugepages"), free_pages, "all given back");
    }
}

#[test]
fn an_empty_pool_is_an_error_or_a_fall_back() {
    let _pools = Pools::take();
    for size in &SIZES {
        let error = size.required().create_anonymous(size.more_than_all()).unwrap_err();
        let is_typed = matches!(error, Error::NoHugePages { page_bytes, source: Errno::NOSPC | Errno::NOMEM, .. }
            if page_bytes == size.bytes as u64);
        assert!(is_typed, "{error:?}");
        let text = error.to_string();
        assert!(text.contains(size.text) && text.contains(size.pool), "{error}");
    }
    let bytes = SIZES.iter().map(Size::more_than_all).max().unwrap();
    if bytes > 256 * MIB {
        return skip("fall-back from an empty pool", "the pools are so large that more may not fit");
    }
    for size in &SIZES {
        let segment = size.if_available().create_anonymous(bytes).unwrap().publish();
        let report = segment.report();
        assert_eq!(report.page_bytes, 4096);
        assert!(matches!(size.reason(&report), Some(Errno::NOSPC | Errno::NOMEM)), "{report:?}");
        assert!(report.to_string().contains("pages     4 KiB instead of "), "{report}");
        assert_eq!(smaps_field(report.address, "KernelPageSize"), "4 kB");
        assert_eq!(segment.bytes(), bytes);
    }
}

#[test]
fn pages_of_2_mib_stand_in_for_those_of_1_gib() {
    let pools = Pools::take();
    let [small, large] = &SIZES;
    if !pools.has_free(small) || large.more_than_all() > small.data_bytes {
        return skip("a fall-back to pages of 2 MiB", "no pool of them, or one of 1 GiB as well");
    }
    let report = large.if_available().create_anonymous(small.data_bytes).unwrap().report();
    assert_eq!(report.page_bytes, small.bytes as u64);
    assert!(report.fall_back.from_1gib.is_some() && report.fall_back.from_2mib.is_none(), "{report}");
    assert!(report.to_string().contains("pages     2 MiB instead of 1 GiB: "), "{report}");
}
