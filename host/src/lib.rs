//! Files and helper programs of the host.
//!
//! [`input`] opens every file that another program may have written, [`output`] writes results,
//! [`cache`] stores compiled code, and [`child`] runs helper programs such as compilers.

pub mod cache;
pub mod child;
pub mod input;
pub mod output;
