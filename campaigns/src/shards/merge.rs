//! Merging of shards into the table of an unsharded run.

use super::error::ShardError;
use super::layout::SharedFolder;
use super::plan::ShardPlan;
use super::rows::{RowParser, Rows, Shards};
use super::status::missing_text;
use crate::error::CampaignError;
use crate::results::folder::{self, FolderError, RESULTS};
use crate::results::lock::FolderLock;
use crate::results::record::{CampaignFacts, Counts, Host, Record, Status, Timings};
use crate::results::{line, write_columns, write_summary};
use flipwave_analysis::{CampaignMonitor, Look, Row, Summary, Tallies};
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Options of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeOptions {
    /// Folders with shards. Rows with the same seed form one campaign; the campaigns of several
    /// seeds follow one another.
    pub folders: Vec<PathBuf>,
    /// Results folder.
    pub out: PathBuf,
    /// Time to wait for shards that do not exist, or are not yet visible on this machine.
    pub wait: Duration,
}

/// Result of a merge.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The content of `run.json`.
    pub record: Record,
    /// The rates in `summary.csv`.
    pub summary: Summary,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Interval between two attempts to find all shards.
const PAUSE: Duration = Duration::from_millis(500);

/// Merges shards into `results.csv`, `summary.csv`, `rates.svg` and `run.json`. All but `run.json`
/// have the same bytes as in an unsharded run. The table is written as a whole or not at all.
///
/// # Errors
/// [`ShardError`], in particular [`ShardError::Missing`] if the campaign is not complete;
/// [`FolderError`].
pub fn merge(options: &MergeOptions) -> Result<Merged, CampaignError> {
    let clock = Instant::now();
    let mut failed_looks = BTreeMap::new();
    let campaigns = loop {
        match complete_campaigns(&options.folders, &mut failed_looks) {
            Err(ShardError::Missing { .. } | ShardError::NoPlan { .. })
                if clock.elapsed() < options.wait =>
            {
                std::thread::sleep(PAUSE);
            }
            campaigns => break campaigns?,
        }
    };
    let lock = FolderLock::take_free(&options.out).map_err(FolderError::from)?;
    folder::check_files(&options.out)?;
    let first = &campaigns[0].plan;
    if !options.folders.contains(&options.out) {
        folder::check(&options.out, &first.facts.campaign.content, first.facts.campaign.seed)?;
        folder::check_no_results(&options.out)?;
    }
    let mut design = first.facts.design.clone();
    // Several seeds may draw the same fault site.
    design.is_finite &= campaigns.len() == 1;
    let mut tallies = Tallies::new(design.clone());
    let mut done = Counts::default();
    let looks = write_table(&lock, &campaigns, |row| {
        tallies.add(row);
        done.add(row.outcome);
    })?;
    let summary = tallies.summary();
    write_summary(&lock, &first.facts.campaign.name, &summary)?;
    write_columns(&lock, first.results)?;
    let seconds = clock.elapsed().as_secs_f64();
    let record = Record {
        status: Status::Complete,
        error: None,
        facts: CampaignFacts { design, ..first.facts.clone() },
        host: Host::current(),
        workers: 1,
        planned: campaigns.iter().map(|campaign| campaign.plan.count).sum(),
        confidence: first.facts.design.confidence.probability(),
        looks,
        done,
        timings: Timings::default(),
        injections_per_second: 0.0,
    };
    record.write(&lock)?;
    Ok(Merged { record, summary, seconds })
}

