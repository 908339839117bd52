//! `flipwave golden`: what a workload of kernels computes without a fault, as files.

use crate::error::CampaignError;
use crate::file::campaign::{Buffer, Campaign};
use crate::golden::expected::{Unexpected, compared};
use crate::golden::golden_within_segments;
use crate::program::prepare::PrepareError;
use crate::program::prepare_emulated;
use crate::results::folder::FolderError;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The file that says what the others are, for programs of users. It has no version: fields keep their names.
const INDEX: &str = "golden.json";

/// What a fault-free run has computed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SavedGolden {
    /// The campaign's name.
    pub campaign: String,
    /// The GPU.
    pub target: String,
    /// Wave instructions that each launch has executed.
    pub wave_instructions: Vec<u64>,
    /// The buffers that were written to files.
    pub outputs: Vec<SavedOutput>,
    /// Outputs that are not what the campaign file expects.
    #[serde(skip)]
    pub unexpected: Vec<Unexpected>,
}

/// A buffer in a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SavedOutput {
    /// The buffer.
    pub name: String,
    /// Type of its elements, which is the same on every target.
    #[serde(rename = "type")]
    pub element: String,
    /// Number of elements.
    pub count: usize,
    /// Its dimensions, where the campaign file says them.
    pub shape: Option<Vec<u64>>,
    /// The file in the folder: elements little-endian, of two in a byte the first in the low half.
    pub file: PathBuf,
    /// How it compares with the file of what it must be.
    pub expected: Option<SavedComparison>,
}

/// An output beside what it must be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SavedComparison {
    /// Elements outside of the tolerance.
    pub elements_wrong: u64,
    /// The largest absolute error; null where it is infinite.
    pub max_abs_error: f64,
    /// The largest relative error; null where it is infinite.
    pub max_rel_error: f64,
}

/// Runs a campaign's kernels once without a fault on the embedded GPU, and writes what the outputs hold
/// then, or `all` buffers, to a folder, each to `NAME.bin`; and what they are to `golden.json`. Nothing
/// is refused that is only suspicious, and what is not as expected is written as well.
///
/// # Errors
/// [`CampaignError`] if the program cannot be put together or does not complete, if files cannot be
/// written, or if all runs were to stop.
pub fn save_golden(
    campaign: &Campaign,
    all: bool,
    folder: &Path,
) -> Result<SavedGolden, CampaignError> {
    campaign.unless_stopped(save(campaign, all, folder))
}

fn save(campaign: &Campaign, all: bool, folder: &Path) -> Result<SavedGolden, CampaignError> {
    let kernels = campaign.kernels().ok_or(PrepareError::Application)?;
    let mut workload = prepare_emulated(campaign)?.workload;
    if all {
        workload.program.outputs.clone_from(&workload.program.buffers);
    }
    let golden = golden_within_segments(campaign, &workload)?;
    let compared = compared(kernels, &workload, &golden)?;
    let failed = |path: &Path, reason| FolderError::Access { path: path.to_owned(), reason };
    std::fs::create_dir_all(folder).map_err(|reason| failed(folder, reason))?;
    let mut outputs = Vec::new();
    for (memory, content) in workload.program.outputs.iter().zip(&golden.outputs) {
        let Some(buffer) = kernels.buffers.iter().find(|own| own.name == memory.name) else {
            continue;
        };
        let file = file_name(buffer, outputs.len());
        let path = folder.join(&file);
        flipwave_host::output::replace(&path, &content.bytes())
            .map_err(|reason| failed(&path, reason))?;
        let own = compared.iter().find(|own| own.buffer.name == buffer.name);
        outputs.push(SavedOutput {
            name: buffer.name.clone(),
            element: buffer.element.to_string(),
            count: buffer.count,
            shape: buffer.extents.map(|extents| extents.dimensions().to_vec()),
            file,
            expected: own.map(|own| SavedComparison {
                elements_wrong: own.difference.elements_wrong,
                max_abs_error: own.difference.max_abs_error,
                max_rel_error: own.difference.max_rel_error,
            }),
        });
    }
    let saved = SavedGolden {
        campaign: campaign.name.clone(),
        target: campaign.target.to_string(),
        wave_instructions: golden.statistics.iter().map(|own| own.wave_instructions).collect(),
        outputs,
        unexpected: compared.into_iter().filter_map(|own| own.unexpected).map(|own| *own).collect(),
    };
    let index = folder.join(INDEX);
    // Strings and numbers are always JSON.
    let mut text = serde_json::to_string_pretty(&saved).unwrap_or_default();
    text.push('\n');
    flipwave_host::output::replace(&index, text.as_bytes())
        .map_err(|reason| failed(&index, reason))?;
    Ok(saved)
}

/// The file of the buffer number `number`, called after it where its name can be that of a file.
fn file_name(buffer: &Buffer, number: usize) -> PathBuf {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    match buffer.name.chars().all(is_plain) {
        true => format!("{}.bin", buffer.name).into(),
        false => format!("buffer.{number}.bin").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format_tests::check_json;

    #[test]
    fn the_index_of_saved_outputs_has_a_fixed_text() {
        let output = SavedOutput {
            name: "sum".to_owned(),
            element: "f32".to_owned(),
            count: 256,
            shape: Some(vec![16, 16]),
            file: "sum.bin".into(),
            expected: Some(SavedComparison {
                elements_wrong: 1,
                max_abs_error: 0.5,
                max_rel_error: 0.25,
            }),
        };
        let saved = SavedGolden {
            campaign: "add".to_owned(),
            target: "gfx90a".to_owned(),
            wave_instructions: vec![40],
            outputs: vec![output],
            unexpected: Vec::new(),
        };
        check_json("golden.json", &saved);
    }
}
