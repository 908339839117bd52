//! Reports on campaigns: an HTML page and tables.
//!
//! [`Aggregates`] reads the rows of a campaign once and counts them by all dimensions. The page and the
//! tables only use these counts.

mod aggregates;
mod campaign_info;
mod chart;
mod export;
mod input;
mod key;
mod line_label;
mod names;
pub(crate) mod page;
mod row_filter;
mod sources;
mod terminal;
mod workgroups;

pub use aggregates::Aggregates;
pub use campaign_info::{CampaignInfo, ComparedOutput};
pub use export::write_aggregates;
pub(crate) use input::read as read_table;
pub(crate) use line_label::line_label;
pub use page::{ReportedCampaign, report_html};
pub use row_filter::RowFilter;
pub use sources::Sources;
