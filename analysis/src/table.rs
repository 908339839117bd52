//! A summary as a table for the terminal.

use crate::{Outcome, Scope, ScopeSummary, Severity, Share, Summary};
use flipwave_host::output::printable;
use std::fmt::Write;

impl Summary {
    /// The summary as aligned text: one line per scope with the rate and interval of each
    /// outcome in percent, then the causes.
    pub fn table(&self) -> String {
        let shown: Vec<Outcome> = self.shown().collect();
        let names = shown.iter().map(|outcome| outcome.name());
        let names = names.chain(self.scopes.first().and_then(ScopeSummary::critical_name));
        let mut lines = vec![Cells::heading("", "injections", names)];
        lines.extend(self.shown_scopes().map(|scope| Cells::of_scope(scope, &shown)));
        let mut text = aligned(&lines);

        if let Some(all) = self.scopes.first()
            && !all.causes.is_empty()
        {
            let mut lines = vec![Cells::heading("by cause", "injections", ["rate"])];
            lines.extend(all.causes.iter().map(Cells::of_cause));
            text.push('\n');
            text.push_str(&aligned(&lines));
        }
        let (confidence, method) = (self.confidence, self.method.name());
        let _ =
            writeln!(text, "\nIn percent, with the {confidence} {method} interval in brackets.");
        text
    }
}

/// Summaries beside each other as aligned text: one line for each with the rates and intervals of what
/// was not masked, in percent.
pub fn overview(summaries: &[(&str, &Summary)]) -> String {
    let all = || summaries.iter().filter_map(|(name, own)| Some((*name, own.scopes.first()?)));
    let detected = all().any(|(_, own)| own.share(Outcome::Detected).count > 0);
    let shown = [Outcome::Sdc, Outcome::Due, Outcome::Detected];
    let shown = &shown[..if detected { 3 } else { 2 }];
    let names = shown.iter().map(|outcome| outcome.name());
    let names = names.chain(all().find_map(|(_, own)| own.critical_name()));
    let mut lines = vec![Cells::heading("", "injections", names)];
    lines.extend(
        all().map(|(name, own)| Cells { label: name.to_owned(), ..Cells::of_scope(own, shown) }),
    );
    let mut text = aligned(&lines);
    let mut confidences: Vec<String> =
        summaries.iter().map(|(_, own)| own.confidence.to_string()).collect();
    confidences.dedup();
    let confidence = match confidences.as_slice() {
        [one] => format!("the {one} Wilson interval"),
        _ => "the Wilson interval, of the confidence that variants.csv says,".to_owned(),
    };
    let _ = writeln!(text, "\nIn percent, with {confidence} in brackets.");
    text
}

/// One line of a table: a label on the left, the rest to the right.
pub(crate) struct Cells {
    pub label: String,
    pub rest: Vec<String>,
}

impl<K> ScopeSummary<K> {
    /// The heading of the rate of critical SDC; nothing where nobody judges.
    pub(crate) fn critical_name(&self) -> Option<&'static str> {
        self.severity(Severity::Critical).map(|_| "critical sdc")
    }
}

impl Cells {
    pub fn heading<'a>(
        label: &str,
        count: &str,
        rates: impl IntoIterator<Item = &'a str>,
    ) -> Cells {
        let mut rest = vec![count.to_owned()];
        rest.extend(rates.into_iter().map(str::to_owned));
        Cells { label: label.to_owned(), rest }
    }

    fn of_scope(scope: &ScopeSummary, shown: &[Outcome]) -> Cells {
        let label = match &scope.scope {
            Scope::All => "all".to_owned(),
            Scope::Group(name) => format!("group {name}"),
            Scope::Kernel(name) => format!("kernel {name}"),
            Scope::Label(name) => format!("label {name}"),
            Scope::Opcode(name) => format!("opcode {name}"),
            Scope::Stratum(name) => format!("stratum {name}"),
        };
        Cells::of_rates(label, scope, shown)
    }

    pub fn of_rates<K>(label: String, rates: &ScopeSummary<K>, shown: &[Outcome]) -> Cells {
        let mut rest = vec![rates.total.to_string()];
        rest.extend(shown.iter().map(|outcome| percent(&rates.share(*outcome))));
        rest.extend(rates.severity(Severity::Critical).map(|share| percent(&share)));
        Cells { label, rest }
    }

    /// The same with another cell on the right.
    pub fn with(mut self, cell: String) -> Cells {
        self.rest.push(cell);
        self
    }

    fn of_cause((outcome, cause, share): &(Outcome, String, Share)) -> Cells {
        Cells {
            label: format!("{outcome} {cause}"),
            rest: vec![share.count.to_string(), percent(share)],
        }
    }
}

