//! Reports: one page of HTML, and tables, of what campaigns came to.
//!
//! The rows of a campaign are counted once, one after another, by all that they say; what is drawn
//! and written is made of those counts alone.

mod about;
mod aggregates;
mod chart;
mod export;
mod input;
mod key;
mod names;
pub(crate) mod page;
mod rows_of;
mod sources;
mod terminal;
mod workgroups;

pub use about::{About, ComparedOutput};
pub use aggregates::Aggregates;
pub use export::write_aggregates;
pub(crate) use input::read as read_table;
pub use page::{Reported, report_html};
pub use rows_of::RowsOf;
pub use sources::Sources;
