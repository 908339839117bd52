//! Instrumentation of a code object: collection of requests.

use super::report::Report;
use super::reserve::ValueStorage;
use super::{RewriteError, Selection};
use crate::checker::Claims;
use crate::flow::{Disassembly, FunctionIndex, InstIndex};
use crate::hook::{Argument, HookData, HookSource, Mask};
use crate::layout::{CodeLayout, Placement};
use crate::point::{ProgramPoint, When};
use crate::registers::{Component, RegisterRun, components};
use flipwave_codeobj::{CodeObject, LineTable};
use flipwave_isa::counter::expert::may_enable;
use flipwave_isa::{Generation, Inst, Opcode, Pc, RegisterRange, Rules};
use std::collections::BTreeMap;

/// Index of a hook source of an instrumentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceIndex(pub usize);

/// A requested hook call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCall {
    /// The source of the hook.
    pub source: SourceIndex,
    /// The function in that source.
    pub function: String,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// Registers for each returned value, which change permanently.
    pub results: Vec<RegisterRange>,
    /// The lanes in which it runs.
    pub mask: Mask,
}

/// Requests at a program point.
#[derive(Clone, Debug, Default)]
pub(super) struct PointRequests {
    pub calls: Vec<HookCall>,
    /// Instructions as text. They are adjacent to the original instruction: calls before it come
    /// before this text, calls after it come after. Calls and text never replace an instruction
    /// together.
    pub text: Option<String>,
}

/// Instrumentation of a code object: collects requests and rewrites the code.
pub struct Instrumentation<'a> {
    /// Rules that the new code must follow.
    pub(super) rules: Rules,
    pub(super) object: &'a CodeObject,
    pub(super) program: Disassembly,
    lines: LineTable,
    pub(super) components: Vec<Component>,
    pub(super) sources: Vec<HookSource>,
    pub(super) requests: BTreeMap<ProgramPoint, PointRequests>,
    /// Requested placements.
    pub(super) placements: BTreeMap<FunctionIndex, Placement>,
    pub(super) is_checked: bool,
    /// Permitted storage of values for hooks, in order of preference.
    pub(super) storage: Vec<ValueStorage>,
}

/// A rewritten code object.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The new code object.
    pub object: CodeObject,
    /// Addresses of the code.
    pub layout: CodeLayout,
    /// The claims for the checker.
    pub claims: Claims,
    /// The data of each hook source, with its ELF virtual address in the new code object.
    pub data: Vec<(Pc, HookData)>,
    /// Results of the rewrite.
    pub report: Report,
}

