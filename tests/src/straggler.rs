//! Processes that programs leave behind.

use std::path::{Path, PathBuf};

/// A process that a program starts and does not wait for: forked twice, in a session of its own.
pub struct Straggler {
    /// Has the process's number once it runs.
    file: PathBuf,
}

impl Straggler {
    /// One that leaves its number in a folder.
    pub fn new(folder: &Path) -> Straggler {
        Straggler { file: folder.join("straggler") }
    }

    /// The shell's command that starts it and waits until it runs. It has no double quotes.
    pub fn command(&self) -> String {
        let file = self.file.display();
        format!(
            "(setsid sh -c 'echo $$ > {file}.part; mv {file}.part {file}; exec sleep 600' &); \
             until [ -e {file} ]; do sleep 0.01; done"
        )
    }

    /// Whether it runs, or has run.
    pub fn has_started(&self) -> bool {
        self.file.exists()
    }

    /// Demands that it has run and runs no more; it may be started again then.
    #[track_caller]
    pub fn expect_gone(&self) {
        let number = std::fs::read_to_string(&self.file).expect("its number");
        std::fs::remove_file(&self.file).expect("removed");
        let number = number.trim();
        assert!(!Path::new("/proc").join(number).exists(), "process {number} is left");
    }
}
