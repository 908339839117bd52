//! Runs the variants of a file one after another.

use super::folder::VariantList;
use super::table::{remove_tables, write_tables};
use super::{Variant, Variants};
use crate::error::CampaignError;
use crate::results::folder::{self, FolderError};
use crate::results::lock::FolderLock;
use crate::results::record::Status;
use crate::run::progress::Progress;
use crate::run::{Report, RunOptions, run};

/// Result of running variants.
#[derive(Debug)]
pub struct VariantsReport {
    /// Variants that completed or were interrupted, in order.
    pub finished: Vec<FinishedVariant>,
    /// Error that ended the run early, if any. The rows of earlier variants are kept.
    pub failure: Option<CampaignError>,
    /// `true` if the combined tables are written.
    pub is_complete: bool,
}

/// A variant that completed or was interrupted.
#[derive(Debug)]
pub struct FinishedVariant {
    /// Name of the variant.
    pub name: String,
    /// Report of its campaign.
    pub report: Report,
}

/// Runs the selected variants. The results of each are in a folder with its name in the folder of
/// `options`. Writes the combined tables after all variants of the file. Stops at the first failure, and
/// on cancellation.
///
/// # Errors
/// [`CampaignError`] if no variant can be started.
pub fn run_variants(
    variants: &Variants,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<VariantsReport, CampaignError> {
    let lock = FolderLock::take(&options.folder, options.take_over).map_err(FolderError::from)?;
    let list = VariantList::new(variants);
    list.claim(&options.folder, options.force)?;
    let failed = |variant: &Variant, reason| variant.failed(&variants.dimensions, reason);
    if !options.force && !options.resume {
        for variant in variants.chosen() {
            let free = folder::check_no_results(&options.folder.join(&variant.name));
            free.map_err(|reason| failed(variant, reason.into()))?;
        }
    }
    remove_tables(&lock)?;
    let mut report = VariantsReport { finished: Vec::new(), failure: None, is_complete: false };
    let count = variants.chosen().len();
    for (variant, number) in variants.chosen().iter().zip(1..) {
        progress.variant(&variant.name, number, count);
        let folder = options.folder.join(&variant.name);
        match run(&variant.campaign, &RunOptions { folder, ..options.clone() }, progress) {
            Ok(done) => {
                let status = done.record.status;
                report.finished.push(FinishedVariant { name: variant.name.clone(), report: done });
                if status == Status::Interrupted {
                    return Ok(report);
                }
            }
            Err(reason) => {
                report.failure = Some(failed(variant, reason));
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
