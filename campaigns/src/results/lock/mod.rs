//! Lock of a results folder, which allows one writer at a time, on local disks and file servers.
//!
//! The file `flipwave.lock` in the folder names its owner. It is created as a hard link to a
//! complete file, which is atomic, also on file servers. The owner also holds an advisory lock on
//! the file (flock(2)) while it runs. The kernel releases this lock however the process ends, so on
//! one machine it shows reliably whether the owner is alive.
//!
//! Two processes that find the same dead owner must not both succeed it. They therefore do not
//! remove the file: a successor creates the link `flipwave.lock.after-TOKEN` with the token of the
//! dead owner, and only one such link can exist. The successor then checks again that the dead
//! owner still owns the lock. If not, another process has completed a takeover in the meantime, and
//! the successor starts again. Otherwise, it renames the link to `flipwave.lock`. Successors that
//! die before that are succeeded in the same way.
//!
//! A process cannot see whether an owner on another machine is alive. The lock is then refused,
//! unless the user states that the owner has ended.

mod owner;
#[cfg(test)]
mod tests;

pub(crate) use owner::{FileLock, Life, Owner};
use rustix::fs::{FlockOperation, flock, link};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of the lock file.
pub(crate) const LOCK: &str = "flipwave.lock";
/// Prefix of the names of other files used to take the lock.
pub(crate) const LOCK_PREFIX: &str = "flipwave.lock.";

/// Largest size of a lock file in bytes.
const MAX_SIZE: u64 = 1 << 16;

/// Number of attempts while other processes take the lock.
const ATTEMPTS: u32 = 200;
/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Errors returned when taking or checking a lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error(
        "{} is in use: {owner} writes to it; wait until it has ended, or end it; or choose another \
         folder with --out", folder.display()
    )]
    Held {
        /// The folder.
        folder: PathBuf,
        /// Description of the owner.
        owner: String,
    },
    /// A process that is not visible on this machine holds the lock.
    #[error(
        "{} is in use by {owner}, and {here} cannot see whether it still runs; if it has ended, take \
         the folder over with --take-over, or remove {}",
        folder.display(), folder.join(LOCK).display()
    )]
    Elsewhere {
        /// The folder.
        folder: PathBuf,
        /// Description of the owner.
        owner: String,
        /// This machine.
        here: String,
    },
    /// Another process has taken over the lock.
    #[error(
        "{} was taken over{}; this run no longer writes to it",
        folder.display(), owner.as_ref().map(|owner| format!(" by {owner}")).unwrap_or_default()
    )]
    Lost {
        /// The folder.
        folder: PathBuf,
        /// Description of the new owner; `None` if it has released the lock.
        owner: Option<String>,
    },
    /// The lock file cannot be accessed.
    #[error("cannot lock {}: {reason}", folder.display())]
    Access {
        /// The folder.
        folder: PathBuf,
        /// The reason.
        reason: io::Error,
    },
}

/// A held lock, released when dropped.
#[derive(Debug)]
pub(crate) struct FolderLock {
    folder: PathBuf,
    token: String,
    /// Open while the lock is held.
    _file: File,
    /// `true` if the folder was created for the lock.
    is_new: bool,
}

impl FolderLock {
    /// Takes the lock of a folder, unless another process has it or may have it. Creates the folder
    /// if necessary.
    ///
    /// # Errors
    /// [`LockError`].
    pub fn take_free(folder: &Path) -> Result<FolderLock, LockError> {
        FolderLock::take(folder, false)
    }

    /// Takes the lock of a folder. Creates the folder if necessary. `take_over` allows taking the
    /// lock from an owner that is not visible on this machine.
    ///
    /// # Errors
    /// [`LockError`].
    pub fn take(folder: &Path, take_over: bool) -> Result<FolderLock, LockError> {
        let failed = |reason| LockError::Access { folder: folder.to_owned(), reason };
        let this = Owner::current().map_err(failed)?;
        let is_new = !folder.exists();
        for left in (0..ATTEMPTS).rev() {
            fs::create_dir_all(folder).map_err(failed)?;
            match attempt(folder, &this, take_over)? {
                Attempt::Taken(file) => {
                    let (folder, token) = (folder.to_owned(), this.token);
                    return Ok(FolderLock { folder, token, _file: file, is_new });
                }
                Attempt::Held(owner) if left == 0 => {
                    let (folder, owner) = (folder.to_owned(), owner.to_string());
                    return Err(LockError::Held { folder, owner });
                }
                Attempt::Held(_) | Attempt::Changed => std::thread::sleep(PAUSE),
            }
        }
        Err(failed(io::Error::other("other processes keep taking and releasing the lock")))
    }

