//! What a report says about a campaign besides its rows.

use crate::SampleDesign;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A thing that decides whether a run is right, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedOutput {
    /// Its name: a buffer, a file.
    pub name: String,
    /// What it consists of: `f32`, `bytes`.
    pub element: String,
    /// How many there are; nothing where that is known only when it is written.
    pub elements: Option<u64>,
    /// How they are compared: `exactly`, `relative 1e-5`.
    pub comparison: String,
}

/// A campaign and how its run went. What older programs did not record is empty.
#[derive(Clone, Debug, PartialEq)]
pub struct About {
    /// The results folder, as it was given.
    pub folder: String,
    /// The campaign's name.
    pub name: String,
    /// Its file, as the command line of the run gave it.
    pub file: Option<PathBuf>,
    /// Its seed.
    pub seed: Option<u64>,
    /// What is not as it is with a complete run; nothing of one.
    pub unfinished: Option<String>,
    /// How its rows were drawn.
    pub design: SampleDesign,
    /// Injections planned.
    pub planned: Option<u64>,
    /// Places that faults are drawn from.
    pub places: Option<u64>,
    /// How they were counted, in words.
    pub counted: Option<String>,
    /// Wave instructions that the fault-free run executed.
    pub instructions: Option<u64>,
    /// Names of further facts, and what they are, as they are shown.
    pub facts: Vec<(&'static str, String)>,
    /// What was compared with the fault-free run; nothing where that is not recorded.
    pub compared: Option<Vec<ComparedOutput>>,
}

impl About {
    /// The further fact of this name, if it is recorded.
    pub fn fact(&self, name: &str) -> Option<&str> {
        let found = self.facts.iter().find(|(own, _)| *own == name);
        found.map(|(_, value)| value.as_str())
    }
}
