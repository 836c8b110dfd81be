//! Where the workspace lies, and how its cargo is called.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The workspace that this program was built from.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
    metadata: Value,
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn find() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has a parent folder")?;
        let output = cargo()
            .args(["metadata", "--format-version=1", "--locked", "--manifest-path"])
            .arg(manifest.join("Cargo.toml"))
            .output()
            .context("cannot start cargo")?;
        if !output.status.success() {
            bail!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr));
        }
        let metadata: Value = serde_json::from_slice(&output.stdout)?;
        let folder = |key: &str| {
            metadata[key]
                .as_str()
                .map(PathBuf::from)
                .with_context(|| format!("cargo metadata names no {key}"))
        };
        Ok(Self { root: folder("workspace_root")?, target: folder("target_directory")?, metadata })
    }

    /// The folder of the workspace's `Cargo.toml`.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A folder below the target folder for one purpose.
    pub(crate) fn target(&self, purpose: &str) -> PathBuf {
        self.target.join(purpose)
    }

    /// What `cargo metadata` says.
    pub(crate) fn metadata(&self) -> &Value {
        &self.metadata
    }

    /// The library crates that exist, by name, in the order of the workspace.
    pub(crate) fn libraries(&self) -> Vec<&str> {
        let packages = self.metadata["packages"].as_array().into_iter().flatten();
        let local = packages.filter(|package| package["source"].is_null());
        local.filter_map(|package| package["name"].as_str()).filter(|&name| name != "xtask").collect()
    }

    /// `cargo` in the root of the workspace.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root);
        command
    }

    /// `cargo` with flags for every crate, and a target folder of its own, so that the flags do not cost the
    /// usual builds their cache.
    pub(crate) fn cargo_with_flags(&self, rustflags: &str, purpose: &str) -> Command {
        let mut command = self.cargo();
        command.env("RUSTFLAGS", rustflags).env("CARGO_TARGET_DIR", self.target(purpose));
        command
    }
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}
