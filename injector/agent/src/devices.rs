//! What the driver shows of the GPUs: a folder for each kind of machine, which stays.

use crate::session::Session;
use flipwave_kfd::{DeviceFile, FileContent, device_files};
use sha2::{Digest, Sha256};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// What the driver shows of the GPUs cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum DevicesError {
    /// There is no such machine.
    #[error("{0}")]
    Machine(String),
    /// No folder.
    #[error(
        "cannot keep files in {}: {reason}; set FLIPWAVE_CACHE to another folder",
        folder.display()
    )]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        reason: io::Error,
    },
}

/// The folder for the machine of a session, made below `cache` if it is not there.
pub fn devices_folder(session: &Session, cache: &Path) -> Result<PathBuf, DevicesError> {
    let targets = session.targets().map_err(DevicesError::Machine)?;
    let files = device_files(&targets);
    let files = files.map_err(|error| DevicesError::Machine(error.to_string()))?;
    let folder = cache.join(format!("devices-{}", digest(&files)));
    if !folder.is_dir() {
        let own = cache.join(format!("devices-{}.part", std::process::id()));
        let failed = |reason| DevicesError::Folder { folder: own.clone(), reason };
        write(&files, &own).map_err(failed)?;
        // Another process may have been first, with the same files.
        if std::fs::rename(&own, &folder).is_err() {
            std::fs::remove_dir_all(&own).map_err(failed)?;
        }
    }
    Ok(folder)
}

/// Sixteen hexadecimal digits of a digest of all that files are: the name of the folder that keeps them.
fn digest(files: &[DeviceFile]) -> String {
    let mut digest = Sha256::new();
    for DeviceFile { path, content } in files {
        let (kind, text) = match content {
            FileContent::Text(text) => ("text", text),
            FileContent::Link(place) => ("link", place),
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
            FileContent::Link(place) => symlink(place, path)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_files_is_fixed() {
        let text = [DeviceFile { path: "a/b".into(), content: FileContent::Text("c".into()) }];
        let link = [DeviceFile { path: "a/b".into(), content: FileContent::Link("c".into()) }];
        assert_eq!(digest(&text), "b6411767189e7b28");
        assert_ne!(digest(&text), digest(&link));
    }
}
