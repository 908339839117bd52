//! The table of instructions in the book, and the proof that nothing is missing from it.

mod table;
mod walk;
mod widths;

use crate::translate::coverage::{Treatment, source, treatment};
