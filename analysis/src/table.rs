//! Summaries as aligned text tables.

use crate::summary::CauseShare;
use crate::{Outcome, ScopeSummary, Severity, Share, Summary};
use flipwave_host::output::printable;
use std::fmt::Write;

impl Summary {
    /// Formats the summary as aligned text: one line per scope with the rate and interval of each
    /// outcome in percent, then one line per cause.
    pub fn table(&self) -> String {
        let shown: Vec<Outcome> = self.shown_outcomes().collect();
        let names = shown.iter().map(|outcome| outcome.name());
        let names = names.chain(self.scopes.first().and_then(ScopeSummary::critical_name));
        let mut lines = vec![TableLine::heading("", "injections", names)];
        lines.extend(self.shown_scopes().map(|scope| TableLine::of_scope(scope, &shown)));
        let mut text = aligned(&lines);

        if let Some(all) = self.scopes.first()
            && !all.causes.is_empty()
        {
            let mut lines = vec![TableLine::heading("by cause", "injections", ["rate"])];
            lines.extend(all.causes.iter().map(TableLine::of_cause));
            text.push('\n');
            text.push_str(&aligned(&lines));
        }
        let (confidence, method) = (self.confidence, self.method.name());
        let _ =
            writeln!(text, "\nIn percent, with the {confidence} {method} interval in brackets.");
        text
    }
}

/// Formats the overall rates of several named summaries as aligned text: one line per summary with the
/// rates and intervals of unmasked outcomes in percent.
pub fn overview_table(summaries: &[(&str, &Summary)]) -> String {
    let all =
        || summaries.iter().filter_map(|(name, summary)| Some((*name, summary.scopes.first()?)));
    let has_detected = all().any(|(_, rates)| rates.share(Outcome::Detected).count > 0);
    let shown = [Outcome::Sdc, Outcome::Due, Outcome::Detected];
    let shown = &shown[..if has_detected { 3 } else { 2 }];
    let names = shown.iter().map(|outcome| outcome.name());
    let names = names.chain(all().find_map(|(_, rates)| rates.critical_name()));
    let mut lines = vec![TableLine::heading("", "injections", names)];
    lines.extend(all().map(|(name, rates)| TableLine::of_rates(name.to_owned(), rates, shown)));
    let mut text = aligned(&lines);
    let mut confidences: Vec<String> =
        summaries.iter().map(|(_, summary)| summary.confidence.to_string()).collect();
    confidences.dedup();
    let interval = match confidences.as_slice() {
        [confidence] => format!("the {confidence} Wilson interval"),
        _ => "the Wilson interval of the confidence in variants.csv".to_owned(),
    };
    let _ = writeln!(text, "\nIn percent, with {interval} in brackets.");
    text
}

/// A line of an aligned table: a left-aligned label and right-aligned cells.
pub(crate) struct TableLine {
    pub label: String,
    pub cells: Vec<String>,
}

impl<K> ScopeSummary<K> {
    /// Heading of the rate of critical SDC; `None` if the campaign has no judge.
    pub(crate) fn critical_name(&self) -> Option<&'static str> {
        self.severity(Severity::Critical).map(|_| "critical sdc")
    }
}

impl TableLine {
    /// The heading of a table with columns for the count and for each rate.
    pub fn heading<'a>(
        label: &str,
        count: &str,
        rates: impl IntoIterator<Item = &'a str>,
    ) -> TableLine {
        let mut cells = vec![count.to_owned()];
        cells.extend(rates.into_iter().map(str::to_owned));
        TableLine { label: label.to_owned(), cells }
    }

    fn of_scope(rates: &ScopeSummary, shown: &[Outcome]) -> TableLine {
        let label = match rates.scope.name() {
            Some(name) => format!("{} {name}", rates.scope.kind()),
            None => rates.scope.kind().to_owned(),
        };
        TableLine::of_rates(label, rates, shown)
    }

    /// A line with the number of injections and the rates of the `shown` outcomes.
    pub fn of_rates<K>(label: String, rates: &ScopeSummary<K>, shown: &[Outcome]) -> TableLine {
        let mut cells = vec![rates.total.to_string()];
        cells.extend(shown.iter().map(|outcome| percent(&rates.share(*outcome))));
        cells.extend(rates.severity(Severity::Critical).map(|share| percent(&share)));
        TableLine { label, cells }
    }

    /// Appends a cell on the right.
    pub fn with(mut self, cell: String) -> TableLine {
        self.cells.push(cell);
        self
    }

    fn of_cause(CauseShare { outcome, cause, share }: &CauseShare) -> TableLine {
        TableLine {
            label: format!("{outcome} {}", cause.name()),
            cells: vec![share.count.to_string(), percent(share)],
        }
    }
}

