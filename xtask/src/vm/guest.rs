//! Runs one command in a guest.
//!
//! Its output comes through two virtual serial ports, its status through a file in the job's folder, which the guest
//! sees as well.

use core::slice;
use core::time::Duration;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use super::machine::Machine;
use crate::say;
use crate::step::Group;

/// Where `start` runs with this machine's root.
const START: &str = include_str!("../../vm/start");

/// What `timeout` returns when the time is up.
const OUT_OF_TIME: u8 = 124;

/// What `timeout` returns when it fails itself.
const NO_STATUS: u8 = 125;

/// Variables that the command gets in any case.
const PREFIXES: [&str; 2] = ["RING_", "RUST_"];

/// A command and what it runs in.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) cpus: u32,
    pub(super) memory_mib: u32,
    pub(super) timeout: Duration,
    /// Folders, none of which lies in another.
    pub(super) writable: Vec<PathBuf>,
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) console: Option<PathBuf>,
    pub(super) bare: bool,
    pub(super) folder: PathBuf,
    pub(super) command: Vec<OsString>,
}

impl Guest {
    /// Runs the command to its end or to that of its time, with its output on ours, and returns its status.
    pub(super) fn run(&self, machine: &Machine, jobs: &Path) -> Result<ExitCode> {
        let job = Job::new(jobs)?;
        self.write(machine, &job)?;
        let console = self.console.clone().unwrap_or_else(|| job.file("console"));

        // Whatever ends this program ends the guest.
        let group = Group::new()?;
        let mut command = machine.qemu();
        command.args(self.arguments(machine, &job, &console)).process_group(group.id()?);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut qemu = command.spawn().context("cannot start QEMU")?;
        // Straight to the descriptors: a buffer of ours would hold back half a line.
        let (ended, ends) = mpsc::channel();
        let (output, errors) =
            (io::stdout().as_fd().try_clone_to_owned()?, io::stderr().as_fd().try_clone_to_owned()?);
        relay(qemu.stdout.take().context("QEMU has no output")?, output.into(), ended.clone());
        relay(qemu.stderr.take().context("QEMU has no errors")?, errors.into(), ended);

        let deadline = Instant::now() + self.timeout;
        let mut is_in_time = true;
        for _ in 0..2 {
            match ends.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(relayed) => relayed?,
                Err(_) => is_in_time = false,
            }
        }
        drop(group);
        qemu.wait()?;
        if !is_in_time {
            say::warn(format_args!("vm: no end within {} s\n", self.timeout.as_secs()));
            return Ok(OUT_OF_TIME.into());
        }
        if let Some(status) = job.status() {
            return Ok(status.into());
        }
        let said = fs::read(&console).unwrap_or_default();
        say::warn(format_args!("vm: the guest ended early; the end of its console:\n{}\n", tail(&said)));
        Ok(NO_STATUS.into())
    }

    /// What the guest's scripts read.
    fn write(&self, machine: &Machine, job: &Job) -> Result<()> {
        let mut about = b"modules=".to_vec();
        quote(machine.modules().as_os_str(), &mut about);
        about.extend(b"\npackages=");
        quote(machine.packages().unwrap_or_default().as_os_str(), &mut about);
        about.extend(if self.bare { b"\nbare=1\n".as_slice() } else { b"\nbare=\n" });

        let mut shares = Vec::new();
        for (number, folder) in self.writable.iter().enumerate() {
            shares.extend(format!("rw{number} ").bytes());
            shares.extend(folder.as_os_str().as_bytes());
            shares.push(b'\n');
        }
        for (name, content) in
            [("machine", about), ("shares", shares), ("command", self.script()), ("start", START.into())]
        {
            fs::write(job.file(name), content).with_context(|| format!("cannot write {name} of a job"))?;
        }
        Ok(())
    }

    /// The command, its folder and its variables, for a shell.
    fn script(&self) -> Vec<u8> {
        let mut script = Vec::new();
        for (name, value) in &self.variables {
            script.extend(b"export ");
            script.extend(name.as_bytes());
            script.push(b'=');
            quote(value, &mut script);
            script.push(b'\n');
        }
        script.extend(b"cd ");
        quote(self.folder.as_os_str(), &mut script);
        script.extend(b" || { echo 'vm: the guest has a /tmp, /run and /dev of its own; --rw shares a folder' >&2; exit 126; }\n");
        script.extend(b"exec");
        for word in &self.command {
            script.push(b' ');
            quote(word, &mut script);
        }
        script.push(b'\n');
        script
    }

    /// QEMU's arguments.
    fn arguments(&self, machine: &Machine, job: &Job, console: &Path) -> Vec<OsString> {
        // An address space of five levels costs time, and emulated pclmulqdq makes rxe's checksum slower than plain code.
        let text = format!(
            "-M q35 -accel tcg,thread=multi,tb-size=512 -cpu max,la57=off,pclmulqdq=off -smp {} -m {} \
             -nodefaults -no-user-config -display none -no-reboot",
            self.cpus, self.memory_mib
        );
        let mut arguments: Vec<OsString> = text.split(' ').map(OsString::from).collect();
        arguments.extend([
            "-kernel".into(),
            machine.kernel().into(),
            "-initrd".into(),
            machine.initrd().into(),
        ]);
        arguments.extend(
            ["-append", "console=ttyS0 quiet panic=-1 mitigations=off nokaslr tsc=reliable"]
                .map(OsString::from),
        );
        arguments.extend(["-serial".into(), option("file:", console, "")]);
        arguments.extend(["-device", "virtio-serial-pci"].map(OsString::from));
        for (port, name) in ["out", "err"].iter().enumerate() {
            let file = format!("file,id={name},path=/dev/std{name},append=on");
            let device = format!("virtserialport,chardev={name},nr={}", port + 1);
            arguments.extend(["-chardev".into(), file.into(), "-device".into(), device.into()]);
        }
        let mut share = |folder: &Path, tag: &str, access: &str| {
            let end = format!(",mount_tag={tag},security_model=none,multidevs=remap{access}");
            arguments.extend(["-virtfs".into(), option("local,path=", folder, &end)]);
        };
        share(Path::new("/"), "root", ",readonly=on");
        share(&job.0, "job", "");
        for (number, folder) in self.writable.iter().enumerate() {
            share(folder, &format!("rw{number}"), "");
        }
        arguments
    }
}

