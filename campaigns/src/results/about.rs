//! Reads the facts of a campaign for reports from `run.json`, including files of older versions.

use crate::results::folder::{RECORD, RESULTS};
use crate::results::record::CampaignIdentity;
use flipwave_analysis::{CampaignInfo, ComparedOutput, Confidence, SampleDesign, StatisticsError};
use flipwave_host::input::BoundedLines;
use flipwave_injector::{FaultSpace, FidelityRecord};
use serde::Deserialize;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Errors returned when reading a results folder for a report.
#[derive(Debug, thiserror::Error)]
pub enum ReadCampaignError {
    /// The folder does not exist.
    #[error("no such folder: {}; expected the results of `flipwave run` or `flipwave merge`",
        path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A result file is missing.
    #[error("no {file} in {}; expected the results of `flipwave run`, or shards merged with \
        `flipwave merge`", path.display())]
    NoResults {
        /// The folder.
        path: PathBuf,
        /// The missing file.
        file: &'static str,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unread {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: std::io::Error,
    },
    /// The record is invalid.
    #[error("{}: {reason}; expected a record written by `flipwave run`", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: serde_json::Error,
    },
    /// The confidence is out of range.
    #[error("{}: {reason}", path.display())]
    Confidence {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: StatisticsError,
    },
}

/// The fields of `run.json` that reports use. Older versions did not write all of them.
#[derive(Deserialize)]
struct Recorded {
    campaign: CampaignIdentity,
    status: String,
    error: Option<String>,
    file: Option<PathBuf>,
    compared: Option<Vec<ComparedOutput>>,
    versions: Option<RecordedVersions>,
    fault_space: Option<FaultSpace>,
    counted: Option<String>,
    fidelity: Option<FidelityRecord>,
    golden_wave_instructions: Option<Vec<u64>>,
    planned: Option<u64>,
    confidence: Option<f64>,
    design: Option<SampleDesign>,
}

#[derive(Deserialize)]
struct RecordedVersions {
    flipwave: String,
    compiler: Option<String>,
}

/// Reads the facts of the campaign in a results folder, and opens its table of injections.
///
/// # Errors
/// [`ReadCampaignError`].
pub fn about(folder: &Path) -> Result<(CampaignInfo, BoundedLines<File>), ReadCampaignError> {
    let path = || folder.to_owned();
    if !folder.is_dir() {
        return Err(ReadCampaignError::NoFolder { path: path() });
    }
    let failed = |file: &'static str| {
        move |reason: std::io::Error| match reason.kind() {
            ErrorKind::NotFound => ReadCampaignError::NoResults { path: folder.to_owned(), file },
            _ => ReadCampaignError::Unread { path: folder.join(file), reason },
        }
    };
    let table = flipwave_host::input::open_lines(&folder.join(RESULTS)).map_err(failed(RESULTS))?;
    let record = folder.join(RECORD);
    let text = flipwave_host::input::read_text(&record, flipwave_host::input::RECORD)
        .map_err(failed(RECORD))?;
    let recorded: Recorded = serde_json::from_str(&text)
        .map_err(|reason| ReadCampaignError::Other { path: record.clone(), reason })?;
    let probability = recorded
        .design
        .as_ref()
        .map(|design| design.confidence.probability())
        .or(recorded.confidence);
    let confidence = probability.map_or(Ok(Confidence::P95), Confidence::new);
    let confidence = confidence
        .map_err(|reason| ReadCampaignError::Confidence { path: record.clone(), reason })?;
    Ok((recorded.about(folder, confidence), table))
}

impl Recorded {
    fn about(self, folder: &Path, confidence: Confidence) -> CampaignInfo {
        let unfinished = self.unfinished();
        let facts = self.facts();
        let instructions = self.golden_wave_instructions.unwrap_or_default();
        CampaignInfo {
            folder: folder.display().to_string(),
            name: self.campaign.name,
            file: self.file.filter(|file| !file.as_os_str().is_empty()),
            seed: Some(self.campaign.seed),
            unfinished,
            design: self.design.unwrap_or_else(|| SampleDesign::simple(confidence)),
            planned: self.planned,
            sites: self.fault_space.map(|fault_space| fault_space.sites),
            counted: self.counted,
            instructions: (!instructions.is_empty())
                .then(|| instructions.into_iter().fold(0, u64::saturating_add)),
            facts,
            compared: self.compared.filter(|compared| !compared.is_empty()),
        }
    }

    /// Warning of a report about an incomplete campaign.
    fn unfinished(&self) -> Option<String> {
        let state = match self.status.as_str() {
            "complete" => return None,
            "interrupted" => "The campaign was interrupted".to_owned(),
            "failed" => match &self.error {
                Some(error) => format!("The campaign failed: {error}"),
                None => "The campaign failed".to_owned(),
            },
            "running" => "The campaign is under way, or was killed".to_owned(),
            status => format!("The campaign's status is `{status}`"),
        };
        let end = if state.ends_with('.') { "" } else { "." };
        Some(format!(
            "{state}{end} The rates are those of the injections done so far; `flipwave run \
             --resume` goes on with it."
        ))
    }

    /// Names and values of the facts that a report shows.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let CampaignIdentity { seed, target, fault, selection, .. } = &self.campaign;
        let versions = self.versions.as_ref().map(|versions| match &versions.compiler {
            Some(compiler) => format!("Flipwave {}, {compiler}", versions.flipwave),
            None => format!("Flipwave {}", versions.flipwave),
        });
        let file = self.file.as_ref().map(|file| file.display().to_string());
        let facts = [
            ("Campaign file", file.filter(|file| !file.is_empty())),
            ("Target", Some(target.clone())),
            ("Seed", Some(seed.to_string())),
            ("Fault", Some(fault.clone())),
            ("Struck", Some(selection.clone()).filter(|selection| !selection.is_empty())),
            ("Fidelity", self.fidelity.as_ref().map(FidelityRecord::to_string)),
            ("Versions", versions),
        ];
        facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}
