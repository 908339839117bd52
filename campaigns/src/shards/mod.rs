//! Campaigns in parts, on any number of machines that share a folder.
//!
//! Nobody locks anything there, and nobody changes what another has written. What is in a file depends
//! on its name alone, every file comes whole, and says itself whether it is right:
//!
//! ```text
//! plans/000000100000.json               what all parts have in common (plan.rs)
//! golden/SHA-256                        the fault-free run and what was counted in it (store.rs),
//!                                       and compiled kernels (code.rs)
//! shards/000000001000-000000002000.rows rows, with a checksum (file.rs)
//! looks/000000000500-of-000000100000.json
//!                                       what was known then, where a campaign ends when enough is
//!                                       (looks.rs)
//! attempts/3-of-200.TOKEN.json          who did what, for people (attempt.rs)
//! ```
//!
//! All of these files outlive the process that wrote them. [`ShardPlan::FORMAT`] is the version of plans,
//! attempts and looks; files of rows (file.rs) and golden runs (store.rs) have versions of their own.
//!
//! A part that is done twice has the same bytes twice; what is torn, or not yet seen from another
//! machine, is done again. A merge is the only thing with a lock: it writes the table that one worker
//! would have written, into a folder that may be the same.

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
