//! Rates of a campaign by all dimensions of a report, with memory use independent of the number of rows.

use super::campaign_info::CampaignInfo;
use super::input;
use super::key::{self, Bin, Dimension, Key, Magnitude};
use super::line_label;
use super::names::{Interner, Name, Names};
use super::workgroups::{Grid, Workgroups};
use crate::shape::NonFinite;
use crate::{
    Cause, ErrorShape, MeasuredOutcomes, Outcome, PrunedSites, ResultsError, Row, SampleDesign,
    Scope, ScopeSummary, Share, Tallies,
};
use std::io::{Read, Seek};

/// A static instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Instruction {
    pub kernel: Option<Name>,
    pub pc: u64,
    pub opcode: Name,
    pub line: Option<Name>,
}

/// An example injection of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Example {
    pub site: String,
    pub outcome: Outcome,
    pub cause: Option<String>,
}

/// The counted rows of a campaign.
#[derive(Debug)]
pub struct Aggregates {
    /// Information about the campaign.
    pub(super) info: CampaignInfo,
    /// `true` if the last line of the table was cut off.
    pub(super) is_cut: bool,
    /// Rates in the order of their keys.
    pub(super) rates: Vec<ScopeSummary<Key>>,
    /// Rates by position in the grid.
    pub(super) grid: Grid,
    /// Shares of the spatial patterns in the SDC of outputs with dimensions.
    pub(super) shapes: Vec<(ErrorShape, Share)>,
    names: Names,
    instructions: Interner<Instruction>,
    /// An example for each instruction, if there was room: the first SDC, or else the first injection.
    examples: Vec<Option<Example>>,
}

impl Aggregates {
    /// Counts the rows of a campaign's `results.csv`.
    ///
    /// # Errors
    /// [`ResultsError`] for another table and for the first malformed row.
    pub fn new(info: CampaignInfo, table: impl Read + Seek) -> Result<Aggregates, ResultsError> {
        let mut counter = Counter::new(&info.design);
        let is_cut = input::read(table, |row| counter.add(&row))?;
        let Counter { names, instructions, examples, tallies, workgroups, shaped } = counter;
        // The design records pruned sites by the names of summary scopes.
        let pruned = |key: &Key| {
            let scope = match *key {
                Key::All => Scope::All,
                Key::Kernel(name) => Scope::Kernel(names.text(name).to_owned()),
                Key::Label(name) => Scope::Label(names.text(name).to_owned()),
                Key::Opcode(name) => Scope::Opcode(names.text(name).to_owned()),
                Key::Group(name) => Scope::Group(names.text(name).to_owned()),
                Key::Stratum(name) => Scope::Stratum(names.text(name).to_owned()),
                _ => return PrunedSites::default(),
            };
            info.design.pruned_in(&scope).unwrap_or_default()
        };
        let rates = tallies.summaries(pruned).collect();
        Ok(Aggregates {
            info,
            is_cut,
            rates,
            grid: workgroups.grid(),
            shapes: shape_shares(&shaped),
            names,
            instructions,
            examples,
        })
    }

    /// Overall outcomes under the campaign's name; `None` without injections.
    pub fn measured(&self) -> Option<MeasuredOutcomes> {
        self.overall().map(|overall| MeasuredOutcomes {
            workload: self.info.name.clone(),
            total: overall.total,
            outcomes: overall.outcomes,
        })
    }

    /// Rates of all injections; `None` without injections.
    pub(super) fn overall(&self) -> Option<&ScopeSummary<Key>> {
        self.rates.first().filter(|rates| rates.scope == Key::All && rates.total > 0)
    }

    /// Rates by a dimension, in the order of its values.
    pub(super) fn rates_by(&self, dimension: Dimension) -> &[ScopeSummary<Key>] {
        let start = self.rates.partition_point(|rates| rates.scope.dimension() < dimension);
        let end = self.rates.partition_point(|rates| rates.scope.dimension() <= dimension);
        &self.rates[start..end]
    }

    /// Estimated fraction of all SDC that a scope causes; 0 if there is no SDC.
    pub(super) fn share_of_sdc<K>(&self, rates: &ScopeSummary<K>) -> f64 {
        let sdc = |weight: f64, rate: f64| weight * rate;
        let all = self
            .overall()
            .map_or(0.0, |overall| sdc(overall.weight, overall.share(Outcome::Sdc).rate));
        if all > 0.0 {
            (sdc(rates.weight, rates.share(Outcome::Sdc).rate) / all).min(1.0)
        } else {
            0.0
        }
    }

    /// Estimated fraction of the fault space that a scope contains.
    pub(super) fn share_of_sites<K>(&self, rates: &ScopeSummary<K>) -> f64 {
        self.overall().map_or(0.0, |overall| (rates.weight / overall.weight).min(1.0))
    }

    /// Outcomes to show: all, but `detected` only if it occurred.
    pub(super) fn shown_outcomes(&self) -> impl Iterator<Item = Outcome> {
        let has_detected =
            self.overall().is_some_and(|overall| overall.share(Outcome::Detected).count > 0);
        let order = [Outcome::Sdc, Outcome::Due, Outcome::Detected, Outcome::Masked];
        order.into_iter().filter(move |outcome| has_detected || *outcome != Outcome::Detected)
    }

    /// The instruction with a number.
    pub(super) fn instruction(&self, number: u32) -> Option<&Instruction> {
        self.instructions.get(number)
    }

    /// An example injection into an instruction.
    pub(super) fn example(&self, number: u32) -> Option<&Example> {
        self.examples.get(number as usize)?.as_ref()
    }

    pub(super) fn text(&self, name: Name) -> &str {
        self.names.text(name)
    }

