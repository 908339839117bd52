//! Builds the new code object from requests.

mod analyses;
mod bind;
mod insert;
mod place;
mod text;

use super::report::{KernelReport, Refused, Report};
use super::{HookCall, Instrumentation, RewriteError, Rewritten, growth};
use crate::checker::{self, Claims, Inserted};
use crate::dataflow::Liveness;
use crate::hook::{self, CompiledHooks, HookCompiler, HookData, InputValue};
use crate::layout::{CodeLayout, InsertPurpose, Placement};
use crate::point::{ProgramPoint, When};
use flipwave_codeobj::{DataSymbol, Editor};
use flipwave_isa::{Pc, RegisterSet};
use insert::Insertions;
use std::time::Instant;

/// A hook call with lowered arguments.
struct BoundCall<'a> {
    point: ProgramPoint,
    call: &'a HookCall,
    /// Index of the body among those of its source.
    body: usize,
    inputs: Vec<InputValue>,
}

impl Instrumentation<'_> {
    /// Compiles the hooks and writes the new code object.
    ///
    /// # Errors
    /// [`RewriteError`]. Refused requests are listed in the report and are not errors.
    pub fn rewrite(&self, compiler: &HookCompiler) -> Result<Rewritten, RewriteError> {
        Build::new(self, compiler)?.finish()
    }
}

/// State of a rewrite.
pub(super) struct Build<'a> {
    instrumentation: &'a Instrumentation<'a>,
    hooks: Vec<CompiledHooks>,
    bound: Vec<BoundCall<'a>>,
    report: Report,
}

impl Build<'_> {
    /// Reports a refused request.
    fn refuse(&mut self, point: ProgramPoint, hook: &str, reason: String) {
        let inst = &self.instrumentation.program.instructions[point.at];
        self.report.refused.push(Refused {
            pc: inst.pc,
            instruction: inst.text.clone(),
            when: point.when,
            hook: hook.to_owned(),
            reason,
        });
    }

    /// Inserts the code, lays it out, writes the code object and checks it.
    pub fn finish(mut self) -> Result<Rewritten, RewriteError> {
        let start = Instant::now();
        let instrumentation = self.instrumentation;
        let Instrumentation { rules, object, ref program, .. } = *instrumentation;
        let mut editor = Editor::new(object);
        let data = self.add_data(&mut editor)?;
        let liveness = Liveness::new(program);
        let address = Pc(editor.free_address());
        let mut insertions = self.insert(&data, &liveness, address)?;
        let layout = self.lay_out(&mut insertions, address)?;
        let placed = || insertions.calls.values().flatten();
        self.report.placed = placed().count();
        self.report.without_spills = placed().filter(|call| !call.spills).count();
        write_code(&mut editor, &layout)?;
        for (kernel, grown) in &insertions.kernels {
            let change = growth::metadata(&grown.descriptor, &program.target, grown.after);
            editor.set_metadata(*kernel, change)?;
            editor.set_descriptor(*kernel, grown.descriptor.clone())?;
            self.report.kernels.push(KernelReport {
                name: grown.name.clone(),
                placement: placement(instrumentation, &layout, *kernel),
                before: grown.before,
                after: grown.after,
                state: grown.storage.clone(),
                moves: grown.moves,
            });
        }
        let written = editor.finish()?;
        self.report.debug_lost = written.debug_lost;
        let new = written.object;
        let claims = claims(instrumentation, &layout, &insertions);
        self.report.rewriting += start.elapsed();
        if instrumentation.is_checked {
            let start = Instant::now();
            match checker::check(rules, object, program, &|at| liveness.before(at), &new, &claims) {
                Ok(proof) => self.report.proof = Some(proof),
                Err(findings) => return Err(RewriteError::Wrong(findings)),
            }
            self.report.checking = start.elapsed();
        }
        Ok(Rewritten { object: new, layout, claims, data, report: self.report })
    }

    /// Adds a segment for the data of each source. Its symbols have unique names, because loaders reject
    /// duplicates.
    fn add_data(&self, editor: &mut Editor<'_>) -> Result<Vec<(Pc, HookData)>, RewriteError> {
        let mut placed = Vec::new();
        for (source, hooks) in self.hooks.iter().enumerate() {
            let data = hooks.data.clone();
            if let Some(pointer) = data.pointers.first() {
                let contains = |symbol: &hook::HookSymbol| {
                    (symbol.offset..symbol.offset + symbol.size).contains(&pointer.at)
                };
                let variable = data.symbols.iter().find(|(_, symbol)| contains(symbol));
                let variable = variable.map_or("a constant", |(name, _)| name).to_owned();
                return Err(RewriteError::Pointer { variable });
            }
            if data.is_empty() {
                placed.push((Pc(editor.free_address()), data));
                continue;
            }
            let symbols = data.symbols.iter().map(|(name, symbol)| DataSymbol {
                name: format!("flipwave.{source}.{name}"),
                offset: symbol.offset,
                size: symbol.size,
            });
            let symbols = symbols.collect();
            let address =
                editor.add_data(data.bytes.clone(), data.zeros, data.alignment, symbols)?;
            placed.push((Pc(address), data));
        }
        Ok(placed)
    }
}

/// Writes the new code, and patches of the old text if it is kept.
fn write_code(editor: &mut Editor<'_>, layout: &CodeLayout) -> Result<(), RewriteError> {
    let (address, bytes, moved) = (layout.address, layout.bytes.clone(), layout.moved());
    if layout.keeps_old_text() {
        for patch in &layout.patches {
            editor.patch(patch.address, patch.bytes.clone())?;
        }
        editor.add_text(address, bytes, moved)?;
    } else {
        editor.move_text(address, bytes, moved)?;
    }
    Ok(())
}

fn placement(
    instrumentation: &Instrumentation<'_>,
    layout: &CodeLayout,
    kernel: usize,
) -> Placement {
    let function = instrumentation.program.kernel(kernel);
    function.map_or(Placement::Inline, |function| layout.placements[function])
}

/// The claims that the checker proves.
fn claims(
    instrumentation: &Instrumentation<'_>,
    layout: &CodeLayout,
    insertions: &Insertions<'_>,
) -> Claims {
    let changed = |point: ProgramPoint| {
        let calls = insertions.calls.get(&point).into_iter().flatten();
        let requested = calls.fold(RegisterSet::EMPTY, |all, call| all.union(call.changes));
        let inst = &instrumentation.program.instructions[point.at];
        match point.when {
            // The results of the replaced instruction change, too.
            When::Instead => requested.union(inst.writes.iter().copied().collect()),
            When::Before | When::After => requested,
        }
    };
    let inserted = layout.inserted.iter().map(|(range, purpose)| {
        let (at, changes) = match purpose {
            InsertPurpose::Point(point) => (Some(point.at), changed(*point)),
            InsertPurpose::Entry(_) | InsertPurpose::Routine(_) | InsertPurpose::Island => {
                (None, RegisterSet::EMPTY)
            }
        };
        Inserted { range: range.clone(), at, changes }
    });
    Claims {
        instructions: layout.places.iter().map(|place| place.inst).collect(),
        inserted: inserted.collect(),
    }
}
