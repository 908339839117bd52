//! Object code on disk, by the digest of what it was made from.

use flipwave_host::cache::Cache;
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A folder with object code.
pub struct Store {
    cache: Cache,
}

/// Most bytes that are kept.
const MOST: u64 = 256 << 20;

/// A digest of what something is made from.
#[derive(Clone, Copy)]
pub struct Key([u8; 32]);

impl Key {
    /// The key of what is made from these parts.
    pub fn of(parts: &[&str]) -> Key {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Key(hash.finalize().into())
    }

    fn name(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Store {
    /// The store in a folder, which need not be there yet.
    pub fn new(folder: PathBuf) -> Store {
        Store { cache: Cache::at(folder) }
    }

    /// What is kept under a key; nothing if there is none, or it is damaged.
    pub fn get(&self, key: Key) -> Option<Vec<u8>> {
        self.cache.get(&key.name())
    }

    /// Keeps something under a key.
    ///
    /// # Errors
    /// If it cannot be written; then nothing is kept.
    pub fn put(&self, key: Key, bytes: &[u8]) -> io::Result<()> {
        self.cache.put(&key.name(), bytes)
    }

    /// Removes what is oldest, where more is kept than should be.
    pub fn trim(&self) {
        self.trim_to(MOST);
    }

    fn trim_to(&self, most: u64) {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = fs::read_dir(self.cache.folder())
            .into_iter()
            .flatten()
            .filter_map(|entry| described(&entry.ok()?.path()))
            .collect();
        let mut all: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        files.sort();
        for (_, bytes, path) in files {
            if all <= most {
                break;
            }
            let _ = fs::remove_file(path);
            all -= bytes;
        }
    }
}

fn described(path: &Path) -> Option<(SystemTime, u64, PathBuf)> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some((metadata.modified().ok()?, metadata.len(), path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_and_what_is_damaged_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(folder.path().join("store"));
        let (own, other) = (Key::of(&["ab", "c"]), Key::of(&["a", "bc"]));
        assert_eq!(store.get(own), None);
        store.put(own, b"object").expect("it can be written");
        assert_eq!(store.get(own).as_deref(), Some(&b"object"[..]));
        assert_eq!(store.get(other), None);
        let mut bytes = fs::read(store.cache.path(&own.name())).expect("the file");
        bytes[2] ^= 1;
        fs::write(store.cache.path(&own.name()), &bytes).expect("it can be written");
        assert_eq!(store.get(own), None);
        fs::write(store.cache.path(&own.name()), b"short").expect("it can be written");
        assert_eq!(store.get(own), None);
    }

    #[test]
    fn no_more_is_kept_than_should_be() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(folder.path().to_owned());
        for number in 0..8 {
            store.put(Key::of(&[&number.to_string()]), &[0; 68]).expect("it can be written");
        }
        store.trim_to(300);
        let count = fs::read_dir(folder.path()).expect("the folder").count();
        assert_eq!(count, 3);
    }
}
