//! Wave state: registers, execution properties, and progress. Independent of instructions.

pub mod copy;
mod joined;
pub mod level;
mod machine;
mod mode;
pub mod private;
mod registers;
mod rows;
mod state;

pub use joined::Joined;
pub use level::Level;
pub use machine::Machine;
pub use mode::Mode;
pub use registers::{LANES, Row, RowIndex, ScalarIndex, blend, mask_of};
pub use state::{Status, Wave};