/// Formats a share in percent with a fixed width: `30.1 [27.3 33.0]`.
fn percent(share: &Share) -> String {
    let Share { rate, interval, .. } = share;
    format!("{:5.1} [{:5.1} {:5.1}]", 100.0 * rate, 100.0 * interval.low, 100.0 * interval.high)
}

/// Most characters of a label. Kernels of libraries have names of hundreds of characters.
const MAX_LABEL: usize = 72;

/// Removes the middle of a label that is too long. Long names often differ only at their ends.
fn shortened(label: &str) -> String {
    let count = label.chars().count();
    if count <= MAX_LABEL {
        return label.to_owned();
    }
    let end = MAX_LABEL / 3;
    let start = label.chars().take(MAX_LABEL - 1 - end);
    start.chain(['…']).chain(label.chars().skip(count - end)).collect()
}

/// Formats lines with aligned columns.
pub(crate) fn aligned(lines: &[TableLine]) -> String {
    let labels: Vec<String> = lines.iter().map(|line| shortened(&printable(&line.label))).collect();
    let label_width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let column_width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.cells.get(column));
        cells.map(|cell| cell.chars().count()).max()
    };
    let mut text = String::new();
    for (line, label) in lines.iter().zip(labels) {
        let _ = write!(text, "{label:label_width$}");
        for (column, cell) in line.cells.iter().enumerate() {
            let width = column_width(column).unwrap_or(0);
            let _ = write!(text, "  {cell:>width$}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Confidence;
    use crate::summary::tests::rows;

    #[test]
    fn table_is_aligned() {
        let expected = [
            "                  injections               masked                  sdc                  due         critical sdc",
            "all                       13   46.2 [ 23.2  70.9]   30.8 [ 12.7  57.6]   23.1 [  8.2  50.3]   30.8 [ 12.7  57.6]",
            "group valu                10   60.0 [ 31.3  83.2]   30.0 [ 10.8  60.3]   10.0 [  1.8  40.4]   30.0 [ 10.8  60.3]",
            "group vmem                 3    0.0 [  0.0  56.1]   33.3 [  6.1  79.2]   66.7 [ 20.8  93.9]   33.3 [  6.1  79.2]",
            "kernel matmul             13   46.2 [ 23.2  70.9]   30.8 [ 12.7  57.6]   23.1 [  8.2  50.3]   30.8 [ 12.7  57.6]",
            "label layer0.mlp          13   46.2 [ 23.2  70.9]   30.8 [ 12.7  57.6]   23.1 [  8.2  50.3]   30.8 [ 12.7  57.6]",
            "",
            "by cause              injections                 rate",
            "sdc critical                   4   30.8 [ 12.7  57.6]",
            "sdc tolerable                  0    0.0 [  0.0  22.8]",
            "due memory_violation           2   15.4 [  4.3  42.2]",
            "due watchdog                   1    7.7 [  1.4  33.3]",
            "",
            "In percent, with the 95 % Wilson interval in brackets.",
        ];
        assert_eq!(
            Summary::from_rows(&rows(), Confidence::P95).table().lines().collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn table_states_the_confidence_of_its_intervals() {
        let table = Summary::from_rows(&rows(), Confidence::P99).table();
        assert!(table.ends_with("with the 99 % Wilson interval in brackets.\n"), "{table}");
        assert!(!table.contains("95 %") && table.contains("30.8 [  9.7  64.9]"), "{table}");
    }

    #[test]
    fn overview_has_a_line_for_each_summary() {
        let all = Summary::from_rows(&rows(), Confidence::P95);
        let some = Summary::from_rows(&rows()[..6], Confidence::P95);
        let expected = [
            "         injections                  sdc                  due         critical sdc",
            "seed=1           13   30.8 [ 12.7  57.6]   23.1 [  8.2  50.3]   30.8 [ 12.7  57.6]",
            "seed=22           6    0.0 [  0.0  39.0]    0.0 [  0.0  39.0]",
            "",
            "In percent, with the 95 % Wilson interval in brackets.",
        ];
        let text = overview_table(&[("seed=1", &all), ("seed=22", &some)]);
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn long_label_is_shortened_in_the_middle() {
        let name = format!("Cijk_{}_WGM1", "ä".repeat(300));
        let lines = [TableLine { label: name, cells: vec!["7".to_owned()] }];
        let text = aligned(&lines);
        let expected = format!("Cijk_{}…{}_WGM1  7\n", "ä".repeat(42), "ä".repeat(19));
        assert_eq!(text, expected);
        assert_eq!(text.chars().count(), MAX_LABEL + 4);
        let whole = "x".repeat(MAX_LABEL);
        assert_eq!(shortened(&whole), whole);
    }

    #[test]
    fn summary_without_rows_has_a_table() {
        assert!(Summary::from_rows(&[], Confidence::P95).table().contains("all"));
    }
}
