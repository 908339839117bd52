//! A process that a program leaves behind.

use std::path::{Path, PathBuf};

/// A process that a program starts and does not wait for: forked twice, in a new session.
pub struct Straggler {
    /// File with the process ID, once the process runs.
    file: PathBuf,
}

impl Straggler {
    /// Creates a straggler that writes its process ID to a file in `folder`.
    pub fn new(folder: &Path) -> Straggler {
        Straggler { file: folder.join("straggler") }
    }

    /// Shell command that starts the process and waits until it runs. Contains no double quotes.
    pub fn command(&self) -> String {
        let file = self.file.display();
        format!(
            "(setsid sh -c 'echo $$ > {file}.part; mv {file}.part {file}; exec sleep 600' &); \
             until [ -e {file} ]; do sleep 0.01; done"
        )
    }

    /// Returns `true` once the process has started.
    pub fn has_started(&self) -> bool {
        self.file.exists()
    }

    /// Asserts that the process has run and ended. It may be started again afterwards.
    #[track_caller]
    pub fn expect_gone(&self) {
        let number = std::fs::read_to_string(&self.file).expect("its number");
        std::fs::remove_file(&self.file).expect("removed");
        let number = number.trim();
        assert!(!Path::new("/proc").join(number).exists(), "process {number} is left");
    }
}
