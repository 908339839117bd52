//! The aggregates as tables for the terminal.

use super::aggregates::Aggregates;
use super::key::{Dimension, Key};
use crate::ScopeSummary;
use crate::table::{Cells, aligned};
use std::fmt::Write;

/// What there is a table by: what an injection struck.
const BY: [Dimension; 12] = [
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
    /// What there are tables by, by name.
    pub fn table_names() -> [&'static str; BY.len()] {
        BY.map(Dimension::name)
    }

    /// Rates by one of [`Aggregates::table_names`] as aligned text, with what part each is of all SDC:
    /// the largest first, of numbers in their order. Kernels are called what `kernel_name` says. Nothing
    /// of other names.
    pub fn table(&self, by: &str, kernel_name: impl Fn(&str) -> String) -> Option<String> {
        let dimension = BY.into_iter().find(|own| own.name() == by)?;
        let shown: Vec<_> = self.shown().collect();
        let mut rates: Vec<&ScopeSummary<_>> = self.by(dimension).iter().collect();
        if !matches!(dimension, Dimension::Bit | Dimension::Lane | Dimension::Occurrence) {
            rates.sort_by(|a, b| self.part_of_sdc(b).total_cmp(&self.part_of_sdc(a)));
        }
        let names = shown.iter().map(|outcome| outcome.name());
        let names = names.chain(self.all().and_then(ScopeSummary::critical_name));
        let mut lines = vec![Cells::heading(by, "injections", names.chain(["of all SDC"]))];
        let line = |label: String, own: &ScopeSummary<_>| {
            let part = format!("{:.1}", 100.0 * self.part_of_sdc(own));
            Cells::of_rates(label, own, &shown).with(part)
        };
        let label = |key: Key| match key {
            Key::Kernel(name) => kernel_name(self.text(name)),
            other => self.value(other),
        };
        lines.extend(rates.into_iter().map(|own| line(label(own.scope), own)));
        lines.extend(self.all().map(|own| line("all".to_owned(), own)));
        let mut text = aligned(&lines);
        let design = &self.about.design;
        let (confidence, method) = (design.confidence, design.method.name());
        let _ =
            writeln!(text, "\nIn percent, with the {confidence} {method} interval in brackets.");
        Some(text)
    }
}
