//! Reading and validation of campaign files.

pub mod campaign;
pub mod check;
pub mod check_arguments;
pub mod check_launches;
pub mod compiler_options;
pub mod context;
mod detector;
pub mod device;
pub mod element;
pub mod failures;
pub mod fault_tables;
pub mod faults;
pub mod json_schema;
pub mod kernels;
pub mod location;
pub mod number;
pub mod read;
pub mod schema;
pub mod yaml;
