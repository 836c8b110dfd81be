use std::{format, fs, thread, vec::Vec};

use super::*;

/// What the kernel says of the calling thread, by another way than the one under test.
fn allowed_by_proc() -> std::string::String {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    line.trim().into()
}

#[test]
fn a_pinned_thread_runs_on_its_cpu_and_nowhere_else() {
    let before = allowed_cpus().unwrap();
    for cpu in before.iter() {
        thread::spawn(move || {
            pin_to(cpu).unwrap();
            assert_eq!(allowed_by_proc(), format!("{cpu}"));
            for _ in 0..100 {
                thread::yield_now();
                assert_eq!(current_cpu().unwrap(), cpu);
            }
            assert_eq!(allowed_cpus().unwrap().iter().collect::<Vec<_>>(), [cpu]);
        })
        .join()
        .unwrap();
    }
    assert_eq!(allowed_cpus().unwrap(), before, "pinning another thread leaves this one alone");
}

#[test]
fn a_refused_pin_leaves_the_thread_where_it_was() {
    let before = allowed_cpus().unwrap();
    assert_eq!(pin_to(MAX_CPUS), Err(Error::CpuOutOfRange { cpu: MAX_CPUS, limit: MAX_CPUS }));
    let absent = MAX_CPUS - 1;
    assert_eq!(pin_to(absent), Err(Error::Pin { cpu: absent, source: Errno::INVAL }));
    assert_eq!(allowed_cpus().unwrap(), before);
}

#[test]
fn a_set_is_in_effect_as_a_whole_or_is_an_error() {
    thread::spawn(|| {
        let before = allowed_cpus().unwrap();
        let one = CpuSet::only(before.iter().next().unwrap()).unwrap();
        pin_to_set(&one).unwrap();
        assert_eq!(allowed_by_proc(), format!("{one}"));
        pin_to_set(&before).unwrap();
        assert_eq!(allowed_by_proc(), format!("{before}"));

        let absent = MAX_CPUS - 1;
        let mut more = one.clone();
        more.insert(absent).unwrap();
        assert_eq!(pin_to_set(&more), Err(Error::PinThreadNotInEffect { thread: 0, cpu: absent }));
        assert_eq!(pin_to_set(&CpuSet::new()), Err(Error::PinThread { thread: 0, source: Errno::INVAL }));
    })
    .join()
    .unwrap();
}

#[test]
fn a_thread_that_is_not_there_cannot_be_pinned() {
    // Above the largest number that Linux gives, 2^22.
    let nobody = c_int::MAX;
    let source = Errno(libc::ESRCH);
    assert_eq!(
        pin_thread(nobody, &allowed_cpus().unwrap()),
        Err(Error::PinThread { thread: nobody, source })
    );
}
