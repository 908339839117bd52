//! Cache of files that are expensive to make: compiled kernels, hooks and blocks.
//!
//! A cached file is used only if it is unchanged and nobody else can have written it: it ends with
//! a digest of its name and content, belongs to the user or to root, and only its owner may write
//! it. Other code is never executed.

mod location;

pub use location::{cache_folder, remove_private_folder};

use rustix::fs::{Mode, fstat};
use rustix::process::geteuid;
use sha2::{Digest, Sha256};
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Extension of cached files. Files of other formats have other extensions.
const EXTENSION: &str = ".kept";

/// A folder of cached files. It need not exist yet.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The cache of the user, in [`cache_folder`].
    pub fn find() -> Cache {
        Cache::at(cache_folder())
    }

    /// The cache in a folder.
    pub fn at(folder: PathBuf) -> Cache {
        Cache { folder }
    }

    /// Folder of the cached files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Path of the file with the content named `name`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}{EXTENSION}"))
    }

    /// The content named `name`; `None` if there is no usable file. An unusable file is reported to
    /// the function of [`on_damage`].
    pub fn get(&self, name: &str) -> Option<Vec<u8>> {
        let path = self.path(name);
        match self.read(name, &path) {
            Ok(content) => Some(content),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                report(&Damage { path, reason: error.to_string() });
                None
            }
        }
    }

    fn read(&self, name: &str, path: &Path) -> io::Result<Vec<u8>> {
        let file = crate::input::open(path)?;
        check_owner(&file)?;
        let mut bytes = crate::input::read_rest(file, crate::input::BINARY)?;
        let damaged = || io::Error::new(ErrorKind::InvalidData, "wrong digest");
        let end = bytes.len().checked_sub(DIGEST_BYTES).ok_or_else(damaged)?;
        let digest = bytes.split_off(end);
        if digest == self::digest(name, &bytes) { Ok(bytes) } else { Err(damaged()) }
    }

    /// Stores content under a name.
    ///
    /// # Errors
    /// If it cannot be written; then nothing is stored.
    pub fn put(&self, name: &str, content: &[u8]) -> io::Result<()> {
        write(&self.path(name), &[content, &digest(name, content)])
    }

    /// Path of a file named `name` with exactly this content, for other programs. Writes the file
    /// unless it exists.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn file(&self, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        let path = self.folder.join(name);
        let is_cached = || -> io::Result<bool> {
            let file = crate::input::open(&path)?;
            check_owner(&file)?;
            Ok(crate::input::read_rest(file, content.len() as u64)? == content)
        };
        if !is_cached().unwrap_or(false) {
            write(&path, &[content])?;
        }
        Ok(path)
    }
}

/// Creates a folder and its parents, accessible only to the user. If the folder exists and belongs
/// to the user, others lose the right to write to it.
///
/// # Errors
/// If the folder cannot be created, or other users can replace files in it.
fn prepare_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let found = fs::metadata(path)?;
    let (mode, user) = (found.permissions().mode(), geteuid().as_raw());
    let is_open = mode & 0o022 != 0;
    if found.uid() == user && is_open {
        return fs::set_permissions(path, Permissions::from_mode(mode & 0o7755));
    }
    // In a folder with the sticky bit, users cannot replace the files of others.
    if ![user, 0].contains(&found.uid()) || is_open && mode & 0o1000 == 0 {
        let what = format!("it belongs to user {}, who can replace cached files", found.uid());
        return Err(io::Error::new(ErrorKind::PermissionDenied, what));
    }
    Ok(())
}

/// Writes a temporary file and renames it: no reader sees a part of it.
fn write(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    prepare_folder(folder)?;
    let mode = Permissions::from_mode(0o600);
    let mut unfinished = tempfile::Builder::new().permissions(mode).tempfile_in(folder)?;
    for part in parts {
        unfinished.write_all(part)?;
    }
    unfinished.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Checks that only the user or root can have written a file.
///
/// # Errors
/// [`ErrorKind::PermissionDenied`] with the file's owner or mode.
pub fn check_owner(file: &File) -> io::Result<()> {
    let found = fstat(file)?;
    let user = geteuid().as_raw();
    let denied = |what: String| Err(io::Error::new(ErrorKind::PermissionDenied, what));
    if found.st_uid != user && found.st_uid != 0 {
        return denied(format!("it belongs to user {}, expected {user}", found.st_uid));
    }
    let mode = Mode::from_raw_mode(found.st_mode);
    if mode.intersects(Mode::WGRP | Mode::WOTH) {
        return denied(format!("it is writable by others (mode {:o})", mode.as_raw_mode()));
    }
    Ok(())
}

/// Size of a digest in bytes.
const DIGEST_BYTES: usize = 32;

/// Digest of a cached file. It includes the name, so that a renamed file is not used.
fn digest(name: &str, content: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut digest = Sha256::new();
    digest.update((name.len() as u64).to_le_bytes());
    digest.update(name);
    digest.update(content);
    digest.finalize().into()
}

/// An unusable cached file, which is made again.
#[derive(Debug)]
pub struct Damage {
    /// Path of the file.
    pub path: PathBuf,
    /// Reason for which it is not used.
    pub reason: String,
}

static REPORT: OnceLock<fn(&Damage)> = OnceLock::new();

/// Sets the function to which unusable files are reported, once for the process.
pub fn on_damage(report: fn(&Damage)) {
    // Later calls have no effect.
    let _ = REPORT.set(report);
}

/// Reports an unusable cached file.
pub fn report(damage: &Damage) {
    if let Some(report) = REPORT.get() {
        report(damage);
    }
}

#[cfg(test)]
mod tests;
