//! Folders with the files of a machine, for the tests of the library, of the command, and of both from outside.

use core::fmt::Write as _;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::format;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::string::String;
use std::vec;
use std::vec::Vec;

/// A folder that goes with the test.
pub struct LaidOut(PathBuf);

impl LaidOut {
    /// An empty folder.
    pub fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        // ORDERING: Relaxed: the numbers only have to differ.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ring-tune-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The files of a text in which `=== PATH` stands above the lines of a file, and `=== PATH -> TARGET` is a link.
    /// With `{0-7}` in the path there are eight of them, and `{}` in lines and targets is the number. What stands
    /// before the first of them says where the files come from. The lines of `=== PATH (hexadecimal)` are those of
    /// `lspci -x`, as in `10: 00 ff`, up to 16 bytes each.
    pub fn of(text: &str) -> Self {
        let laid_out = Self::new();
        laid_out.add(text);
        laid_out
    }

    /// Adds the files of such a text.
    pub fn add(&self, text: &str) {
        let mut file: Option<(&str, String)> = None;
        for line in text.lines().chain(["=== "]) {
            match line.strip_prefix("=== ") {
                None => {
                    if let Some((_, content)) = &mut file {
                        writeln!(content, "{line}").unwrap();
                    }
                }
                Some(head) => {
                    if let Some((path, content)) = file.take() {
                        match path.strip_suffix(" (hexadecimal)") {
                            Some(path) => self.write(path, bytes(&content)),
                            None => each(path, &content, |path, content| self.write(path, content)),
                        }
                    }
                    match head.split_once(" -> ") {
                        Some((path, target)) => each(path, target, |path, target| self.link(path, target)),
                        None => file = (!head.is_empty()).then(|| (head, String::new())),
                    }
                }
            }
        }
    }

    /// Writes a file, and the folders on the way to it.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Makes a link, and the folders on the way to it.
    pub fn link(&self, path: &str, target: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    /// A copy of a program where everybody may run it. Another process makes it: a child that a thread starts just then
    /// would have it open for writing as this one has, and the kernel runs nothing that is.
    pub fn program(&self, from: &str) -> PathBuf {
        let path = self.0.join("ring-tune");
        let copied = std::process::Command::new("cp").arg(from).arg(&path).status().unwrap();
        assert!(copied.success(), "{from} cannot be copied to {}", path.display());
        for place in [&path, &self.0] {
            fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
        }
        path
    }

    /// Takes a file or a folder away.
    pub fn remove(&self, path: &str) {
        let path = self.0.join(path);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// The bytes of a dump; those that it leaves out are zero.
fn bytes(dump: &str) -> Vec<u8> {
    let mut bytes = vec![0; 256];
    for line in dump.lines().filter(|line| !line.trim().is_empty()) {
        let (at, line) = line.split_once(':').unwrap();
        let at = usize::from_str_radix(at.trim(), 16).unwrap();
        for (place, byte) in line.split_whitespace().enumerate() {
            bytes[at + place] = u8::from_str_radix(byte, 16).unwrap();
        }
    }
    bytes
}

/// Once, or for each number of the range in the path.
fn each(path: &str, text: &str, mut act: impl FnMut(&str, &str)) {
    let Some((start, rest)) = path.split_once('{') else { return act(path, text) };
    let (range, end) = rest.split_once('}').unwrap();
    let (first, last) = range.split_once('-').unwrap();
    for number in first.parse::<usize>().unwrap()..=last.parse().unwrap() {
        act(&format!("{start}{number}{end}"), &text.replace("{}", &format!("{number}")));
    }
}

impl Drop for LaidOut {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
