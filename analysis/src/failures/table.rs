//! The failures of a device as a table.

use super::{Estimate, FailureKind, Structure, failure_rate};
use crate::{Confidence, Outcome, ResultsError};
use flipwave_host::output::FormulaEscaper;
use serde::Serialize;
use std::io::Write;

/// What of a device fails, and how many devices there are.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceFailures {
    /// The parts of a device in which faults happen.
    pub structures: Vec<Structure>,
    /// Devices.
    pub devices: u64,
    /// How sure intervals are.
    pub confidence: Confidence,
}

/// What a line of the table is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FailurePart<'a> {
    /// One structure of one device.
    Structure(&'a Structure),
    /// All structures of one device.
    Device,
    /// All structures of all devices.
    Devices,
}

impl FailurePart<'_> {
    fn scope(self) -> &'static str {
        match self {
            FailurePart::Structure(_) => "structure",
            FailurePart::Device => "device",
            FailurePart::Devices => "devices",
        }
    }
}

/// A line of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct FailureLine<'a> {
    /// What it is about.
    pub part: FailurePart<'a>,
    /// Faults in FIT, whatever comes of them.
    pub raw: Estimate,
    /// By [`FailureLine::KINDS`], failures in FIT.
    pub failures: [Estimate; FailureLine::KINDS.len()],
}

impl FailureLine<'_> {
    /// The failures that are told apart.
    pub const KINDS: [FailureKind; 4] = [
        FailureKind::Only(Outcome::Sdc),
        FailureKind::Only(Outcome::Due),
        FailureKind::Only(Outcome::Detected),
        FailureKind::Any,
    ];
}

impl DeviceFailures {
    /// The structures in their order, then a device, then all devices.
    pub fn lines(&self) -> Vec<FailureLine<'_>> {
        let line = |part, structures: &[Structure], devices: f64| FailureLine {
            part,
            raw: Estimate::sum(structures.iter().map(|own| own.raw.estimate(self.confidence)))
                .scaled(devices),
            failures: FailureLine::KINDS
                .map(|kind| failure_rate(structures, kind, self.confidence).scaled(devices)),
        };
        let all = self.structures.as_slice();
        let mut lines: Vec<_> = all
            .iter()
            .map(|own| line(FailurePart::Structure(own), std::slice::from_ref(own), 1.0))
            .collect();
        lines.push(line(FailurePart::Device, all, 1.0));
        lines.push(line(FailurePart::Devices, all, self.devices as f64));
        lines
    }

    /// Writes the table as CSV: for each line of it one for each kind of failure. Numbers have seven
    /// digits, so that the file does not depend on the host.
    ///
    /// # Errors
    /// [`ResultsError::Csv`] if writing fails.
    pub fn write_csv(&self, output: impl Write) -> Result<(), ResultsError> {
        let mut writer = csv::Writer::from_writer(FormulaEscaper::new(output));
        for FailureLine { part, raw, failures } in self.lines() {
            for (kind, fit) in FailureLine::KINDS.into_iter().zip(failures) {
                let found = match part {
                    FailurePart::Structure(own) => Some(own),
                    _ => None,
                };
                let probability = found.map(|own| own.probability(kind));
                let hours = fit.hours();
                let of = |estimate: Option<Estimate>, part: fn(Estimate) -> f64| {
                    estimate.map_or(String::new(), |own| digits(part(own)))
                };
                writer.serialize(Line {
                    scope: part.scope(),
                    structure: found.map_or("", |own| &own.name),
                    devices: if part == FailurePart::Devices { self.devices } else { 1 },
                    rows: found.map_or(String::new(), |own| own.rows.to_string()),
                    injections: found.map(|own| own.injections),
                    outcome: kind.name(),
                    raw_fit: digits(raw.value),
                    raw_low: digits(raw.low),
                    raw_high: digits(raw.high),
                    probability: of(probability, |own| own.value),
                    probability_low: of(probability, |own| own.low),
                    probability_high: of(probability, |own| own.high),
                    fit: digits(fit.value),
                    fit_low: digits(fit.low),
                    fit_high: digits(fit.high),
                    mtbf_hours: digits(hours.value),
                    mtbf_low: digits(hours.low),
                    mtbf_high: digits(hours.high),
                    confidence: self.confidence.probability(),
                })?;
            }
        }
        writer.flush().map_err(csv::Error::from)?;
        Ok(())
    }
}

/// A line of the CSV.
#[derive(Default, Serialize)]
struct Line<'a> {
    scope: &'a str,
    structure: &'a str,
    devices: u64,
    rows: String,
    injections: Option<u64>,
    outcome: &'a str,
    raw_fit: String,
    raw_low: String,
    raw_high: String,
    probability: String,
    probability_low: String,
    probability_high: String,
    fit: String,
    fit_low: String,
    fit_high: String,
    mtbf_hours: String,
    mtbf_low: String,
    mtbf_high: String,
    confidence: f64,
}

/// A number as `1.234567e3`; `inf` of one without end.
fn digits(number: f64) -> String {
    match number.is_finite() {
        true => format!("{number:.6e}"),
        false => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::columns;

    #[test]
    fn failure_rates_have_fixed_columns() {
        assert_eq!(
            columns(&Line::default()),
            "scope,structure,devices,rows,injections,outcome,raw_fit,raw_low,raw_high,\
             probability,probability_low,probability_high,fit,fit_low,fit_high,mtbf_hours,\
             mtbf_low,mtbf_high,confidence"
        );
    }
}
