//! Location of the cache.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::Permissions;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The private folder of this process, for users without a home folder.
static PRIVATE: Mutex<Option<PathBuf>> = Mutex::new(None);

/// The folder for cached files: `FLIPWAVE_CACHE`, or `flipwave` in the user's cache folder. For a
/// user without a home folder, a private folder of this process, which [`remove_private_folder`]
/// removes: in a shared folder such as `/tmp`, other users could put files under a known name.
pub fn cache_folder() -> PathBuf {
    user_folder(|name| std::env::var_os(name), home).unwrap_or_else(private_folder)
}

/// The folder that the environment defines, or the one in the user's home folder.
fn user_folder(
    variable: impl Fn(&str) -> Option<OsString>,
    home: impl Fn() -> Option<PathBuf>,
) -> Option<PathBuf> {
    let folder = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("FLIPWAVE_CACHE")
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("flipwave")))
        .or_else(|| folder("HOME").or_else(home).map(|home| home.join(".cache/flipwave")))
}

/// The home folder in the password database.
fn home() -> Option<PathBuf> {
    let mut text = vec![0; 1 << 14];
    let (mut entry, mut found) = (MaybeUninit::uninit(), std::ptr::null_mut());
    // SAFETY: at most the whole entry and text are written; both outlive the use of the result.
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

/// The private folder of this process, created on the first call.
fn private_folder() -> PathBuf {
    let mut private = PRIVATE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(folder) = &*private {
        return folder.clone();
    }
    // Accessible only to the user, with an unpredictable name.
    let mode = Permissions::from_mode(0o700);
    match tempfile::Builder::new().prefix("flipwave-cache-").permissions(mode).tempdir() {
        Ok(folder) => private.insert(folder.keep()).clone(),
        // Nothing can be stored there. Callers report that, and what to do.
        Err(_) => PathBuf::from("/dev/null/flipwave"),
    }
}

/// Removes the private folder of this process, if it was created.
pub fn remove_private_folder() {
    let folder = PRIVATE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(folder) = folder {
        // Files that cannot be removed stay; other users cannot access them.
        let _ = std::fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_environment_comes_before_the_password_database() {
        let found = |set: &'static [(&str, &str)], home: Option<&'static str>| {
            let value =
                |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
            user_folder(|name| value(name).map(OsString::from), || home.map(PathBuf::from))
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
    fn the_private_folder_is_accessible_only_to_the_user() {
        let folder = private_folder();
        assert_eq!(private_folder(), folder, "one per process");
        let found = std::fs::symlink_metadata(&folder).expect("a folder");
        assert_eq!((found.mode() & 0o777, found.is_dir()), (0o700, true));
        remove_private_folder();
        assert!(!folder.exists());
        assert_ne!(private_folder(), folder, "an unpredictable name");
        remove_private_folder();
    }
}
