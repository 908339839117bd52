//! The files with which the driver describes the GPUs, in a cached folder per machine configuration.

use crate::session::Session;
use crate::versioned_library::versioned_library;
use flipwave_kfd::{DeviceFile, FileContent, device_files};
use sha2::{Digest, Sha256};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Errors returned when writing the device files.
#[derive(Debug, thiserror::Error)]
pub enum DevicesError {
    /// A machine with these GPUs is not supported.
    #[error("{0}")]
    Machine(String),
    /// The folder cannot be written.
    #[error(
        "cannot write device files to {}: {reason}; set FLIPWAVE_CACHE to another folder",
        folder.display()
    )]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The reason.
        reason: io::Error,
    },
}

/// The folder with the device files for a session's GPUs, created below `cache` if it does not exist.
pub fn devices_folder(session: &Session, cache: &Path) -> Result<PathBuf, DevicesError> {
    let targets = session.targets().map_err(DevicesError::Machine)?;
    let files = device_files(&targets);
    let files = files.map_err(|error| DevicesError::Machine(error.to_string()))?;
    folder_with("devices", &files, cache, |folder| write(&files, folder))
}

/// The folder for these files, which `write` writes if it does not exist below `cache`.
fn folder_with(
    kind: &str,
    files: &[DeviceFile],
    cache: &Path,
    write: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<PathBuf, DevicesError> {
    let folder = cache.join(format!("{kind}-{}", digest(files)));
    if !folder.is_dir() {
        let temporary = cache.join(format!("{kind}-{}.part", std::process::id()));
        let failed = |reason| DevicesError::Folder { folder: temporary.clone(), reason };
        let written = std::fs::create_dir_all(&temporary).and_then(|()| write(&temporary));
        written.map_err(failed)?;
        // Fails if another process has already created the folder, with the same files.
        if std::fs::rename(&temporary, &folder).is_err() {
            std::fs::remove_dir_all(&temporary).map_err(failed)?;
        }
    }
    Ok(folder)
}

/// File name of [`PTXAS`].
pub const ASSEMBLER: &str = "ptxas";

/// A script in place of NVIDIA's assembler, for Triton: the driver executes PTX, so that nothing is assembled.
/// Triton derives the version of PTX from the version of the assembler.
const PTXAS: &str = r#"#!/bin/sh
# Copies PTX to the output.
while [ $# -gt 0 ]; do
  case $1 in
    --version) echo "ptxas of Flipwave, which copies PTX, release 12.8"; exit 0 ;;
    -o) output=$2; shift ;;
    *.ptx) input=$1 ;;
  esac
  shift
done
exec cp "$input" "$output"
"#;

/// The folder in which CUDA applications find the agent under the names of NVIDIA's libraries, created below `cache`
/// if it does not exist.
pub fn cuda_folder(agent: &Path, cache: &Path) -> Result<PathBuf, DevicesError> {
    let target = agent.to_string_lossy().into_owned();
    let link = |name: &str| DeviceFile {
        path: name.to_owned(),
        content: FileContent::Link(target.clone()),
    };
    let mut files: Vec<DeviceFile> = flipwave_cuda::LIBRARY_NAMES.into_iter().map(link).collect();
    let content = FileContent::Text(PTXAS.to_owned());
    files.push(DeviceFile { path: ASSEMBLER.to_owned(), content });
    folder_with("cuda", &files, cache, |folder| {
        let assembler = folder.join(ASSEMBLER);
        std::fs::write(&assembler, PTXAS)?;
        std::fs::set_permissions(assembler, Permissions::from_mode(0o755))?;
        for name in flipwave_cuda::LIBRARY_NAMES {
            let file = folder.join(name);
            if name.starts_with("libcudart.so.") {
                std::fs::write(file, versioned_library(name, &target))?;
            } else {
                symlink(&target, file)?;
            }
        }
        Ok(())
    })
}

/// A digest of the paths and contents of files, as sixteen hexadecimal digits.
fn digest(files: &[DeviceFile]) -> String {
    let mut digest = Sha256::new();
    for DeviceFile { path, content } in files {
        let (kind, text) = match content {
            FileContent::Text(text) => ("text", text),
            FileContent::Link(target) => ("link", target),
        };
        for part in [path, kind, text] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
    }
    digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn write(files: &[DeviceFile], folder: &Path) -> io::Result<()> {
    for DeviceFile { path, content } in files {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        match content {
            FileContent::Text(text) => std::fs::write(path, text)?,
            FileContent::Link(target) => symlink(target, path)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_of_files_is_fixed_and_distinguishes_links() {
        let text = [DeviceFile { path: "a/b".into(), content: FileContent::Text("c".into()) }];
        let link = [DeviceFile { path: "a/b".into(), content: FileContent::Link("c".into()) }];
        assert_eq!(digest(&text), "b6411767189e7b28");
        assert_ne!(digest(&text), digest(&link));
    }
}
