//! The code of every site and of every kernel's start.

use super::text::{named, text_code};
use super::{Bound, Build};
use crate::dataflow::{IndexMode, Live, Liveness, Outstanding, OutstandingLoads, index_mode};
use crate::flow::{FunctionIndex, IndexVec, InstIndex};
use crate::hook::{Assembler, Body, EntryValue, HookData, HookError};
use crate::layout::Edits;
use crate::point::{ProgramPoint, When};
use crate::registers::{Allocation, Component};
use crate::rewrite::homes::{HomeNeeds, HomeSearch, Keeping, Kept};
use crate::rewrite::{HookCall, RewriteError, growth, jumps, placements, prologue};
use crate::site::{self, CallGenerator, InsertionPoint, SiteCall};
use flipwave_codeobj::Descriptor;
use flipwave_isa::counter::Counters;
use flipwave_isa::{Isa, Pc, Register, RegisterRange, RegisterSet};
use std::collections::{BTreeMap, BTreeSet};

/// All code of a rewrite.
#[derive(Default)]
pub(super) struct Insertions<'a> {
    pub edits: Edits,
    /// The calls at each site.
    pub calls: BTreeMap<ProgramPoint, Vec<PlacedCall<'a>>>,
    /// Instructions that stay, because something in their place could not be had.
    broken: BTreeSet<InstIndex>,
    pub kernels: BTreeMap<usize, GrownKernel>,
}

/// A call that has its code.
pub(super) struct PlacedCall<'a> {
    pub hook: &'a str,
    /// What it was asked to change for good.
    pub changes: RegisterSet,
    /// Whether registers with live values had to make room.
    pub saves: bool,
}

/// A kernel whose descriptor changes.
pub(super) struct GrownKernel {
    pub name: String,
    pub descriptor: Descriptor,
    pub before: Allocation,
    pub after: Allocation,
    pub state: BTreeMap<EntryValue, Keeping>,
    pub moves: usize,
}

impl<'a> Insertions<'a> {
    fn add(&mut self, bound: &Bound<'a>, call: site::CallCode) {
        self.calls.entry(bound.point).or_default().push(PlacedCall {
            hook: &bound.call.function,
            changes: call.changes,
            saves: call.saved > 0,
        });
        self.edits.code.entry(bound.point).or_default().append(call.code);
    }
}

/// What is known of every point of a program.
pub(super) struct Analyses<'a> {
    liveness: &'a Liveness<'a>,
    pub loads: OutstandingLoads,
    /// Whether vector instructions index registers when an instruction begins.
    index_mode: IndexVec<InstIndex, IndexMode>,
    /// Whether a hook changes EXEC for good.
    changes_exec: bool,
}

impl Analyses<'_> {
    /// The mode at a site: a switch of it is followed by what it is for, in the same block.
    pub fn index_mode(&self, point: ProgramPoint) -> IndexMode {
        let next = if point.when == When::After { point.at.next() } else { point.at };
        self.index_mode.get(next).copied().unwrap_or_default()
    }

    /// What is live at a site.
    fn live(&self, point: ProgramPoint) -> Live {
        let at = point.at;
        let live = match point.when {
            When::Before => self.liveness.before(at),
            When::After => self.liveness.after(at),
            When::Instead => self.liveness.before(at).union(self.liveness.after(at)),
        };
        if !self.changes_exec {
            return live;
        }
        // Before or after this hook, on the way to the next original instruction, EXEC may be
        // another: lanes that it selects here may be masked there.
        let vectors = RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS);
        Live { active: live.any(), masked: live.any().intersection(vectors) }
    }
}

/// Whether a call gives EXEC another value.
fn changes_exec(call: &HookCall) -> bool {
    let is_exec = |register| matches!(register, Register::ExecLo | Register::ExecHi);
    call.results.iter().any(|range| range.iter().any(is_exec))
}

/// What the hooks of a component use.
#[derive(Clone, Copy, Default)]
struct UsedRegisters {
    registers: RegisterSet,
    /// Where the scratch ends.
    scratch: Option<u32>,
}

