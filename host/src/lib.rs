//! Files, helper programs and libraries of the host.
//!
//! [`input`] opens every file that another program may have written, [`output`] writes results,
//! [`cache`] stores compiled code, [`child`] runs helper programs such as compilers, and [`shared_library`] opens
//! libraries at run time.

pub mod cache;
pub mod child;
pub mod input;
pub mod output;
pub mod shared_library;
