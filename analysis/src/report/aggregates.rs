//! What a report is made of: rates by everything that rows say, in memory that does not grow with
//! their number.

use super::about::About;
use super::input;
use super::key::{self, Bin, Dimension, Key, Magnitude};
use super::names::{Name, Names, Numbered};
use super::workgroups::{Grid, Workgroups};
use crate::shape::Introduced;
use crate::{
    ErrorShape, Known, Measured, Outcome, ResultsError, Row, Scope, ScopeSummary, Share, Tallies,
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

/// An injection to look at more closely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Example {
    pub site: String,
    pub outcome: Outcome,
    pub cause: Option<String>,
}

/// A campaign, counted.
#[derive(Debug)]
pub struct Aggregates {
    /// The campaign.
    pub(super) about: About,
    /// Whether the last line of its table was cut off.
    pub(super) is_cut: bool,
    /// Rates in the order of their keys.
    pub(super) rates: Vec<ScopeSummary<Key>>,
    /// Rates by position in the grid.
    pub(super) grid: Grid,
    /// Of the SDC in outputs with dimensions, the part of each shape.
    pub(super) shapes: Vec<(ErrorShape, Share)>,
    names: Names,
    instructions: Numbered<Instruction>,
    /// One injection for each instruction, where there was room: the first that is SDC, else the
    /// first.
    examples: Vec<Option<Example>>,
}

impl Aggregates {
    /// Counts the rows of a campaign's `results.csv`.
    ///
    /// # Errors
    /// [`ResultsError`] of the first thing that is not as a campaign writes it.
    pub fn new(about: About, table: impl Read + Seek) -> Result<Aggregates, ResultsError> {
        let design = about.design.clone();
        let mut counter = Counter {
            names: Names::default(),
            instructions: Numbered::default(),
            examples: Vec::new(),
            tallies: Tallies::of_keys(design.clone(), Key::All),
            workgroups: Workgroups::new(design.clone()),
            shaped: Tallies::of_keys(design.clone(), Shaped::Any),
        };
        let is_cut = input::read(table, |row| counter.add(&row))?;
        let Counter { names, instructions, examples, tallies, workgroups, shaped } = counter;
        // What is known is recorded by the names that the summary has.
        let known = |key: &Key| {
            let scope = match *key {
                Key::All => Scope::All,
                Key::Kernel(name) => Scope::Kernel(names.text(name).to_owned()),
                Key::Label(name) => Scope::Label(names.text(name).to_owned()),
                Key::Opcode(name) => Scope::Opcode(names.text(name).to_owned()),
                Key::Group(name) => Scope::Group(names.text(name).to_owned()),
                Key::Stratum(name) => Scope::Stratum(names.text(name).to_owned()),
                _ => return Known::default(),
            };
            design.known_of(&scope).unwrap_or_default()
        };
        let rates = tallies.summaries(known).collect();
        Ok(Aggregates {
            about,
            is_cut,
            rates,
            grid: workgroups.grid(),
            shapes: shapes(&shaped),
            names,
            instructions,
            examples,
        })
    }

    /// What the injections came to as a whole, by the campaign's name; nothing where there are none.
    pub fn measured(&self) -> Option<Measured> {
        self.all().map(|all| Measured {
            workload: self.about.name.clone(),
            total: all.total,
            outcomes: all.outcomes,
        })
    }

    /// What all injections came to; nothing where there are none.
    pub(super) fn all(&self) -> Option<&ScopeSummary<Key>> {
        self.rates.first().filter(|rates| rates.scope == Key::All && rates.total > 0)
    }

    /// Rates by one thing, in its order.
    pub(super) fn by(&self, dimension: Dimension) -> &[ScopeSummary<Key>] {
        let start = self.rates.partition_point(|rates| rates.scope.dimension() < dimension);
        let end = self.rates.partition_point(|rates| rates.scope.dimension() <= dimension);
        &self.rates[start..end]
    }

    /// The part of all SDC, each with its weight, that comes from some injections; 0 where there is
    /// none.
    pub(super) fn part_of_sdc<K>(&self, rates: &ScopeSummary<K>) -> f64 {
        let sdc = |weight: f64, rate: f64| weight * rate;
        let all = self.all().map_or(0.0, |all| sdc(all.weight, all.share(Outcome::Sdc).rate));
        match all > 0.0 {
            true => (sdc(rates.weight, rates.share(Outcome::Sdc).rate) / all).min(1.0),
            false => 0.0,
        }
    }

    /// The part of all injections, each with its weight, that some are.
    pub(super) fn part_of_all<K>(&self, rates: &ScopeSummary<K>) -> f64 {
        self.all().map_or(0.0, |all| (rates.weight / all.weight).min(1.0))
    }

    /// The outcomes that are shown: all but `detected` where nothing was.
    pub(super) fn shown(&self) -> impl Iterator<Item = Outcome> {
        let detected = self.all().is_some_and(|all| all.share(Outcome::Detected).count > 0);
        let order = [Outcome::Sdc, Outcome::Due, Outcome::Detected, Outcome::Masked];
        order.into_iter().filter(move |outcome| detected || *outcome != Outcome::Detected)
    }

