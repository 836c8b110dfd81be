//! Makes the machine: programs and a kernel from Debian's packages, and what the guest starts from.
//!
//! The kernel's package is only unpacked: the way this machine boots stays as it is.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Error, Result, ensure};

use super::boot;
use crate::step::Runner;
use crate::tools;
use crate::workspace::Workspace;

/// QEMU, what the guest starts from, and the programs that one wants there.
const PACKAGES: [&str; 8] = [
    "qemu-system-x86",
    "busybox-static",
    "iproute2",
    "ibverbs-providers",
    "ibverbs-utils",
    "libibverbs-dev",
    "perftest",
    "xz-utils",
];

/// The package that depends on the newest kernel of the release.
const KERNEL: &str = "linux-image-amd64";

/// The emulator.
const QEMU: &str = "qemu-system-x86_64";

/// What of the kernel's package is kept, as patterns of tar.
const KEPT: [&str; 12] = [
    "./boot/vmlinuz-*",
    "*/modules.*",
    "*/kernel/crypto/*",
    "*/kernel/drivers/char/virtio_console.ko*",
    "*/kernel/drivers/infiniband/core/*",
    "*/kernel/drivers/infiniband/sw/*",
    "*/kernel/drivers/net/dummy.ko*",
    "*/kernel/drivers/net/veth.ko*",
    "*/kernel/drivers/virtio/*",
    "*/kernel/fs/*",
    "*/kernel/lib/*",
    "*/kernel/net/*",
];

/// Modules by what they are for. What else is wanted, the kernel asks for by itself.
const MODULES: [(&str, &[&str]); 3] = [
    ("shares", &["virtio_pci", "virtio_console", "9pnet_virtio", "9p"]),
    ("packages", &["overlay"]),
    ("rdma", &["crc32_generic", "rdma_rxe", "ib_uverbs", "dummy", "veth"]),
];

/// Arguments of modules: by itself dummy makes an interface that nobody asked for.
const MODULE_ARGUMENTS: [(&str, &str); 1] = [("dummy", " numdummies=0")];

/// The first program of the guest.
const INIT: &str = include_str!("../../vm/init");

/// Its commands, all of them busybox.
const COMMANDS: [&str; 9] =
    ["sh", "mount", "mkdir", "insmod", "modprobe", "chroot", "poweroff", "cp", "chmod"];

/// A machine that is there.
#[derive(Debug)]
pub(crate) struct Machine {
    folder: PathBuf,
}

impl Machine {
    /// Takes what an earlier run made in the same way, or makes it: 70 MB to download, and QEMU.
    ///
    /// # Errors
    ///
    /// Why there is none on this machine.
    pub(crate) fn get(workspace: &Workspace) -> Result<Self> {
        ensure!(
            cfg!(all(target_arch = "x86_64", target_os = "linux")),
            "its kernel and QEMU are for x86-64 Linux"
        );
        let machine = Self { folder: workspace.target("vm").join("machine") };
        if machine.is_made() {
            return Ok(machine);
        }
        for program in ["/usr/bin/apt-get", "/usr/bin/dpkg-deb"] {
            let is_there = Path::new(program).exists();
            ensure!(is_there, "it is made of Debian's packages, and there is no {program}");
        }
        // Whoever is interrupted leaves nothing that looks complete.
        let new = workspace.target("vm").join(format!("new-{}", std::process::id()));
        let made = make(&new, &super::step(workspace)?);
        if made.is_ok() {
            remove(&machine.folder)?;
            fs::rename(&new, &machine.folder)?;
        } else {
            remove(&new)?;
        }
        made.map(|()| machine)
    }

    fn is_made(&self) -> bool {
        fs::read_to_string(self.mark()).is_ok_and(|mark| mark == recipe()) && self.path(QEMU).exists()
    }

    /// Holds what the machine was made by, so that a change of that makes a new one.
    fn mark(&self) -> PathBuf {
        self.folder.join("recipe")
    }

    /// A sentence about it.
    pub(super) fn description(&self) -> Result<String> {
        Ok(format!("Linux {} is ready in {}", self.version()?, self.folder.display()))
    }

    /// The kernel, bare or as a boot image.
    pub(super) fn kernel(&self) -> PathBuf {
        self.folder.join("kernel")
    }

    /// The file system that the kernel begins with.
    pub(super) fn initrd(&self) -> PathBuf {
        self.folder.join("initrd")
    }