/// Finds the campaigns in `folders`, one for each seed, and checks that all of them are complete.
/// `failed_looks` contains the number of looks at which each seed had not met its goal.
fn complete_campaigns(
    folders: &[PathBuf],
    failed_looks: &mut BTreeMap<u64, usize>,
) -> Result<Vec<Shards>, ShardError> {
    let mut campaigns: Vec<Shards> = Vec::new();
    for path in folders {
        let folder = SharedFolder::new(path);
        let plan = ShardPlan::latest(&folder)?;
        let plan = plan.ok_or_else(|| ShardError::NoPlan { path: path.clone() })?;
        if let Some(first) = campaigns.first()
            && let Some(difference) = first.plan.difference_of_space(&plan)
        {
            return Err(ShardError::Other { path: path.clone(), difference });
        }
        let shards = Shards::find(&folder, plan)?;
        let seed = shards.plan.facts.campaign.seed;
        match campaigns.iter_mut().find(|campaign| campaign.plan.facts.campaign.seed == seed) {
            Some(campaign) => {
                campaign.files.extend(shards.files);
                campaign.sort();
                if campaign.plan.count < shards.plan.count {
                    campaign.plan = shards.plan;
                }
            }
            None => campaigns.push(shards),
        }
    }
    for campaign in &campaigns {
        let missing = campaign.missing(0..campaign.plan.count);
        if missing.is_empty() || is_goal_met(campaign, failed_looks)? {
            continue;
        }
        let (path, missing) = (folders[0].clone(), missing_text(&missing));
        return Err(ShardError::Missing { path, missing });
    }
    Ok(campaigns)
}

/// Returns `true` if the contiguous rows from the first one meet the campaign's goal.
fn is_goal_met(
    campaign: &Shards,
    failed_looks: &mut BTreeMap<u64, usize>,
) -> Result<bool, ShardError> {
    let (plan, prefix) = (&campaign.plan, campaign.contiguous_rows());
    let Some(until) = &plan.until else { return Ok(false) };
    let looks = until.looks.partition_point(|size| *size <= prefix);
    if failed_looks.get(&plan.facts.campaign.seed).copied().unwrap_or(0) >= looks {
        return Ok(false);
    }
    let is_goal_met = campaign.monitor(prefix)?.is_goal_met();
    if !is_goal_met {
        failed_looks.insert(plan.facts.campaign.seed, looks);
    }
    Ok(is_goal_met)
}

/// Writes `results.csv` as a whole and calls `count` for each row. Returns the looks of the first
/// campaign.
fn write_table(
    lock: &FolderLock,
    campaigns: &[Shards],
    mut count: impl FnMut(&Row),
) -> Result<Vec<Look>, CampaignError> {
    let folder = lock.folder().map_err(FolderError::from)?;
    let path = folder.join(RESULTS);
    let failed = |reason| FolderError::Access { path: path.clone(), reason };
    let unfinished = flipwave_host::output::unfinished(folder).map_err(failed)?;
    let mut table = BufWriter::with_capacity(1 << 20, unfinished);
    let header = line(|csv| csv.write_record(Row::COLUMNS)).map_err(failed)?;
    table.write_all(&header).map_err(failed)?;
    let (mut offset, mut looks) = (0, None);
    for campaign in campaigns {
        let (mut rows, mut parser) = (Rows::new(campaign), RowParser::new());
        let mut monitor = campaign.plan.until.as_ref().map(|_| campaign.plan.monitor());
        let mut written = 0;
        while !monitor.as_ref().is_some_and(CampaignMonitor::is_goal_met)
            && let Some((file, bytes)) = rows.next()?
        {
            let row =
                parser.parse(bytes).map_err(|what| ShardError::Damaged { path: file, what })?;
            if let Some(monitor) = &mut monitor {
                monitor.add(&row);
            }
            written += 1;
            if offset == 0 {
                count(&row);
                table.write_all(bytes).map_err(failed)?;
            } else {
                // Indices of further seeds continue those of the previous ones.
                let row = Row { injection: offset + row.injection, ..row };
                count(&row);
                let bytes = line(|csv| csv.serialize(&row)).map_err(failed)?;
                table.write_all(&bytes).map_err(failed)?;
            }
        }
        rows.check_rest()?;
        offset += written;
        looks.get_or_insert_with(|| monitor.map_or(Vec::new(), |monitor| monitor.looks().to_vec()));
    }
    let unfinished = table.into_inner().map_err(|error| failed(error.into_error()))?;
    lock.folder().map_err(FolderError::from)?;
    flipwave_host::output::finish(unfinished, &path).map_err(failed)?;
    Ok(looks.unwrap_or_default())
}
