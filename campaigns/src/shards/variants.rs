//! Shards of files with `vary`. The folder of each variant is that of a campaign in shards, and a shard does
//! its part of all of them; the folder of all has nothing but the list of variants, and after a merge the
//! tables of all.

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

/// A part of a variant that was run.
#[derive(Debug)]
pub struct VariantShard {
    /// The variant.
    pub name: String,
    /// What came of its part.
    pub result: Result<ShardReport, CampaignError>,
}

/// Runs a part of each variant that is asked for, into folders in that of `options`. One that fails does
/// not keep the others from theirs.
///
/// # Errors
/// [`FolderError`] where the folder is that of something else.
pub fn run_variant_shards(
    variants: &Variants,
    options: &ShardOptions,
    progress: &mut dyn Progress,
) -> Result<Vec<VariantShard>, CampaignError> {
    VariantList::new(variants).claim(&options.folder, false)?;
    let mut shards = Vec::new();
    for (own, number) in variants.chosen().iter().zip(1..) {
        if variants.cancellation().is_stopped() {
            break;
        }
        progress.variant(&own.name, number, variants.chosen().len());
        let folder = options.folder.join(&own.name);
        let result =
            run_shard(&own.campaign, &ShardOptions { folder, ..options.clone() }, progress);
        let result = result.map_err(|reason| own.failed(&variants.dimensions, reason));
        shards.push(VariantShard { name: own.name.clone(), result });
    }
    Ok(shards)
}

/// Plans each variant that is asked for, and runs it without a fault.
///
/// # Errors
/// [`CampaignError`] of the first that cannot be run.
pub(crate) fn plan_variant_shards(
    variants: &Variants,
    folder: &Path,
    path: Option<InjectionPath>,
    progress: &mut dyn Progress,
) -> Result<Vec<ShardPlan>, CampaignError> {
    VariantList::new(variants).claim(folder, false)?;
    let mut plans = Vec::new();
    for (own, number) in variants.chosen().iter().zip(1..) {
        progress.variant(&own.name, number, variants.chosen().len());
        let plan = plan_shards(&own.campaign, &folder.join(&own.name), path, progress);
        plans.push(plan.map_err(|reason| own.failed(&variants.dimensions, reason))?);
    }
    Ok(plans)
}

/// What a merge of folders came to.
#[derive(Clone, Debug)]
pub enum MergedFolder {
    /// Of a campaign.
    Campaign(Box<Merged>),
    /// Of variants.
    Variants {
        /// Each by its name.
        variants: Vec<(String, Merged)>,
        /// Seconds that it took.
        seconds: f64,
    },
}

/// Merges shards of a campaign, or those of each variant and then the tables of all: byte by byte what one
/// worker writes. Of more than one folder with variants, all have the same ones.
///
/// # Errors
/// As [`merge`].
pub fn merge_folder(options: &MergeOptions) -> Result<MergedFolder, CampaignError> {
    let Some(list) = common_list(&options.folders)? else {
        return merge(options).map(|merged| MergedFolder::Campaign(Box::new(merged)));
    };
    let clock = Instant::now();
    let lock = FolderLock::take(&options.out, false).map_err(FolderError::from)?;
    list.claim(&options.out, false)?;
    remove_tables(&lock)?;
    let mut variants = Vec::new();
    for own in &list.variants {
        let within = |folder: &PathBuf| folder.join(&own.name);
        let merged = merge(&MergeOptions {
            folders: options.folders.iter().map(within).collect(),
            out: within(&options.out),
            wait: options.wait.saturating_sub(clock.elapsed()),
        });
        variants.push((own.name.clone(), merged?));
    }
    write_tables(&lock, &list)?;
    Ok(MergedFolder::Variants { variants, seconds: clock.elapsed().as_secs_f64() })
}

/// The variants of some folders; nothing where these are folders of campaigns.
fn common_list(folders: &[PathBuf]) -> Result<Option<VariantList>, CampaignError> {
    let mut first: Option<Option<VariantList>> = None;
    for path in folders {
        let list = VariantList::read(path)?;
        if first.get_or_insert_with(|| list.clone()) != &list {
            let difference = "it has other variants than the first folder".to_owned();
            return Err(ShardError::Other { path: path.clone(), difference }.into());
        }
    }
    Ok(first.flatten())
}

/// How far what is in a folder is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum FolderStatus {
    /// A campaign.
    Campaign(Box<ShardsStatus>),
    /// Variants.
    Variants(VariantsStatus),
}

/// How far all variants are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantsStatus {
    /// The campaign's name.
    pub name: String,
    /// What varies.
    pub dimensions: Vec<String>,
    /// Injections planned, of the variants that somebody has begun.
    pub planned: u64,
    /// Injections whose rows are in the folder.
    pub done: u64,
    /// Whether `results.csv` and `variants.csv` are those of all variants.
    pub merged: bool,
    /// The variants, in their order.
    pub variants: Vec<VariantStatus>,
}

/// How far a variant is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantStatus {
    /// Its name.
    pub variant: String,
    /// The value of each dimension.
    pub values: Vec<String>,
    /// How far it is; nothing of one of which no shard was begun.
    pub status: Option<ShardsStatus>,
}

impl VariantsStatus {
    /// How many parts of all variants are like this.
    pub fn count(&self, state: PartState) -> usize {
        self.variants.iter().flat_map(|own| &own.status).map(|own| own.count(state)).sum()
    }
}

/// How far the campaign or the variants in a folder are.
///
/// # Errors
/// As [`shards_status`].
pub fn folder_status(path: &Path) -> Result<FolderStatus, ShardError> {
    let Some(list) = VariantList::read(path)? else {
        return shards_status(path).map(|own| FolderStatus::Campaign(Box::new(own)));
    };
    let mut variants = Vec::new();
    for own in list.variants {
        let status = match shards_status(&path.join(&own.name)) {
            Ok(status) => Some(status),
            Err(ShardError::NoPlan { .. }) => None,
            Err(error) => return Err(error),
        };
        variants.push(VariantStatus { variant: own.name, values: own.values, status });
    }
    let known = || variants.iter().flat_map(|own| &own.status);
    let is_merged = |own: &VariantStatus| own.status.as_ref().is_some_and(|own| own.merged);
    Ok(FolderStatus::Variants(VariantsStatus {
        name: list.name,
        dimensions: list.dimensions,
        planned: known().fold(0, |sum, own| sum.saturating_add(own.planned)),
        done: known().fold(0, |sum, own| sum.saturating_add(own.done)),
        merged: path.join(folder::RESULTS).is_file() && variants.iter().all(is_merged),
        variants,
    }))
}
