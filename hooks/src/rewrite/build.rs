//! From requests to a new code object.

use super::homes::{Keeping, Kept, Search, Wants};
use super::report::{KernelReport, Refused, Report};
use super::{
    HookCall, Instead, Instrumentation, Requests, RewriteError, Rewritten, When, growth, jumps,
    placements,
};
use crate::allocation::Allocation;
use crate::checker::{self, Claims, Inserted};
use crate::component::Component;
use crate::entry;
use crate::flow::{BlockIndex, FunctionIndex, InstIndex};
use crate::hook::{
    self, Assembler, Body, CompiledHooks, EntryPoint, EntryValue, HookCompiler, HookData,
    HookError, InputValue,
};
use crate::layout::{self, Code, Edits, Layout, LayoutError, Piece, Placement, Purpose};
use crate::liveness::{IndexMode, Live, Liveness, index_mode};
use crate::seams;
use crate::site::{self, Call, Site, Weaver};
use crate::under_way::{LoadsUnderWay, UnderWay};
use flipwave_codeobj::{DataSymbol, Descriptor, Editor};
use flipwave_isa::counter::Counters;
use flipwave_isa::{Isa, Pc, Register, RegisterRange, RegisterSet};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// A hook call whose values are known to the instruction.
struct Bound<'a> {
    at: InstIndex,
    when: When,
    call: &'a HookCall,
    /// Index of the body among those of its source.
    body: usize,
    inputs: Vec<InputValue>,
}

/// A rewrite under way.
pub(super) struct Build<'a> {
    instrumentation: &'a Instrumentation<'a>,
    hooks: Vec<CompiledHooks>,
    bound: Vec<Bound<'a>>,
    report: Report,
}

