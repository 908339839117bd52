//! Shard plans: the properties that all shards of a campaign share. A plan never changes; a
//! campaign that is extended to more injections gets an additional plan.

use super::error::ShardError;
use super::layout::SharedFolder;
use crate::file::schema::ResultsFormat;
use crate::results::folder::FolderError;
use crate::results::record::CampaignFacts;
use flipwave_analysis::{CampaignMonitor, Pilot, StoppingRule, stage_ends};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;

/// Properties that all shards of a campaign share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardPlan {
    /// Version of the folder's format, [`ShardPlan::FORMAT`].
    pub format: u32,
    /// Facts about the campaign. Comments and name may differ between plans of a folder.
    #[serde(flatten)]
    pub facts: CampaignFacts,
    /// SHA-256 of everything that determines rows except the seed. Campaigns with equal values can
    /// be pooled.
    pub space: String,
    /// Number of planned injections.
    pub count: u64,
    /// Format of the merged results.
    pub results: ResultsFormat,
    /// Condition that ends the campaign before all injections are done.
    pub until: Option<StoppingRule>,
    /// First injections, which determine the allocation of the others.
    pub pilot: Option<Pilot>,
}

/// The field that plans of all formats share.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

impl ShardPlan {
    /// Format of a folder of shards: its plans, and the attempts, looks and files of rows that
    /// belong to a plan. Incremented when another version would misread or mix them.
    ///
    /// Format 3 includes the text of `Sample::draws` in the digest of the space.
    pub const FORMAT: u32 = 3;

    /// Creates the monitor of the campaign before its first row.
    pub(super) fn monitor(&self) -> CampaignMonitor {
        CampaignMonitor::new(self.facts.design.clone(), self.until.clone(), self.pilot.clone())
    }

    /// Injection counts at which the stages of the campaign end. Shards work on one stage at a
    /// time.
    pub(super) fn stages(&self) -> Vec<u64> {
        stage_ends(self.until.as_ref(), self.pilot.as_ref(), self.count)
    }

    /// Reads the plan with the most injections; `None` without a plan.
    ///
    /// # Errors
    /// [`ShardError::Plan`] for an invalid file, [`ShardError::PlanFormat`],
    /// [`ShardError::Folder`].
    pub(super) fn latest(folder: &SharedFolder) -> Result<Option<ShardPlan>, ShardError> {
        match folder.plans()?.last() {
            Some(count) => ShardPlan::read(folder, *count),
            None => Ok(None),
        }
    }

