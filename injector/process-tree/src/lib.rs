//! The process tree of an application: a table in a file that all processes of the application map.
//!
//! Each process enters itself when it starts, by fork or by exec, with its parent and its number
//! among the parent's children in the order in which the parent started them. The number does not
//! depend on which child runs first: a process that enters itself counts the siblings that were
//! started before it, both those that have entered themselves and those that have not yet. A
//! process therefore has the same path in the tree in each run of an application that starts its
//! processes in the same order.
//!
//! Entering only makes system calls and does not allocate memory, as it also happens between fork
//! and exec.

mod path;
mod proc;
mod table;

pub use path::{ParseProcessPathError, ProcessPath};
pub use table::{Program, RANK_VARIABLES, Slot, TABLE_VARIABLE, Table};
