//! Generates the code of all program points and prologues.

use super::analyses::Analyses;
use super::text::{named, text_code};
use super::{BoundCall, Build};
use crate::dataflow::{Liveness, Outstanding, OutstandingLoads, index_mode};
use crate::flow::{FunctionIndex, IndexVec, InstIndex};
use crate::hook::{Assembler, Body, EntryValue, HookData, HookError};
use crate::layout::{Edits, Placement};
use crate::point::{ProgramPoint, When};
use crate::registers::{Allocation, Component};
use crate::rewrite::reserve::{ReservationNeeds, ReservationSearch, Reservations, ValueStorage};
use crate::rewrite::{HookCall, RewriteError, growth, jumps, placements, prologue};
use crate::site::{self, CallGenerator, InsertionPoint, SiteCall};
use flipwave_codeobj::Descriptor;
use flipwave_isa::counter::Counters;
use flipwave_isa::{Isa, Pc, Register, RegisterRange, RegisterSet};
use std::collections::{BTreeMap, BTreeSet};

/// All inserted code of a rewrite.
#[derive(Default)]
pub(super) struct Insertions<'a> {
    pub edits: Edits,
    /// The inserted calls at each point.
    pub calls: BTreeMap<ProgramPoint, Vec<PlacedCall<'a>>>,
    /// Instructions that are not replaced, because a hook that replaces them was refused.
    broken: BTreeSet<InstIndex>,
    pub kernels: BTreeMap<usize, GrownKernel>,
}

/// An inserted call.
pub(super) struct PlacedCall<'a> {
    pub hook: &'a str,
    /// Registers that it changes permanently, as requested.
    pub changes: RegisterSet,
    /// `true` if it spills registers.
    pub spills: bool,
}

/// A kernel whose descriptor changes.
pub(super) struct GrownKernel {
    pub name: String,
    pub descriptor: Descriptor,
    pub before: Allocation,
    pub after: Allocation,
    /// Storage of values for hooks.
    pub storage: BTreeMap<EntryValue, ValueStorage>,
    pub moves: usize,
}

impl<'a> Insertions<'a> {
    fn add(&mut self, bound: &BoundCall<'a>, call: site::CallCode) {
        self.calls.entry(bound.point).or_default().push(PlacedCall {
            hook: &bound.call.function,
            changes: call.changes,
            spills: call.saved > 0,
        });
        self.edits.code.entry(bound.point).or_default().append(call.code);
    }
}

/// Returns `true` if a call changes EXEC permanently.
fn changes_exec(call: &HookCall) -> bool {
    let is_exec = |register| matches!(register, Register::ExecLo | Register::ExecHi);
    call.results.iter().any(|range| range.iter().any(is_exec))
}

/// Data of the program and the hooks that all components share.
struct InsertContext<'c> {
    /// Data of each hook source with its address.
    data: &'c [(Pc, HookData)],
    analyses: Analyses<'c>,
    /// Placement of each function.
    placements: IndexVec<FunctionIndex, Placement>,
    /// Functions whose trampolines are out of branch range.
    far: Vec<FunctionIndex>,
}

/// The calls at each point of a component.
type Sites<'b, 'a> = BTreeMap<ProgramPoint, Vec<&'b BoundCall<'a>>>;

/// Resources that the hooks of a component use.
#[derive(Clone, Copy, Default)]
struct UsedRegisters {
    registers: RegisterSet,
    /// End of the scratch memory.
    scratch: Option<u32>,
}

