//! Describes the comparisons of a campaign for readers of results.

use crate::application::{Comparison, Format};
use crate::file::campaign::{Campaign, CampaignWorkload};
use crate::outputs::compare::{OutputFormat, OutputRole, Tolerance};
use crate::program::prepare::Prepared;
use flipwave_analysis::ComparedOutput;
use flipwave_host::output::float_text;
use flipwave_injector::Buffer;
use std::fmt;

impl fmt::Display for Tolerance {
    /// `exactly`, `relative 1e-5`, `absolute 0.5 or relative 1e-5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = [
            self.absolute.map(|limit| format!("absolute {}", float_text(limit))),
            self.relative.map(|limit| format!("relative {}", float_text(limit))),
            self.ulp.map(|limit| format!("{limit} ULP")),
        ];
        let limits: Vec<String> = limits.into_iter().flatten().collect();
        if limits.is_empty() { f.write_str("exactly") } else { f.write_str(&limits.join(" or ")) }
    }
}

/// Describes the compared outputs of a campaign.
pub(crate) fn compared(campaign: &Campaign, prepared: &Prepared) -> Vec<ComparedOutput> {
    let buffers = || prepared.workload.program.outputs.iter().zip(&prepared.formats);
    match &campaign.workload {
        CampaignWorkload::Kernels(_) => {
            buffers().map(|(buffer, format)| compared_buffer(buffer, format)).collect()
        }
        CampaignWorkload::Application(application) => {
            application.comparisons.iter().map(application_comparison).collect()
        }
        // The host of a recorded run may have read thousands of memory ranges.
        CampaignWorkload::Capture(source) => {
            let bytes = buffers().map(|(buffer, _)| buffer.bytes as u64).sum();
            let what = match &source.dispatches {
                None => "what the host read".to_owned(),
                Some(range) => format!("what dispatches {}-{} wrote", range.start(), range.end()),
            };
            let count = buffers().count();
            vec![ComparedOutput {
                name: format!("{what}, in {count} pieces"),
                element: "u8".to_owned(),
                elements: Some(bytes),
                comparison: Tolerance::default().to_string(),
                is_detector: false,
            }]
        }
    }
}

fn compared_buffer(buffer: &Buffer, format: &OutputFormat) -> ComparedOutput {
    ComparedOutput {
        name: buffer.name.clone(),
        element: format.element.to_string(),
        elements: format.element.elements_in(buffer.bytes as u64),
        is_detector: matches!(format.role, OutputRole::Detector(_)),
        comparison: match &format.role {
            OutputRole::Result(tolerance) => tolerance.to_string(),
            OutputRole::Detector(_) => {
                "exactly; it is the program's own check, and a difference is `detected`".to_owned()
            }
        },
    }
}

fn application_comparison(comparison: &Comparison) -> ComparedOutput {
    let (name, element, comparison) = match comparison {
        Comparison::Output { output, format } => {
            let (element, comparison) = match format {
                Format::Exact => ("bytes".to_owned(), Tolerance::default().to_string()),
                Format::Text { ignore, tolerance } => {
                    let ignored = match ignore.len() {
                        0 => String::new(),
                        count => format!(", without lines that match {count} patterns"),
                    };
                    ("numbers in text".to_owned(), format!("{tolerance}{ignored}"))
                }
                Format::Elements { element, tolerance, .. } => {
                    (element.to_string(), tolerance.to_string())
                }
            };
            (output.to_string(), element, comparison)
        }
        Comparison::Check(command) => {
            let program = command.program.file_name().unwrap_or(command.program.as_os_str());
            let check = "by a program of the campaign: right where its exit code is 0".to_owned();
            (program.to_string_lossy().into_owned(), "check".to_owned(), check)
        }
    };
    ComparedOutput { name, element, elements: None, comparison, is_detector: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances_are_described_with_the_keys_of_campaign_files() {
        let exact = Tolerance::default();
        let relative = Tolerance { relative: Some(1e-5), ..exact };
        let either = Tolerance { absolute: Some(0.5), ulp: Some(4), ..exact };
        let texts = [exact, relative, either].map(|tolerance| tolerance.to_string());
        assert_eq!(texts, ["exactly", "relative 1e-5", "absolute 0.5 or 4 ULP"]);
    }
}
