//! A device file that is always full.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::Command;

/// Creates a device file like `/dev/full`. Returns `false`, and leaves no file, if the user has no
/// permission or the file system is mounted with `nodev`.
pub fn create_full_device(path: &Path) -> bool {
    let made = Command::new("mknod").arg(path).args(["c", "1", "7"]).status();
    if !made.is_ok_and(|status| status.success()) {
        return false;
    }
    let opens = OpenOptions::new().write(true).open(path).is_ok();
    if !opens {
        std::fs::remove_file(path).expect("removed");
    }
    opens
}
