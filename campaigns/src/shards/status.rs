//! Status of a sharded campaign, read from its files: completed and missing rows, and attempts.

use super::attempt::{Attempt, AttemptState};
use super::error::ShardError;
use super::file::complete_ranges;
use super::layout::SharedFolder;
use super::looks;
use super::part::{Part, gaps};
use super::plan::ShardPlan;
use crate::results::folder::{FolderError, RECORD};
use crate::results::lock::Owner;
use crate::results::record::CampaignIdentity;
use flipwave_analysis::Look;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// Status of a sharded campaign.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShardsStatus {
    /// The campaign.
    pub campaign: CampaignIdentity,
    /// Number of planned injections; that of the last look if it met the goal.
    pub planned: u64,
    /// Number of injections whose rows are in the folder.
    pub done: u64,
    /// Number of files of rows.
    pub files: u64,
    /// Ranges of indices without a row.
    pub missing: Vec<Range<u64>>,
    /// Rows per second, from the start of the first attempt to the last update of any attempt;
    /// `None` if the times are equal.
    pub rows_per_second: Option<f64>,
    /// Largest time in seconds from the start of an attempt to its first injection.
    pub longest_start_seconds: f64,
    /// `true` if `results.csv` contains all rows.
    pub merged: bool,
    /// The interim looks so far, if the campaign has a stopping rule.
    pub looks: Vec<Look>,
    /// The started parts, in order.
    pub parts: Vec<PartStatus>,
}

/// Status of a part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartStatus {
    /// The part as given by the user.
    pub part: String,
    /// State of the part.
    pub state: PartState,
    /// Number of attempts.
    pub attempts: u64,
    /// Number of failed attempts.
    pub failures: u64,
    /// Number of attempts whose process ended without recording an end.
    pub lost: u64,
    /// Host of the last attempt.
    pub host: String,
    /// Process of the last attempt.
    pub process: i32,
    /// Start of the last attempt, in UTC.
    pub since: String,
    /// Number of injections that the last attempt has completed.
    pub done: u64,
    /// Error message of the last failed attempt.
    pub error: Option<String>,
}

/// State of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartState {
    /// All of its rows exist.
    Done,
    /// A process is executing it.
    Running,
    /// It was cancelled and can be continued.
    Interrupted,
    /// Its process was killed, or its machine failed.
    Lost,
    /// It failed.
    Failed,
}

impl ShardsStatus {
    /// Number of parts in a state.
    pub fn count(&self, state: PartState) -> usize {
        self.parts.iter().filter(|part| part.state == state).count()
    }
}

/// Reads the status of the campaign in a folder.
///
/// # Errors
/// [`ShardError::NoPlan`] without a campaign, [`ShardError::Folder`].
pub fn shards_status(path: &Path) -> Result<ShardsStatus, ShardError> {
    let folder = SharedFolder::new(path);
    let plan = ShardPlan::latest(&folder)?;
    let plan = plan.ok_or_else(|| ShardError::NoPlan { path: path.to_owned() })?;
    let observer =
        Owner::current().map_err(|reason| FolderError::Unread { path: path.into(), reason })?;
    let ranges = complete_ranges(&folder)?;
    let attempts = Attempt::read_all(&folder)?;
    let looks = looks::published(&folder, &plan);
    let at_goal = looks.last().filter(|look| look.is_goal_met()).map(|look| look.injections);
    let planned = at_goal.unwrap_or(plan.count);
    let start_seconds = attempts.iter().map(|attempt| attempt.start_seconds);
    let missing = gaps(0..planned, ranges.iter().cloned());
    let length = |range: &Range<u64>| range.end - range.start;
    Ok(ShardsStatus {
        done: planned - missing.iter().map(length).sum::<u64>(),
        files: ranges.len() as u64,
        rows_per_second: rate(&attempts),
        longest_start_seconds: start_seconds.fold(0.0, f64::max),
        merged: is_merged(path, planned),
        parts: parts(&attempts, &missing, &plan, &observer),
        planned,
        looks,
        campaign: plan.facts.campaign,
        missing,
    })
}

