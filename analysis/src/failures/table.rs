//! The failure rates of devices as a table.

use super::{Estimate, FailureKind, Structure, failure_rate};
use crate::{Confidence, Outcome, ResultsError};
use flipwave_host::output::FormulaEscaper;
use serde::Serialize;
use std::io::Write;

/// A population of equal devices and the structures in which they fail.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceFailures {
    /// Structures of one device.
    pub structures: Vec<Structure>,
    /// Number of devices.
    pub devices: u64,
    /// Confidence of the intervals.
    pub confidence: Confidence,
}

/// The subject of a line of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FailureScope<'a> {
    /// One structure of one device.
    Structure(&'a Structure),
    /// All structures of one device.
    Device,
    /// All structures of all devices.
    Devices,
}

impl FailureScope<'_> {
    /// Name in result tables.
    fn name(self) -> &'static str {
        match self {
            FailureScope::Structure(_) => "structure",
            FailureScope::Device => "device",
            FailureScope::Devices => "devices",
        }
    }
}

/// A line of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct FailureLine<'a> {
    /// The structure or devices.
    pub scope: FailureScope<'a>,
    /// Raw fault rate in FIT.
    pub raw: Estimate,
    /// Failure rates in FIT, in the order of [`FailureLine::KINDS`].
    pub failures: [Estimate; FailureLine::KINDS.len()],
}

impl FailureLine<'_> {
    /// The kinds of failures in each line.
    pub const KINDS: [FailureKind; 4] = [
        FailureKind::Only(Outcome::Sdc),
        FailureKind::Only(Outcome::Due),
        FailureKind::Only(Outcome::Detected),
        FailureKind::Any,
    ];
}

impl DeviceFailures {
    /// Lines for each structure, one device and all devices.
    pub fn lines(&self) -> Vec<FailureLine<'_>> {
        let line = |scope, structures: &[Structure], devices: f64| {
            let raw = structures.iter().map(|structure| structure.raw.estimate(self.confidence));
            FailureLine {
                scope,
                raw: Estimate::sum(raw).scaled(devices),
                failures: FailureLine::KINDS
                    .map(|kind| failure_rate(structures, kind, self.confidence).scaled(devices)),
            }
        };
        let all = self.structures.as_slice();
        let structure_line = |structure| {
            line(FailureScope::Structure(structure), std::slice::from_ref(structure), 1.0)
        };
        let mut lines: Vec<_> = all.iter().map(structure_line).collect();
        lines.push(line(FailureScope::Device, all, 1.0));
        lines.push(line(FailureScope::Devices, all, self.devices as f64));
        lines
    }

    /// Writes the table as CSV, with one line for each kind of failure. Numbers have seven significant
    /// digits, so that the file does not depend on the host.
    ///
    /// # Errors
    /// [`ResultsError::Csv`] if writing fails.
    pub fn write_csv(&self, output: impl Write) -> Result<(), ResultsError> {
        let mut writer = csv::Writer::from_writer(FormulaEscaper::new(output));
        for FailureLine { scope, raw, failures } in self.lines() {
            let structure = match scope {
                FailureScope::Structure(structure) => Some(structure),
                FailureScope::Device | FailureScope::Devices => None,
            };
            for (kind, fit) in FailureLine::KINDS.into_iter().zip(failures) {
                let probability = structure.map(|structure| structure.probability(kind));
                let probability_digits = |value: fn(Estimate) -> f64| {
                    probability.map_or(String::new(), |estimate| digits(value(estimate)))
                };
                let hours = fit.hours();
                writer.serialize(FailureRecord {
                    scope: scope.name(),
                    structure: structure.map_or("", |structure| &structure.name),
                    devices: if scope == FailureScope::Devices { self.devices } else { 1 },
                    rows: structure.map_or(String::new(), |structure| structure.rows.to_string()),
                    injections: structure.map(|structure| structure.injections),
                    outcome: kind.name(),
                    raw_fit: digits(raw.value),
                    raw_low: digits(raw.low),
                    raw_high: digits(raw.high),
                    probability: probability_digits(|estimate| estimate.value),
                    probability_low: probability_digits(|estimate| estimate.low),
                    probability_high: probability_digits(|estimate| estimate.high),
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
struct FailureRecord<'a> {
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

/// Formats a number as `1.234567e3`, infinity as `inf`.
fn digits(number: f64) -> String {
    if number.is_finite() { format!("{number:.6e}") } else { number.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::columns;

    #[test]
    fn failure_rates_have_fixed_columns() {
        assert_eq!(
            columns(&FailureRecord::default()),
            "scope,structure,devices,rows,injections,outcome,raw_fit,raw_low,raw_high,\
             probability,probability_low,probability_high,fit,fit_low,fit_high,mtbf_hours,\
             mtbf_low,mtbf_high,confidence"
        );
    }
}
