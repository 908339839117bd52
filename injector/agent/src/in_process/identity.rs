//! The identity of this process in the application's process tree.

use flipwave_process_tree::{ProcessPath, Program, Table};
use std::sync::{Arc, Mutex, PoisonError};

/// A process and its program in the application's process tree.
#[derive(Debug)]
pub struct Identity {
    /// The path in the process tree, which is the same in each run.
    pub path: ProcessPath,
    pid: u32,
    /// The entry in the table of processes, if there is a table.
    entry: Option<(Table, Program)>,
}

/// The identity of this process. A forked process inherits that of its parent.
static IDENTITY: Mutex<Option<Arc<Identity>>> = Mutex::new(None);

impl Identity {
    /// The identity of this process, determined at the first call.
    pub fn of_process() -> Arc<Identity> {
        let mut known = IDENTITY.lock().unwrap_or_else(PoisonError::into_inner);
        let identity = known.take().filter(|identity| identity.pid == std::process::id());
        Arc::clone(known.insert(identity.unwrap_or_else(|| Arc::new(Identity::find()))))
    }

    fn find() -> Identity {
        let table = Table::from_environment();
        let entry =
            table.and_then(|table| Some((table, table.open_program(table.current_slot()?))));
        let path = match entry {
            Some((table, program)) => table.path(program),
            None => ProcessPath { path: vec![0], ..ProcessPath::default() },
        };
        Identity { path, pid: std::process::id(), entry }
    }

    /// Returns `true` for the first program of the application.
    pub fn is_first(&self) -> bool {
        self.path == ProcessPath { path: vec![0], ..ProcessPath::default() }
    }

    /// Claims to be the target of the fault. Returns `true` for the first program that does.
    pub fn claim_target(&self) -> bool {
        self.entry.is_none_or(|(table, program)| table.claim_injection(program))
    }

    /// Claims the output of the application. Returns `true` for the first program that does.
    pub fn claim_output(&self) -> bool {
        self.entry.is_none_or(|(table, program)| table.claim_output(program))
    }
}

/// The program of this process and its arguments.
pub fn command() -> String {
    let words = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let words = words.strip_suffix(b"\0").unwrap_or(&words).split(|byte| *byte == 0);
    words.map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ")
}