impl<'a> Build<'a> {
    /// Lowers every call's arguments and compiles the hooks.
    pub fn new(
        instrumentation: &'a Instrumentation<'a>,
        compiler: &HookCompiler,
    ) -> Result<Build<'a>, RewriteError> {
        let mut build = Build {
            instrumentation,
            hooks: Vec::new(),
            bound: Vec::new(),
            report: Report::default(),
        };
        let start = Instant::now();
        let mut entries: Vec<(Vec<EntryPoint>, FxHashMap<EntryPoint, usize>)> =
            vec![Default::default(); instrumentation.sources.len()];
        for (at, requests) in &instrumentation.requests {
            for (when, call) in calls(requests) {
                build.bind(*at, when, call, &mut entries)?;
            }
        }
        build.report.rewriting += start.elapsed();
        let start = Instant::now();
        for (source, (points, _)) in instrumentation.sources.iter().zip(&entries) {
            build.hooks.push(compiler.compile(source, points)?);
        }
        build.report.compiling = start.elapsed();
        Ok(build)
    }

    /// Finds out what a call needs; a site whose values cannot be had is left out.
    fn bind(
        &mut self,
        at: InstIndex,
        when: When,
        call: &'a HookCall,
        entries: &mut [(Vec<EntryPoint>, FxHashMap<EntryPoint, usize>)],
    ) -> Result<(), RewriteError> {
        let instrumentation = self.instrumentation;
        let program = &instrumentation.program;
        let count = program.instructions.len();
        let inst = program.inst(at).ok_or(RewriteError::NoInstruction { index: at.0, count })?;
        let source = instrumentation.sources.get(call.source.0);
        let (Some(source), Some((points, known))) = (source, entries.get_mut(call.source.0)) else {
            return Err(RewriteError::NoSource { index: call.source.0 });
        };
        if when == When::After && !program.control(inst).has_after() {
            self.refuse(at, when, &call.function, "control does not come back behind it".into());
            return Ok(());
        }
        let function = source.function(&call.function)?;
        let lowered = function.call(&call.arguments, &call.results, inst, program.wave_size);
        match lowered {
            Ok(lowered) => {
                if let Some(reason) = self.missing(at, &lowered.inputs, &call.results) {
                    self.refuse(at, when, &call.function, reason);
                    return Ok(());
                }
                let body = *known.entry(lowered.entry.clone()).or_insert_with(|| {
                    points.push(lowered.entry);
                    points.len() - 1
                });
                self.bound.push(Bound { at, when, call, body, inputs: lowered.inputs });
                Ok(())
            }
            Err(error @ HookError::Argument { .. }) => {
                self.refuse(at, when, &call.function, error.to_string());
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What is said where a call names registers that a kernel at its site does not have.
    fn missing(
        &self,
        at: InstIndex,
        inputs: &[InputValue],
        results: &[RegisterRange],
    ) -> Option<String> {
        let read = inputs.iter().filter_map(|input| match input {
            InputValue::Registers(range) => Some(*range),
            _ => None,
        });
        let named = read.chain(results.iter().copied()).flat_map(|range| range.iter());
        let files = RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS).union(RegisterSet::SGPRS);
        let numbered = files.intersection(named.collect());
        if numbered.is_empty() {
            return None;
        }
        let Instrumentation { program, components, .. } = self.instrumentation;
        let function = program.function_of(at)?;
        let own = components.iter().find(|own| own.functions.contains(&function))?;
        // What the code names itself is there, though another kernel may have fewer.
        let there = own.allocated.union(own.named);
        let missing = numbered.difference(there).iter().next()?;
        let Allocation { vgprs, acc_vgprs, sgprs } = Allocation::count(own.allocated);
        Some(format!(
            "there is no {missing}: the kernel has {vgprs} VGPRs, {acc_vgprs} AccVGPRs and {sgprs} \
             SGPRs"
        ))
    }

    fn refuse(&mut self, at: InstIndex, when: When, hook: &str, reason: String) {
        if let Some(inst) = self.instrumentation.program.instructions.get(at.0 as usize) {
            self.report.refused.push(Refused {
                pc: inst.pc,
                instruction: inst.text.clone(),
                when,
                hook: hook.to_owned(),
                reason,
            });
        }
    }

    pub fn finish(mut self) -> Result<Rewritten, RewriteError> {
        let start = Instant::now();
        let instrumentation = self.instrumentation;
        let Instrumentation { rules, object, ref program, .. } = *instrumentation;
        let mut editor = Editor::new(object);
        let data = self.add_data(&mut editor)?;
        let liveness = Liveness::new(program);
        let address = Pc(editor.free_address());
        let mut woven = self.weave(&data, &liveness, address)?;
        let layout = self.lay_out(&mut woven, address)?;
        let placed = || woven.calls.values().flatten();
        self.report.placed = placed().count();
        self.report.without_saves = placed().filter(|call| !call.saves).count();
        put_code(&mut editor, &layout)?;
        for (kernel, grown) in &woven.kernels {
            let change = growth::metadata(&grown.descriptor, &program.target, grown.after);
            editor.set_metadata(*kernel, change)?;
            editor.set_descriptor(*kernel, grown.descriptor.clone())?;
            self.report.kernels.push(KernelReport {
                name: grown.name.clone(),
                placement: placement(instrumentation, &layout, *kernel),
                before: grown.before,
                after: grown.after,
                state: grown.state.clone(),
                moves: grown.moves,
            });
        }
        let written = editor.finish()?;
        self.report.debug_lost = written.debug_lost;
        let new = written.object;
        let claims = claims(instrumentation, &layout, &woven);
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

    /// A segment for the data of each source. Its symbols have names that no other source and no
    /// program has: a loader refuses names that come twice.
    fn add_data(&self, editor: &mut Editor<'_>) -> Result<Vec<(Pc, HookData)>, RewriteError> {
        let mut placed = Vec::new();
        for (source, hooks) in self.hooks.iter().enumerate() {
            let data = hooks.data.clone();
            if let Some(pointer) = data.pointers.first() {
                let holds = |own: &hook::DataSymbol| {
                    (own.offset..own.offset + own.size).contains(&pointer.at)
                };
                let variable = data.symbols.iter().find(|(_, own)| holds(own));
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

    /// Makes the code of every site and every entry, to be put to `address`.
    fn weave(
        &mut self,
        data: &[(Pc, HookData)],
        liveness: &Liveness<'_>,
        address: Pc,
    ) -> Result<Woven<'a>, RewriteError> {
        let instrumentation = self.instrumentation;
        let program = &instrumentation.program;
        let counters = instrumentation.rules.counters;
        let loads = LoadsUnderWay::new(program, counters);
        let changes_exec = self.bound.iter().any(|bound| changes_exec(bound.call));
        let state = State { liveness, loads, index_mode: index_mode(program), changes_exec };
        let mut assembler = Assembler::new(program.isa()?);
        let mut woven = Woven::default();
        woven.edits.placements = placements::choose(program, &instrumentation.placements);
        let far = jumps::far(instrumentation.object, program, &woven.edits.placements, address);
        for (at, requests) in &instrumentation.requests {
            if let Some(Instead::Text(text)) = &requests.instead {
                woven.edits.replaced.insert(*at, text_code(&mut assembler, text)?);
            }
        }
        let bound = std::mem::take(&mut self.bound);
        let mut by_function: BTreeMap<FunctionIndex, Vec<&Bound<'a>>> = BTreeMap::new();
        for own in &bound {
            if let Some(function) = program.function_of(own.at) {
                by_function.entry(function).or_default().push(own);
            }
        }
        for component in &instrumentation.components {
            let mut sites: BTreeMap<(InstIndex, When), Vec<&Bound<'a>>> = BTreeMap::new();
            let mut wants = Wants::default();
            let functions = component.functions.iter();
            for bound in functions.filter_map(|own| by_function.get(own)).flatten() {
                sites.entry((bound.at, bound.when)).or_default().push(bound);
                wants.add(&bound.inputs, self.body(bound));
            }
            if sites.is_empty() {
                continue;
            }
            let first = data.iter().find(|(_, data)| !data.is_empty()).map(|(address, _)| *address);
            let search = Search {
                object: instrumentation.object,
                program,
                component,
                liveness,
                loads: &state.loads,
                placements: &woven.edits.placements,
                asked: &|| self.asked_when_dead(component, &sites, &state, data, assembler.isa()),
                order: &instrumentation.keeping,
                data: first.unwrap_or(Pc(0)),
            };
            let kept = search.homes(&wants);
            let mut weaver = Weaver::new(component, &mut assembler, program, counters);
            let mut used = self.component(&sites, &state, &kept, &mut weaver, data, &mut woven);
            slide(&kept, counters, &mut assembler, &mut woven)?;
            let far = far.iter().copied().filter(|own| component.functions.contains(own));
            let search =
                jumps::Search::new(program, liveness, &state.loads, component, kept.registers());
            for (at, pair) in far.flat_map(|own| search.pairs(own)) {
                used.registers.insert_range(RegisterRange::new(Register::Sgpr(pair), 2));
                woven.edits.free_pairs.insert(at, pair);
            }
            self.start(component, &kept, used, &mut assembler, &mut woven)?;
        }
        for at in std::mem::take(&mut woven.broken) {
            woven.edits.replaced.remove(&at);
            for call in woven.calls.remove(&(at, When::Instead)).unwrap_or_default() {
                let reason = "another hook in place of the instruction cannot be called";
                self.refuse(at, When::Instead, call.hook, reason.to_owned());
            }
        }
        Ok(woven)
    }

    /// The code of the sites of the weaver's component; gives the registers that it uses.
    fn component(
        &mut self,
        sites: &BTreeMap<(InstIndex, When), Vec<&Bound<'a>>>,
        state: &State<'_>,
        kept: &Kept,
        weaver: &mut Weaver<'_>,
        data: &[(Pc, HookData)],
        woven: &mut Woven<'a>,
    ) -> Used {
        let program = &self.instrumentation.program;
        let mut used = Used { registers: kept.registers(), scratch: None };
        let functions = weaver.component().functions.iter();
        let functions = functions.filter_map(|own| program.functions.get(own.0 as usize));
        for block in functions.flat_map(|function| function.blocks.clone()) {
            let mut visit = |at, when, under_way: &UnderWay| {
                let Some(calls) = sites.get(&(at, when)) else { return };
                let live = state.live(at, when);
                // A switch of the mode is followed by what it is for, in the same block.
                let point = at.0 + u32::from(when == When::After);
                let index_mode = state.index_mode.get(point as usize).copied().unwrap_or_default();
                let homes = kept.at(program, at, when);
                let (homes, asked) = (&*homes, kept.asked);
                let site = Site { live, under_way, index_mode, homes, asked };
                for bound in calls {
                    let Some(call) = self.call(bound, data) else { continue };
                    match weaver.call(&site, &call) {
                        Ok(call) => {
                            used.registers = used.registers.union(call.used);
                            used.scratch = used.scratch.max(call.scratch);
                            woven.add(bound, call);
                        }
                        Err(reason) => {
                            self.refuse(at, when, &bound.call.function, reason.to_string());
                            if when == When::Instead {
                                woven.broken.insert(at);
                            }
                        }
                    }
                }
            };
            let mut previous = None;
            let end = state.loads.walk(program, BlockIndex(block), |at, under_way| {
                if let Some(previous) = previous.replace(at) {
                    visit(previous, When::After, under_way);
                }
                visit(at, When::Before, under_way);
                visit(at, When::Instead, under_way);
            });
            if let Some(last) = previous {
                visit(last, When::After, &end);
            }
        }
        used
    }

    fn body(&self, bound: &Bound<'_>) -> Option<&Body> {
        self.hooks.get(bound.call.source.0)?.bodies.get(bound.body)
    }

    /// A hook and what it is given.
    fn call<'b>(&'b self, bound: &'b Bound<'_>, data: &'b [(Pc, HookData)]) -> Option<Call<'b>> {
        let (address, symbols) = data.get(bound.call.source.0)?;
        Some(Call {
            body: self.body(bound)?,
            inputs: &bound.inputs,
            results: &bound.call.results,
            mask: bound.call.mask,
            data: *address,
            symbols,
        })
    }

    /// Registers that requests name at places where the program is done with them.
    fn asked_when_dead(
        &self,
        component: &Component,
        sites: &BTreeMap<(InstIndex, When), Vec<&Bound<'_>>>,
        state: &State<'_>,
        data: &[(Pc, HookData)],
        isa: &Isa,
    ) -> RegisterSet {
        let of_calls = sites.iter().flat_map(|((at, when), calls)| {
            let calls = calls.iter().filter_map(|bound| self.call(bound, data));
            calls.map(|call| (*at, *when, site::asked(&call, component)))
        });
        let of_text = self.instrumentation.requests.iter().filter_map(|(at, requests)| {
            let Some(Instead::Text(text)) = &requests.instead else { return None };
            Some((*at, When::Instead, named(isa, text)))
        });
        let dead = of_calls
            .chain(of_text)
            .map(|(at, when, named)| named.difference(state.live(at, when).active));
        dead.fold(RegisterSet::EMPTY, RegisterSet::union)
    }

    /// Makes the entries of a component's kernels and grows their allocations.
    fn start(
        &mut self,
        component: &Component,
        kept: &Kept,
        used: Used,
        assembler: &mut Assembler,
        woven: &mut Woven<'_>,
    ) -> Result<(), RewriteError> {
        let instrumentation = self.instrumentation;
        let program = &instrumentation.program;
        let functions = component.functions.iter().filter_map(|index| {
            let function = program.functions.get(index.0 as usize)?;
            Some((*index, function.kernel?, InstIndex(function.instructions.start)))
        });
        let moves = kept.moves().map(|(_, own)| own.moves.len()).sum();
        for (function, index, first) in functions {
            let Some(kernel) = instrumentation.object.kernels().get(index) else { continue };
            let target = &program.target;
            let homes = kept.at(program, first, When::Before);
            let wanted = entry::Wanted { homes: &homes, scratch: used.scratch, asked: kept.asked };
            let entry =
                entry::entry(&kernel.descriptor, target, &wanted, assembler).map_err(|reason| {
                    RewriteError::Entry { kernel: kernel.name.to_string(), reason }
                })?;
            let before = Allocation::of(kernel, target);
            let after = before.with(used.registers.union(entry.used));
            if !entry.code.pieces.is_empty() {
                woven.edits.entries.insert(function, entry.code);
            }
            let descriptor = growth::grown(&entry.descriptor, target, after);
            let (name, state) = (kernel.name.to_string(), kept.ways.clone());
            let grown = GrownKernel { name, descriptor, before, after, state, moves };
            woven.kernels.insert(index, grown);
        }
        Ok(())
    }

    /// Pads the code and gives it addresses; sites that turn out not to be reachable are left out.
    fn lay_out(&mut self, woven: &mut Woven<'_>, address: Pc) -> Result<Layout, RewriteError> {
        let Instrumentation { rules, object, program, .. } = self.instrumentation;
        let isa = program.isa()?;
        loop {
            let stays = woven.edits.placements.values().any(|own| *own == Placement::Trampoline);
            // Only where code stays are there sites that cannot be reached, and a next round.
            let mut edits = match stays {
                true => woven.edits.clone(),
                false => std::mem::take(&mut woven.edits),
            };
            let padding = seams::pad(*rules, program, &mut edits, &isa)?;
            match layout::relayout(object, program, &edits, address) {
                Err(LayoutError::Sites(refused)) if stays => {
                    let sites: BTreeMap<InstIndex, String> = refused
                        .iter()
                        .filter_map(|(pc, reason)| Some((self.site(woven, *pc)?, reason.clone())))
                        .collect();
                    if sites.is_empty() {
                        return Err(LayoutError::Sites(refused).into());
                    }
                    for (at, reason) in sites {
                        self.leave_out(woven, at, &reason);
                    }
                }
                other => {
                    self.report.padding = padding;
                    let layout = other?;
                    return match layout.stale.first() {
                        Some(at) => Err(self.stale(*at)),
                        None => Ok(layout),
                    };
                }
            }
        }
    }

    /// An instruction of a function that stays leads to the old code of one that moved.
    fn stale(&self, at: InstIndex) -> RewriteError {
        let program = &self.instrumentation.program;
        let name = |at: Option<InstIndex>| {
            let function = at.and_then(|at| program.function(program.function_of(at)?));
            function.map_or_else(String::new, |function| function.name.to_string())
        };
        let chain = program.addresses.iter().find(|chain| chain.getpc == at);
        let inst = program.inst(at);
        let to = chain.map(|chain| chain.target).or(inst.and_then(|inst| inst.branch_target));
        RewriteError::Stale {
            pc: inst.map_or(Pc(0), |inst| inst.pc),
            from: name(Some(at)),
            to: name(to.and_then(|to| program.at(to))),
        }
    }

    /// The site that is to blame for an instruction that cannot be displaced: itself or, where
    /// only padding stands before it, the nearest.
    fn site(&self, woven: &Woven<'_>, pc: Pc) -> Option<InstIndex> {
        let program = &self.instrumentation.program;
        let at = program.at(pc)?;
        let function = program.function(program.function_of(at)?)?;
        woven.edits.nearest(at, function.instructions.clone())
    }

    /// Takes a site out that has turned out not to be reachable.
    fn leave_out(&mut self, woven: &mut Woven<'_>, at: InstIndex, reason: &str) {
        for (when, edits) in [
            (When::Before, &mut woven.edits.before),
            (When::After, &mut woven.edits.after),
            (When::Instead, &mut woven.edits.replaced),
        ] {
            if edits.remove(&at).is_none() {
                continue;
            }
            let calls = woven.calls.remove(&(at, when)).unwrap_or_default();
            if calls.is_empty() {
                // Other instructions in place of it.
                self.refuse(at, when, "", reason.to_owned());
            }
            for call in calls {
                self.refuse(at, when, call.hook, reason.to_owned());
            }
        }
    }
}

/// What is known of every point of a program.
struct State<'a> {
    liveness: &'a Liveness<'a>,
    loads: LoadsUnderWay,
    /// By instruction: whether vector instructions index registers when it begins.
    index_mode: Vec<IndexMode>,
    /// Whether a hook changes EXEC for good.
    changes_exec: bool,
}

impl State<'_> {
    /// What is wanted at a site.
    fn live(&self, at: InstIndex, when: When) -> Live {
        let live = match when {
            When::Before => self.liveness.before(at),
            When::After => self.liveness.after(at),
            When::Instead => self.liveness.before(at).union(self.liveness.after(at)),
        };
        if !self.changes_exec {
            return live;
        }
        // Before or behind this hook, on the way to the next original instruction, EXEC may be
        // another: lanes that it selects here may be masked there.
        let vectors = RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS);
        Live { active: live.any(), masked: live.any().intersection(vectors) }
    }
}

/// What the hooks of a component use.
#[derive(Clone, Copy, Default)]
struct Used {
    registers: RegisterSet,
    /// Where the scratch ends.
    scratch: Option<u32>,
}

/// All code of a rewrite.
#[derive(Default)]
struct Woven<'a> {
    edits: Edits,
    /// The calls at each site.
    calls: BTreeMap<(InstIndex, When), Vec<Placed<'a>>>,
    /// Instructions that stay, because something in their place could not be had.
    broken: BTreeSet<InstIndex>,
    kernels: BTreeMap<usize, GrownKernel>,
}

