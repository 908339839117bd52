//! Rates as aligned text tables for the terminal.

use super::aggregates::Aggregates;
use super::key::{Dimension, Key};
use crate::ScopeSummary;
use crate::table::{TableLine, aligned};
use std::fmt::Write;

/// Dimensions that have a table: properties of the fault site.
const TABLES: [Dimension; 12] = [
    Dimension::Kernel,
    Dimension::Label,
    Dimension::Line,
    Dimension::Opcode,
    Dimension::Group,
    Dimension::Stratum,
    Dimension::Class,
    Dimension::Register,
    Dimension::Bit,
    Dimension::Lane,
    Dimension::Occurrence,
    Dimension::Instruction,
];

impl Aggregates {
    /// Names of the dimensions that have a table.
    pub fn table_names() -> [&'static str; TABLES.len()] {
        TABLES.map(Dimension::name)
    }

    /// Formats the rates by a dimension, one of [`Aggregates::table_names`], as aligned text, with the
    /// share of all SDC. Lines are sorted by that share, or by number for bits, lanes and occurrences.
    /// `kernel_name` returns the readable name of a kernel. `None` for an unknown dimension.
    pub fn table(&self, dimension: &str, kernel_name: impl Fn(&str) -> String) -> Option<String> {
        let dimension = TABLES.into_iter().find(|table| table.name() == dimension)?;
        let shown: Vec<_> = self.shown_outcomes().collect();
        let mut rates: Vec<&ScopeSummary<_>> = self.rates_by(dimension).iter().collect();
        if !matches!(dimension, Dimension::Bit | Dimension::Lane | Dimension::Occurrence) {
            rates.sort_by(|a, b| self.share_of_sdc(b).total_cmp(&self.share_of_sdc(a)));
        }
        let names = shown.iter().map(|outcome| outcome.name());
        let names = names.chain(self.overall().and_then(ScopeSummary::critical_name));
        let names = names.chain(["of all SDC"]);
        let mut lines = vec![TableLine::heading(dimension.name(), "injections", names)];
        let line = |label: String, rates: &ScopeSummary<_>| {
            let share = format!("{:.1}", 100.0 * self.share_of_sdc(rates));
            TableLine::of_rates(label, rates, &shown).with(share)
        };
        let label = |key: Key| match key {
            Key::Kernel(name) => kernel_name(self.text(name)),
            _ => self.label(key),
        };
        lines.extend(rates.into_iter().map(|rates| line(label(rates.scope), rates)));
        lines.extend(self.overall().map(|rates| line("all".to_owned(), rates)));
        let mut text = aligned(&lines);
        let design = &self.info.design;
        let (confidence, method) = (design.confidence, design.method.name());
        let _ =
            writeln!(text, "\nIn percent, with the {confidence} {method} interval in brackets.");
        Some(text)
    }
}
