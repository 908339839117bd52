//! On-disk cache of object code, keyed by a digest of the compiler's input.

use flipwave_host::cache::Cache;
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A cache of object code in a folder.
pub struct Store {
    cache: Cache,
}

/// Maximum size of the cache, in bytes.
const MAX_SIZE: u64 = 256 << 20;

/// A cache key: a digest of the compiler's input.
#[derive(Clone, Copy)]
pub struct Key([u8; 32]);

impl Key {
    /// Computes the key of input with these parts.
    pub fn from_parts(parts: &[&str]) -> Key {
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
    /// Opens the cache in a folder, which is created on the first write.
    pub fn new(folder: PathBuf) -> Store {
        Store { cache: Cache::at(folder) }
    }

    /// Returns the entry of a key, or `None` if it is missing or damaged.
    pub fn get(&self, key: Key) -> Option<Vec<u8>> {
        self.cache.get(&key.name())
    }

    /// Stores an entry.
    ///
    /// # Errors
    /// If the entry cannot be written; then nothing is stored.
    pub fn put(&self, key: Key, bytes: &[u8]) -> io::Result<()> {
        self.cache.put(&key.name(), bytes)
    }

    /// Removes the oldest entries if the cache exceeds its maximum size.
    pub fn trim(&self) {
        self.trim_to(MAX_SIZE);
    }

    fn trim_to(&self, max_size: u64) {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = fs::read_dir(self.cache.folder())
            .into_iter()
            .flatten()
            .filter_map(|entry| age_and_size(&entry.ok()?.path()))
            .collect();
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        files.sort();
        for (_, bytes, path) in files {
            if total <= max_size {
                break;
            }
            let _ = fs::remove_file(path);
            total -= bytes;
        }
    }
}

/// Modification time, size and path of a regular file.
fn age_and_size(path: &Path) -> Option<(SystemTime, u64, PathBuf)> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some((metadata.modified().ok()?, metadata.len(), path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_entries_are_found_and_damaged_ones_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(folder.path().join("store"));
        let (key, unused) = (Key::from_parts(&["ab", "c"]), Key::from_parts(&["a", "bc"]));
        assert_eq!(store.get(key), None);
        store.put(key, b"object").expect("a writable cache");
        assert_eq!(store.get(key).as_deref(), Some(&b"object"[..]));
        assert_eq!(store.get(unused), None);
        let mut bytes = fs::read(store.cache.path(&key.name())).expect("the file");
        bytes[2] ^= 1;
        fs::write(store.cache.path(&key.name()), &bytes).expect("a writable cache");
        assert_eq!(store.get(key), None);
        fs::write(store.cache.path(&key.name()), b"short").expect("a writable cache");
        assert_eq!(store.get(key), None);
    }

    #[test]
    fn trimming_removes_entries_above_the_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(folder.path().to_owned());
        for number in 0..8 {
            let key = Key::from_parts(&[&number.to_string()]);
            store.put(key, &[0; 68]).expect("a writable cache");
        }
        store.trim_to(300);
        let count = fs::read_dir(folder.path()).expect("the folder").count();
        assert_eq!(count, 3);
    }
}
