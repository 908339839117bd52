//! What the compiler made, kept under a digest of all it was made from.

use super::HookError;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fmt::Write;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A folder of files whose names are digests of what they were made from.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The folder that the environment names (`FLIPWAVE_CACHE`, else XDG's base directories).
    pub(crate) fn find() -> Cache {
        Cache { folder: cache_folder() }
    }

    /// Another folder.
    #[cfg(test)]
    pub(crate) fn at(folder: PathBuf) -> Cache {
        Cache { folder }
    }

    /// The file named `name`, which `make` makes the first time.
    ///
    /// # Errors
    /// [`HookError::Cache`], and those of `make`.
    pub(crate) fn get(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<Vec<u8>, HookError>,
    ) -> Result<Vec<u8>, HookError> {
        let path = self.folder.join(name);
        match std::fs::read(&path) {
            Ok(bytes) => return Ok(bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(reason) => return Err(HookError::Cache { path, reason }),
        }
        let bytes = make()?;
        self.write(&path, &bytes).map_err(|reason| HookError::Cache { path, reason })?;
        Ok(bytes)
    }

    /// Path of a file named `name` that holds `bytes`.
    ///
    /// # Errors
    /// [`HookError::Cache`].
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, HookError> {
        let path = self.folder.join(name);
        if std::fs::read(&path).is_ok_and(|kept| kept == bytes) {
            return Ok(path);
        }
        match self.write(&path, bytes) {
            Ok(()) => Ok(path),
            Err(reason) => Err(HookError::Cache { path, reason }),
        }
    }

    /// Written beside and renamed: no other run ever sees half a file.
    fn write(&self, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
        let folder = path.parent().unwrap_or(&self.folder);
        std::fs::create_dir_all(folder)?;
        let unfinished = tempfile::NamedTempFile::new_in(folder)?;
        std::fs::write(unfinished.path(), bytes)?;
        unfinished.persist(path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// A name for what is made from `parts`: their digest in hexadecimal.
pub(crate) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The folder for what is made once and kept: `FLIPWAVE_CACHE`, or `flipwave` in the user's cache
/// folder.
pub fn cache_folder() -> PathBuf {
    folder(|name| std::env::var_os(name))
}

fn folder(variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let folder = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("FLIPWAVE_CACHE")
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("flipwave")))
        .or_else(|| folder("HOME").map(|home| home.join(".cache/flipwave")))
        .unwrap_or_else(|| std::env::temp_dir().join("flipwave-cache"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_is_not_made_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(folder.path().join("new"));
        assert_eq!(cache.get("a", || Ok(vec![1])).expect("made"), [1]);
        assert_eq!(cache.get("a", || panic!("made twice")).expect("kept"), [1]);
        assert_eq!(cache.get("b", || Ok(vec![2])).expect("made"), [2]);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named_with_what_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        std::fs::write(&file, b"").expect("written");
        let error = Cache::at(file).get("a", || Ok(vec![1])).expect_err("no folder");
        assert!(error.to_string().contains("FLIPWAVE_CACHE"), "{error}");
    }

    #[test]
    fn the_cache_follows_the_environment() {
        let environment = |set: &'static [(&str, &str)]| {
            folder(move |name| {
                set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
            })
        };
        assert_eq!(environment(&[("HOME", "/h")]), Path::new("/h/.cache/flipwave"));
        assert_eq!(
            environment(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")]),
            Path::new("/x/flipwave")
        );
        assert_eq!(environment(&[("FLIPWAVE_CACHE", "/f"), ("HOME", "/h")]), Path::new("/f"));
    }

    #[test]
    fn parts_that_join_to_the_same_text_have_different_digests() {
        let of = |parts: &[&str]| digest(parts.iter().map(|part| part.as_bytes()));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
    }
}
