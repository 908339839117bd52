//! Shards of files with `vary`. Each variant has the folder of a sharded campaign, and a shard
//! executes its part of each variant. The common folder contains the list of variants and, after a
//! merge, the combined tables.

use super::error::ShardError;
use super::merge::{MergeOptions, Merged, merge};
use super::plan::ShardPlan;
use super::run::{ShardOptions, ShardReport, plan_shards, run_shard};
use super::status::{PartState, ShardsStatus, shards_status};
use crate::error::CampaignError;
use crate::results::folder::{self, FolderError};
use crate::results::lock::FolderLock;
use crate::run::injection_path::InjectionPath;
use crate::run::progress::Progress;
use crate::vary::{VariantList, Variants, remove_tables, write_tables};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Result of a shard of one variant.
#[derive(Debug)]
pub struct VariantShard {
    /// Name of the variant.
    pub name: String,
    /// Report or error of the shard.
    pub result: Result<ShardReport, CampaignError>,
}

/// Executes a part of each selected variant, in subfolders of the folder in `options`. Continues
/// with the next variant after an error.
///
/// # Errors
/// [`FolderError`] if the folder belongs to something else.
pub fn run_variant_shards(
    variants: &Variants,
    options: &ShardOptions,
    progress: &mut dyn Progress,
) -> Result<Vec<VariantShard>, CampaignError> {
    VariantList::new(variants).claim(&options.folder, false)?;
    let mut shards = Vec::new();
    for (variant, number) in variants.chosen().iter().zip(1..) {
        if variants.cancellation().is_stopped() {
            break;
        }
        progress.variant(&variant.name, number, variants.chosen().len());
        let folder = options.folder.join(&variant.name);
        let result =
            run_shard(&variant.campaign, &ShardOptions { folder, ..options.clone() }, progress);
        let result = result.map_err(|reason| variant.failed(&variants.dimensions, reason));
        shards.push(VariantShard { name: variant.name.clone(), result });
    }
    Ok(shards)
}

/// Writes the plan of each selected variant and executes its golden run.
///
/// # Errors
/// The first [`CampaignError`] of a variant.
pub(crate) fn plan_variant_shards(
    variants: &Variants,
    folder: &Path,
    path: Option<InjectionPath>,
    progress: &mut dyn Progress,
) -> Result<Vec<ShardPlan>, CampaignError> {
    VariantList::new(variants).claim(folder, false)?;
    let mut plans = Vec::new();
    for (variant, number) in variants.chosen().iter().zip(1..) {
        progress.variant(&variant.name, number, variants.chosen().len());
        let plan = plan_shards(&variant.campaign, &folder.join(&variant.name), path, progress);
        plans.push(plan.map_err(|reason| variant.failed(&variants.dimensions, reason))?);
    }
    Ok(plans)
}

/// Result of a merge of folders.
#[derive(Clone, Debug)]
pub enum MergedFolder {
    /// A merged campaign.
    Campaign(Box<Merged>),
    /// Merged variants.
    Variants {
        /// Names and results of the variants.
        variants: Vec<(String, Merged)>,
        /// Duration in seconds.
        seconds: f64,
    },
}

/// Merges the shards of a campaign, or those of each variant and then the tables of all variants.
/// The tables have the same bytes as those of an unsharded run. Several folders with variants must
/// have the same variants.
///
/// # Errors
/// As [`merge`].
pub fn merge_folder(options: &MergeOptions) -> Result<MergedFolder, CampaignError> {
    let Some(list) = common_list(&options.folders)? else {
        return merge(options).map(|merged| MergedFolder::Campaign(Box::new(merged)));
    };
    let clock = Instant::now();
    let lock = FolderLock::take_free(&options.out).map_err(FolderError::from)?;
    list.claim(&options.out, false)?;
    remove_tables(&lock)?;
    let mut variants = Vec::new();
    for variant in &list.variants {
        let within = |folder: &PathBuf| folder.join(&variant.name);
        let merged = merge(&MergeOptions {
            folders: options.folders.iter().map(within).collect(),
            out: within(&options.out),
            wait: options.wait.saturating_sub(clock.elapsed()),
        });
        variants.push((variant.name.clone(), merged?));
    }
    write_tables(&lock, &list)?;
    Ok(MergedFolder::Variants { variants, seconds: clock.elapsed().as_secs_f64() })
}

/// The list of variants of all folders; `None` if they are folders of campaigns.
fn common_list(folders: &[PathBuf]) -> Result<Option<VariantList>, CampaignError> {
    let mut first: Option<Option<VariantList>> = None;
    for path in folders {
        let list = VariantList::read(path)?;
        if first.get_or_insert_with(|| list.clone()) != &list {
            let difference = "its variants differ from those of the first folder".to_owned();
            return Err(ShardError::Other { path: path.clone(), difference }.into());
        }
    }
    Ok(first.flatten())
}

/// Status of a shared folder.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum FolderStatus {
    /// A campaign.
    Campaign(Box<ShardsStatus>),
    /// Variants.
    Variants(VariantsStatus),
}

/// Status of the variants in a folder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantsStatus {
    /// Name of the campaign.
    pub name: String,
    /// Names of the dimensions.
    pub dimensions: Vec<String>,
    /// Number of planned injections of the started variants.
    pub planned: u64,
    /// Number of injections whose rows are in the folder.
    pub done: u64,
    /// `true` if `results.csv` and `variants.csv` contain all variants.
    pub merged: bool,
    /// The variants, in order.
    pub variants: Vec<VariantStatus>,
}

/// Status of a variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantStatus {
    /// Name of the variant.
    pub variant: String,
    /// Value of each dimension.
    pub values: Vec<String>,
    /// Status of the campaign; `None` if no shard has started.
    pub status: Option<ShardsStatus>,
}

impl VariantsStatus {
    /// Number of parts of all variants in a state.
    pub fn count(&self, state: PartState) -> usize {
        let started = self.variants.iter().flat_map(|variant| &variant.status);
        started.map(|status| status.count(state)).sum()
    }
}

/// Reads the status of the campaign or the variants in a folder.
///
/// # Errors
/// As [`shards_status`].
pub fn folder_status(path: &Path) -> Result<FolderStatus, ShardError> {
    let Some(list) = VariantList::read(path)? else {
        return shards_status(path).map(|status| FolderStatus::Campaign(Box::new(status)));
    };
    let mut variants = Vec::new();
    for variant in list.variants {
        let status = match shards_status(&path.join(&variant.name)) {
            Ok(status) => Some(status),
            Err(ShardError::NoPlan { .. }) => None,
            Err(error) => return Err(error),
        };
        variants.push(VariantStatus { variant: variant.name, values: variant.values, status });
    }
    let started = || variants.iter().flat_map(|variant| &variant.status);
    let is_merged =
        |variant: &VariantStatus| variant.status.as_ref().is_some_and(|status| status.merged);
    Ok(FolderStatus::Variants(VariantsStatus {
        name: list.name,
        dimensions: list.dimensions,
        planned: started().fold(0, |sum, status| sum.saturating_add(status.planned)),
        done: started().fold(0, |sum, status| sum.saturating_add(status.done)),
        merged: path.join(folder::RESULTS).is_file() && variants.iter().all(is_merged),
        variants,
    }))
}
