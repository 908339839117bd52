//! Marks on the bits of registers and memory, and their propagation through executed instructions.
//! Marked bits are unwritten, or not settled by any document.

mod decision;
mod lds;
mod memory;
mod named;
mod registers;
mod slot;
pub mod vector_memory;

pub use decision::{Decision, Purpose, decided_by, register};
pub use lds::{LdsMarks, destination_words};
pub use memory::MarkedMemory;
pub use named::Named;
pub use registers::{Shadow, copy_to_ghost};
pub use slot::{SlotSet, Slots};