impl<'a> Instrumentation<'a> {
    /// Reads the code of a code object.
    ///
    /// # Errors
    /// [`RewriteError::Flow`] for code that cannot be read, [`RewriteError::NoRules`] for targets without
    /// known rules, [`RewriteError::ExpertMode`] and [`RewriteError::VgprBanks`].
    pub fn new(object: &'a CodeObject) -> Result<Instrumentation<'a>, RewriteError> {
        let program = Disassembly::read(object)?;
        if program.target.generation() >= Generation::Gfx12 {
            let enabling = program.instructions.iter().find(|inst| may_enable(inst));
            if let Some(Inst { pc, .. }) = enabling {
                return Err(RewriteError::ExpertMode { pc: *pc });
            }
        }
        let selects_banks = |inst: &&Inst| {
            inst.operation.opcode() == Opcode::SSetVgprMsb
                && inst.immediate.is_none_or(|immediate| immediate & 0xff != 0)
        };
        if let Some(Inst { pc, .. }) = program.instructions.iter().find(selects_banks) {
            return Err(RewriteError::VgprBanks { pc: *pc });
        }
        Ok(Instrumentation {
            rules: program.rules()?,
            components: components(object, &program),
            lines: object.lines().unwrap_or_default(),
            sources: Vec::new(),
            requests: BTreeMap::new(),
            placements: BTreeMap::new(),
            is_checked: true,
            storage: ValueStorage::ORDER.to_vec(),
            object,
            program,
        })
    }

    /// The decoded code.
    pub fn program(&self) -> &Disassembly {
        &self.program
    }

    /// The selected instructions.
    pub fn select(&self, selection: &Selection) -> Vec<InstIndex> {
        selection.of(&self.program, &self.lines)
    }

    /// Adds a hook source, which must be read for the target of the code.
    pub fn add_source(&mut self, source: HookSource) -> SourceIndex {
        self.sources.push(source);
        SourceIndex(self.sources.len() - 1)
    }

    /// Enables or disables the checker, which is enabled by default.
    pub fn set_checked(&mut self, is_checked: bool) {
        self.is_checked = is_checked;
    }

    /// Sets the placement of a kernel or a device function. By default, a function moves if it can be
    /// moved and no function that stays has a fixed reference to it; otherwise, its hooks are called from
    /// trampolines.
    ///
    /// # Errors
    /// [`RewriteError::NoFunction`]. [`Instrumentation::rewrite`] returns an error if the function cannot be
    /// moved.
    pub fn place(&mut self, function: &str, placement: Placement) -> Result<(), RewriteError> {
        let functions = &self.program.functions;
        let (index, _) = functions
            .enumerated()
            .find(|(_, candidate)| *candidate.name == *function)
            .ok_or_else(|| RewriteError::NoFunction {
                wanted: function.to_owned(),
                present: functions.iter().map(|function| function.name.to_string()).collect(),
            })?;
        self.placements.insert(index, placement);
        Ok(())
    }

    /// Sets the placement of all functions.
    pub fn place_all(&mut self, placement: Placement) {
        let functions = self.program.functions.indices();
        self.placements = functions.iter().map(|index| (index, placement)).collect();
    }

    /// Sets the permitted storage of values that hooks need throughout a kernel, in order of preference;
    /// [`ValueStorage::ORDER`] by default.
    pub fn set_value_storage(&mut self, storage: &[ValueStorage]) {
        self.storage = storage.to_vec();
    }

    /// Requests a hook call at an instruction. Calls at the same point run in the order of the requests.
    pub fn call(&mut self, at: InstIndex, when: When, call: HookCall) {
        let requests = self.requests.entry(ProgramPoint::new(at, when)).or_default();
        if when == When::Instead {
            requests.text = None;
        }
        requests.calls.push(call);
    }

    /// Requests the removal of an instruction.
    pub fn remove(&mut self, at: InstIndex) {
        self.replace(at, "");
    }

    /// Requests the replacement of an instruction with any number of others: text for the assembler,
    /// without branches.
    pub fn replace(&mut self, at: InstIndex, text: &str) {
        let requests = PointRequests { calls: Vec::new(), text: Some(text.to_owned()) };
        self.requests.insert(ProgramPoint::instead(at), requests);
    }

    /// Requests instructions directly before or after an instruction, between it and its hooks, or in
    /// place of it and of the hooks that replace it: text for the assembler, without branches. Texts of
    /// several requests follow each other. Before and after an instruction, they wait for loads into
    /// the registers that they name. The checker rejects them if they write registers that are neither
    /// reserved nor dead.
    pub fn insert(&mut self, at: InstIndex, when: When, text: &str) {
        let requests = self.requests.entry(ProgramPoint::new(at, when)).or_default();
        if when == When::Instead {
            requests.calls.clear();
        }
        let all = requests.text.get_or_insert_default();
        all.push_str(text);
        all.push('\n');
    }

    /// The component of an instruction's function.
    pub fn component_of(&self, at: InstIndex) -> Option<&Component> {
        let function = self.program.function_of(at);
        self.components.iter().find(|component| component.functions.contains(&function))
    }

    /// Reserves registers that no instruction and no hook uses, in all kernels that reach an instruction.
    /// Returns `None` if there are not enough.
    pub fn reserve(&mut self, at: InstIndex, wanted: RegisterRun) -> Option<RegisterRange> {
        let function = self.program.function_of(at);
        let mut components = self.components.iter_mut();
        let component = components.find(|component| component.functions.contains(&function))?;
        if component.resizes {
            return None;
        }
        let free = component.free();
        let allocated = free.intersection(component.allocated);
        let first = wanted.first(allocated).or_else(|| wanted.first(free))?;
        let range = RegisterRange::new(first, wanted.words);
        component.reserve(range);
        Some(range)
    }
}
