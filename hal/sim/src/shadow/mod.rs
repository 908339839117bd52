//! Marks on the bits of registers and LDS, and how they spread when instructions execute: bits that
//! nothing has written, or that no document settles.

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
pub use registers::{Shadow, stand_in};
pub use slot::{SlotSet, Slots};