    /// The folder that has a folder of modules for the kernel's version.
    pub(super) fn modules(&self) -> PathBuf {
        // Debian 13 has moved them.
        let modules = |place: &str| self.folder.join("image").join(place);
        Some(modules("usr/lib/modules")).filter(|folder| folder.exists()).unwrap_or(modules("lib/modules"))
    }

    fn version(&self) -> Result<String> {
        let modules = self.modules();
        let entry = fs::read_dir(&modules)?.next().context("the kernel's package has no modules")??;
        Ok(entry.file_name().to_string_lossy().into_owned())
    }

    /// What would be installed if one might.
    pub(super) fn packages(&self) -> Option<PathBuf> {
        Some(self.folder.join("packages")).filter(|packages| packages.exists())
    }

    /// The emulator.
    pub(super) fn qemu(&self) -> Command {
        self.program(QEMU)
    }

    /// A program of one of the packages.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.path(name));
        if let Some(packages) = self.packages() {
            let libraries = packages.join("usr/lib/x86_64-linux-gnu");
            command.env("QEMU_MODULE_DIR", libraries.join("qemu")).env("LD_LIBRARY_PATH", libraries);
        }
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.packages().unwrap_or_else(|| "/".into()).join("usr/bin").join(name)
    }
}

/// All that decides what is made.
fn recipe() -> String {
    format!("{PACKAGES:?}\n{KERNEL}\n{KEPT:?}\n{MODULES:?}\n{MODULE_ARGUMENTS:?}\n{COMMANDS:?}\n{INIT}")
}

/// Downloads everything and makes the machine in a folder of its own.
fn make(folder: &Path, runner: &Runner) -> Result<()> {
    let machine = Machine { folder: folder.to_owned() };
    let downloads = folder.join("downloads");
    let apt = |program: &str, arguments: &[&str]| tools::private_apt(&downloads, "amd64", program, arguments);
    let packages = tools::private_packages(&downloads, "amd64");

    succeed(runner, &mut apt("apt-get", &["update"])?)?;
    if tools::is_root() {
        tools::install(&PACKAGES).map_err(Error::msg)?;
    } else {
        let arguments = [tools::WITH_DEPENDENCIES.as_slice(), &PACKAGES].concat();
        succeed(runner, &mut apt("apt-get", &arguments)?)?;
        unpack(runner, &packages, &machine.folder.join("packages"), &[])?;
        remove(&packages)?;
    }
    // The newest kernel is what a package that is empty depends on.
    let listed = succeed(runner, &mut apt("apt-cache", &["depends", "--important", KERNEL])?)?;
    let kernel = listed.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    let kernel = kernel.with_context(|| format!("no package {KERNEL} is known: the guest is Debian's"))?;
    succeed(runner, &mut apt("apt-get", &["download", kernel])?)?;
    unpack(runner, &packages, &machine.folder.join("image"), &KEPT)?;
    remove(&downloads)?;

    bare_kernel(runner, &machine)?;
    initrd(runner, &machine)?;
    fs::write(machine.mark(), recipe())?;
    Ok(())
}

/// Unpacks what matches a pattern, everything where there is none, of all packages in a folder.
fn unpack(runner: &Runner, packages: &Path, into: &Path, patterns: &[&str]) -> Result<()> {
    // What packages put into these folders belongs into those below usr, as on the machine itself.
    for folder in ["bin", "sbin", "lib", "lib64"] {
        fs::create_dir_all(into.join("usr").join(folder))?;
        symlink(format!("usr/{folder}"), into.join(folder))?;
    }
    for entry in fs::read_dir(packages)? {
        let package = entry?.path();
        if package.extension() != Some(OsStr::new("deb")) {
            continue;
        }
        let mut command = Command::new("sh");
        command.args(["-c", "package=$1; shift; dpkg-deb --fsys-tarfile \"$package\" | tar -x \"$@\"", "sh"]);
        command.arg(package).args(["--keep-directory-symlink", "--wildcards", "-C"]).arg(into);
        succeed(runner, command.args(patterns))?;
    }
    Ok(())
}

/// Takes the kernel out of its boot image, or the image where that does not work.
fn bare_kernel(runner: &Runner, machine: &Machine) -> Result<()> {
    let boot = machine.folder.join("image/boot");
    let image = fs::read_dir(&boot)?.next().context("the kernel's package has no kernel")??.path();
    if let Some(payload) = boot::xz_payload(&fs::read(&image)?) {
        let packed = machine.folder.join("kernel.xz");
        fs::write(&packed, payload)?;
        if runner.capture(machine.program("xz").arg("-d").arg(&packed))?.success {
            return Ok(());
        }
        remove(&packed)?;
    }
    fs::copy(&image, machine.kernel())?;
    Ok(())
}

