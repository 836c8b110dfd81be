//! The files that may be written, and no others: whatever a row or a saved state names, root writes settings of the
//! kernel only.

use core::fmt;
use std::fs::File;
use std::io::{Read, Write};

use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, fstatfs, openat2};
use rustix::io::Errno;

/// Below which folders the kernel's settings are.
const FOLDERS: &[&str] = &["proc/sys/", "proc/irq/", "sys/"];

/// The file systems that hold them, from linux/magic.h: proc, sysfs, cgroup2.
const FILE_SYSTEMS: &[u64] = &[0x9fa0, 0x6265_6572, 0x6367_7270];

/// No setting is longer.
const LONGEST_BYTES: u64 = 64 << 10;

/// Why a file was not read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// There is no such file, any more.
    Vanished,
    /// It is there, and may not be written.
    Denied,
    Other(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Vanished => "is not there",
            Self::Denied => "may not be written here, not even by root",
            Self::Other(why) => why,
        })
    }
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::NODEV | Errno::NXIO => Self::Vanished,
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::Denied,
            Errno::LOOP => Self::Other("leads elsewhere through a link".into()),
            Errno::INVAL => Self::Other("does not take this value (errno 22)".into()),
            errno => Self::Other(format!("answers {errno}")),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Self::Other(format!("answers {error}")),
        }
    }
}

/// Whether the path, without a slash at its front, may name a setting of the kernel.
pub(super) fn may_be(path: &str) -> bool {
    let is_plain = |name: &str| !matches!(name, "" | "." | "..") && !name.contains('\0');
    FOLDERS.iter().any(|folder| path.starts_with(folder)) && path.split('/').all(is_plain)
}

/// What a file says.
pub(super) fn read(path: &str) -> Result<String, Failure> {
    let mut text = String::new();
    open(path, OFlags::RDONLY)?.take(LONGEST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Writes a setting with one call, as the kernel wants it.
pub(super) fn write(path: &str, value: &str) -> Result<(), Failure> {
    let line = format!("{value}\n");
    let length = open(path, OFlags::WRONLY)?.write(line.as_bytes())?;
    // Some files take the value without the end of its line.
    if length < value.len() {
        return Err(Failure::Other(format!("took {length} bytes of {}", value.len())));
    }
    Ok(())
}

/// Whether it would be taken, as far as can be told without writing.
pub(super) fn writable(path: &str) -> Result<(), Failure> {
    open(path, OFlags::WRONLY).map(drop)
}

/// A path that is no setting's, that leads through a link, or ends outside of the kernel's file systems, is not opened
/// to be written.
fn open(path: &str, access: OFlags) -> Result<File, Failure> {
    let no_setting = || Failure::Other("is no setting of the kernel".into());
    if !may_be(path) {
        return Err(no_setting());
    }
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let path = format!("/{path}");
    let file = openat2(rustix::fs::CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    let is_regular = rustix::fs::FileType::from_raw_mode(fstat(&file)?.st_mode).is_file();
    let file_system = u64::try_from(fstatfs(&file)?.f_type).unwrap_or_default();
    if !is_regular || !FILE_SYSTEMS.contains(&file_system) {
        return Err(no_setting());
    }
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_of_the_kernel_are_opened() {
        for path in [
            "etc/passwd",
            "/proc/sys/vm/swappiness",
            "proc/sys/../../etc/passwd",
            "sys/./kernel/mm/ksm/run",
            "sys//kernel",
            "sys/",
            "proc/self/mem",
            "proc/sysrq-trigger",
            "proc/sys/\0",
            "",
        ] {
            assert!(!may_be(path), "{path}");
            let refused = Failure::Other("is no setting of the kernel".into());
            assert_eq!(writable(path), Err(refused), "{path}");
        }
        assert_eq!(writable("proc/sys/no/such"), Err(Failure::Vanished));
        // A folder, or one that may be opened to be read only.
        assert!(writable("sys/kernel").is_err());
        assert!(read("sys/kernel").is_err());
        assert!(read("proc/sys/vm/swappiness").unwrap().trim().parse::<u32>().is_ok());
    }

    #[test]
    fn no_link_is_followed() {
        // `sys/class` holds links to devices on every machine.
        let links = std::fs::read_dir("/sys/class/net").unwrap();
        let link = links.filter_map(|entry| entry.unwrap().file_name().into_string().ok()).next();
        let link = link.expect("a loopback device is there");
        let through = read(&format!("sys/class/net/{link}/mtu"));
        assert_eq!(through, Err(Failure::Other("leads elsewhere through a link".into())));
    }
}