/// A folder that lasts as long as the guest.
#[derive(Debug)]
struct Job(PathBuf);

impl Job {
    fn new(jobs: &Path) -> Result<Self> {
        let folder = jobs.join(std::process::id().to_string());
        // Variables are nobody else's business.
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        Ok(Self(folder))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The command's status, once it has one.
    fn status(&self) -> Option<u8> {
        fs::read_to_string(self.file("status")).ok()?.trim_end().parse().ok()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // What stays is small. There is nobody to tell.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Passes on what comes, and then says that no more does.
fn relay(from: impl Read + Send + 'static, to: File, ended: Sender<io::Result<()>>) {
    thread::spawn(move || {
        // Who does not listen has given up on the guest.
        let _ = ended.send(copy(from, to));
    });
}

/// `io::copy` would splice, and splice(2) writes where the file's end was before it waited for data: what another one
/// wrote there meanwhile, by a descriptor that shares the offset, would be lost.
fn copy(mut from: impl Read, mut to: File) -> io::Result<()> {
    let mut piece = [0; 4_096];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => to.write_all(&piece[..length])?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The variables of this process that the command gets.
pub(super) fn variables(names: &[OsString]) -> Vec<(OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| is_passed(name, names)).collect()
}

fn is_passed(name: &OsStr, names: &[OsString]) -> bool {
    let has_prefix = |prefix: &&str| name.as_bytes().starts_with(prefix.as_bytes());
    name == "PATH" || name == "HOME" || PREFIXES.iter().any(has_prefix) || names.iter().any(|one| one == name)
}

/// Leaves out folders that lie in others: they are there already.
pub(super) fn outermost(mut folders: Vec<PathBuf>) -> Vec<PathBuf> {
    folders.sort();
    folders.dedup_by(|later, earlier| later.starts_with(earlier));
    folders
}

/// A word that a shell takes as it is.
fn quote(word: &OsStr, script: &mut Vec<u8>) {
    script.push(b'\'');
    for &byte in word.as_bytes() {
        match byte {
            b'\'' => script.extend(b"'\\''"),
            _ => script.push(byte),
        }
    }
    script.push(b'\'');
}

/// An option of QEMU that has a path in it: a comma would end it.
fn option(before: &str, path: &Path, after: &str) -> OsString {
    let mut option = before.as_bytes().to_vec();
    for &byte in path.as_os_str().as_bytes() {
        option.extend(if byte == b',' { b",,".as_slice() } else { slice::from_ref(&byte) });
    }
    option.extend(after.as_bytes());
    OsString::from_vec(option)
}

/// The last lines of a text.
fn tail(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

#[cfg(test)]
mod tests;