    /// Reads the plan of `count` injections; `None` if it does not exist.
    fn read(folder: &SharedFolder, count: u64) -> Result<Option<ShardPlan>, ShardError> {
        let path = folder.plan(count);
        let text = match flipwave_host::input::read(&path, flipwave_host::input::RECORD) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|reason| FolderError::Unread { path: path.clone(), reason })?,
        };
        let invalid = |what: String| ShardError::Plan { path: path.clone(), what };
        // Plans of other formats may lack fields of this one.
        let Format { format } =
            serde_json::from_slice(&text).map_err(|error| invalid(error.to_string()))?;
        if format != ShardPlan::FORMAT {
            return Err(ShardError::PlanFormat { path, format });
        }
        serde_json::from_slice(&text).map(Some).map_err(|error| invalid(error.to_string()))
    }

    /// Writes the plan unless the folder has one with the same number of injections. Checks that
    /// all plans in the folder belong to this campaign. Concurrent calls write the same bytes.
    ///
    /// # Errors
    /// [`ShardError::Other`], [`ShardError::Folder`].
    pub(super) fn publish(&self, folder: &SharedFolder) -> Result<(), ShardError> {
        if self.is_published(folder)? {
            return Ok(());
        }
        let path = folder.plan(self.count);
        let failed = |reason| FolderError::Access { path: path.clone(), reason };
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        flipwave_host::output::publish(&path, text.as_slice()).map_err(failed)?;
        // Another campaign may have written a plan in the meantime.
        self.is_published(folder).map(|_| ())
    }

    /// Returns `true` if the folder has a plan with the same number of injections. Checks that all
    /// of its plans belong to this campaign.
    pub(super) fn is_published(&self, folder: &SharedFolder) -> Result<bool, ShardError> {
        let mut is_published = false;
        for count in folder.plans()? {
            let Some(existing) = ShardPlan::read(folder, count)? else { continue };
            if let Some(difference) = self.difference(&existing) {
                return Err(ShardError::Other { path: folder.path().to_owned(), difference });
            }
            if count == self.count && self.until != existing.until {
                let difference = "other stopping rule; use another `count`".to_owned();
                return Err(ShardError::Other { path: folder.path().to_owned(), difference });
            }
            is_published |= count == self.count;
        }
        Ok(is_published)
    }

    /// Describes why rows of this plan and of the `existing` one cannot be in one table.
    pub(super) fn difference(&self, existing: &ShardPlan) -> Option<String> {
        let (here, there) = (self.facts.campaign.seed, existing.facts.campaign.seed);
        if here != there {
            return Some(format!("its seed is {there}, not {here}"));
        }
        self.difference_of_space(existing)
    }

    /// Describes why this plan and the `existing` one have different site spaces.
    pub(super) fn difference_of_space(&self, existing: &ShardPlan) -> Option<String> {
        let (here, there) = (&self.facts, &existing.facts);
        if here.versions.flipwave != there.versions.flipwave {
            let (here, there) = (&here.versions.flipwave, &there.versions.flipwave);
            return Some(format!("it is run by Flipwave {there}, and this is version {here}"));
        }
        if self.space == existing.space {
            return None;
        }
        if here.campaign.content != there.campaign.content {
            return Some("the campaign file differs".to_owned());
        }
        Some(match (&here.versions.compiler, &there.versions.compiler) {
            (Some(here), Some(there)) if here != there => {
                format!("its kernels were compiled by `{there}`, not `{here}`")
            }
            _ if here.fault_space != there.fault_space => {
                "the program executes other instructions".to_owned()
            }
            _ => "the program, its inputs, the sampling or the injection mechanism differs"
                .to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format_tests::{check_json, facts};
    use flipwave_analysis::{Outcome, PrecisionGoal, Scope};

    fn plan() -> ShardPlan {
        let scopes = [
            Scope::All,
            Scope::Group("valu".to_owned()),
            Scope::Kernel("add".to_owned()),
            Scope::Label("layer0".to_owned()),
            Scope::Opcode("v_add_f32".to_owned()),
            Scope::Stratum("add".to_owned()),
        ];
        ShardPlan {
            format: ShardPlan::FORMAT,
            facts: facts(),
            space: "space digest".to_owned(),
            count: 5000,
            results: ResultsFormat::Parquet,
            until: Some(StoppingRule {
                goal: PrecisionGoal {
                    margin: 0.01,
                    outcomes: Outcome::ALL.to_vec(),
                    scopes: scopes.to_vec(),
                },
                looks: vec![500, 5000],
            }),
            pilot: Some(Pilot { count: 100, outcomes: vec![Outcome::Sdc] }),
        }
    }

    #[test]
    fn serialized_plans_are_fixed() {
        check_json("plan.json", &plan());
        let read: ShardPlan =
            serde_json::from_str(include_str!("../format_tests/plan.json")).expect("a plan");
        assert_eq!(read, plan());
        let formats = [ResultsFormat::Csv, ResultsFormat::Parquet];
        assert_eq!(serde_json::to_string(&formats).expect("JSON"), r#"["csv","parquet"]"#);
    }

    #[test]
    fn plans_of_another_format_are_rejected_with_advice() {
        let directory = tempfile::tempdir().expect("a folder");
        let folder = SharedFolder::new(directory.path());
        folder.create().expect("a folder");
        for format in [ShardPlan::FORMAT - 1, ShardPlan::FORMAT + 1] {
            let text = format!("{{\"format\": {format}, \"of_another_version\": true}}");
            std::fs::write(folder.plan(5000), text).expect("written");
            let error = ShardPlan::latest(&folder).expect_err("another format").to_string();
            let expected = format!("format {format}, expected {}", ShardPlan::FORMAT);
            for word in [expected.as_str(), "000000005000.json", "new folder with --out"] {
                assert!(error.contains(word), "{error}");
            }
        }
        std::fs::write(folder.plan(5000), "{}").expect("written");
        let error = ShardPlan::latest(&folder).expect_err("no plan").to_string();
        assert!(error.contains("invalid shard plan: missing field `format`"), "{error}");
    }
}
