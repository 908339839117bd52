//! Running all variants of a file, one after another.

use super::folder::VariantList;
use super::table::{remove_tables, write_tables};
use super::{Variant, Variants};
use crate::error::CampaignError;
use crate::results::folder::{self, FolderError};
use crate::results::lock::FolderLock;
use crate::results::record::Status;
use crate::run::progress::Progress;
use crate::run::{Report, RunOptions, run};

/// What a run of variants came to.
#[derive(Debug)]
pub struct VariantsReport {
    /// The variants that were run to their end or to where they were interrupted, in their order.
    pub finished: Vec<FinishedVariant>,
    /// Why it ended before the last, if it did: the rows of those before stay.
    pub failure: Option<CampaignError>,
    /// Whether the tables of all variants are written.
    pub is_complete: bool,
}

/// A variant that was run.
#[derive(Debug)]
pub struct FinishedVariant {
    /// Its name.
    pub name: String,
    /// What it came to.
    pub report: Report,
}

/// Runs the variants that are asked for, each into a folder of its name in the folder of `options`; when
/// all of the file are done, the tables of all are written. It ends at the first that fails, and where
/// all runs are cancelled.
///
/// # Errors
/// [`CampaignError`] where none can begin.
pub fn run_variants(
    variants: &Variants,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<VariantsReport, CampaignError> {
    let lock = FolderLock::take(&options.folder, options.take_over).map_err(FolderError::from)?;
    let list = VariantList::of(variants);
    list.claim(&options.folder, options.force)?;
    let failed = |own: &Variant, reason| own.failed(&variants.dimensions, reason);
    if !options.force && !options.resume {
        for own in variants.chosen() {
            let free = folder::check_no_results(&options.folder.join(&own.name));
            free.map_err(|reason| failed(own, reason.into()))?;
        }
    }
    remove_tables(&lock)?;
    let mut report = VariantsReport { finished: Vec::new(), failure: None, is_complete: false };
    let count = variants.chosen().len();
    for (own, number) in variants.chosen().iter().zip(1..) {
        progress.variant(&own.name, number, count);
        let folder = options.folder.join(&own.name);
        match run(&own.campaign, &RunOptions { folder, ..options.clone() }, progress) {
            Ok(done) => {
                let status = done.record.status;
                report.finished.push(FinishedVariant { name: own.name.clone(), report: done });
                if status == Status::Interrupted {
                    return Ok(report);
                }
            }
            Err(reason) => {
                report.failure = Some(failed(own, reason));
                return Ok(report);
            }
        }
    }
    if count == variants.all.len() {
        write_tables(&lock, &list)?;
        report.is_complete = true;
    }
    Ok(report)
}