    /// Checks that the lock is still held, and returns the folder.
    ///
    /// # Errors
    /// [`LockError::Lost`].
    pub fn folder(&self) -> Result<&Path, LockError> {
        let folder = self.folder.clone();
        match read(&self.folder.join(LOCK)) {
            Ok(Some(owner)) if owner.token == self.token => Ok(&self.folder),
            Ok(owner) => {
                let owner = owner.map(|owner| owner.to_string());
                Err(LockError::Lost { folder, owner })
            }
            Err(reason) => Err(LockError::Access { folder, reason }),
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        if self.folder().is_ok() {
            // A lock file that cannot be removed belongs to an ended process.
            let _ = fs::remove_file(self.folder.join(LOCK));
        }
        if self.is_new {
            // Fails unless the folder is empty.
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

/// Result of an attempt to take a lock.
enum Attempt {
    Taken(File),
    /// The owner has ended, but its file is locked: another process is inspecting the file, or the
    /// end of the owner is not complete.
    Held(Owner),
    /// Another process has changed the lock in the meantime.
    Changed,
}

fn attempt(folder: &Path, this: &Owner, take_over: bool) -> Result<Attempt, LockError> {
    let failed = |reason| LockError::Access { folder: folder.to_owned(), reason };
    let claim = Claim::new(folder, this).map_err(failed)?;
    let root = folder.join(LOCK);
    if let Some(file) = claim.publish(&root).map_err(failed)? {
        remove_leftovers(folder).map_err(failed)?;
        return Ok(Attempt::Taken(file));
    }
    let Some(current) = current_owner(folder).map_err(failed)? else {
        return Ok(Attempt::Changed);
    };
    let CurrentOwner { file, owner } = current;
    match owner.life(this, file_lock(&file)) {
        // The owner may have released the lock after its record was read.
        Life::Alive
            if current_owner(folder)
                .map_err(failed)?
                .is_none_or(|current| current.owner != owner) =>
        {
            return Ok(Attempt::Changed);
        }
        Life::Alive if owner.life(this, FileLock::Unknown) == Life::Ended => {
            return Ok(Attempt::Held(owner));
        }
        Life::Alive => {
            let (folder, owner) = (folder.to_owned(), owner.to_string());
            return Err(LockError::Held { folder, owner });
        }
        Life::Unseen if !take_over => {
            let (folder, owner) = (folder.to_owned(), owner.to_string());
            return Err(LockError::Elsewhere { folder, owner, here: this.host.clone() });
        }
        Life::Ended | Life::Unseen => {}
    }
    let successor = successor(folder, &owner);
    let Some(file) = claim.publish(&successor).map_err(failed)? else {
        return Ok(Attempt::Changed);
    };
    let current = current_owner(folder).map_err(failed)?;
    if current.is_none_or(|current| current.owner.token != this.token) {
        remove_existing(&successor).map_err(failed)?;
        return Ok(Attempt::Changed);
    }
    fs::rename(&successor, &root).map_err(failed)?;
    remove_leftovers(folder).map_err(failed)?;
    Ok(Attempt::Taken(file))
}

/// A complete lock file of this process under a temporary name.
struct Claim {
    path: PathBuf,
    file: File,
    record: Vec<u8>,
}

impl Claim {
    fn new(folder: &Path, this: &Owner) -> io::Result<Claim> {
        let record = serde_json::to_vec_pretty(this).map_err(io::Error::from)?;
        let path = folder.join(format!("{LOCK_PREFIX}{}", this.token));
        let file = create_locked(&path, &record)?;
        Ok(Claim { path, file, record })
    }

    /// Links the file to `name` and returns it, or `None` if `name` exists.
    fn publish(&self, name: &Path) -> io::Result<Option<File>> {
        match link(&self.path, name) {
            Ok(()) => {}
            // A file server may have created the link and lost its response.
            Err(Errno::EXIST) if self.file.metadata()?.nlink() > 1 => {}
            // `ENOENT`: a process that has just taken the lock has removed the temporary name.
            Err(Errno::EXIST | Errno::NOENT) => return Ok(None),
            // The file system does not support hard links.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
                return self.publish_without_link(name);
            }
            Err(reason) => return Err(reason.into()),
        }
        self.file.try_clone().map(Some)
    }

    /// Publishes a claim as [`Claim::publish`] does, on file systems without hard links. A process that
    /// is killed in this function leaves a file without an owner.
    fn publish_without_link(&self, name: &Path) -> io::Result<Option<File>> {
        match create_locked(name, &self.record) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
            file => file.map(Some),
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Creates a new file with `content`, and locks it if the file system supports locks.
fn create_locked(path: &Path, content: &[u8]) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    // No other process can have the lock; an error means that locks are not supported.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    file.write_all(content)?;
    Ok(file)
}

/// File of the successor of an owner.
fn successor(folder: &Path, owner: &Owner) -> PathBuf {
    let token = if owner.token.is_empty() { "nobody" } else { &owner.token };
    folder.join(format!("{LOCK_PREFIX}after-{token}"))
}

/// The last owner in the chain of successors.
struct CurrentOwner {
    file: PathBuf,
    owner: Owner,
}

/// Reads the current owner of the lock of a folder; `None` if the folder is not locked.
fn current_owner(folder: &Path) -> io::Result<Option<CurrentOwner>> {
    let mut file = folder.join(LOCK);
    let Some(mut owner) = read(&file)? else { return Ok(None) };
    loop {
        let next = successor(folder, &owner);
        match read(&next)? {
            // A file without an owner that follows another one.
            Some(successor) if successor.token == owner.token => break,
            Some(successor) => (file, owner) = (next, successor),
            None => break,
        }
    }
    Ok(Some(CurrentOwner { file, owner }))
}

/// Reads the owner from a lock file; `None` if the file does not exist.
fn read(file: &Path) -> io::Result<Option<Owner>> {
    match flipwave_host::input::read(file, MAX_SIZE) {
        Ok(text) => Ok(Some(serde_json::from_slice(&text).unwrap_or_default())),
        // A file server reports a stale handle for a file that was removed in the meantime.
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::StaleNetworkFileHandle) =>
        {
            Ok(None)
        }
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", file.display()))),
    }
}

/// Checks whether a process holds the advisory lock on a file.
fn file_lock(path: &Path) -> FileLock {
    // File servers require a file that is open for writing.
    let Ok(file) = flipwave_host::input::open_writable(path) else {
        return FileLock::Unknown;
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => FileLock::Free,
        Err(Errno::WOULDBLOCK) => FileLock::Held,
        Err(_) => FileLock::Unknown,
    }
}

/// Removes temporary files of processes that were killed while they took the lock. A process that
/// is taking the lock at the same time starts again.
fn remove_leftovers(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(LOCK_PREFIX) {
            remove_existing(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes a file if it exists.
fn remove_existing(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
