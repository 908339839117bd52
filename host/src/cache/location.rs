//! Where the cache is.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::Permissions;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The folder of this process alone, where the user has none.
static PRIVATE: Mutex<Option<PathBuf>> = Mutex::new(None);

/// The folder for what is made once and kept: `FLIPWAVE_CACHE`, or `flipwave` in the user's cache
/// folder. A user without a home folder has one of this process, which
/// [`remove_private_folder`] removes: under a name that others know in a folder that they share, they
/// could have put files there.
pub fn cache_folder() -> PathBuf {
    named(|name| std::env::var_os(name), home).unwrap_or_else(private)
}

fn named(
    variable: impl Fn(&str) -> Option<OsString>,
    home: impl Fn() -> Option<PathBuf>,
) -> Option<PathBuf> {
    let folder = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("FLIPWAVE_CACHE")
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("flipwave")))
        .or_else(|| folder("HOME").or_else(home).map(|home| home.join(".cache/flipwave")))
}

/// The home folder in the list of users.
fn home() -> Option<PathBuf> {
    let mut text = vec![0; 1 << 14];
    let (mut entry, mut found) = (MaybeUninit::uninit(), std::ptr::null_mut());
    // SAFETY: the entry and the text have room for what is written to them, and outlive its use.
    let home = unsafe {
        let user = libc::geteuid();
        libc::getpwuid_r(user, entry.as_mut_ptr(), text.as_mut_ptr(), text.len(), &raw mut found);
        if found.is_null() || (*found).pw_dir.is_null() {
            return None;
        }
        CStr::from_ptr((*found).pw_dir)
    };
    let home = Path::new(OsStr::from_bytes(home.to_bytes()));
    (home.is_absolute() && home.is_dir()).then(|| home.to_owned())
}

fn private() -> PathBuf {
    let mut private = PRIVATE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(folder) = &*private {
        return folder.clone();
    }
    // For the user alone, under a name that nobody can know beforehand.
    let mode = Permissions::from_mode(0o700);
    match tempfile::Builder::new().prefix("flipwave-cache-").permissions(mode).tempdir() {
        Ok(folder) => private.insert(folder.keep()).clone(),
        // Nothing can be kept here, as whoever tries reports with what to do.
        Err(_) => PathBuf::from("/dev/null/flipwave"),
    }
}

/// Removes the folder of this process alone, if there is one.
pub fn remove_private_folder() {
    let folder = PRIVATE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(folder) = folder {
        // What cannot be removed stays; it is nobody else's.
        let _ = std::fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_cache_follows_the_environment_and_then_the_list_of_users() {
        let found = |set: &'static [(&str, &str)], home: Option<&'static str>| {
            let value = |name: &str| set.iter().find(|(key, _)| *key == name).map(|own| own.1);
            named(|name| value(name).map(OsString::from), || home.map(PathBuf::from))
        };
        for (set, home, expected) in [
            (&[("HOME", "/h")][..], None, Some("/h/.cache/flipwave")),
            (&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")], None, Some("/x/flipwave")),
            (&[("FLIPWAVE_CACHE", "/f"), ("HOME", "/h")], None, Some("/f")),
            (&[("HOME", "")], Some("/u"), Some("/u/.cache/flipwave")),
            (&[], None, None),
        ] {
            assert_eq!(found(set, home).as_deref(), expected.map(Path::new), "{set:?}");
        }
    }

    #[test]
    fn without_a_home_the_folder_is_this_process_s_alone() {
        let folder = private();
        assert_eq!(private(), folder, "one for the process");
        let found = std::fs::symlink_metadata(&folder).expect("a folder");
        assert_eq!((found.mode() & 0o777, found.is_dir()), (0o700, true));
        remove_private_folder();
        assert!(!folder.exists());
        let other = private();
        assert_ne!(other, folder, "a name that nobody can know");
        remove_private_folder();
    }
}
