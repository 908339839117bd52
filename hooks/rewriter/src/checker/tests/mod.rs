//! Pairs of original and new code, and the results of checking them. Each rule is tested with a correct
//! pair, and with pairs that violate only this rule.

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
