//! The comparison of programs as text for the terminal.

use super::{ComparedGroup, ComparedMeans, ProgramsComparison};
use crate::agreement::Correlation;
use crate::compare::text::{difference, p_value, points, rate_and_p};
use crate::table::{TableLine, aligned};
use std::fmt::Write;

impl ComparedMeans {
    /// The change of the mean rate and its components in a line.
    pub(super) fn in_words(&self) -> String {
        let [a, b] = self.means;
        let (composition, rates) = (self.components.composition, self.components.rates);
        format!(
            "{} {} % → {} % on average: {} points, of which {} because other groups of instructions are \
             struck, and {} because of other rates in the same group",
            self.outcome.name().to_uppercase(),
            points(a),
            points(b),
            points(b - a),
            points(composition),
            points(rates),
        )
    }

    /// The rank correlation in words.
    pub(super) fn ranks_in_words(&self) -> String {
        let name = self.outcome.name().to_uppercase();
        match self.correlation {
            Some(Correlation { rho, low, high, p }) => {
                let equals = if p < 0.001 { "" } else { "= " };
                format!("{name} {rho:.2} [{low:.2}, {high:.2}], p {equals}{}", p_value(p))
            }
            None => format!("{name}: too few distinct rates"),
        }
    }
}

impl ProgramsComparison {
    /// Rank correlations of all outcomes in a sentence.
    pub(super) fn ranks(&self) -> String {
        let all: Vec<String> = self.outcomes.iter().map(ComparedMeans::ranks_in_words).collect();
        format!("Rank correlation of the programs (Spearman): {}.", all.join("; "))
    }

    /// Formats the comparison as aligned text.
    pub fn table(&self) -> String {
        let mut text = format!("{} programs\n", self.programs.len());
        for outcome in &self.outcomes {
            let _ = writeln!(text, "{}", outcome.in_words());
        }
        let _ = writeln!(text, "{}\n", self.ranks());
        let names = self.outcomes.iter().map(|outcome| outcome.outcome.name());
        let columns = names
            .clone()
            .flat_map(|name| [format!("{name} A"), "B".into(), "difference".into(), "p".into()]);
        let columns: Vec<String> = columns.collect();
        let mut lines =
            vec![TableLine::heading("program", "instructions", columns.iter().map(String::as_str))];
        for program in &self.programs {
            let ratio = program.comparison.instruction_ratio();
            let mut cells = vec![ratio.map(|ratio| format!("{ratio:.2}x")).unwrap_or_default()];
            if let Some(overall) = program.comparison.overall() {
                let rates = self.outcomes.iter().map(|outcome| overall.rate(outcome.outcome));
                cells.extend(rates.flat_map(rate_and_p));
            }
            lines.push(TableLine { label: program.name.clone(), cells });
        }
        text.push_str(&aligned(&lines));
        if !self.groups.is_empty() {
            let columns = names
                .flat_map(|name| [format!("{name} A"), "B".to_owned(), "difference".to_owned()]);
            let mut heading = vec!["B".to_owned()];
            heading.extend(columns);
            let heading = heading.iter().map(String::as_str);
            let mut lines = vec![TableLine::heading("group", "faults A", heading)];
            lines.extend(self.groups.iter().map(group_line));
            let _ = write!(text, "\n{}", aligned(&lines));
        }
        let confidence =
            self.programs.first().map(|program| program.comparison.a.design.confidence);
        if let Some(confidence) = confidence {
            let _ = writeln!(
                text,
                "\nIn percent, differences in points, with {confidence} intervals. Wave instructions of B \
                 relative to A."
            );
        }
        text
    }
}

fn group_line(group: &ComparedGroup) -> TableLine {
    let mut cells: Vec<String> = group.parts.into_iter().map(points).collect();
    for rate in &group.rates {
        cells.extend([points(rate.a.rate), points(rate.b.rate), difference(rate.change)]);
    }
    TableLine { label: group.name.clone(), cells }
}
