//! A comparison as text for the terminal.

use super::{Change, ComparedRate, ComparedRates, Comparison, ScopeKind};
use crate::Outcome;
use crate::table::{TableLine, aligned};
use std::fmt::Write;

/// Most lines of each table; the CSV file has all.
const MAX_LINES: usize = 10;

impl Comparison {
    /// The change of SDC and instructions in one line: `SDC 31.2 % → 2.1 %, difference -29.1 [-32.0, -26.1]
    /// points, p < 0.001; 2.31x the instructions`.
    pub fn verdict(&self) -> String {
        let Some(overall) = self.overall() else { return String::new() };
        let sdc = overall.rate(Outcome::Sdc);
        let mut text = format!(
            "SDC {} % → {} %, difference {} points",
            points(sdc.a.rate),
            points(sdc.b.rate),
            difference(sdc.change)
        );
        if let Some(p) = sdc.p {
            let equals = if p < 0.001 { "" } else { "= " };
            let _ = write!(text, ", p {equals}{}", p_value(p));
        }
        match self.instruction_ratio() {
            Some(ratio) => {
                let _ = write!(text, "; {ratio:.2}x the instructions");
            }
            None => text.push_str("; instructions were not counted"),
        }
        text
    }

    /// The method of the comparison, in sentences.
    pub(crate) fn method(&self) -> String {
        let [a, b] = self.injections;
        let mut text = if self.is_paired {
            format!(
                "Compared pair by pair, as both campaigns inject the same faults: {} of {} and {}. ",
                a.compared, a.total, b.total
            )
        } else {
            format!("Compared as independent samples of {} and {} injections. ", a.total, b.total)
        };
        let confidence = self.a.design.confidence;
        let _ = write!(text, "Intervals have {confidence} confidence. ");
        text.push_str(&match (self.no_test_reason, self.is_paired) {
            (Some(reason), _) => format!("No test, as {reason}."),
            (None, true) => "p is of McNemar's exact test.".to_owned(),
            (None, false) => "p is of Fisher's exact test.".to_owned(),
        });
        text
    }

    /// Formats the comparison as aligned text: the verdict, all outcomes, and the scopes whose SDC changed
    /// most.
    pub fn table(&self) -> String {
        let mut text = format!("{}\n\n", self.verdict());
        let heading = ["A", "B", "difference", "p"];
        if let Some(overall) = self.overall() {
            let mut lines = vec![TableLine::heading("outcome", "", heading)];
            lines.extend(overall.rates().map(|(outcome, rate)| line(outcome.name(), "", rate)));
            text.push_str(&aligned(&lines));
        }
        for kind in [
            ScopeKind::Kernel,
            ScopeKind::Label,
            ScopeKind::Group,
            ScopeKind::Opcode,
            ScopeKind::Line,
        ] {
            let scopes = self.most_changed(kind);
            if scopes.len() < 2 {
                continue;
            }
            let title = format!("SDC by {}", kind.name());
            let mut lines = vec![TableLine::heading(&title, "injections", heading)];
            for compared in scopes.iter().take(MAX_LINES) {
                let count = format!("{}, {}", compared.totals[0], compared.totals[1]);
                let label = compared.scope.label();
                lines.push(line(&label, &count, compared.rate(Outcome::Sdc)));
            }
            let _ = write!(text, "\n{}", aligned(&lines));
            if let Some(more) = scopes.len().checked_sub(MAX_LINES).filter(|more| *more > 0) {
                let _ = writeln!(text, "and {more} more");
            }
        }
        let _ = writeln!(text, "\nIn percent, differences in points. {}", self.method());
        text
    }

    /// Scopes of a kind, those whose SDC rate changed most first.
    pub(crate) fn most_changed(&self, kind: ScopeKind) -> Vec<&ComparedRates> {
        let mut scopes: Vec<_> = self.of_kind(kind).collect();
        let size = |compared: &ComparedRates| compared.rate(Outcome::Sdc).change.rate.abs();
        // The sort is stable.
        scopes.sort_by(|a, b| size(b).total_cmp(&size(a)));
        scopes
    }
}

fn line(label: &str, count: &str, rate: &ComparedRate) -> TableLine {
    let cells = std::iter::once(count.to_owned()).chain(rate_and_p(rate)).collect();
    TableLine { label: label.to_owned(), cells }
}

/// Both rates, their difference and the p-value as cells.
pub(super) fn rate_and_p(rate: &ComparedRate) -> [String; 4] {
    let p = rate.p.map(p_value).unwrap_or_default();
    [points(rate.a.rate), points(rate.b.rate), difference(rate.change), p]
}

/// Formats a rate or a difference of rates in percent.
pub(super) fn points(rate: f64) -> String {
    let text = format!("{:.1}", 100.0 * rate);
    if text == "-0.0" { "0.0".to_owned() } else { text }
}

/// Formats a change with its interval in percentage points: `-29.1 [-32.0, -26.1]`.
pub(super) fn difference(change: Change) -> String {
    format!("{} [{}, {}]", points(change.rate), points(change.low), points(change.high))
}

/// Formats a p-value: `0.034`, `< 0.001`.
pub(super) fn p_value(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}
