//! One writer at a time for a results folder, on local disks and on those of a file server.
//!
//! The file `flipwave.lock` in the folder says who writes to it. It is made by a link to a finished
//! file, which either succeeds or finds another's there, on a file server too. While its owner lives it
//! also holds an advisory lock on the file (flock(2)): the kernel takes that back from a process however
//! it ends, so that on one machine nobody is taken for dead who is not, and the other way round.
//!
//! Two processes that find the same owner dead must not both take its place. So they do not remove the
//! file: a successor is a link `flipwave.lock.after-TOKEN`, TOKEN being the dead one's, of which there
//! can be one only. Who has made it looks again whether the file is still the dead one's: if not,
//! another has been quicker from beginning to end, and all begins anew. If it is, the link gets the
//! file's name. Successors that died halfway have successors in the same way.
//!
//! Whether an owner on another machine lives cannot be seen. It is refused, unless the user says that
//! it has ended.

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

/// The file in the folder.
pub(crate) const LOCK: &str = "flipwave.lock";
/// How names of other files begin that serve to take the lock.
pub(crate) const BESIDE: &str = "flipwave.lock.";

/// Bytes of what an owner says of itself at most.
const LARGEST: u64 = 1 << 16;

/// How often it is tried again where another process is doing the same.
const ATTEMPTS: u32 = 200;
/// How long is waited before.
const PAUSE: Duration = Duration::from_millis(5);

/// A lock that cannot be had, or is lost.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody has it.
    #[error(
        "{} is in use: {owner} writes to it; wait until it has ended, or end it; or choose another \
         folder with --out", folder.display()
    )]
    Held {
        /// The folder.
        folder: PathBuf,
        /// Who.
        owner: String,
    },
    /// Somebody has it who cannot be seen from here.
    #[error(
        "{} is in use by {owner}, of which cannot be seen from {here} whether it still runs; if it \
         has surely ended, take the folder over with --take-over, or remove {}",
        folder.display(), folder.join(LOCK).display()
    )]
    Elsewhere {
        /// The folder.
        folder: PathBuf,
        /// Who.
        owner: String,
        /// This machine.
        here: String,
    },
    /// It was taken away.
    #[error(
        "{} was taken over{}; what this run does is not written any more",
        folder.display(), owner.as_ref().map(|own| format!(" by {own}")).unwrap_or_default()
    )]
    Lost {
        /// The folder.
        folder: PathBuf,
        /// By whom, if it is still there.
        owner: Option<String>,
    },
    /// It cannot be taken or looked at.
    #[error("cannot write to {}, to lock it: {reason}", folder.display())]
    Access {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        reason: io::Error,
    },
}

/// The right to write to a folder, until it is dropped.
#[derive(Debug)]
pub(crate) struct FolderLock {
    folder: PathBuf,
    token: String,
    /// Open as long as the lock is held.
    _file: File,
    /// Whether the folder was made for it.
    is_new: bool,
}

impl FolderLock {
    /// Takes a folder, which is made if there is none. With `take_over`, also from an owner who
    /// cannot be seen from here.
    ///
    /// # Errors
    /// [`LockError`].
    pub fn take(folder: &Path, take_over: bool) -> Result<FolderLock, LockError> {
        let failed = |reason| LockError::Access { folder: folder.to_owned(), reason };
        let own = Owner::this().map_err(failed)?;
        let is_new = !folder.exists();
        for left in (0..ATTEMPTS).rev() {
            fs::create_dir_all(folder).map_err(failed)?;
            match attempt(folder, &own, take_over)? {
                Attempt::Taken(file) => {
                    let (folder, token) = (folder.to_owned(), own.token);
                    return Ok(FolderLock { folder, token, _file: file, is_new });
                }
                Attempt::Held(owner) if left == 0 => {
                    let (folder, owner) = (folder.to_owned(), owner.to_string());
                    return Err(LockError::Held { folder, owner });
                }
                Attempt::Held(_) | Attempt::Changed => std::thread::sleep(PAUSE),
            }
        }
        Err(failed(io::Error::other("others take it and leave it all the time")))
    }