    /// The value of a key, as people read it.
    pub(super) fn label(&self, key: Key) -> String {
        match key {
            Key::Line(name) => line_label(self.text(name)).into_owned(),
            key => self.value(key),
        }
    }

    /// The value of a key, as written to tables.
    pub(super) fn value(&self, key: Key) -> String {
        match key {
            Key::All => String::new(),
            Key::Kernel(name)
            | Key::Label(name)
            | Key::Line(name)
            | Key::Opcode(name)
            | Key::Group(name)
            | Key::Stratum(name)
            | Key::Class(name)
            | Key::Register(name) => self.text(name).to_owned(),
            Key::Bit(number) | Key::Lane(number) => number.to_string(),
            Key::Occurrence(bin) | Key::WrongElements(bin) => bin.to_string(),
            Key::RelativeError(magnitude) => magnitude.to_string(),
            Key::Shape(shape) => shape.to_string(),
            Key::NonFinite(kinds) => kinds.name().to_owned(),
            Key::Instruction(number) => {
                let Some(instruction) = number.and_then(|number| self.instruction(number)) else {
                    return self.text(Name::Other).to_owned();
                };
                let optional = |name: Option<Name>| name.map_or("", |name| self.text(name));
                let kernel = optional(instruction.kernel);
                let opcode = self.text(instruction.opcode);
                let line = optional(instruction.line);
                format!("{kernel} {:#x} {opcode} {line}", instruction.pc).trim().to_owned()
            }
        }
    }
}

/// Counts rows.
struct Counter {
    names: Names,
    instructions: Interner<Instruction>,
    examples: Vec<Option<Example>>,
    tallies: Tallies<Key>,
    workgroups: Workgroups,
    shaped: Tallies<Shaped>,
}

/// Scopes for the shares of spatial patterns, which are relative to SDC with a pattern, not to all injections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shaped {
    /// All injections.
    Any,
    /// SDC with a spatial pattern.
    Sdc,
}

/// Shares of the spatial patterns among SDC with a pattern.
fn shape_shares(shaped: &Tallies<Shaped>) -> Vec<(ErrorShape, Share)> {
    let mut scopes = shaped.summaries(|_| PrunedSites::default());
    let Some(sdc) = scopes.find(|rates| rates.scope == Shaped::Sdc) else { return Vec::new() };
    let shares = sdc.causes.iter().filter_map(|cause| match cause.cause {
        Cause::Shape(shape) => Some((shape, cause.share)),
        Cause::Named(_) | Cause::Severity(_) => None,
    });
    shares.collect()
}

impl Counter {
    fn new(design: &SampleDesign) -> Counter {
        Counter {
            names: Names::default(),
            instructions: Interner::default(),
            examples: Vec::new(),
            tallies: Tallies::with_keys(design.clone(), Key::All),
            workgroups: Workgroups::new(design.clone()),
            shaped: Tallies::with_keys(design.clone(), Shaped::Any),
        }
    }

    fn add(&mut self, row: &Row) {
        let names = &mut self.names;
        let kernel = row.kernel.as_deref().map(|text| names.intern(text));
        let label = row.label.as_deref().map(|text| names.intern(text));
        let line = row.line.as_deref().map(|text| names.intern(text));
        let opcode = names.intern(&row.opcode);
        let register = key::is_register(&row.location).then(|| names.intern(&row.location));
        let keys = [
            kernel.map(Key::Kernel),
            label.map(Key::Label),
            line.map(Key::Line),
            Some(Key::Opcode(opcode)),
            Some(Key::Group(names.intern(&row.group))),
            row.stratum.as_deref().map(|text| Key::Stratum(names.intern(text))),
            Some(Key::Class(names.intern(&key::class(&row.location)))),
            register.map(Key::Register),
            key::only_bit(row).map(Key::Bit),
            row.lane.map(Key::Lane),
            row.occurrence.map(|number| Key::Occurrence(Bin::of(number))),
            row.max_rel_error.map(|error| Key::RelativeError(Magnitude::of(error))),
            row.elements_wrong.map(|number| Key::WrongElements(Bin::of(number))),
            row.error_pattern.map(Key::Shape),
            row.nan_elements
                .zip(row.inf_elements)
                .map(|(nan, inf)| Key::NonFinite(NonFinite::from_counts(nan, inf))),
        ];
        let instruction = row.pc.map(|pc| Instruction { kernel, pc, opcode, line });
        let number = instruction.map(|instruction| self.instructions.intern(instruction));
        if let Some(Some(number)) = number {
            self.add_example(number, row);
        }
        let instruction = number.map(Key::Instruction);
        self.tallies.add_to(keys.into_iter().chain([instruction]).flatten(), row);
        self.workgroups.add(row);
        match row.error_pattern.filter(|_| row.outcome == Outcome::Sdc) {
            // Counts patterns as causes, as SDC has no cause.
            Some(shape) => {
                self.shaped.add_with_cause([Shaped::Sdc], row, Some(&Cause::Shape(shape)));
            }
            None => self.shaped.add_to([], row),
        }
    }

    /// Keeps a row as the example of its instruction if it is better than the present one.
    fn add_example(&mut self, number: u32, row: &Row) {
        let index = number as usize;
        if self.examples.len() <= index {
            self.examples.resize(index + 1, None);
        }
        let is_better = self.examples[index]
            .as_ref()
            .is_none_or(|example| example.outcome != Outcome::Sdc && row.outcome == Outcome::Sdc);
        if is_better && self.names.reserve(row.site.len()) {
            let (outcome, cause) = (row.outcome, row.cause.clone());
            self.examples[index] = Some(Example { site: row.site.clone(), outcome, cause });
        }
    }
}
