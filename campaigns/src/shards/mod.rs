//! Shards: parts of a campaign, on any number of machines that share a folder.
//!
//! Shards take no locks, and never change a file of another shard. The content of a file depends
//! only on its name. Files are published as a whole and detect damage:
//!
//! ```text
//! plans/000000100000.json               what all shards have in common (plan.rs)
//! golden/SHA-256                        golden run with profile (store.rs), and compiled kernels
//!                                       (code.rs)
//! shards/000000001000-000000002000.rows rows, with a checksum (file.rs)
//! looks/000000000500-of-000000100000.json
//!                                       interim look, if the campaign has a stopping rule (looks.rs)
//! attempts/3-of-200.TOKEN.json          attempts to execute a shard, for `flipwave status` (attempt.rs)
//! ```
//!
//! All of these files outlive the process that wrote them. [`ShardPlan::FORMAT`] is the version of
//! plans, attempts and looks; files of rows (file.rs) and golden runs (store.rs) have their own
//! versions.
//!
//! A part that is executed twice gives the same bytes. Files that are incomplete or not yet visible
//! on another machine are created again. Only a merge takes a lock: it writes the table of an
//! unsharded run, possibly into the same folder.

mod attempt;
mod code;
pub(crate) mod error;
mod file;
mod layout;
mod looks;
mod merge;
mod part;
mod plan;
mod rows;
mod run;
mod space;
mod status;
mod store;
mod variants;

pub use attempt::AttemptState;
pub use error::ShardError;
pub use merge::{MergeOptions, Merged, merge};
pub use part::Part;
pub use plan::ShardPlan;
pub(crate) use run::plan_shards;
pub use run::{ShardOptions, ShardReport, run_shard};
#[cfg(test)]
pub(crate) use space::sites;
pub use status::{PartState, PartStatus, ShardsStatus, shards_status};
pub(crate) use variants::plan_variant_shards;
pub use variants::{
    FolderStatus, MergedFolder, VariantShard, VariantStatus, VariantsStatus, folder_status,
    merge_folder, run_variant_shards,
};
