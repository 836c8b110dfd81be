//! What is saved of a tree.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;

use anyhow::ensure;
use ring_tune::{Tree, Unread, cgroup_root};
use tar::{Builder, EntryType, Header};

use super::secrets;
use crate::check::{COUNTERS, DEVICE_FILES, Earlier, FILES, FOLDER, asked, nic};

/// Of files that nobody asks who may write them.
const MODE: u32 = 0o644;

/// Of all files together, with what an archive adds to each: more than the largest machines have.
const MOST_BYTES: usize = 512 << 20;
const BYTES_BESIDE: usize = 1 << 10;

/// As many as the kernel follows in one path.
const MOST_LINKS: usize = 40;

/// The files and links of a tree that are saved, by their path.
#[derive(Debug)]
pub(super) struct Copy<'a> {
    tree: &'a Tree,
    entries: BTreeMap<String, Entry>,
    bytes: usize,
}

#[derive(Debug)]
enum Entry {
    /// What it says, and who may write it: the kernel's interrupts are told by that.
    File(Vec<u8>, u32),
    /// It is there, and was not to be read.
    Unread,
    Link(String),
    Folder,
}

impl<'a> Copy<'a> {
    /// Reads all that a check reads; the counters twice.
    pub(super) fn of(tree: &'a Tree) -> anyhow::Result<Self> {
        let earlier = Earlier::read(tree);
        let mut this = Self { tree, entries: BTreeMap::new(), bytes: 0 };
        for pattern in FILES {
            for path in tree.find(pattern).unwrap_or_default() {
                this.add(&path)?;
            }
        }
        this.add_devices()?;
        this.add_balancer()?;
        this.add_partitions()?;
        let apart = earlier.wait();
        for (path, text) in earlier.texts() {
            if apart.is_some() {
                let text =
                    text.as_ref().map_or(Entry::Unread, |text| Entry::File(text.clone().into_bytes(), MODE));
                this.insert(format!("{FOLDER}/{path}"), text)?;
            }
        }
        for pattern in COUNTERS {
            for path in tree.find(pattern).unwrap_or_default() {
                this.add(&path)?;
            }
        }
        this.add_asked(earlier.texts().map(|(path, _)| path))?;
        if let Some(apart) = apart {
            let seconds = format!("{}\n", apart.as_secs_f64());
            this.insert(format!("{FOLDER}/seconds"), Entry::File(seconds.into_bytes(), MODE))?;
        }
        Ok(this)
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    fn insert(&mut self, place: String, entry: Entry) -> anyhow::Result<()> {
        let content = if let Entry::File(bytes, _) = &entry { bytes.len() } else { 0 };
        self.bytes += place.len() + content + BYTES_BESIDE;
        let most = MOST_BYTES >> 20;
        ensure!(self.bytes <= MOST_BYTES, "more than {most} MiB are to be saved: this is no machine's tree");
        self.entries.insert(place, entry);
        Ok(())
    }

    fn add(&mut self, path: &str) -> anyhow::Result<()> {
        let Some(place) = self.place(path)? else { return Ok(()) };
        let bytes = if path.starts_with("dev/") {
            self.tree.device::<4>(path).map(Vec::from)
        } else {
            self.tree.bytes(path)
        };
        let entry = match bytes {
            Ok(bytes) => Entry::File(secrets::removed(path, bytes), self.mode(&place)),
            Err(Unread::Absent { .. }) => return Ok(()),
            Err(_) if self.tree.names(path).is_ok() => Entry::Folder,
            Err(_) => Entry::Unread,
        };
        self.insert(place, entry)
    }

    fn mode(&self, place: &str) -> u32 {
        let metadata = fs::symlink_metadata(self.tree.path(place));
        metadata.map_or(MODE, |metadata| metadata.permissions().mode() & 0o222 | 0o444)
    }

    /// Where a path leads; the links on the way are saved.
    fn place(&mut self, path: &str) -> anyhow::Result<Option<String>> {
        let mut place: Vec<String> = vec![];
        let mut rest: Vec<String> = path.rsplit('/').map(Into::into).collect();
        let mut links = 0;
        while let Some(name) = rest.pop() {
            match name.as_str() {
                "" | "." => continue,
                ".." => {
                    place.pop();
                    continue;
                }
                _ => place.push(name),
            }
            let here = place.join("/");
            // Of this process, whatever its number.
            let is_self = here == "proc/self";
            // Nothing in front of the last name is a link any more: this looks at nothing outside of the root.
            let Ok(metadata) = fs::symlink_metadata(self.tree.path(&here)) else { return Ok(None) };
            if is_self || !metadata.is_symlink() {
                continue;
            }
            links += 1;
            let target = fs::read_link(self.tree.path(&here)).ok();
            let target = target.and_then(|target| target.to_str().map(str::to_owned));
            let Some(target) = target.filter(|_| links <= MOST_LINKS) else { return Ok(None) };
            place.pop();
            if target.starts_with('/') {
                place.clear();
            }
            rest.extend(target.rsplit('/').map(Into::into));
            self.insert(here, Entry::Link(target))?;
        }
        Ok(Some(place.join("/")))
    }

    /// What stands in no file of a live machine; a saved tree has files of it.
    fn add_asked<'b>(&mut self, counted: impl Iterator<Item = &'b str>) -> anyhow::Result<()> {
        if !self.tree.is_live() {
            return Ok(());
        }
        let nics = nic::in_use(self.tree).unwrap_or_default();
        let netdevs = nics.iter().flat_map(|nic| &nic.netdevs);
        let moderation = netdevs.map(|netdev| format!("ethtool/{netdev}/coalesce"));
        let counted = counted.filter(|path| asked::is_asked(path)).map(str::to_owned);
        for path in moderation.chain(counted) {
            let entry = match asked::text(self.tree, &path) {
                Ok(text) => Entry::File(text.into_bytes(), MODE),
                Err(Unread::Absent { .. }) => continue,
                Err(_) => Entry::Unread,
            };
            self.insert(path, entry)?;
        }
        Ok(())
    }