/// `30.1 [27.3 33.0]`, always as wide.
fn percent(share: &Share) -> String {
    let Share { rate, interval, .. } = share;
    format!("{:5.1} [{:5.1} {:5.1}]", 100.0 * rate, 100.0 * interval.low, 100.0 * interval.high)
}

/// The most characters of a label: names of kernels of libraries have hundreds.
const MOST: usize = 72;

/// A label without its middle, if it is too long: names often differ at their ends.
fn shortened(label: &str) -> String {
    let count = label.chars().count();
    if count <= MOST {
        return label.to_owned();
    }
    let end = MOST / 3;
    let start = label.chars().take(MOST - 1 - end);
    start.chain(['…']).chain(label.chars().skip(count - end)).collect()
}

/// The lines below each other.
pub(crate) fn aligned(lines: &[Cells]) -> String {
    let labels: Vec<String> = lines.iter().map(|line| shortened(&printable(&line.label))).collect();
    let label_width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let column_width = |column: usize| {
        lines.iter().filter_map(|line| line.rest.get(column)).map(|cell| cell.chars().count()).max()
    };
    let mut text = String::new();
    for (line, label) in lines.iter().zip(labels) {
        let _ = write!(text, "{label:label_width$}");
        for (column, cell) in line.rest.iter().enumerate() {
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
    fn the_table_is_aligned() {
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
            Summary::of(&rows(), Confidence::P95).table().lines().collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn the_confidence_of_the_intervals_is_the_one_that_is_printed() {
        let table = Summary::of(&rows(), Confidence::P99).table();
        assert!(table.ends_with("with the 99 % Wilson interval in brackets.\n"), "{table}");
        assert!(!table.contains("95 %") && table.contains("30.8 [  9.7  64.9]"), "{table}");
    }

    #[test]
    fn an_overview_has_a_line_for_each_summary() {
        let (one, other) =
            (Summary::of(&rows(), Confidence::P95), Summary::of(&rows()[..6], Confidence::P95));
        let expected = [
            "         injections                  sdc                  due         critical sdc",
            "seed=1           13   30.8 [ 12.7  57.6]   23.1 [  8.2  50.3]   30.8 [ 12.7  57.6]",
            "seed=22           6    0.0 [  0.0  39.0]    0.0 [  0.0  39.0]",
            "",
            "In percent, with the 95 % Wilson interval in brackets.",
        ];
        let text = overview(&[("seed=1", &one), ("seed=22", &other)]);
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_name_of_hundreds_of_characters_does_not_push_the_rates_off_the_screen() {
        let name = format!("Cijk_{}_WGM1", "ä".repeat(300));
        let lines = [Cells { label: name, rest: vec!["7".to_owned()] }];
        let text = aligned(&lines);
        let expected = format!("Cijk_{}…{}_WGM1  7\n", "ä".repeat(42), "ä".repeat(19));
        assert_eq!(text, expected);
        assert_eq!(text.chars().count(), MOST + 4);
        let whole = "x".repeat(MOST);
        assert_eq!(shortened(&whole), whole);
    }

    #[test]
    fn a_campaign_without_injections_has_a_table() {
        assert!(Summary::of(&[], Confidence::P95).table().contains("all"));
    }
}
