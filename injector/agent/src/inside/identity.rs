//! Which process of the application this is.

use flipwave_process_tree::{ProcessPath, Program, Table};
use std::sync::{Arc, Mutex, PoisonError};

/// This process in the tree of the application, with the program that runs in it.
#[derive(Debug)]
pub struct Identity {
    /// Its place, which is the same in each run.
    pub place: ProcessPath,
    pid: u32,
    /// Its entry in the table of processes, if there is one.
    entry: Option<(Table, Program)>,
}

/// The identity of this process, or of the one from which it was forked.
static IDENTITY: Mutex<Option<Arc<Identity>>> = Mutex::new(None);

impl Identity {
    /// The identity of this process, which is found when somebody asks for the first time.
    pub fn of_process() -> Arc<Identity> {
        let mut known = IDENTITY.lock().unwrap_or_else(PoisonError::into_inner);
        let own = known.take().filter(|own| own.pid == std::process::id());
        Arc::clone(known.insert(own.unwrap_or_else(|| Arc::new(Identity::find()))))
    }

    fn find() -> Identity {
        let table = Table::from_environment();
        let entry =
            table.and_then(|table| Some((table, table.open_program(table.current_slot()?))));
        let place = match entry {
            Some((table, program)) => table.path(program),
            None => ProcessPath { path: vec![0], ..ProcessPath::default() },
        };
        Identity { place, pid: std::process::id(), entry }
    }

    /// Whether this is the program that was started first.
    pub fn is_first(&self) -> bool {
        self.place == ProcessPath { path: vec![0], ..ProcessPath::default() }
    }

    /// Whether this is the program that is struck, of all that may be: the first that asks is.
    pub fn is_struck(&self) -> bool {
        self.entry.is_none_or(|(table, program)| table.claim_injection(program))
    }

    /// Whether this is the program that writes to the output of the application: the first that
    /// asks is.
    pub fn is_writer(&self) -> bool {
        self.entry.is_none_or(|(table, program)| table.claim_output(program))
    }
}

/// The program of this process and its arguments.
pub fn command() -> String {
    let words = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let words = words.strip_suffix(b"\0").unwrap_or(&words).split(|byte| *byte == 0);
    words.map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ")
}