    /// Of network devices, what is at the device and above it.
    fn add_devices(&mut self) -> anyhow::Result<()> {
        for class in ["net", "infiniband"] {
            for path in self.tree.find(&format!("sys/class/{class}/*/device")).unwrap_or_default() {
                let Ok(device) = self.tree.resolve(&path) else { continue };
                let mut folder = device.as_str();
                while folder.starts_with("sys/devices/") {
                    for name in DEVICE_FILES {
                        for file in self.tree.find(&format!("{folder}/{name}")).unwrap_or_default() {
                            self.add(&file)?;
                        }
                    }
                    let Some((above, _)) = folder.rsplit_once('/') else { break };
                    folder = above;
                }
            }
        }
        Ok(())
    }

    /// Of processes, that there are any, and irqbalance.
    fn add_balancer(&mut self) -> anyhow::Result<()> {
        for path in self.tree.find("proc/*/comm").unwrap_or_default() {
            let Some(folder) = path.strip_suffix("/comm").filter(|folder| is_process(folder)) else {
                continue;
            };
            let is_balancer = self.tree.text(&path).is_ok_and(|name| name == "irqbalance");
            if is_balancer {
                self.add(&path)?;
                if let Ok(environment) = self.tree.bytes(&format!("{folder}/environ")) {
                    let environ = format!("{folder}/environ");
                    let kept = secrets::removed(&environ, environment);
                    self.insert(environ, Entry::File(kept, MODE))?;
                }
            } else if folder == "proc/1" {
                self.insert(path, Entry::File(b"other\n".into(), MODE))?;
            }
        }
        Ok(())
    }

    /// Of cgroups, those that are partitions of CPUs, and those above them.
    fn add_partitions(&mut self) -> anyhow::Result<()> {
        let Some(root) = cgroup_root(self.tree)? else { return Ok(()) };
        self.add(&format!("{root}/cgroup.controllers"))?;
        self.add(&format!("{root}/cpuset.cpus.isolated"))?;
        for depth in 1..=8 {
            let pattern = format!("{root}{}/cpuset.cpus.partition", "/*".repeat(depth));
            for path in self.tree.find(&pattern).unwrap_or_default() {
                if self.tree.text(&path).is_ok_and(|state| state == "member") {
                    continue;
                }
                let mut folder = path.as_str();
                while let Some((above, _)) = folder.rsplit_once('/').filter(|(above, _)| *above != root) {
                    folder = above;
                    for name in ["partition", "exclusive", "effective"] {
                        self.add(&format!("{folder}/cpuset.cpus.{name}"))?;
                    }
                    self.add(&format!("{folder}/cpuset.cpus"))?;
                }
            }
        }
        Ok(())
    }

    /// The same bytes for the same files: no times, no owners.
    pub(super) fn archive(&self, out: impl Write) -> io::Result<()> {
        let mut archive = Builder::new(BufWriter::new(out));
        for (path, entry) in &self.entries {
            let mut header = Header::new_gnu();
            header.set_mode(0o644);
            match entry {
                Entry::File(bytes, mode) => {
                    header.set_mode(*mode);
                    header.set_size(bytes.len() as u64);
                    archive.append_data(&mut header, path, bytes.as_slice())?;
                }
                Entry::Unread => {
                    header.set_mode(0);
                    header.set_size(0);
                    archive.append_data(&mut header, path, io::empty())?;
                }
                Entry::Link(target) => {
                    header.set_entry_type(EntryType::Symlink);
                    header.set_size(0);
                    archive.append_link(&mut header, path, target)?;
                }
                Entry::Folder => {
                    header.set_entry_type(EntryType::Directory);
                    header.set_mode(0o755);
                    header.set_size(0);
                    archive.append_data(&mut header, path, io::empty())?;
                }
            }
        }
        archive.into_inner()?.flush()
    }
}

fn is_process(folder: &str) -> bool {
    folder.strip_prefix("proc/").is_some_and(|number| number.parse::<u32>().is_ok())
}
