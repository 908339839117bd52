//! The agreement of measured outcome rates with published ones.

mod rank;

pub use rank::{Correlation, spearman};

use crate::{Outcome, Share};
use flipwave_host::output::FormulaEscaper;
pub(crate) use rank::RankedRate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{Read, Write};

/// A published outcome rate of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedRate {
    /// Name of the program's campaign.
    pub workload: String,
    /// The outcome.
    pub outcome: Outcome,
    /// Fraction of the injections with the outcome, from 0 to 1.
    pub rate: f64,
    /// Source of the rate.
    pub source: String,
}

/// Errors returned when comparing measured with published rates.
#[derive(Debug, thiserror::Error)]
pub enum AgreementError {
    /// The table of published rates is malformed.
    #[error("{0}; expected the columns workload,outcome,rate,source")]
    Table(#[from] csv::Error),
    /// A published rate is out of range.
    #[error("line {line}: invalid {outcome} rate {rate} of {workload}; expected 0 to 1")]
    Rate {
        /// Line of the rate.
        line: usize,
        /// The program.
        workload: String,
        /// The outcome.
        outcome: Outcome,
        /// The rate.
        rate: f64,
    },
    /// A rate is published twice.
    #[error("line {line}: duplicate {outcome} rate of {workload}")]
    DuplicateRate {
        /// Line of the second rate.
        line: usize,
        /// The program.
        workload: String,
        /// The outcome.
        outcome: Outcome,
    },
    /// Two campaigns have the same name.
    #[error("two campaigns are named {0}; give one campaign for each program")]
    DuplicateCampaign(String),
    /// No campaign has a published rate.
    #[error("no published rates for any of these campaigns: {measured}")]
    NothingInCommon {
        /// Names of the campaigns.
        measured: String,
    },
}

/// Reads published rates from CSV with the columns `workload,outcome,rate,source`.
///
/// # Errors
/// [`AgreementError`] for the first malformed line, invalid rate or duplicate.
pub fn read_published(table: impl Read) -> Result<Vec<PublishedRate>, AgreementError> {
    let mut published: Vec<PublishedRate> = Vec::new();
    let mut reader = csv::Reader::from_reader(table);
    // Iterating over rows alone would not report an unreadable header.
    reader.headers()?;
    for (line, row) in (2..).zip(reader.deserialize()) {
        let PublishedRate { workload, outcome, rate, source } = row?;
        if !(0.0..=1.0).contains(&rate) {
            return Err(AgreementError::Rate { line, workload, outcome, rate });
        }
        if published.iter().any(|rate| rate.workload == workload && rate.outcome == outcome) {
            return Err(AgreementError::DuplicateRate { line, workload, outcome });
        }
        published.push(PublishedRate { workload, outcome, rate, source });
    }
    Ok(published)
}

/// Measured outcome rates of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredOutcomes {
    /// Name of the campaign.
    pub workload: String,
    /// Number of injections.
    pub total: u64,
    /// Shares of the outcomes, in the order of [`Outcome::ALL`].
    pub outcomes: [Share; Outcome::ALL.len()],
}

/// A measured rate and the corresponding published rate.
#[derive(Clone, Debug, PartialEq)]
pub struct RateAgreement {
    /// Published rate.
    pub published: PublishedRate,
    /// Number of injections of the measured rate.
    pub total: u64,
    /// Measured rate.
    pub measured: Share,
}

impl RateAgreement {
    /// Returns `true` if the interval of the measured rate contains the published rate.
    pub fn is_inside(&self) -> bool {
        let interval = self.measured.interval;
        (interval.low..=interval.high).contains(&self.published.rate)
    }
}

/// The agreement of the rates of one outcome over several programs.
#[derive(Clone, Debug, PartialEq)]
pub struct OutcomeAgreement {
    /// The outcome.
    pub outcome: Outcome,
    /// Programs with both rates, in the order of publication.
    pub rates: Vec<RateAgreement>,
    /// Mean absolute difference of the two rates.
    pub mean_difference: f64,
    /// Rank correlation of measured and published rates; `None` for fewer than three programs or constant
    /// rates.
    pub correlation: Option<Correlation>,
}

/// Compares measured with published rates for each outcome, in the order of [`Outcome::ALL`]. Omits programs
/// that are only measured or only published.
///
/// # Errors
/// [`AgreementError::DuplicateCampaign`] and [`AgreementError::NothingInCommon`].
pub fn agreement(
    published: &[PublishedRate],
    measured: &[MeasuredOutcomes],
) -> Result<Vec<OutcomeAgreement>, AgreementError> {
    let mut names = BTreeSet::new();
    for program in measured {
        if !names.insert(program.workload.as_str()) {
            return Err(AgreementError::DuplicateCampaign(program.workload.clone()));
        }
    }
    let with_measured = |published: &PublishedRate| {
        let program = measured.iter().find(|program| program.workload == published.workload)?;
        Some(RateAgreement {
            published: published.clone(),
            total: program.total,
            measured: program.outcomes[published.outcome as usize],
        })
    };
    let outcome_agreement = |outcome: Outcome| {
        let published = published.iter().filter(|rate| rate.outcome == outcome);
        let rates: Vec<RateAgreement> = published.filter_map(with_measured).collect();
        (!rates.is_empty()).then(|| OutcomeAgreement::new(outcome, rates))
    };
    let agreements: Vec<OutcomeAgreement> =
        Outcome::ALL.into_iter().filter_map(outcome_agreement).collect();
    if agreements.is_empty() {
        let measured = names.into_iter().collect::<Vec<_>>().join(", ");
        return Err(AgreementError::NothingInCommon { measured });
    }
    Ok(agreements)
}

