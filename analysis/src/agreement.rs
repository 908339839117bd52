//! How rates of programs agree with rates that others have published of them.

mod rank;

pub use rank::{Correlation, spearman};

use crate::{Outcome, Share};
use flipwave_host::output::FormulaEscaper;
use rank::Redrawn;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{Read, Write};

/// A rate that was published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The program, as a campaign of it is called.
    pub workload: String,
    /// The outcome.
    pub outcome: Outcome,
    /// Its part of the injections, 0 to 1.
    pub rate: f64,
    /// Where it is from.
    pub source: String,
}

/// Rates that nothing can be compared with.
#[derive(Debug, thiserror::Error)]
pub enum AgreementError {
    /// They are not in the form of published rates.
    #[error("{0}; expected the columns workload,outcome,rate,source")]
    Table(#[from] csv::Error),
    /// A rate that is none.
    #[error("line {line}: the rate of {outcome} of {workload} is {rate}; expected 0 to 1")]
    Rate {
        /// The line.
        line: usize,
        /// The program.
        workload: String,
        /// The outcome.
        outcome: Outcome,
        /// What stands there.
        rate: f64,
    },
    /// The same twice.
    #[error("line {line}: the rate of {outcome} of {workload} stands there before")]
    Twice {
        /// The line.
        line: usize,
        /// The program.
        workload: String,
        /// The outcome.
        outcome: Outcome,
    },
    /// Two campaigns of a program.
    #[error("two of the campaigns are called {0}; expected one of each program")]
    Measured(String),
    /// Nothing in common.
    #[error("no rate is published of any of these campaigns, which are called {measured}")]
    Nothing {
        /// The campaigns.
        measured: String,
    },
}

/// Reads published rates: CSV with the columns `workload,outcome,rate,source`.
///
/// # Errors
/// [`AgreementError`] of the first thing that is not so.
pub fn read_published(table: impl Read) -> Result<Vec<Published>, AgreementError> {
    let mut published: Vec<Published> = Vec::new();
    let mut reader = csv::Reader::from_reader(table);
    // Rows alone would hide that this line cannot be read.
    reader.headers()?;
    for (line, row) in (2..).zip(reader.deserialize()) {
        let Published { workload, outcome, rate, source } = row?;
        if !(0.0..=1.0).contains(&rate) {
            return Err(AgreementError::Rate { line, workload, outcome, rate });
        }
        if published.iter().any(|own| own.workload == workload && own.outcome == outcome) {
            return Err(AgreementError::Twice { line, workload, outcome });
        }
        published.push(Published { workload, outcome, rate, source });
    }
    Ok(published)
}

/// What the campaign of a program has come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The program.
    pub workload: String,
    /// Injections.
    pub total: u64,
    /// What came of them, in the order of [`Outcome::ALL`].
    pub outcomes: [Share; Outcome::ALL.len()],
}

/// A rate beside the one that was published.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The one that was published.
    pub published: Published,
    /// Injections of our own.
    pub total: u64,
    /// Our own rate.
    pub measured: Share,
}

impl Compared {
    /// Whether the interval of our own rate has the published one in it.
    pub fn is_inside(&self) -> bool {
        let interval = self.measured.interval;
        (interval.low..=interval.high).contains(&self.published.rate)
    }
}

/// How the rates of one outcome agree.
#[derive(Clone, Debug, PartialEq)]
pub struct OutcomeAgreement {
    /// The outcome.
    pub outcome: Outcome,
    /// The programs of which there are two rates, in the order in which they are published.
    pub compared: Vec<Compared>,
    /// How far apart two rates are, on average.
    pub mean_difference: f64,
    /// How alike both put the programs in order; nothing of fewer than three programs, and where one
    /// of both has the same rate for all.
    pub correlation: Option<Correlation>,
}

/// Puts published rates beside those of campaigns, by outcome in the order of [`Outcome::ALL`]; programs
/// that are not in both are left out.
///
/// # Errors
/// [`AgreementError`] where there are none in both, or two campaigns of one.
pub fn agreement(
    published: &[Published],
    measured: &[Measured],
) -> Result<Vec<OutcomeAgreement>, AgreementError> {
    let mut names = BTreeSet::new();
    for own in measured {
        if !names.insert(own.workload.as_str()) {
            return Err(AgreementError::Measured(own.workload.clone()));
        }
    }
    let compared = |published: &Published| {
        let own = measured.iter().find(|own| own.workload == published.workload)?;
        Some(Compared {
            published: published.clone(),
            total: own.total,
            measured: own.outcomes[published.outcome as usize],
        })
    };
    let of_outcome = |outcome: Outcome| {
        let published = published.iter().filter(|own| own.outcome == outcome);
        let compared: Vec<Compared> = published.filter_map(compared).collect();
        (!compared.is_empty()).then(|| OutcomeAgreement::of(outcome, compared))
    };
    let all: Vec<OutcomeAgreement> = Outcome::ALL.into_iter().filter_map(of_outcome).collect();
    if all.is_empty() {
        let measured = names.into_iter().collect::<Vec<_>>().join(", ");
        return Err(AgreementError::Nothing { measured });
    }
    Ok(all)
}