/// A call that has its code.
struct Placed<'a> {
    hook: &'a str,
    /// What it was asked to change for good.
    changes: RegisterSet,
    /// Whether registers with wanted values had to make room.
    saves: bool,
}

struct GrownKernel {
    name: String,
    descriptor: Descriptor,
    before: Allocation,
    after: Allocation,
    state: BTreeMap<EntryValue, Keeping>,
    moves: usize,
}

impl<'a> Woven<'a> {
    fn add(&mut self, bound: &Bound<'a>, call: site::Woven) {
        self.calls.entry((bound.at, bound.when)).or_default().push(Placed {
            hook: &bound.call.function,
            changes: call.changes,
            saves: call.saved > 0,
        });
        let edits = match bound.when {
            When::Before => &mut self.edits.before,
            When::After => &mut self.edits.after,
            When::Instead => &mut self.edits.replaced,
        };
        edits.entry(bound.at).or_default().append(call.code);
    }
}

fn calls(requests: &Requests) -> impl Iterator<Item = (When, &HookCall)> {
    let instead = match &requests.instead {
        Some(Instead::Calls(calls)) => calls.as_slice(),
        _ => &[],
    };
    let before = requests.before.iter().map(|call| (When::Before, call));
    let after = requests.after.iter().map(|call| (When::After, call));
    before.chain(instead.iter().map(|call| (When::Instead, call))).chain(after)
}

