//! A comparison for the terminal.

use super::{By, ComparedRate, ComparedRates, Comparison};
use crate::Outcome;
use crate::table::{Cells, aligned};
use std::fmt::Write;

/// Lines of each table at most; all are in the table for programs.
const LINES: usize = 10;

impl Comparison {
    /// What it comes to, in a line: `SDC 31.2 % -> 2.1 %, difference -29.1 [-32.0, -26.1] points,
    /// p < 0.001; 2.31x the instructions`.
    pub fn verdict(&self) -> String {
        let Some(all) = self.all() else { return String::new() };
        let sdc = all.rate(Outcome::Sdc);
        let mut text = format!(
            "SDC {} % → {} %, difference {} points",
            points(sdc.a.rate),
            points(sdc.b.rate),
            change(sdc)
        );
        if let Some(p) = sdc.p {
            let _ = write!(text, ", {}", probability(p));
        }
        match self.cost() {
            Some(cost) => {
                let _ = write!(text, "; {cost:.2}x the instructions");
            }
            None => text.push_str("; instructions were not counted"),
        }
        text
    }

    /// How injections were compared, in sentences.
    pub(crate) fn method(&self) -> String {
        let [a, b] = self.counted;
        let mut text = match self.is_paired {
            true => format!(
                "Pair by pair: both inject the same faults, {} of {} and {}. ",
                a.compared, a.total, b.total
            ),
            false => {
                format!("As independent samples, of {} and {} injections. ", a.total, b.total)
            }
        };
        let confidence = self.a.design.confidence;
        let _ = write!(text, "Intervals are of {confidence}. ");
        text.push_str(&match (self.untested, self.is_paired) {
            (Some(why), _) => format!("There is no test, as {why}."),
            (None, true) => "The test is McNemar's, exact.".to_owned(),
            (None, false) => "The test is Fisher's, exact.".to_owned(),
        });
        text
    }

    /// The comparison as aligned text: the verdict, all outcomes, and the SDC of what changed most.
    pub fn table(&self) -> String {
        let mut text = format!("{}\n\n", self.verdict());
        let heading = ["A", "B", "difference", "p"];
        if let Some(all) = self.all() {
            let mut lines = vec![Cells::heading("outcome", "", heading)];
            lines.extend(all.rates().map(|(event, rate)| line(event.name(), "", rate)));
            text.push_str(&aligned(&lines));
        }
        for by in [By::Kernel, By::Label, By::Group, By::Opcode, By::Line] {
            let all: Vec<_> = self.most_changed(by);
            if all.len() < 2 {
                continue;
            }
            let title = format!("SDC by {}", by.name());
            let mut lines = vec![Cells::heading(&title, "injections", heading)];
            for own in all.iter().take(LINES) {
                let count = format!("{}, {}", own.totals[0], own.totals[1]);
                lines.push(line(&own.scope.value, &count, own.rate(Outcome::Sdc)));
            }
            let _ = write!(text, "\n{}", aligned(&lines));
            if let Some(more) = all.len().checked_sub(LINES).filter(|more| *more > 0) {
                let _ = writeln!(text, "and {more} more");
            }
        }
        let _ = writeln!(text, "\nIn percent, differences in points. {}", self.method());
        text
    }

    /// What has something in common, the SDC that changed most first.
    pub(crate) fn most_changed(&self, by: By) -> Vec<&ComparedRates> {
        let mut all: Vec<_> = self.by(by).collect();
        let size = |own: &ComparedRates| own.rate(Outcome::Sdc).change.rate.abs();
        // The sort keeps the order of what is equal.
        all.sort_by(|a, b| size(b).total_cmp(&size(a)));
        all
    }
}

fn line(label: &str, count: &str, rate: &ComparedRate) -> Cells {
    let p = rate.p.map(probability).unwrap_or_default();
    let p = p.trim_start_matches("p = ").trim_start_matches("p ").to_owned();
    let rest = vec![count.to_owned(), points(rate.a.rate), points(rate.b.rate), change(rate), p];
    Cells { label: label.to_owned(), rest }
}

/// A rate or a difference in percent.
pub(super) fn points(rate: f64) -> String {
    let text = format!("{:.1}", 100.0 * rate);
    if text == "-0.0" { "0.0".to_owned() } else { text }
}

/// `-29.1 [-32.0, -26.1]`.
pub(super) fn change(rate: &ComparedRate) -> String {
    let change = rate.change;
    format!("{} [{}, {}]", points(change.rate), points(change.low), points(change.high))
}

/// `p = 0.034`, `p < 0.001`.
pub(super) fn probability(p: f64) -> String {
    match p < 0.001 {
        true => "p < 0.001".to_owned(),
        false => format!("p = {p:.3}"),
    }
}