impl OutcomeAgreement {
    fn of(outcome: Outcome, compared: Vec<Compared>) -> OutcomeAgreement {
        let published: Vec<f64> = compared.iter().map(|own| own.published.rate).collect();
        let redrawn: Vec<Redrawn> =
            compared.iter().map(|own| Redrawn::new(own.measured.rate, own.total)).collect();
        let measured: Vec<f64> = compared.iter().map(|own| own.measured.rate).collect();
        let differences = published.iter().zip(&measured).map(|(a, b)| (a - b).abs());
        OutcomeAgreement {
            outcome,
            mean_difference: differences.sum::<f64>() / compared.len() as f64,
            correlation: Correlation::of(&measured, &published, &redrawn),
            compared,
        }
    }
}

/// Writes the rates as CSV, one line for each program and outcome.
///
/// # Errors
/// What the writer fails with.
pub fn write_agreement(all: &[OutcomeAgreement], output: impl Write) -> csv::Result<()> {
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
    for own in all.iter().flat_map(|own| &own.compared) {
        let Compared { published, total, measured, .. } = own;
        let [rate, low, high] = [measured.rate, measured.interval.low, measured.interval.high];
        table.serialize((
            &published.workload,
            published.outcome,
            total,
            (rate, low, high),
            published.rate,
            own.is_inside(),
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

    fn measured(workload: &str, sdc: u64) -> Measured {
        let share = |count: u64| Share {
            count,
            rate: count as f64 / 100.0,
            interval: wilson(count, 100, Confidence::P95),
        };
        let outcome = |own: Outcome| share(if own == Outcome::Sdc { sdc } else { 0 });
        Measured { workload: workload.to_owned(), total: 100, outcomes: Outcome::ALL.map(outcome) }
    }

    #[test]
    fn rates_are_put_beside_those_that_are_published() {
        let published = read_published(TABLE.as_bytes()).expect("rates");
        // Wilson's interval of 25 of 100 is 17.5 to 34.3 percent, of 40 of 100 it is 30.9 to 49.8.
        let own = [measured("c", 40), measured("b", 25), measured("a", 12), measured("e", 1)];
        let all = agreement(&published, &own).expect("some in common");
        assert_eq!(all.len(), 1, "of d there is no campaign");
        let sdc = &all[0];
        assert_eq!(
            sdc.compared.iter().map(Compared::is_inside).collect::<Vec<_>>(),
            [true, true, false]
        );
        assert!((sdc.mean_difference - (0.02 + 0.05 + 0.1) / 3.0).abs() < 1e-12);
        let correlation = sdc.correlation.expect("three programs");
        assert_eq!(correlation.rho, 1.0);
        // Of the six orders of three programs two are as alike or as opposite.
        assert!((correlation.p - 1.0 / 3.0).abs() < 1e-12);
        let mut text = Vec::new();
        write_agreement(&all, &mut text).expect("written");
        let text = String::from_utf8(text).expect("text");
        let line = text.lines().find(|line| line.starts_with("c,")).expect("a line");
        assert!(
            line.starts_with("c,sdc,100,0.4,0.30") && line.ends_with(",0.3,false,someone"),
            "{line}"
        );
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let refused = |text: &str| read_published(text.as_bytes()).expect_err(text).to_string();
        let with = |line: &str| format!("{TABLE}{line}\n");
        assert!(refused(&with("e,sdc,1.5,x")).contains("line 6: the rate of sdc of e is 1.5"));
        assert!(refused(&with("e,sdc,NaN,x")).contains("NaN"));
        assert!(refused(&with("a,sdc,0.5,x")).contains("line 6"));
        assert!(refused(&with("e,hang,0.5,x")).contains("workload,outcome,rate,source"));
        assert!(refused("program,rate\na,0.5\n").contains("workload,outcome,rate,source"));
        let published = read_published(TABLE.as_bytes()).expect("rates");
        let error = agreement(&published, &[measured("x", 1)]).expect_err("nothing in common");
        assert!(error.to_string().contains("called x"), "{error}");
        let twice = [measured("a", 1), measured("a", 2)];
        assert!(agreement(&published, &twice).is_err());
    }
}