/// Packs busybox, init, and the modules that every guest loads.
fn initrd(runner: &Runner, machine: &Machine) -> Result<()> {
    let version = machine.version()?;
    let all_modules = machine.modules().join(&version);
    let root = machine.folder.join("initrd-root");
    for folder in ["bin", "dev", "guest", "host", "job", "modules", "packages", "proc"] {
        fs::create_dir_all(root.join(folder))?;
    }
    succeed(
        runner,
        machine
            .program("busybox")
            .arg("depmod")
            .arg("-b")
            .arg(all_modules.ancestors().nth(3).context("no base")?)
            .arg(&version),
    )?;
    let dependencies = fs::read_to_string(all_modules.join("modules.dep"))?;

    for (purpose, names) in MODULES {
        let mut list = String::new();
        for path in boot::load_order(&dependencies, names) {
            let name = boot::module_name(path);
            let file = root.join("modules").join(Path::new(path).file_name().context("a module has a name")?);
            fs::copy(all_modules.join(path), &file)?;
            if file.extension() == Some(OsStr::new("xz")) {
                succeed(runner, machine.program("xz").arg("-d").arg(&file))?;
            }
            let arguments = MODULE_ARGUMENTS.iter().find(|(module, _)| *module == name);
            list += &format!("{name}.ko{}\n", arguments.map_or("", |(_, arguments)| arguments));
        }
        fs::write(root.join("modules").join(purpose), list)?;
    }

    fs::copy(machine.path("busybox"), root.join("bin/busybox"))?;
    for command in COMMANDS {
        symlink("busybox", root.join("bin").join(command))?;
    }
    fs::write(root.join("init"), INIT)?;
    fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755))?;
    // Not compressed: emulated, unpacking takes longer than reading.
    let mut pack = Command::new("sh");
    pack.args(["-c", "find . | \"$1\" cpio -o -H newc >\"$2\"", "sh"]).current_dir(&root);
    succeed(runner, pack.arg(machine.path("busybox")).arg(machine.initrd()))?;
    remove(&root)
}

fn succeed(runner: &Runner, command: &mut Command) -> Result<String> {
    let captured = runner.capture(command)?;
    let program = Path::new(command.get_program()).display();
    ensure!(captured.success, "{program} failed:\n{}", captured.output.trim_end());
    Ok(captured.output)
}

/// Removes a file or a folder where there is one.
fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine as an earlier run left it, with packages of its own.
    fn machine(name: &str) -> Machine {
        let folder = std::env::temp_dir().join(format!("xtask-{}-{name}", std::process::id()));
        let machine = Machine { folder };
        fs::create_dir_all(machine.folder.join("packages/usr/bin")).expect("a folder");
        fs::write(machine.path(QEMU), "").expect("an emulator");
        fs::write(machine.mark(), recipe()).expect("a mark");
        machine
    }

    #[test]
    fn what_was_made_in_the_same_way_is_taken() {
        let machine = machine("same");
        assert!(machine.is_made());
        fs::remove_dir_all(&machine.folder).expect("the folder is there");
        assert!(!machine.is_made());
    }

    #[test]
    fn another_recipe_or_no_emulator_makes_a_new_one() {
        let machine = machine("other");
        fs::write(machine.mark(), recipe().replace("mount", "umount")).expect("a mark");
        assert!(!machine.is_made());
        fs::write(machine.mark(), recipe()).expect("a mark");
        fs::remove_file(machine.path(QEMU)).expect("an emulator");
        assert!(!machine.is_made());
        fs::remove_dir_all(&machine.folder).expect("the folder is there");
    }

    #[test]
    fn programs_from_packages_find_their_libraries() {
        let machine = machine("libraries");
        let qemu = machine.qemu();
        assert!(Path::new(qemu.get_program()).starts_with(&machine.folder));
        let libraries = machine.folder.join("packages/usr/lib/x86_64-linux-gnu");
        assert!(
            qemu.get_envs()
                .any(|variable| variable == ("LD_LIBRARY_PATH".as_ref(), Some(libraries.as_ref())))
        );
        fs::remove_dir_all(&machine.folder).expect("the folder is there");
    }
}
