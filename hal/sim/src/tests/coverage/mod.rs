//! The book's table of instructions, and tests that no instruction is missing from it.

mod table;
mod walk;
mod widths;

use crate::translate::coverage::{Treatment, source, treatment};
