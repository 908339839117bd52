//! Shards become the table that one worker would have written.

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

/// How shards are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeOptions {
    /// The folders with the shards. Of more than one, rows of the same seed are of one campaign, and
    /// those of other seeds come after them.
    pub folders: Vec<PathBuf>,
    /// Where the table goes.
    pub out: PathBuf,
    /// How long is waited for shards that are not there, or not yet seen from here.
    pub wait: Duration,
}

/// What a merge came to.
#[derive(Clone, Debug)]
pub struct Merged {
    /// How it went, as in `run.json`.
    pub record: Record,
    /// Rates, as in `summary.csv`.
    pub summary: Summary,
    /// Seconds that it took.
    pub seconds: f64,
}

/// How long is waited between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// Merges shards into `results.csv`, with `summary.csv`, `rates.svg` and `run.json`: byte by byte what one
/// worker writes, but for `run.json`. The table is there whole or not at all.
///
/// # Errors
/// [`ShardError`], in particular [`ShardError::Missing`] of a campaign that is not done;
/// [`FolderError`].
pub fn merge(options: &MergeOptions) -> Result<Merged, CampaignError> {
    let clock = Instant::now();
    let mut looked = BTreeMap::new();
    let campaigns = loop {
        match campaigns(&options.folders, &mut looked) {
            Err(ShardError::Missing { .. } | ShardError::NoPlan { .. })
                if clock.elapsed() < options.wait =>
            {
                std::thread::sleep(PAUSE);
            }
            found => break found?,
        }
    };
    let lock = FolderLock::take(&options.out, false).map_err(FolderError::from)?;
    folder::check_files(&options.out)?;
    let first = &campaigns[0].plan;
    if !options.folders.contains(&options.out) {
        folder::check(&options.out, &first.facts.campaign.content, first.facts.campaign.seed)?;
        folder::check_no_results(&options.out)?;
    }
    let mut design = first.facts.design.clone();
    // Two seeds can have drawn the same place.
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
        host: Host::this(),
        workers: 1,
        planned: campaigns.iter().map(|own| own.plan.count).sum(),
        confidence: first.facts.design.confidence.probability(),
        looks,
        done,
        timings: Timings::default(),
        injections_per_second: 0.0,
    };
    record.write(&lock)?;
    Ok(Merged { record, summary, seconds })
}

/// The campaigns in some folders, one for each seed, if all of their rows are there that are needed.
/// `looked` says by seed how many looks were seen not to be enough.
fn campaigns(
    folders: &[PathBuf],
    looked: &mut BTreeMap<u64, usize>,
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
        let other = Shards::of(&folder, plan)?;
        let seed = other.plan.facts.campaign.seed;
        match campaigns.iter_mut().find(|own| own.plan.facts.campaign.seed == seed) {
            Some(own) => {
                own.files.extend(other.files);
                own.sort();
                if own.plan.count < other.plan.count {
                    own.plan = other.plan;
                }
            }
            None => campaigns.push(other),
        }
    }
    for own in &campaigns {
        let missing = own.missing(0..own.plan.count);
        if missing.is_empty() || is_enough(own, looked)? {
            continue;
        }
        let (path, missing) = (folders[0].clone(), missing_text(&missing));
        return Err(ShardError::Missing { path, missing });
    }
    Ok(campaigns)
}

/// Whether the rows that are there, from the first on, show enough.
fn is_enough(own: &Shards, looked: &mut BTreeMap<u64, usize>) -> Result<bool, ShardError> {
    let (plan, prefix) = (&own.plan, own.prefix());
    let Some(until) = &plan.until else { return Ok(false) };
    let looks = until.looks.partition_point(|size| *size <= prefix);
    if looked.get(&plan.facts.campaign.seed).copied().unwrap_or(0) >= looks {
        return Ok(false);
    }
    let is_enough = own.monitor(prefix)?.is_goal_met();
    if !is_enough {
        looked.insert(plan.facts.campaign.seed, looks);
    }
    Ok(is_enough)
}

/// Writes `results.csv`, whole: `count` gets each row. The looks of the first campaign.
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
    for own in campaigns {
        let (mut rows, mut parser) = (Rows::new(own), RowParser::new());
        let mut monitor = own.plan.until.as_ref().map(|_| own.plan.monitor());
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
                // Rows of another seed come after those before, with numbers of their own.
                let row = Row { index: offset + row.index, ..row };
                count(&row);
                let bytes = line(|csv| csv.serialize(&row)).map_err(failed)?;
                table.write_all(&bytes).map_err(failed)?;
            }
        }
        rows.check_rest()?;
        offset += written;
        looks.get_or_insert_with(|| monitor.map_or(Vec::new(), |own| own.looks().to_vec()));
    }
    let unfinished = table.into_inner().map_err(|error| failed(error.into_error()))?;
    lock.folder().map_err(FolderError::from)?;
    flipwave_host::output::finish(unfinished, &path).map_err(failed)?;
    Ok(looks.unwrap_or_default())
}