impl<'a> Build<'a> {
    /// Makes the code of every site and every entry, to be put to `address`.
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
        let mut assembler = Assembler::new(program.isa()?);
        let mut insertions = Insertions::default();
        let placements = placements::choose(program, &instrumentation.placements);
        insertions.edits.placements = placements.enumerated().map(|(at, own)| (at, *own)).collect();
        let far = jumps::far(instrumentation.object, program, &placements, address);
        let replaced = instrumentation.requests.iter();
        for (point, requests) in replaced.filter(|(point, _)| point.when == When::Instead) {
            if let Some(text) = &requests.text {
                insertions.edits.code.insert(*point, text_code(&mut assembler, text)?);
            }
        }
        let bound = std::mem::take(&mut self.bound);
        let mut by_function: BTreeMap<FunctionIndex, Vec<&Bound<'a>>> = BTreeMap::new();
        for own in &bound {
            by_function.entry(program.function_of(own.point.at)).or_default().push(own);
        }
        for component in &instrumentation.components {
            let mut sites: BTreeMap<ProgramPoint, Vec<&Bound<'a>>> = BTreeMap::new();
            let mut needs = HomeNeeds::default();
            let functions = component.functions.iter();
            for bound in functions.filter_map(|own| by_function.get(own)).flatten() {
                sites.entry(bound.point).or_default().push(bound);
                needs.add(&bound.inputs, self.body(bound));
            }
            let has_text = self.has_text(component);
            if sites.is_empty() && !has_text {
                continue;
            }
            let first = data.iter().find(|(_, data)| !data.is_empty()).map(|(address, _)| *address);
            let search = HomeSearch {
                object: instrumentation.object,
                program,
                component,
                liveness,
                loads: &analyses.loads,
                placements: &placements,
                asked: &|| {
                    self.asked_when_dead(component, &sites, &analyses, data, assembler.isa())
                },
                order: &instrumentation.keeping,
                data: first.unwrap_or(Pc(0)),
            };
            let kept = search.homes(&needs);
            if has_text {
                let code = &mut insertions.edits.code;
                self.add_text(component, When::After, &analyses, &mut assembler, code)?;
            }
            let mut generator = CallGenerator::new(component, &mut assembler, program, counters);
            let mut used =
                self.component(&sites, &analyses, &kept, &mut generator, data, &mut insertions);
            if has_text {
                let code = &mut insertions.edits.code;
                self.add_text(component, When::Before, &analyses, &mut assembler, code)?;
            }
            slide(&kept, counters, &mut assembler, &mut insertions)?;
            let far = far.iter().copied().filter(|own| component.functions.contains(own));
            let search = jumps::PairSearch::new(
                program,
                liveness,
                &analyses.loads,
                component,
                kept.registers(),
            );
            for (at, pair) in far.flat_map(|own| search.pairs(own)) {
                used.registers.insert_range(RegisterRange::new(Register::Sgpr(pair), 2));
                insertions.edits.free_pairs.insert(at, pair);
            }
            self.start(component, &kept, used, &mut assembler, &mut insertions)?;
        }
        for at in std::mem::take(&mut insertions.broken) {
            let point = ProgramPoint::instead(at);
            insertions.edits.code.remove(&point);
            for call in insertions.calls.remove(&point).unwrap_or_default() {
                let reason = "another hook in place of the instruction cannot be called";
                self.refuse(point, call.hook, reason.to_owned());
            }
        }
        Ok(insertions)
    }

    /// The code of the sites of the generator's component; gives the registers that it uses.
    fn component(
        &mut self,
        sites: &BTreeMap<ProgramPoint, Vec<&Bound<'a>>>,
        analyses: &Analyses<'_>,
        kept: &Kept,
        generator: &mut CallGenerator<'_>,
        data: &[(Pc, HookData)],
        insertions: &mut Insertions<'a>,
    ) -> UsedRegisters {
        let program = &self.instrumentation.program;
        let mut used = UsedRegisters { registers: kept.registers(), scratch: None };
        let functions = generator.component().functions.iter();
        let functions = functions.map(|own| &program.functions[*own]);
        for block in functions.flat_map(|function| function.blocks.iter()) {
            let mut visit = |point: ProgramPoint, outstanding: &Outstanding| {
                let Some(calls) = sites.get(&point) else { return };
                let live = analyses.live(point);
                let index_mode = analyses.index_mode(point);
                let homes = kept.at(program, point);
                let (homes, asked) = (&*homes, kept.asked);
                let site = InsertionPoint { live, outstanding, index_mode, homes, asked };
                for bound in calls {
                    let call = self.call(bound, data);
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

    fn body(&self, bound: &Bound<'_>) -> &Body {
        &self.hooks[bound.call.source.0].bodies[bound.body]
    }

    /// A hook and what it is given.
    fn call<'b>(&'b self, bound: &'b Bound<'_>, data: &'b [(Pc, HookData)]) -> SiteCall<'b> {
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

    /// Registers that requests name at places where the program is done with them.
    fn asked_when_dead(
        &self,
        component: &Component,
        sites: &BTreeMap<ProgramPoint, Vec<&Bound<'_>>>,
        analyses: &Analyses<'_>,
        data: &[(Pc, HookData)],
        isa: &Isa,
    ) -> RegisterSet {
        let of_calls = sites.iter().flat_map(|(point, calls)| {
            let calls = calls.iter().map(|bound| self.call(bound, data));
            calls.map(|call| (*point, site::asked(&call, component)))
        });
        let of_text =
            self.instrumentation.requests.iter().filter_map(|(point, requests)| {
                Some((*point, named(isa, requests.text.as_ref()?)))
            });
        let dead = of_calls
            .chain(of_text)
            .map(|(point, named)| named.difference(analyses.live(point).active));
        dead.fold(RegisterSet::EMPTY, RegisterSet::union)
    }

    /// Makes the entries of a component's kernels and grows their allocations.
    fn start(
        &mut self,
        component: &Component,
        kept: &Kept,
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
        let moves = kept.moves().map(|(_, own)| own.moves.len()).sum();
        for (function, index, first) in functions {
            let kernel = &instrumentation.object.kernels()[index];
            let target = &program.target;
            let homes = kept.at(program, ProgramPoint::before(first));
            let wanted =
                prologue::PrologueNeeds { homes: &homes, scratch: used.scratch, asked: kept.asked };
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
            let (name, state) = (kernel.name.to_string(), kept.ways.clone());
            let grown = GrownKernel { name, descriptor, before, after, state, moves };
            insertions.kernels.insert(index, grown);
        }
        Ok(())
    }
}

/// The moves of state, after all hooks before the same instruction.
fn slide(
    kept: &Kept,
    counters: Counters,
    assembler: &mut Assembler,
    insertions: &mut Insertions<'_>,
) -> Result<(), HookError> {
    for (at, own) in kept.moves() {
        let mut text = counters.wait_instructions(&own.waits);
        for step in &own.moves {
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
