//! The `flipwave` program: argument parsing and printing, nothing else.
fn main() {}
