//! Pairs of original and new code, written side by side, and what the checker says of them. Each
//! rule has a pair that keeps it and pairs in which one thing is left out.

mod allocation;
mod chip_bugs;
mod control;
mod groups;
mod hazards;
mod pair;
mod registers;
mod trampolines;
mod waits;

use pair::Pair;