impl OutcomeAgreement {
    fn new(outcome: Outcome, rates: Vec<RateAgreement>) -> OutcomeAgreement {
        let published: Vec<RankedRate> =
            rates.iter().map(|rate| RankedRate::exact(rate.published.rate)).collect();
        let measured: Vec<RankedRate> =
            rates.iter().map(|rate| RankedRate::measured(rate.measured.rate, rate.total)).collect();
        let differences = rates.iter().map(|rate| (rate.published.rate - rate.measured.rate).abs());
        OutcomeAgreement {
            outcome,
            mean_difference: differences.sum::<f64>() / rates.len() as f64,
            correlation: Correlation::new(&measured, &published),
            rates,
        }
    }
}

/// Writes the rates as CSV, one line for each program and outcome.
///
/// # Errors
/// An error of the writer.
pub fn write_agreement(agreements: &[OutcomeAgreement], output: impl Write) -> csv::Result<()> {
    let mut table = csv::Writer::from_writer(FormulaEscaper::new(output));
    table.write_record([
        "workload",
        "outcome",
        "injections",
        "rate",
        "low",
        "high",
        "published",
        "inside",
        "source",
    ])?;
    for agreement in agreements.iter().flat_map(|agreement| &agreement.rates) {
        let RateAgreement { published, total, measured } = agreement;
        let [rate, low, high] = [measured.rate, measured.interval.low, measured.interval.high];
        table.serialize((
            &published.workload,
            published.outcome,
            total,
            (rate, low, high),
            published.rate,
            agreement.is_inside(),
            &published.source,
        ))?;
    }
    table.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Confidence, wilson};

    const TABLE: &str = "workload,outcome,rate,source\n\
                         a,sdc,0.1,someone\nb,sdc,0.2,someone\nc,sdc,0.3,someone\nd,due,0,someone\n";

    fn measured(workload: &str, sdc: u64) -> MeasuredOutcomes {
        let share = |count: u64| Share {
            count,
            rate: count as f64 / 100.0,
            interval: wilson(count, 100, Confidence::P95),
        };
        let outcome = |outcome: Outcome| share(if outcome == Outcome::Sdc { sdc } else { 0 });
        MeasuredOutcomes {
            workload: workload.to_owned(),
            total: 100,
            outcomes: Outcome::ALL.map(outcome),
        }
    }

    #[test]
    fn measured_rates_are_compared_with_published_rates() {
        let published = read_published(TABLE.as_bytes()).expect("rates");
        // Wilson's interval of 25 of 100 is 17.5 to 34.3 percent, that of 40 of 100 is 30.9 to 49.8.
        let measured = [measured("c", 40), measured("b", 25), measured("a", 12), measured("e", 1)];
        let agreements = agreement(&published, &measured).expect("some in common");
        assert_eq!(agreements.len(), 1, "program d has no campaign");
        let sdc = &agreements[0];
        assert_eq!(
            sdc.rates.iter().map(RateAgreement::is_inside).collect::<Vec<_>>(),
            [true, true, false]
        );
        assert!((sdc.mean_difference - (0.02 + 0.05 + 0.1) / 3.0).abs() < 1e-12);
        let correlation = sdc.correlation.expect("three programs");
        assert_eq!(correlation.rho, 1.0);
        // Two of the six orders of three programs have a correlation of 1 or -1.
        assert!((correlation.p - 1.0 / 3.0).abs() < 1e-12);
        let mut text = Vec::new();
        write_agreement(&agreements, &mut text).expect("written");
        let text = String::from_utf8(text).expect("text");
        let line = text.lines().find(|line| line.starts_with("c,")).expect("a line");
        assert!(
            line.starts_with("c,sdc,100,0.4,0.30") && line.ends_with(",0.3,false,someone"),
            "{line}"
        );
    }

    #[test]
    fn invalid_and_unrelated_tables_are_rejected() {
        let error = |text: &str| read_published(text.as_bytes()).expect_err(text).to_string();
        let with = |line: &str| format!("{TABLE}{line}\n");
        assert!(error(&with("e,sdc,1.5,x")).contains("line 6: invalid sdc rate 1.5 of e"));
        assert!(error(&with("e,sdc,NaN,x")).contains("NaN"));
        assert!(error(&with("a,sdc,0.5,x")).contains("line 6"));
        assert!(error(&with("e,hang,0.5,x")).contains("workload,outcome,rate,source"));
        assert!(error("program,rate\na,0.5\n").contains("workload,outcome,rate,source"));
        let published = read_published(TABLE.as_bytes()).expect("rates");
        let error = agreement(&published, &[measured("x", 1)]).expect_err("nothing in common");
        assert!(error.to_string().ends_with("campaigns: x"), "{error}");
        let duplicates = [measured("a", 1), measured("a", 2)];
        assert!(agreement(&published, &duplicates).is_err());
    }
}