    /// What of an instruction is known.
    pub(super) fn instruction(&self, number: u32) -> Option<&Instruction> {
        self.instructions.get(number)
    }

    /// An injection that struck an instruction.
    pub(super) fn example(&self, number: u32) -> Option<&Example> {
        self.examples.get(number as usize)?.as_ref()
    }

    pub(super) fn text(&self, name: Name) -> &str {
        self.names.text(name)
    }

    /// What a key is called in its table.
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
            Key::Occurrence(bin) | Key::Wrong(bin) => bin.to_string(),
            Key::Error(magnitude) => magnitude.to_string(),
            Key::Shape(shape) => shape.to_string(),
            Key::Introduced(introduced) => introduced.name().to_owned(),
            Key::Instruction(number) => {
                let Some(own) = number.and_then(|number| self.instruction(number)) else {
                    return self.text(Name::Other).to_owned();
                };
                let part = |name: Option<Name>| name.map_or("", |name| self.text(name));
                let words = [part(own.kernel), self.text(own.opcode), part(own.line)];
                format!("{} {:#x} {} {}", words[0], own.pc, words[1], words[2]).trim().to_owned()
            }
        }
    }
}

/// Counts rows.
struct Counter {
    names: Names,
    instructions: Numbered<Instruction>,
    examples: Vec<Option<Example>>,
    tallies: Tallies<Key>,
    workgroups: Workgroups,
    shaped: Tallies<Shaped>,
}

/// Whether injections are SDC that has a shape. They are a part of all, whose rates by shape are those of
/// SDC, and not those of injections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shaped {
    Any,
    Sdc,
}

/// Of the SDC that has a shape, the part of each.
fn shapes(shaped: &Tallies<Shaped>) -> Vec<(ErrorShape, Share)> {
    let mut scopes = shaped.summaries(|_| Known::default());
    let Some(sdc) = scopes.find(|own| own.scope == Shaped::Sdc) else { return Vec::new() };
    let named = |name: &str| ErrorShape::ALL.into_iter().find(|own| own.name() == name);
    let all = sdc.causes.iter().filter_map(|(_, name, share)| Some((named(name)?, *share)));
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(shape, _)| *shape);
    all
}

impl Counter {
    fn add(&mut self, row: &Row) {
        let names = &mut self.names;
        let kernel = row.kernel.as_deref().map(|text| names.name(text));
        let label = row.label.as_deref().map(|text| names.name(text));
        let line = row.line.as_deref().map(|text| names.name(text));
        let opcode = names.name(&row.opcode);
        let register = key::is_register(&row.place).then(|| names.name(&row.place));
        let keys = [
            kernel.map(Key::Kernel),
            label.map(Key::Label),
            line.map(Key::Line),
            Some(Key::Opcode(opcode)),
            Some(Key::Group(names.name(&row.group))),
            row.stratum.as_deref().map(|text| Key::Stratum(names.name(text))),
            Some(Key::Class(names.name(&key::class(&row.place)))),
            register.map(Key::Register),
            key::bit(row).map(Key::Bit),
            row.lane.map(Key::Lane),
            row.occurrence.map(|number| Key::Occurrence(Bin::of(number))),
            row.max_rel_error.map(|error| Key::Error(Magnitude::of(error))),
            row.elements_wrong.map(|number| Key::Wrong(Bin::of(number))),
            row.shape.map(Key::Shape),
            row.nan.zip(row.inf).map(|(nan, inf)| Key::Introduced(Introduced::of(nan, inf))),
        ];
        let instruction = row.pc.map(|pc| Instruction { kernel, pc, opcode, line });
        let number = instruction.map(|instruction| self.instructions.number(instruction));
        if let Some(Some(number)) = number {
            self.take_example(number, row);
        }
        let instruction = number.map(Key::Instruction);
        self.tallies.add_to(keys.into_iter().chain([instruction]).flatten(), row);
        self.workgroups.count(row);
        match row.shape.filter(|_| row.outcome == Outcome::Sdc) {
            // In the place of a cause, which SDC has none of.
            Some(shape) => {
                let row = Row { cause: Some(shape.to_string()), ..row.clone() };
                self.shaped.add_to([Shaped::Sdc], &row);
            }
            None => self.shaped.add_to([], row),
        }
    }

    fn take_example(&mut self, number: u32, row: &Row) {
        let place = number as usize;
        if self.examples.len() <= place {
            self.examples.resize(place + 1, None);
        }
        let is_better = self.examples[place]
            .as_ref()
            .is_none_or(|example| example.outcome != Outcome::Sdc && row.outcome == Outcome::Sdc);
        if is_better && self.names.take(row.site.len()) {
            let (outcome, cause) = (row.outcome, row.cause.clone());
            self.examples[place] = Some(Example { site: row.site.clone(), outcome, cause });
        }
    }
}
