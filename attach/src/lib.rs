//! What runs inside of an application, and how it gets there.

mod inside;
pub mod session;
