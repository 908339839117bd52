//! Files and helper programs of the host.
//!
//! Every file that someone else may have written is opened by [`input`], every result is written by
//! [`output`], compiled code is kept by [`cache`], and helper programs such as compilers are run by
//! [`child`].

pub mod cache;
pub mod child;
pub mod input;
pub mod output;
