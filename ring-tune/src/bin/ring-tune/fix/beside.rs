//! Files that the kernel changes by itself where another one is written: they are kept and come back with that one.

use super::state::Changed;

/// Those beside a file: of transparent huge pages the reserve that the kernel wants for them (`start_stop_khugepaged` in
/// its mm/khugepaged.c), which it raises above what somebody chose; of a governor the preference that goes with it
/// (admin-guide/pm/intel_pstate.rst).
pub(super) fn beside(path: &str) -> Option<String> {
    let (folder, name) = path.rsplit_once('/')?;
    match name {
        "enabled" | "shmem_enabled" if folder.starts_with("sys/kernel/mm/transparent_hugepage") => {
            Some("proc/sys/vm/min_free_kbytes".into())
        }
        "scaling_governor" => Some(format!("{folder}/energy_performance_preference")),
        _ => None,
    }
}

/// Whether a file is kept because of another one.
pub(super) fn belongs_to(changed: &Changed, other: &Changed) -> bool {
    changed.is_beside && !other.is_beside && beside(&other.path).is_some_and(|path| path == changed.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_what_the_kernel_changes_with_it() {
        let pages = "sys/kernel/mm/transparent_hugepage";
        for path in ["enabled", "shmem_enabled", "hugepages-64kB/enabled"] {
            assert_eq!(beside(&format!("{pages}/{path}")).unwrap(), "proc/sys/vm/min_free_kbytes");
        }
        assert_eq!(beside(&format!("{pages}/defrag")), None);
        assert_eq!(beside("sys/kernel/mm/ksm/run"), None);
        let policy = "sys/devices/system/cpu/cpufreq/policy2";
        let preference = format!("{policy}/energy_performance_preference");
        assert_eq!(beside(&format!("{policy}/scaling_governor")), Some(preference));
    }
}