    /// The folder, for who is about to write to it, unless somebody has taken it over.
    ///
    /// # Errors
    /// [`LockError::Lost`].
    pub fn folder(&self) -> Result<&Path, LockError> {
        let folder = self.folder.clone();
        match read(&self.folder.join(LOCK)) {
            Ok(Some(own)) if own.token == self.token => Ok(&self.folder),
            Ok(owner) => {
                let owner = owner.map(|own| own.to_string());
                Err(LockError::Lost { folder, owner })
            }
            Err(reason) => Err(LockError::Access { folder, reason }),
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        if self.folder().is_ok() {
            // One that stays is found to be of a process that has ended.
            let _ = fs::remove_file(self.folder.join(LOCK));
        }
        if self.is_new {
            // Only an empty one goes.
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

/// What came of trying to take a folder.
enum Attempt {
    Taken(File),
    /// Its file is locked, and its owner has ended: another process looks at it just now, or the
    /// owner's end is not over.
    Held(Owner),
    /// Another process has changed something meanwhile.
    Changed,
}

fn attempt(folder: &Path, own: &Owner, take_over: bool) -> Result<Attempt, LockError> {
    let failed = |reason| LockError::Access { folder: folder.to_owned(), reason };
    let claim = Claim::new(folder, own).map_err(failed)?;
    let root = folder.join(LOCK);
    if let Some(file) = claim.publish(&root).map_err(failed)? {
        sweep(folder).map_err(failed)?;
        return Ok(Attempt::Taken(file));
    }
    let Some((place, owner)) = tip(folder).map_err(failed)? else { return Ok(Attempt::Changed) };
    match owner.life(own, file_lock(&place)) {
        // Between the look at its record and that at its lock it may have given both back.
        Life::Alive if tip(folder).map_err(failed)?.is_none_or(|now| now.1 != owner) => {
            return Ok(Attempt::Changed);
        }
        Life::Alive if owner.life(own, FileLock::Unknown) == Life::Ended => {
            return Ok(Attempt::Held(owner));
        }
        Life::Alive => {
            let (folder, owner) = (folder.to_owned(), owner.to_string());
            return Err(LockError::Held { folder, owner });
        }
        Life::Unseen if !take_over => {
            let (folder, owner) = (folder.to_owned(), owner.to_string());
            return Err(LockError::Elsewhere { folder, owner, here: own.host.clone() });
        }
        Life::Ended | Life::Unseen => {}
    }
    let successor = successor(folder, &owner);
    let Some(file) = claim.publish(&successor).map_err(failed)? else {
        return Ok(Attempt::Changed);
    };
    if tip(folder).map_err(failed)?.is_none_or(|now| now.1.token != own.token) {
        removed(&successor).map_err(failed)?;
        return Ok(Attempt::Changed);
    }
    fs::rename(&successor, &root).map_err(failed)?;
    sweep(folder).map_err(failed)?;
    Ok(Attempt::Taken(file))
}

/// A finished record of this process, under a name of its own.
struct Claim {
    path: PathBuf,
    file: File,
    record: Vec<u8>,
}

impl Claim {
    fn new(folder: &Path, own: &Owner) -> io::Result<Claim> {
        let record = serde_json::to_vec_pretty(own).map_err(io::Error::from)?;
        let path = folder.join(format!("{BESIDE}{}", own.token));
        let file = written(&path, &record)?;
        Ok(Claim { path, file, record })
    }

    /// Gives the record a name, unless there is a file of that name: the file, locked.
    fn publish(&self, name: &Path) -> io::Result<Option<File>> {
        match link(&self.path, name) {
            Ok(()) => {}
            // A file server may have done it, and its answer got lost.
            Err(Errno::EXIST) if self.file.metadata()?.nlink() > 1 => {}
            // Its own name was swept away: whoever has the lock now has had it for a moment.
            Err(Errno::EXIST | Errno::NOENT) => return Ok(None),
            // A file system without hard links.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
                return self.publish_without_link(name);
            }
            Err(reason) => return Err(reason.into()),
        }
        self.file.try_clone().map(Some)
    }

    /// The same for file systems without links. A process that is killed in here leaves a file that
    /// does not say whose it is.
    fn publish_without_link(&self, name: &Path) -> io::Result<Option<File>> {
        match written(name, &self.record) {
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

/// Makes a new file with this content, locked where the file system supports locks.
fn written(path: &Path, content: &[u8]) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    // Nobody else can have it; without locks the record has to serve.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    file.write_all(content)?;
    Ok(file)
}

/// The name of an owner's successor.
fn successor(folder: &Path, owner: &Owner) -> PathBuf {
    let token = if owner.token.is_empty() { "nobody" } else { &owner.token };
    folder.join(format!("{BESIDE}after-{token}"))
}

/// Who holds the lock of a folder, and the file that says so.
fn tip(folder: &Path) -> io::Result<Option<(PathBuf, Owner)>> {
    let mut place = folder.join(LOCK);
    let Some(mut owner) = read(&place)? else { return Ok(None) };
    loop {
        let next = successor(folder, &owner);
        match read(&next)? {
            // A file that says nothing, after another such.
            Some(after) if after.token == owner.token => return Ok(Some((place, owner))),
            Some(after) => (place, owner) = (next, after),
            None => return Ok(Some((place, owner))),
        }
    }
}

/// What a file says of its owner; nothing if there is no such file.
fn read(place: &Path) -> io::Result<Option<Owner>> {
    match flipwave_host::input::read(place, LARGEST) {
        Ok(text) => Ok(Some(serde_json::from_slice(&text).unwrap_or_default())),
        // As a file server says it of a file that was removed meanwhile.
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::StaleNetworkFileHandle) =>
        {
            Ok(None)
        }
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", place.display()))),
    }
}

/// Whether somebody has a file locked.
fn file_lock(place: &Path) -> FileLock {
    // File servers want it open for writing.
    let Ok(file) = flipwave_host::input::open_writable(place) else {
        return FileLock::Unknown;
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => FileLock::Free,
        Err(Errno::WOULDBLOCK) => FileLock::Held,
        Err(_) => FileLock::Unknown,
    }
}

/// Removes what others have left that were killed while they took the lock. Who is about to take it
/// just now begins anew.
fn sweep(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(BESIDE) {
            removed(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes a file, unless another process has done so.
fn removed(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
