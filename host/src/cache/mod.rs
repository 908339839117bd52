//! Files that are made once and kept: compiled kernels, hooks and blocks.
//!
//! A kept file is used only if it is as it was written and nobody else can have written it: it ends
//! with a digest of its name and content, belongs to the user (or to root), and only its owner may
//! write it. Code from anywhere else is never executed.

mod place;

pub use place::{cache_folder, remove_private_folder};

use rustix::fs::{Mode, fstat};
use rustix::process::geteuid;
use sha2::{Digest, Sha256};
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Ending of the names of kept files. Files of other formats have other endings.
const ENDING: &str = ".kept";

/// A folder of kept files. It need not exist yet.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The user's.
    pub fn find() -> Cache {
        Cache::at(cache_folder())
    }

    /// The cache in a folder.
    pub fn at(folder: PathBuf) -> Cache {
        Cache { folder }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the content named `name` is kept.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}{ENDING}"))
    }

    /// The content named `name`; `None` if there is none that can be used. A file that cannot be used
    /// is reported to the function of [`on_damage`].
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
        let damaged = || io::Error::new(ErrorKind::InvalidData, "its digest is wrong");
        let end = bytes.len().checked_sub(DIGEST).ok_or_else(damaged)?;
        let digest = bytes.split_off(end);
        if digest == self::digest(name, &bytes) { Ok(bytes) } else { Err(damaged()) }
    }

    /// Keeps content under a name.
    ///
    /// # Errors
    /// If it cannot be written; then nothing is kept.
    pub fn put(&self, name: &str, content: &[u8]) -> io::Result<()> {
        write(&self.path(name), &[content, &digest(name, content)])
    }

    /// Path of a file named `name` that holds `content` and nothing else, for programs that read it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn file(&self, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        let path = self.folder.join(name);
        let is_kept = || -> io::Result<bool> {
            let file = crate::input::open(&path)?;
            check_owner(&file)?;
            Ok(crate::input::read_rest(file, content.len() as u64)? == content)
        };
        if !is_kept().unwrap_or(false) {
            write(&path, &[content])?;
        }
        Ok(path)
    }
}

/// Makes a folder, and those above it, for the user alone; others lose the right to write to one of the
/// user's that is there.
///
/// # Errors
/// If it cannot be made, or others can put files in the place of the user's.
fn prepare_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let found = fs::metadata(path)?;
    let (mode, user) = (found.permissions().mode(), geteuid().as_raw());
    let is_open = mode & 0o022 != 0;
    if found.uid() == user && is_open {
        return fs::set_permissions(path, Permissions::from_mode(mode & 0o7755));
    }
    // In a folder with the sticky bit nobody replaces the files of others.
    if ![user, 0].contains(&found.uid()) || is_open && mode & 0o1000 == 0 {
        let what = format!("it belongs to user {}, who can replace what is kept", found.uid());
        return Err(io::Error::new(ErrorKind::PermissionDenied, what));
    }
    Ok(())
}

/// Writes a file and then gives it its name: no reader sees half of it.
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

/// Checks that nobody but the user, or root, can have written a file.
///
/// # Errors
/// Names its owner or mode.
pub fn check_owner(file: &File) -> io::Result<()> {
    let found = fstat(file)?;
    let user = geteuid().as_raw();
    let denied = |what: String| Err(io::Error::new(ErrorKind::PermissionDenied, what));
    if found.st_uid != user && found.st_uid != 0 {
        return denied(format!("it belongs to user {}, expected {user}", found.st_uid));
    }
    let mode = Mode::from_raw_mode(found.st_mode);
    if mode.intersects(Mode::WGRP | Mode::WOTH) {
        return denied(format!("others may write it (mode {:o})", mode.as_raw_mode()));
    }
    Ok(())
}

/// Bytes of a digest.
const DIGEST: usize = 32;

/// Digest of a kept file. It covers the name: a file under another one is not what was asked for.
fn digest(name: &str, content: &[u8]) -> [u8; DIGEST] {
    let mut digest = Sha256::new();
    digest.update((name.len() as u64).to_le_bytes());
    digest.update(name);
    digest.update(content);
    digest.finalize().into()
}

/// A kept file that cannot be used, and is made again.
#[derive(Debug)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Why not.
    pub reason: String,
}

static REPORT: OnceLock<fn(&Damage)> = OnceLock::new();

/// Sets the function that is told of damaged files, once for the process.
pub fn on_damage(report: fn(&Damage)) {
    // The first stays.
    let _ = REPORT.set(report);
}

/// Reports a kept file that cannot be used.
pub fn report(damage: &Damage) {
    if let Some(report) = REPORT.get() {
        report(damage);
    }
}

#[cfg(test)]
mod tests;
