//! Addresses of instructions.

use std::fmt;

/// The address of an instruction, in bytes: inside a code object the ELF virtual address, as
/// disassemblers print it; on a device the address where the code is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pc(pub u64);

impl fmt::Display for Pc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
