//! `flipwave golden`: writes the outputs of the golden run of a workload of kernels to files.

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::file::kernels::Buffer;
use crate::golden::expected::{Unexpected, compare_with_expected};
use crate::golden::golden_within_segments;
use crate::program::error::PrepareError;
use crate::program::prepare_emulated;
use crate::results::folder::FolderError;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The file that describes the others, for users' programs. It has no version: fields keep their names.
const INDEX: &str = "golden.json";

/// Results of a golden run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SavedGolden {
    /// The campaign's name.
    pub campaign: String,
    /// The GPU of the campaign.
    pub target: String,
    /// Wave instructions executed by each launch.
    pub wave_instructions: Vec<u64>,
    /// Buffers written to files.
    pub outputs: Vec<SavedOutput>,
    /// Outputs that differ from their `expected` files.
    #[serde(skip)]
    pub unexpected: Vec<Unexpected>,
}

/// A buffer written to a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SavedOutput {
    /// Name of the buffer.
    pub name: String,
    /// Type of its elements; names do not depend on the target.
    #[serde(rename = "type")]
    pub element: String,
    /// Number of elements.
    pub count: usize,
    /// Dimensions, if the campaign file gives them.
    pub shape: Option<Vec<u64>>,
    /// File in the folder. Elements are little-endian; if two share a byte, the first is in the low half.
    pub file: PathBuf,
    /// Difference from the `expected` file, if the buffer has one.
    pub expected: Option<SavedComparison>,
}

/// Difference between an output and its `expected` file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SavedComparison {
    /// Number of elements outside the tolerance.
    pub elements_wrong: u64,
    /// The largest absolute error; null if it is infinite.
    pub max_abs_error: f64,
    /// The largest relative error; null if it is infinite.
    pub max_rel_error: f64,
}

/// Performs the golden run of a campaign's kernels on the embedded GPU, and writes the outputs, or `all`
/// buffers, to files `NAME.bin` in `folder`. `golden.json` describes them. Outputs that differ from their
/// `expected` files are also written, and suspicious outputs are not rejected.
///
/// # Errors
/// [`CampaignError`] if the program cannot be prepared or does not complete, if files cannot be written,
/// or if the campaign is cancelled.
pub fn save_golden(
    campaign: &Campaign,
    all: bool,
    folder: &Path,
) -> Result<SavedGolden, CampaignError> {
    campaign.unless_cancelled(save(campaign, all, folder))
}

fn save(campaign: &Campaign, all: bool, folder: &Path) -> Result<SavedGolden, CampaignError> {
    let kernels = campaign.kernels().ok_or(PrepareError::Application)?;
    let mut workload = prepare_emulated(campaign)?.workload;
    if all {
        workload.program.outputs.clone_from(&workload.program.buffers);
    }
    let golden = golden_within_segments(campaign, &workload)?;
    let compared = compare_with_expected(kernels, &workload, &golden)?;
    let failed = |path: &Path, reason| FolderError::Access { path: path.to_owned(), reason };
    std::fs::create_dir_all(folder).map_err(|reason| failed(folder, reason))?;
    let mut outputs = Vec::new();
    for (memory, content) in workload.program.outputs.iter().zip(&golden.outputs) {
        let Some(buffer) = kernels.buffers.iter().find(|buffer| buffer.name == memory.name) else {
            continue;
        };
        let file = file_name(buffer, outputs.len());
        let path = folder.join(&file);
        flipwave_host::output::replace(&path, &content.bytes())
            .map_err(|reason| failed(&path, reason))?;
        let comparison = compared.iter().find(|output| output.buffer.name == buffer.name);
        outputs.push(SavedOutput {
            name: buffer.name.clone(),
            element: buffer.element.to_string(),
            count: buffer.count,
            shape: buffer.extents.map(|extents| extents.dimensions().to_vec()),
            file,
            expected: comparison.map(|output| SavedComparison {
                elements_wrong: output.difference.elements_wrong,
                max_abs_error: output.difference.max_abs_error,
                max_rel_error: output.difference.max_rel_error,
            }),
        });
    }
    let saved = SavedGolden {
        campaign: campaign.name.clone(),
        target: campaign.target.to_string(),
        wave_instructions: golden
            .statistics
            .iter()
            .map(|launch| launch.wave_instructions)
            .collect(),
        outputs,
        unexpected: compared.into_iter().filter_map(|output| Some(*output.unexpected?)).collect(),
    };
    let index = folder.join(INDEX);
    // Strings and numbers are always JSON.
    let mut text = serde_json::to_string_pretty(&saved).unwrap_or_default();
    text.push('\n');
    flipwave_host::output::replace(&index, text.as_bytes())
        .map_err(|reason| failed(&index, reason))?;
    Ok(saved)
}

/// Returns the file name of a buffer: its name if that is a plain file name, otherwise its number.
fn file_name(buffer: &Buffer, number: usize) -> PathBuf {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    if buffer.name.chars().all(is_plain) {
        format!("{}.bin", buffer.name).into()
    } else {
        format!("buffer.{number}.bin").into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format_tests::check_json;

    #[test]
    fn golden_json_text_is_fixed() {
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
