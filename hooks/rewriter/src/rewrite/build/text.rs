//! Instructions that were asked for as text.

use super::Build;
use super::insert::Analyses;
use crate::dataflow::{IndexMode, Outstanding};
use crate::flow::InstIndex;
use crate::hook::{Assembler, HookError};
use crate::layout::{InsertedCode, Piece};
use crate::registers::Component;
use crate::rewrite::{RewriteError, Side, When};
use flipwave_isa::{Isa, Pc, RegisterSet};
use std::collections::BTreeMap;

impl Build<'_> {
    /// Whether instructions were asked for beside those of a component.
    pub(super) fn has_text(&self, component: &Component) -> bool {
        let program = &self.instrumentation.program;
        self.instrumentation.requests.iter().any(|(at, own)| {
            let has_text = !own.text_before.is_empty() || !own.text_after.is_empty();
            has_text && component.functions.contains(&program.function_of(*at))
        })
    }

    /// Adds the instructions that were asked for on one side of a component's to the `edits` there.
    pub(super) fn add_text(
        &mut self,
        component: &Component,
        side: Side,
        analyses: &Analyses<'_>,
        assembler: &mut Assembler,
        edits: &mut BTreeMap<InstIndex, InsertedCode>,
    ) -> Result<(), RewriteError> {
        let instrumentation = self.instrumentation;
        let program = &instrumentation.program;
        let counters = instrumentation.rules.counters;
        let when = match side {
            Side::Before => When::Before,
            Side::After => When::After,
        };
        let mut refused: Vec<(InstIndex, &str)> = Vec::new();
        let mut added: Result<(), HookError> = Ok(());
        let mut add = |at: InstIndex, outstanding: &Outstanding| {
            let Some(requests) = instrumentation.requests.get(&at) else { return };
            let text = match side {
                Side::Before => &requests.text_before,
                Side::After => &requests.text_after,
            };
            if text.is_empty() || added.is_err() {
                return;
            }
            if side == Side::After
                && !program.control(&program.instructions[at]).has_known_successor()
            {
                refused.push((at, "control does not come back after it"));
                return;
            }
            if analyses.index_mode(at, when) != IndexMode::Off {
                refused.push((at, "vector instructions index registers there"));
                return;
            }
            let waits = outstanding.needed(named(assembler.isa(), text));
            let text = counters.wait_instructions(&waits) + "\n" + text;
            match text_code(assembler, &text) {
                Ok(code) => edits.entry(at).or_default().append(code),
                Err(error) => added = Err(error),
            }
        };
        let functions = component.functions.iter().map(|own| &program.functions[*own]);
        for block in functions.flat_map(|function| function.blocks.iter()) {
            let mut previous = None;
            let end = analyses.loads.walk(program, block, |at, outstanding| match side {
                Side::Before => add(at, outstanding),
                Side::After => previous.replace(at).into_iter().for_each(|at| add(at, outstanding)),
            });
            previous.into_iter().for_each(|at| add(at, &end));
        }
        added?;
        for (at, reason) in refused {
            self.refuse(at, when, "", reason.to_owned());
        }
        Ok(())
    }
}

/// Instructions from text, one a piece.
pub(super) fn text_code(assembler: &mut Assembler, text: &str) -> Result<InsertedCode, HookError> {
    let mut code = InsertedCode::default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        code.pieces.push(Piece::bytes(assembler.assemble(line)?));
    }
    Ok(code)
}

/// Registers that text names; all SGPRs where that cannot be said.
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