/// Whether a call gives EXEC another value.
fn changes_exec(call: &HookCall) -> bool {
    let is_exec = |register| matches!(register, Register::ExecLo | Register::ExecHi);
    call.results.iter().any(|range| range.iter().any(is_exec))
}

/// The moves of state, behind all hooks before the same instruction.
fn slide(
    kept: &Kept,
    counters: Counters,
    assembler: &mut Assembler,
    woven: &mut Woven<'_>,
) -> Result<(), HookError> {
    for (at, own) in kept.moves() {
        let mut text = counters.wait_for(&own.waits);
        for step in &own.moves {
            text = text + "\n" + &step.text();
        }
        woven.edits.before.entry(at).or_default().append(text_code(assembler, &text)?);
    }
    Ok(())
}

/// Instructions from text, one a piece.
fn text_code(assembler: &mut Assembler, text: &str) -> Result<Code, HookError> {
    let mut code = Code::default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        code.pieces.push(Piece::bytes(assembler.assemble(line)?));
    }
    Ok(code)
}

/// Registers that text names; all SGPRs where that cannot be said.
fn named(isa: &Isa, text: &str) -> RegisterSet {
    let registers = |line| {
        let bytes = isa.assemble(line).ok()?;
        let inst = isa.decode(&bytes, Pc(0)).ok()?;
        Some(inst.reads.iter().chain(&inst.writes).copied().collect())
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let named = lines.map(|line| registers(line).unwrap_or(RegisterSet::SGPRS));
    named.fold(RegisterSet::EMPTY, RegisterSet::union)
}

fn put_code(editor: &mut Editor<'_>, layout: &Layout) -> Result<(), RewriteError> {
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

fn placement(instrumentation: &Instrumentation<'_>, layout: &Layout, kernel: usize) -> Placement {
    let functions = &instrumentation.program.functions;
    let own = functions.iter().position(|function| function.kernel == Some(kernel));
    own.and_then(|own| layout.placements.get(own)).copied().unwrap_or(Placement::Inline)
}

/// What the checker is told.
fn claims(instrumentation: &Instrumentation<'_>, layout: &Layout, woven: &Woven<'_>) -> Claims {
    let changed = |at: InstIndex, when| {
        let calls = woven.calls.get(&(at, when)).into_iter().flatten();
        let asked = calls.fold(RegisterSet::EMPTY, |all, call| all.union(call.changes));
        let inst = instrumentation.program.instructions.get(at.0 as usize);
        match (when, inst) {
            // What would have written its results is gone.
            (When::Instead, Some(inst)) => asked.union(inst.writes.iter().copied().collect()),
            _ => asked,
        }
    };
    let inserted = layout.inserted.iter().map(|(range, purpose)| {
        let (at, changes) = match purpose {
            Purpose::Before(at) => (Some(*at), changed(*at, When::Before)),
            Purpose::After(at) => (Some(*at), changed(*at, When::After)),
            Purpose::Instead(at) => (Some(*at), changed(*at, When::Instead)),
            Purpose::Entry(_) | Purpose::Routine(_) | Purpose::Island => (None, RegisterSet::EMPTY),
        };
        Inserted { range: range.clone(), at, changes }
    });
    Claims {
        instructions: layout.places.iter().map(|place| place.inst).collect(),
        inserted: inserted.collect(),
    }
}
