//! What of a campaign is done, by whom, and what is missing: from files alone, at any time.

use super::attempt::{Attempt, AttemptState};
use super::error::ShardError;
use super::file::finished;
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

/// How far a campaign is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShardsStatus {
    /// What is run.
    pub campaign: CampaignIdentity,
    /// Injections planned; no more than the last look had if that showed enough.
    pub planned: u64,
    /// Injections whose rows are in the folder.
    pub done: u64,
    /// Files of rows.
    pub files: u64,
    /// Indices of the injections that have no row: the first, and the one after the last.
    pub missing: Vec<Range<u64>>,
    /// Rows per second, from the beginning of the first attempt to what was last said; none where that
    /// took no time.
    pub rows_per_second: Option<f64>,
    /// Seconds from the start of a part to its first injection, the longest of all attempts.
    pub longest_start_seconds: f64,
    /// Whether `results.csv` has all rows.
    pub merged: bool,
    /// What was known whenever there were enough injections for a look, where the campaign ends when
    /// enough is.
    pub looks: Vec<Look>,
    /// The parts that somebody has begun, by number.
    pub parts: Vec<PartStatus>,
}

/// How far a part is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartStatus {
    /// The part, as it was asked for.
    pub part: String,
    /// How it is.
    pub state: PartState,
    /// How often it was begun.
    pub attempts: u64,
    /// How often it failed.
    pub failures: u64,
    /// How often a process that did it ended without a word.
    pub lost: u64,
    /// The machine of the last attempt.
    pub host: String,
    /// The process there.
    pub process: i32,
    /// Since when, in UTC.
    pub since: String,
    /// Rows that the last attempt has made.
    pub done: u64,
    /// Why it failed the last time.
    pub error: Option<String>,
}

/// How a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartState {
    /// All of its rows are there.
    Done,
    /// A process does it.
    Running,
    /// It was asked to stop, and is to go on.
    Interrupted,
    /// The process that did it was killed, or its machine failed.
    Lost,
    /// It failed.
    Failed,
}

impl ShardsStatus {
    /// How many parts are like this.
    pub fn count(&self, state: PartState) -> usize {
        self.parts.iter().filter(|part| part.state == state).count()
    }
}

/// How far the campaign in a folder is.
///
/// # Errors
/// [`ShardError::NoPlan`] where there is none, [`ShardError::Folder`].
pub fn shards_status(path: &Path) -> Result<ShardsStatus, ShardError> {
    let folder = SharedFolder::new(path);
    let plan = ShardPlan::latest(&folder)?;
    let plan = plan.ok_or_else(|| ShardError::NoPlan { path: path.to_owned() })?;
    let own = Owner::this().map_err(|reason| FolderError::Unread { path: path.into(), reason })?;
    let ranges = finished(&folder)?;
    let attempts = Attempt::all(&folder)?;
    let looks = looks::known(&folder, &plan);
    let enough = looks.last().filter(|look| look.is_goal_met()).map(|look| look.injections);
    let planned = enough.unwrap_or(plan.count);
    let missing = gaps(0..planned, ranges.iter().cloned());
    let length = |range: &Range<u64>| range.end - range.start;
    Ok(ShardsStatus {
        done: planned - missing.iter().map(length).sum::<u64>(),
        files: ranges.len() as u64,
        rows_per_second: rate(&attempts),
        longest_start_seconds: attempts.iter().map(|own| own.start_seconds).fold(0.0, f64::max),
        merged: is_merged(path, planned),
        parts: parts(&attempts, &missing, &plan, &own),
        planned,
        looks,
        campaign: plan.facts.campaign,
        missing,
    })
}

/// The parts of some attempts, by where they begin.
fn parts(
    attempts: &[Attempt],
    missing: &[Range<u64>],
    plan: &ShardPlan,
    own: &Owner,
) -> Vec<PartStatus> {
    let stages = plan.stages();
    let mut by_part: BTreeMap<(u64, u64, &str), Vec<&Attempt>> = BTreeMap::new();
    let ranges = |part: &str| part.parse().map(|part: Part| part.of_stages(&stages));
    for attempt in attempts {
        let Ok(ranges) = ranges(&attempt.part) else { continue };
        let first = ranges.first().map_or(u64::MAX, |range| range.start);
        let end = ranges.last().map_or(u64::MAX, |range| range.end);
        by_part.entry((first, end, &attempt.part)).or_default().push(attempt);
    }
    let status = |((.., part), all): ((u64, u64, &str), Vec<&Attempt>)| {
        let last = all.last()?;
        let ranges = ranges(part).ok()?;
        let lacks = missing
            .iter()
            .any(|gap| ranges.iter().any(|own| gap.start < own.end && own.start < gap.end));
        let is_lost = |own_attempt: &&&Attempt| {
            own_attempt.state == AttemptState::Running && !own_attempt.is_running(own)
        };
        let lost = all.iter().filter(is_lost).count() as u64;
        let failed = |attempt: &&&Attempt| attempt.state == AttemptState::Failed;
        let state = match last.state {
            _ if !lacks => PartState::Done,
            _ if all.iter().any(|attempt| attempt.is_running(own)) => PartState::Running,
            AttemptState::Failed => PartState::Failed,
            // What it had done may have been removed since.
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

/// Rows per second of all attempts together, over the time in which there were any.
fn rate(attempts: &[Attempt]) -> Option<f64> {
    let first = attempts.iter().map(|own| own.began).min()?;
    let last = attempts.iter().map(|own| own.seen).max()?;
    let rows: u64 = attempts.iter().map(|own| own.done).sum();
    (last > first).then(|| rows as f64 / (last - first) as f64)
}

fn is_merged(path: &Path, count: u64) -> bool {
    let text = flipwave_host::input::read(&path.join(RECORD), flipwave_host::input::RECORD)
        .unwrap_or_default();
    let record: Value = serde_json::from_slice(&text).unwrap_or_default();
    let done: u64 =
        record["done"].as_object().into_iter().flatten().filter_map(|own| own.1.as_u64()).sum();
    record["status"] == "complete" && done == count
}

/// Ranges of injections, for people: the first few of many.
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
    fn the_status_has_a_fixed_text() {
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

    /// The pinned record has ten injections.
    #[test]
    fn a_merge_is_seen_by_the_record_of_the_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let record = include_str!("../format_tests/run.json");
        let write = |text: &str| std::fs::write(folder.path().join(RECORD), text).expect("written");
        write(record);
        assert!(!is_merged(folder.path(), 10), "it failed");
        write(&record.replace("\"failed\"", "\"complete\""));
        assert!(is_merged(folder.path(), 10) && !is_merged(folder.path(), 11));
    }
}
