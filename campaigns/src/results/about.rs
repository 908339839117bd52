//! What `run.json` says of a campaign, for a report: also one that an older program wrote.

use crate::results::folder::{RECORD, RESULTS};
use crate::results::record::CampaignIdentity;
use flipwave_analysis::{CampaignInfo, ComparedOutput, Confidence, SampleDesign, StatisticsError};
use flipwave_host::input::BoundedLines;
use flipwave_injector::{FaultSpace, FidelityRecord};
use serde::Deserialize;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A folder of which there is nothing to report.
#[derive(Debug, thiserror::Error)]
pub enum AboutError {
    /// There is no folder.
    #[error("{}: there is no such folder; expected the results of `flipwave run` or `flipwave merge`",
        path.display())]
    NoFolder {
        /// What was looked for.
        path: PathBuf,
    },
    /// A file of the results is not there.
    #[error("{}: it has no {file}, so it holds no results of `flipwave run`; shards are put together \
        with `flipwave merge`", path.display())]
    NoResults {
        /// The folder.
        path: PathBuf,
        /// What is missing.
        file: &'static str,
    },
    /// It cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unread {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: std::io::Error,
    },
    /// It is no record of a run.
    #[error("{}: {reason}; expected what `flipwave run` writes there", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: serde_json::Error,
    },
    /// A confidence that is none.
    #[error("{}: {reason}", path.display())]
    Confidence {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: StatisticsError,
    },
}

/// What is taken of `run.json`. Older programs did not write all of it.
#[derive(Deserialize)]
struct Recorded {
    campaign: CampaignIdentity,
    status: String,
    error: Option<String>,
    file: Option<PathBuf>,
    compared: Option<Vec<ComparedOutput>>,
    versions: Option<RecordedVersions>,
    population: Option<FaultSpace>,
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

/// Reads what a results folder says of its campaign, and opens its table.
///
/// # Errors
/// [`AboutError`].
pub fn about(folder: &Path) -> Result<(CampaignInfo, BoundedLines<File>), AboutError> {
    let path = || folder.to_owned();
    if !folder.is_dir() {
        return Err(AboutError::NoFolder { path: path() });
    }
    let failed = |file: &'static str| {
        move |reason: std::io::Error| match reason.kind() {
            ErrorKind::NotFound => AboutError::NoResults { path: folder.to_owned(), file },
            _ => AboutError::Unread { path: folder.join(file), reason },
        }
    };
    let table = flipwave_host::input::open_lines(&folder.join(RESULTS)).map_err(failed(RESULTS))?;
    let record = folder.join(RECORD);
    let text = flipwave_host::input::read_text(&record, flipwave_host::input::RECORD)
        .map_err(failed(RECORD))?;
    let recorded: Recorded = serde_json::from_str(&text)
        .map_err(|reason| AboutError::Other { path: record.clone(), reason })?;
    let given = recorded
        .design
        .as_ref()
        .map(|design| design.confidence.probability())
        .or(recorded.confidence);
    let confidence = given.map_or(Ok(Confidence::P95), Confidence::new);
    let confidence =
        confidence.map_err(|reason| AboutError::Confidence { path: record.clone(), reason })?;
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
            sites: self.population.map(|own| own.places),
            counted: self.counted,
            instructions: (!instructions.is_empty())
                .then(|| instructions.into_iter().fold(0, u64::saturating_add)),
            facts,
            compared: self.compared.filter(|compared| !compared.is_empty()),
        }
    }

    fn unfinished(&self) -> Option<String> {
        let what = match self.status.as_str() {
            "complete" => return None,
            "interrupted" => "The campaign was interrupted".to_owned(),
            "failed" => match &self.error {
                Some(error) => format!("The campaign failed: {error}"),
                None => "The campaign failed".to_owned(),
            },
            "running" => "The campaign is under way, or was killed".to_owned(),
            other => format!("The campaign's status is `{other}`"),
        };
        let end = if what.ends_with('.') { "" } else { "." };
        Some(format!(
            "{what}{end} The rates are those of the injections done so far; `flipwave run \
             --resume` goes on with it."
        ))
    }

    /// What is shown besides the rates.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let CampaignIdentity { seed, target, fault, selection, .. } = &self.campaign;
        let versions = self.versions.as_ref().map(|own| match &own.compiler {
            Some(compiler) => format!("Flipwave {}, {compiler}", own.flipwave),
            None => format!("Flipwave {}", own.flipwave),
        });
        let file = self.file.as_ref().map(|file| file.display().to_string());
        let facts = [
            ("Campaign file", file.filter(|file| !file.is_empty())),
            ("Target", Some(target.clone())),
            ("Seed", Some(seed.to_string())),
            ("Fault", Some(fault.clone())),
            ("Struck", Some(selection.clone()).filter(|own| !own.is_empty())),
            ("Fidelity", self.fidelity.as_ref().map(FidelityRecord::to_string)),
            ("Versions", versions),
        ];
        facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}