/// Summarizes attempts by part, ordered by their first index.
fn parts(
    attempts: &[Attempt],
    missing: &[Range<u64>],
    plan: &ShardPlan,
    observer: &Owner,
) -> Vec<PartStatus> {
    let stages = plan.stages();
    let mut by_part: BTreeMap<(u64, u64, &str), Vec<&Attempt>> = BTreeMap::new();
    let ranges = |part: &str| part.parse().map(|part: Part| part.indices_by_stage(&stages));
    for attempt in attempts {
        let Ok(ranges) = ranges(&attempt.part) else { continue };
        let first = ranges.first().map_or(u64::MAX, |range| range.start);
        let end = ranges.last().map_or(u64::MAX, |range| range.end);
        by_part.entry((first, end, &attempt.part)).or_default().push(attempt);
    }
    let status = |((.., part), all): ((u64, u64, &str), Vec<&Attempt>)| {
        let last = all.last()?;
        let ranges = ranges(part).ok()?;
        let overlaps =
            |gap: &Range<u64>, range: &Range<u64>| gap.start < range.end && range.start < gap.end;
        let is_complete =
            !missing.iter().any(|gap| ranges.iter().any(|range| overlaps(gap, range)));
        let is_lost = |attempt: &&&Attempt| {
            attempt.state == AttemptState::Running && !attempt.is_running(observer)
        };
        let lost = all.iter().filter(is_lost).count() as u64;
        let failed = |attempt: &&&Attempt| attempt.state == AttemptState::Failed;
        let state = match last.state {
            _ if is_complete => PartState::Done,
            _ if all.iter().any(|attempt| attempt.is_running(observer)) => PartState::Running,
            AttemptState::Failed => PartState::Failed,
            // The rows of a completed part may have been removed.
            AttemptState::Interrupted | AttemptState::Done => PartState::Interrupted,
            AttemptState::Running => PartState::Lost,
        };
        Some(PartStatus {
            part: part.to_owned(),
            state,
            attempts: all.len() as u64,
            failures: all.iter().filter(failed).count() as u64,
            lost,
            host: last.owner.host.clone(),
            process: last.owner.process,
            since: last.owner.since.clone(),
            done: last.done,
            error: all.iter().rev().find_map(|attempt| attempt.error.clone()),
        })
    };
    by_part.into_iter().filter_map(status).collect()
}

/// Rows per second of all attempts, from the start of the first to the last update.
fn rate(attempts: &[Attempt]) -> Option<f64> {
    let first = attempts.iter().map(|attempt| attempt.began).min()?;
    let last = attempts.iter().map(|attempt| attempt.seen).max()?;
    let rows: u64 = attempts.iter().map(|attempt| attempt.done).sum();
    (last > first).then(|| rows as f64 / (last - first) as f64)
}

fn is_merged(path: &Path, count: u64) -> bool {
    let text = flipwave_host::input::read(&path.join(RECORD), flipwave_host::input::RECORD)
        .unwrap_or_default();
    let record: Value = serde_json::from_slice(&text).unwrap_or_default();
    let counts = record["done"].as_object().into_iter().flatten();
    let done: u64 = counts.filter_map(|(_, count)| count.as_u64()).sum();
    record["status"] == "complete" && done == count
}

/// Lists ranges of injections for messages; only the first few of many.
pub(super) fn missing_text(missing: &[Range<u64>]) -> String {
    const SHOWN: usize = 5;
    let text = |range: &Range<u64>| format!("{}..{}", range.start, range.end);
    let shown: Vec<String> = missing.iter().take(SHOWN).map(text).collect();
    let more = missing.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more ranges") } else { String::new() };
    shown.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format_tests::{check_json, identity, look};
    use crate::shards::variants::{FolderStatus, VariantStatus, VariantsStatus};

    fn status() -> ShardsStatus {
        let part = PartStatus {
            part: "3/200".to_owned(),
            state: PartState::Lost,
            attempts: 3,
            failures: 1,
            lost: 1,
            host: "node17".to_owned(),
            process: 4711,
            since: "2026-11-22T06:35:44Z".to_owned(),
            done: 5,
            error: Some("no memory".to_owned()),
        };
        ShardsStatus {
            campaign: identity(),
            planned: 5000,
            done: 4975,
            files: 199,
            missing: std::iter::once(50..75).collect(),
            rows_per_second: Some(12.5),
            longest_start_seconds: 0.5,
            merged: false,
            looks: vec![look()],
            parts: vec![part],
        }
    }

    #[test]
    fn serialized_status_is_fixed() {
        check_json("status.json", &FolderStatus::Campaign(Box::new(status())));
        let variant = VariantStatus {
            variant: "size=small".to_owned(),
            values: vec!["small".to_owned()],
            status: None,
        };
        let variants = VariantsStatus {
            name: "add".to_owned(),
            dimensions: vec!["size".to_owned()],
            planned: 10,
            done: 5,
            merged: true,
            variants: vec![variant],
        };
        let text = serde_json::to_string(&FolderStatus::Variants(variants)).expect("JSON");
        assert_eq!(
            text,
            "{\"name\":\"add\",\"dimensions\":[\"size\"],\"planned\":10,\"done\":5,\"merged\":true,\
             \"variants\":[{\"variant\":\"size=small\",\"values\":[\"small\"],\"status\":null}]}"
        );
        let states = [
            PartState::Done,
            PartState::Running,
            PartState::Interrupted,
            PartState::Lost,
            PartState::Failed,
        ];
        let text = serde_json::to_string(&states).expect("JSON");
        assert_eq!(text, r#"["done","running","interrupted","lost","failed"]"#);
    }

    /// The example of `run.json` has ten injections.
    #[test]
    fn a_complete_record_means_merged() {
        let folder = tempfile::tempdir().expect("a folder");
        let record = include_str!("../format_tests/run.json");
        let write = |text: &str| std::fs::write(folder.path().join(RECORD), text).expect("written");
        write(record);
        assert!(!is_merged(folder.path(), 10), "failed run");
        write(&record.replace("\"failed\"", "\"complete\""));
        assert!(is_merged(folder.path(), 10) && !is_merged(folder.path(), 11));
    }
}
