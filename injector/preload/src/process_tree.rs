//! Enters each process of an application in the table of its process tree: programs when they
//! start, and processes that are forked from them.

use flipwave_process_tree::Table;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The table; `None` if there is none.
static TABLE: OnceLock<Option<Table>> = OnceLock::new();

/// Number of the last process with this memory that has entered itself: this process, or, just
/// after a fork, its parent.
static ENTERED: AtomicU32 = AtomicU32::new(0);

extern "C" fn start() {
    let Some(table) = TABLE.get_or_init(Table::from_environment) else { return };
    table.start_program();
    ENTERED.store(std::process::id(), Ordering::Relaxed);
    // SAFETY: `forked` makes system calls and writes to mapped memory, which is safe in the child
    // of a process with several threads.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
}

unsafe extern "C" fn forked() {
    let Some(Some(table)) = TABLE.get() else { return };
    // The parent may already have ended.
    let parent = ENTERED.swap(std::process::id(), Ordering::Relaxed);
    table.start_fork(parent);
}

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;
