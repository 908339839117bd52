//! The strict level: each rule fires where it is broken and nowhere else, and what compilers emit
//! breaks none.

mod clean;
mod deletion;
mod report;
mod rules;
