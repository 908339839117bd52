//! Instructions requested as text.

use super::Build;
use super::analyses::Analyses;
use crate::dataflow::{IndexMode, Outstanding};
use crate::flow::InstIndex;
use crate::hook::{Assembler, HookError};
use crate::layout::{InsertedCode, Piece};
use crate::point::{ProgramPoint, When};
use crate::registers::Component;
use crate::rewrite::RewriteError;
use flipwave_isa::{Isa, Pc, RegisterSet};
use std::collections::BTreeMap;

impl Build<'_> {
    /// Returns `true` if text was requested before or after instructions of a component.
    pub(super) fn has_text(&self, component: &Component) -> bool {
        let program = &self.instrumentation.program;
        self.instrumentation.requests.iter().any(|(point, requests)| {
            point.when != When::Instead
                && requests.text.is_some()
                && component.functions.contains(&program.function_of(point.at))
        })
    }

    /// Adds the instructions requested before or after instructions of a component to `code`.
    pub(super) fn add_text(
        &mut self,
        component: &Component,
        when: When,
        analyses: &Analyses<'_>,
        assembler: &mut Assembler,
        code: &mut BTreeMap<ProgramPoint, InsertedCode>,
    ) -> Result<(), RewriteError> {
        let instrumentation = self.instrumentation;
        let program = &instrumentation.program;
        let counters = instrumentation.rules.counters;
        let mut refused: Vec<(ProgramPoint, &str)> = Vec::new();
        let mut added: Result<(), HookError> = Ok(());
        let mut add = |at: InstIndex, outstanding: &Outstanding| {
            let point = ProgramPoint::new(at, when);
            let requests = instrumentation.requests.get(&point);
            let Some(text) = requests.and_then(|requests| requests.text.as_ref()) else { return };
            if added.is_err() {
                return;
            }
            if when == When::After
                && !program.control(&program.instructions[at]).has_known_successor()
            {
                refused.push((point, "the instruction has no known successor"));
                return;
            }
            if analyses.index_mode(point) != IndexMode::Off {
                refused.push((point, "GPR-index mode is or may be on here"));
                return;
            }
            let waits = outstanding.needed(named(assembler.isa(), text));
            let text = counters.wait_instructions(&waits) + "\n" + text;
            match text_code(assembler, &text) {
                Ok(added) => code.entry(point).or_default().append(added),
                Err(error) => added = Err(error),
            }
        };
        let functions = component.functions.iter().map(|index| &program.functions[*index]);
        for block in functions.flat_map(|function| function.blocks.iter()) {
            let mut previous = None;
            let end = analyses.loads.walk(program, block, |at, outstanding| {
                let visited = if when == When::After { previous.replace(at) } else { Some(at) };
                visited.into_iter().for_each(|at| add(at, outstanding));
            });
            previous.into_iter().for_each(|at| add(at, &end));
        }
        added?;
        for (point, reason) in refused {
            self.refuse(point, "", reason.to_owned());
        }
        Ok(())
    }
}

/// Assembles text with one instruction per line into code with one instruction per piece.
pub(super) fn text_code(assembler: &mut Assembler, text: &str) -> Result<InsertedCode, HookError> {
    let mut code = InsertedCode::default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        code.pieces.push(Piece::bytes(assembler.assemble(line)?));
    }
    Ok(code)
}

/// Registers that text names; all SGPRs for lines that do not assemble.
pub(super) fn named(isa: &Isa, text: &str) -> RegisterSet {
    let registers = |line| {
        let bytes = isa.assemble(line).ok()?;
        let inst = isa.decode(&bytes, Pc(0)).ok()?;
        Some(inst.reads.iter().chain(&inst.writes).copied().collect())
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let named = lines.map(|line| registers(line).unwrap_or(RegisterSet::SGPRS));
    named.fold(RegisterSet::EMPTY, RegisterSet::union)
}
