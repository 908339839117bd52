//! A device on which there is never room.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::Command;

/// Makes a device like `/dev/full`. Where this user may not make one, or not open one that lies there
/// (file systems that are mounted with `nodev`), there is nothing afterwards, and false is returned.
pub fn makes_full_device(path: &Path) -> bool {
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
