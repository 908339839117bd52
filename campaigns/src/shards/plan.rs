//! The plan of a campaign that shards carry out: what all of them have in common. It is written once
//! and never changed; a campaign with more injections gets a plan beside it.

use super::error::ShardError;
use super::layout::SharedFolder;
use crate::file::schema::ResultsFormat;
use crate::results::folder::FolderError;
use crate::results::record::CampaignFacts;
use flipwave_analysis::{CampaignMonitor, Pilot, StoppingRule, stage_ends};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;

/// Everything that the shards of a campaign have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardPlan {
    /// Version of the folder's format, [`ShardPlan::FORMAT`].
    pub format: u32,
    /// Facts about the campaign. Its comments and its name may differ between plans of a folder.
    #[serde(flatten)]
    pub facts: CampaignFacts,
    /// SHA-256 of everything that determines rows except the seed. Campaigns with the same value can be pooled.
    pub space: String,
    /// Injections planned.
    pub count: u64,
    /// Format of the merged results.
    pub results: ResultsFormat,
    /// Condition that ends the campaign before all injections are done.
    pub until: Option<StoppingRule>,
    /// First injections, which determine how the others are drawn.
    pub pilot: Option<Pilot>,
}

/// The field that plans of all formats have.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

impl ShardPlan {
    /// The format of a folder of shards: its plans, and the files that go with one plan, which are
    /// attempts, looks and the space in rows. Raised where another version would misread or mix them.
    ///
    /// Format 3 takes the text of `Sample::draws` into the digest of the space.
    pub const FORMAT: u32 = 3;

    /// The campaign before its first row.
    pub(super) fn monitor(&self) -> CampaignMonitor {
        CampaignMonitor::new(self.facts.design.clone(), self.until.clone(), self.pilot.clone())
    }

    /// The numbers of injections at which stages end, in which shards work on it together.
    pub(super) fn stages(&self) -> Vec<u64> {
        stage_ends(self.until.as_ref(), self.pilot.as_ref(), self.count)
    }

    /// The plan with most injections; nothing where there is none.
    ///
    /// # Errors
    /// [`ShardError::Plan`] for an invalid file, [`ShardError::PlanFormat`], [`ShardError::Folder`].
    pub(super) fn latest(folder: &SharedFolder) -> Result<Option<ShardPlan>, ShardError> {
        match folder.plans()?.last() {
            Some(count) => ShardPlan::read(folder, *count),
            None => Ok(None),
        }
    }

    /// The plan of this many injections; nothing where there is none.
    fn read(folder: &SharedFolder, count: u64) -> Result<Option<ShardPlan>, ShardError> {
        let path = folder.plan(count);
        let text = match flipwave_host::input::read(&path, flipwave_host::input::RECORD) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|reason| FolderError::Unread { path: path.clone(), reason })?,
        };
        let wrong = |what: String| ShardError::Plan { path: path.clone(), what };
        // Plans of other formats may lack fields of this one.
        let Format { format } =
            serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if format != ShardPlan::FORMAT {
            return Err(ShardError::PlanFormat { path, format });
        }
        serde_json::from_slice(&text).map(Some).map_err(|error| wrong(error.to_string()))
    }

    /// Checks that a folder's other plans are of the same campaign, and puts this one there unless it
    /// has one of as many injections. Whoever does the same at the same time writes the same.
    ///
    /// # Errors
    /// [`ShardError::Other`], [`ShardError::Folder`].
    pub(super) fn publish(&self, folder: &SharedFolder) -> Result<(), ShardError> {
        if self.is_there(folder)? {
            return Ok(());
        }
        let path = folder.plan(self.count);
        let failed = |reason| FolderError::Access { path: path.clone(), reason };
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        flipwave_host::output::publish(&path, text.as_slice()).map_err(failed)?;
        // Another campaign may have come meanwhile.
        self.is_there(folder).map(|_| ())
    }

    /// Whether a folder has a plan of as many injections; checks that all of its plans are of this
    /// campaign.
    pub(super) fn is_there(&self, folder: &SharedFolder) -> Result<bool, ShardError> {
        let mut is_there = false;
        for count in folder.plans()? {
            let Some(other) = ShardPlan::read(folder, count)? else { continue };
            if let Some(difference) = self.difference(&other) {
                return Err(ShardError::Other { path: folder.path().to_owned(), difference });
            }
            if count == self.count && self.until != other.until {
                let difference =
                    "it ends when other rates are known; take another `count`".to_owned();
                return Err(ShardError::Other { path: folder.path().to_owned(), difference });
            }
            is_there |= count == self.count;
        }
        Ok(is_there)
    }

    /// Why rows of the two do not belong into one table, if so.
    pub(super) fn difference(&self, other: &ShardPlan) -> Option<String> {
        let (own, theirs) = (&self.facts.campaign, &other.facts.campaign);
        if own.seed != theirs.seed {
            return Some(format!("its seed is {}, and here it is {}", theirs.seed, own.seed));
        }
        self.difference_of_space(other)
    }

    /// Why rows of the two are not of the same site space, if so.
    pub(super) fn difference_of_space(&self, other: &ShardPlan) -> Option<String> {
        if self.facts.versions.flipwave != other.facts.versions.flipwave {
            let (own, theirs) = (&self.facts.versions.flipwave, &other.facts.versions.flipwave);
            return Some(format!("Flipwave {theirs} runs it, and this is {own}"));
        }
        if self.space == other.space {
            return None;
        }
        if self.facts.campaign.content != other.facts.campaign.content {
            return Some("the campaign file says something else".to_owned());
        }
        let compilers = (&self.facts.versions.compiler, &other.facts.versions.compiler);
        Some(match compilers {
            (Some(own), Some(theirs)) if own != theirs => {
                format!("`{theirs}` compiled its kernels, and here `{own}`")
            }
            _ if self.facts.population != other.facts.population => {
                "its program, which executes something else".to_owned()
            }
            _ => "its program or its inputs, or how faults are drawn or injected".to_owned(),
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
    fn plans_have_a_fixed_text() {
        check_json("plan.json", &plan());
        let read: ShardPlan =
            serde_json::from_str(include_str!("../format_tests/plan.json")).expect("a plan");
        assert_eq!(read, plan());
        let formats = [ResultsFormat::Csv, ResultsFormat::Parquet];
        assert_eq!(serde_json::to_string(&formats).expect("JSON"), r#"["csv","parquet"]"#);
    }

    #[test]
    fn plans_of_another_format_are_refused_with_what_to_do() {
        let own = tempfile::tempdir().expect("a folder");
        let folder = SharedFolder::new(own.path());
        folder.make().expect("a folder");
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
