use std::path::PathBuf;

use super::topology::{choose_below, isolated, share};
use super::*;

/// A folder like the kernel's, removed at the end.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("xtask-bench-{name}-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        Self(root)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn cpu(&self, cpu: usize, siblings: &str, last_level: &str, package: &str) {
        self.write(&format!("cpu{cpu}/topology/thread_siblings_list"), siblings);
        self.write(&format!("cpu{cpu}/topology/physical_package_id"), package);
        for (index, level, kind, cpus) in
            [(0, "1", "Data", siblings), (1, "1", "Instruction", siblings), (2, "3", "Unified", last_level)]
        {
            self.write(&format!("cpu{cpu}/cache/index{index}/level"), level);
            self.write(&format!("cpu{cpu}/cache/index{index}/type"), kind);
            self.write(&format!("cpu{cpu}/cache/index{index}/shared_cpu_list"), cpus);
        }
    }

    /// Two packages of two cores of two threads.
    fn two_packages(name: &str) -> Self {
        let tree = Self::new(name);
        for cpu in 0..8 {
            let core = cpu / 2 * 2;
            let package = cpu / 4;
            let last_level = format!("{}-{}", package * 4, package * 4 + 3);
            tree.cpu(cpu, &format!("{core},{}", core + 1), &last_level, &package.to_string());
        }
        tree
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn two_cores_below_one_cache_are_chosen() {
    let tree = Tree::two_packages("choose");
    let [lead, peer] = choose_below(&tree.0, &[0, 1, 2, 3, 4, 5, 6, 7]);
    assert_ne!(lead, 0, "interrupts go there");
    assert_eq!((lead / 4, lead / 2 == peer / 2), (peer / 4, false));
    assert_eq!(choose_below(&tree.0, &[1, 2, 5]), [1, 2]);
    assert_eq!(choose_below(&tree.0, &[0, 1]), [0, 1], "threads of one core, if nothing else is allowed");
    assert_eq!(choose_below(&tree.0, &[5]), [5, 5]);
    tree.write("isolated", "2-3,0");
    assert_eq!(isolated(&tree.0).into_iter().collect::<Vec<_>>(), [0, 2, 3]);
    assert_eq!(choose_below(&tree.0, &[0, 1, 2, 4, 5, 6]), [0, 2]);
}

#[test]
fn what_two_cpus_share_is_said_in_words() {
    let tree = Tree::two_packages("share");
    assert_eq!(share(&tree.0, [0, 1]), "two threads of one core");
    assert_eq!(share(&tree.0, [0, 2]), "two cores that share the L3 cache");
    assert_eq!(share(&tree.0, [0, 4]), "two packages");
    assert_eq!(share(&tree.0, [3, 3]), "one CPU");
    assert_eq!(share(&tree.0, [8, 9]), "no cache topology in sysfs");
}

#[test]
fn cpus_are_named_in_pairs_of_allowed_ones() {
    assert_eq!(parse("0,3", &[0, 1, 3]).unwrap(), [0, 3]);
    assert_eq!(parse("1, 1", &[0, 1]).unwrap(), [1, 1]);
    for bad in ["", "0", "0,1,2", "a,b", "0;1", "-1,0"] {
        assert!(parse(bad, &[0, 1, 2]).unwrap_err().to_string().contains("name two CPUs"), "{bad}");
    }
    assert!(parse("0,2", &[0, 1]).unwrap_err().to_string().contains("CPU 2"));
}

#[test]
fn steal_is_read_of_the_cpu_meant() {
    let stat = "cpu  1 2 3 4 5 6 7 99 9 10\ncpu1 1 2 3 4 5 6 7 8 9 10\ncpu10 1 2 3 4 5 6 7 70 9 10";
    assert_eq!((steal_ticks(stat, 1), steal_ticks(stat, 10), steal_ticks(stat, 2)), (8, 70, 0));
}

#[test]
fn grades_follow_the_host_and_the_run() {
    let mut host = Host {
        cpu: "a processor".into(),
        cpus: [2, 3],
        share: "two cores".into(),
        is_virtual: false,
        tsc_hz: None,
        clocksource: None,
        page_bytes: 4096,
        locked: false,
        grade: Grade::B,
        kernel: None,
        locked_text: "no".into(),
        is_isolated: true,
    };
    let mut grade = |is_virtual, is_isolated, pre_emptions, steal_ticks| {
        (host.is_virtual, host.is_isolated) = (is_virtual, is_isolated);
        host.judge(Disturbance { pre_emptions, steal_ticks });
        host.grade
    };
    assert_eq!(grade(false, true, 0, 0), Grade::A);
    assert_eq!(grade(false, true, 1, 0), Grade::B);
    assert_eq!(grade(false, false, 0, 0), Grade::B);
    assert_eq!(grade(false, true, 0, 1), Grade::C);
    assert_eq!(grade(true, true, 0, 0), Grade::C);
}
