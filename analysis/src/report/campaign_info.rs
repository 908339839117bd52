//! Information about a campaign other than its rows.

use crate::SampleDesign;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// An output that is compared with the golden run, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedOutput {
    /// Name of the buffer or file.
    pub name: String,
    /// Element type: `f32`, `bytes`.
    pub element: String,
    /// Number of elements; `None` if it is known only once the output is written.
    pub elements: Option<u64>,
    /// Method of the comparison: `exactly`, `relative 1e-5`.
    pub comparison: String,
    /// `true` for the result of the program's own error check, where a difference is `detected`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_detector: bool,
}

// The signature that serde requires.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Information about a campaign and its run. Fields that an older version did not record are empty.
#[derive(Clone, Debug, PartialEq)]
pub struct CampaignInfo {
    /// Results folder, as given on the command line.
    pub folder: String,
    /// Name of the campaign.
    pub name: String,
    /// Campaign file, as given on the command line of the run.
    pub file: Option<PathBuf>,
    /// Seed.
    pub seed: Option<u64>,
    /// Status of a run that is not complete, as a sentence.
    pub unfinished: Option<String>,
    /// Sample design of the rows.
    pub design: SampleDesign,
    /// Planned injections.
    pub planned: Option<u64>,
    /// Size of the fault space in fault sites.
    pub sites: Option<u64>,
    /// Method that counted the sites, in words.
    pub counted: Option<String>,
    /// Wave instructions executed by the golden run.
    pub instructions: Option<u64>,
    /// Further facts for readers: names and values.
    pub facts: Vec<(&'static str, String)>,
    /// Outputs compared with the golden run; `None` if not recorded.
    pub compared: Option<Vec<ComparedOutput>>,
}

impl CampaignInfo {
    /// The further fact with a name, if recorded.
    pub fn fact(&self, name: &str) -> Option<&str> {
        let fact = self.facts.iter().find(|(fact_name, _)| *fact_name == name);
        fact.map(|(_, value)| value.as_str())
    }
}