impl<'a> Build<'a> {
    /// Generates the code of all points and prologues, for new code at `address`.
    pub(super) fn insert(
        &mut self,
        data: &[(Pc, HookData)],
        liveness: &Liveness<'_>,
        address: Pc,
    ) -> Result<Insertions<'a>, RewriteError> {
        let instrumentation = self.instrumentation;
        let program = &instrumentation.program;
        let counters = instrumentation.rules.counters;
        let loads = OutstandingLoads::new(program, counters);
        let changes_exec = self.bound.iter().any(|bound| changes_exec(bound.call));
        let analyses = Analyses { liveness, loads, index_mode: index_mode(program), changes_exec };
        let placements = placements::choose(program, &instrumentation.placements);
        let far = jumps::far(instrumentation.object, program, &placements, address);
        let mut assembler = Assembler::new(program.isa()?);
        let mut insertions = Insertions::default();
        insertions.edits.placements =
            placements.enumerated().map(|(index, placement)| (index, *placement)).collect();
        let context = InsertContext { data, analyses, placements, far };
        let replaced = instrumentation.requests.iter();
        for (point, requests) in replaced.filter(|(point, _)| point.when == When::Instead) {
            if let Some(text) = &requests.text {
                insertions.edits.code.insert(*point, text_code(&mut assembler, text)?);
            }
        }
        let bound = std::mem::take(&mut self.bound);
        let mut by_function: BTreeMap<FunctionIndex, Vec<&BoundCall<'a>>> = BTreeMap::new();
        for call in &bound {
            by_function.entry(program.function_of(call.point.at)).or_default().push(call);
        }
        for component in &instrumentation.components {
            let functions = component.functions.iter();
            let calls = functions.filter_map(|index| by_function.get(index)).flatten().copied();
            self.insert_component(component, calls, &context, &mut assembler, &mut insertions)?;
        }
        for at in std::mem::take(&mut insertions.broken) {
            let point = ProgramPoint::instead(at);
            insertions.edits.code.remove(&point);
            for call in insertions.calls.remove(&point).unwrap_or_default() {
                let reason = "another hook that replaces the instruction was refused";
                self.refuse(point, call.hook, reason.to_owned());
            }
        }
        Ok(insertions)
    }

    /// Generates the code of a component with these calls.
    fn insert_component<'b>(
        &mut self,
        component: &Component,
        calls: impl Iterator<Item = &'b BoundCall<'a>>,
        context: &InsertContext<'_>,
        assembler: &mut Assembler,
        insertions: &mut Insertions<'a>,
    ) -> Result<(), RewriteError>
    where
        'a: 'b,
    {
        let instrumentation = self.instrumentation;
        let program = &instrumentation.program;
        let counters = instrumentation.rules.counters;
        let analyses = &context.analyses;
        let mut sites = Sites::new();
        let mut needs = ReservationNeeds::default();
        for bound in calls {
            sites.entry(bound.point).or_default().push(bound);
            needs.add(&bound.inputs, self.body(bound));
        }
        let has_text = self.has_text(component);
        if sites.is_empty() && !has_text {
            return Ok(());
        }
        let data = context.data.iter().find(|(_, data)| !data.is_empty());
        let search = ReservationSearch {
            object: instrumentation.object,
            program,
            component,
            liveness: analyses.liveness,
            loads: &analyses.loads,
            placements: &context.placements,
            accessed_dead: &|| self.accessed_dead(component, &sites, context, assembler.isa()),
            order: &instrumentation.storage,
            data: data.map_or(Pc(0), |(address, _)| *address),
        };
        let reservations = search.reserve(&needs);
        if has_text {
            let code = &mut insertions.edits.code;
            self.add_text(component, When::After, analyses, assembler, code)?;
        }
        let mut generator = CallGenerator::new(component, assembler, program, counters);
        let mut used =
            self.insert_calls(&sites, context, &reservations, &mut generator, insertions);
        if has_text {
            let code = &mut insertions.edits.code;
            self.add_text(component, When::Before, analyses, assembler, code)?;
        }
        insert_moves(&reservations, counters, assembler, insertions)?;
        let far = context.far.iter().filter(|index| component.functions.contains(index));
        let (liveness, loads) = (analyses.liveness, &analyses.loads);
        let search =
            jumps::PairSearch::new(program, liveness, loads, component, reservations.registers());
        for (at, pair) in far.flat_map(|index| search.pairs(*index)) {
            used.registers.insert_range(RegisterRange::new(Register::Sgpr(pair), 2));
            insertions.edits.free_pairs.insert(at, pair);
        }
        self.prologues(component, &reservations, used, assembler, insertions)
    }

    /// Generates the calls of the generator's component. Returns the registers that they use.
    fn insert_calls(
        &mut self,
        sites: &Sites<'_, 'a>,
        context: &InsertContext<'_>,
        reservations: &Reservations,
        generator: &mut CallGenerator<'_>,
        insertions: &mut Insertions<'a>,
    ) -> UsedRegisters {
        let program = &self.instrumentation.program;
        let analyses = &context.analyses;
        let mut used = UsedRegisters { registers: reservations.registers(), scratch: None };
        let functions = generator.component().functions.iter();
        let functions = functions.map(|index| &program.functions[*index]);
        for block in functions.flat_map(|function| function.blocks.iter()) {
            let mut visit = |point: ProgramPoint, outstanding: &Outstanding| {
                let Some(calls) = sites.get(&point) else { return };
                let live = analyses.live(point);
                let index_mode = analyses.index_mode(point);
                let reserved = reservations.at(program, point);
                let site = InsertionPoint {
                    live,
                    outstanding,
                    index_mode,
                    reserved: &reserved,
                    accessed_dead: reservations.accessed_dead,
                };
                for bound in calls {
                    let call = self.call(bound, context.data);
                    match generator.call(&site, &call) {
                        Ok(call) => {
                            used.registers = used.registers.union(call.used);
                            used.scratch = used.scratch.max(call.scratch);
                            insertions.add(bound, call);
                        }
                        Err(reason) => {
                            self.refuse(point, &bound.call.function, reason.to_string());
                            if point.when == When::Instead {
                                insertions.broken.insert(point.at);
                            }
                        }
                    }
                }
            };
            let mut previous = None;
            let end = analyses.loads.walk(program, block, |at, outstanding| {
                if let Some(previous) = previous.replace(at) {
                    visit(ProgramPoint::after(previous), outstanding);
                }
                visit(ProgramPoint::before(at), outstanding);
                visit(ProgramPoint::instead(at), outstanding);
            });
            if let Some(last) = previous {
                visit(ProgramPoint::after(last), &end);
            }
        }
        used
    }

    fn body(&self, bound: &BoundCall<'_>) -> &Body {
        &self.hooks[bound.call.source.0].bodies[bound.body]
    }

    /// The hook call of a lowered call.
    fn call<'b>(&'b self, bound: &'b BoundCall<'_>, data: &'b [(Pc, HookData)]) -> SiteCall<'b> {
        let (address, symbols) = &data[bound.call.source.0];
        SiteCall {
            body: self.body(bound),
            inputs: &bound.inputs,
            results: &bound.call.results,
            mask: bound.call.mask,
            data: *address,
            symbols,
        }
    }

    /// Registers that requests access at points where they are dead.
    fn accessed_dead(
        &self,
        component: &Component,
        sites: &Sites<'_, '_>,
        context: &InsertContext<'_>,
        isa: &Isa,
    ) -> RegisterSet {
        let by_calls = sites.iter().flat_map(|(point, calls)| {
            let calls = calls.iter().map(|bound| self.call(bound, context.data));
            calls.map(|call| (*point, site::accessed_registers(&call, component)))
        });
        let by_text =
            self.instrumentation.requests.iter().filter_map(|(point, requests)| {
                Some((*point, named(isa, requests.text.as_ref()?)))
            });
        let dead = by_calls
            .chain(by_text)
            .map(|(point, named)| named.difference(context.analyses.live(point).active));
        dead.fold(RegisterSet::EMPTY, RegisterSet::union)
    }

    /// Generates the prologues of a component's kernels and grows their allocations.
    fn prologues(
        &mut self,
        component: &Component,
        reservations: &Reservations,
        used: UsedRegisters,
        assembler: &mut Assembler,
        insertions: &mut Insertions<'_>,
    ) -> Result<(), RewriteError> {
        let instrumentation = self.instrumentation;
        let program = &instrumentation.program;
        let functions = component.functions.iter().filter_map(|index| {
            let function = &program.functions[*index];
            Some((*index, function.kernel?, function.instructions.start))
        });
        let moves = reservations.moves().map(|(_, group)| group.moves.len()).sum();
        for (function, index, first) in functions {
            let kernel = &instrumentation.object.kernels()[index];
            let target = &program.target;
            let reserved = reservations.at(program, ProgramPoint::before(first));
            let wanted = prologue::PrologueNeeds {
                reserved: &reserved,
                scratch: used.scratch,
                accessed_dead: reservations.accessed_dead,
            };
            let entry =
                prologue::prologue(&kernel.descriptor, target, &wanted, assembler).map_err(
                    |reason| RewriteError::Prologue { kernel: kernel.name.to_string(), reason },
                )?;
            let before = Allocation::of(kernel, target);
            let reserved = component.reserved;
            let after = before.with(used.registers.union(entry.used).union(reserved));
            if !entry.code.pieces.is_empty() {
                insertions.edits.entries.insert(function, entry.code);
            }
            let descriptor = growth::grown(&entry.descriptor, target, after);
            let (name, storage) = (kernel.name.to_string(), reservations.storage.clone());
            let grown = GrownKernel { name, descriptor, before, after, storage, moves };
            insertions.kernels.insert(index, grown);
        }
        Ok(())
    }
}

/// Inserts the moves of split live ranges, after all hooks before the same instruction.
fn insert_moves(
    reservations: &Reservations,
    counters: Counters,
    assembler: &mut Assembler,
    insertions: &mut Insertions<'_>,
) -> Result<(), HookError> {
    for (at, group) in reservations.moves() {
        let mut text = counters.wait_instructions(&group.waits);
        for step in &group.moves {
            text = text + "\n" + &step.text();
        }
        insertions
            .edits
            .code
            .entry(ProgramPoint::before(at))
            .or_default()
            .append(text_code(assembler, &text)?);
    }
    Ok(())
}
