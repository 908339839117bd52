//! The process tree of an application: a table in a file that all of its processes map.
//!
//! Each process enters itself when it starts, be it by fork or by exec, with its parent and its
//! number among the children of that parent, in the order in which the parent started them. Numbers
//! do not depend on which child runs first: a process that enters itself counts the siblings that
//! were born before it, those that have entered themselves and those that have not come to it. So a
//! process has the same place in the tree in each run of an application that starts its processes in
//! the same order.
//!
//! Joining makes system calls and takes no memory: it is done between fork and exec, too.

mod place;
mod proc;
mod table;

pub use place::{ParsePlaceError, Place};
pub use table::{Program, RANKS, Slot, Table, VARIABLE};
