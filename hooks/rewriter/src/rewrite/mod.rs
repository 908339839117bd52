//! Requests, and the code object that fulfils them.

mod alone;
mod beside;
mod build;
mod error;
mod growth;
mod hazards;
mod homes;
mod jumps;
mod placements;
mod prologue;
mod report;
mod selection;
mod slide;
#[cfg(test)]
mod tests;

pub use crate::point::{ProgramPoint, When};
pub use alone::alone;
pub use beside::{NotBeside, SideBySide};
pub use error::RewriteError;
pub use homes::Keeping;
pub use report::{KernelReport, Refused, Report};
pub use selection::{Position, Selection};

use crate::checker::Claims;
use crate::flow::{Disassembly, FunctionIndex, InstIndex};
use crate::hook::{Argument, HookCompiler, HookData, HookSource, Mask};
use crate::layout::{CodeLayout, Placement};
use crate::registers::{Component, RegisterRun, components};
use flipwave_codeobj::{CodeObject, LineTable};
use flipwave_isa::counter::expert::may_enable;
use flipwave_isa::{Generation, Inst, Pc, RegisterRange, Rules};
use std::collections::BTreeMap;

/// A source of hooks that an instrumentation was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceIndex(pub usize);

/// A hook to be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCall {
    /// Where the hook is.
    pub source: SourceIndex,
    /// The function in that source.
    pub function: String,
    /// What it is given.
    pub arguments: Vec<Argument>,
    /// Where its result goes, for good: registers for each value that it returns.
    pub results: Vec<RegisterRange>,
    /// The lanes that it runs in.
    pub mask: Mask,
}

/// Requests at a program point.
#[derive(Clone, Debug, Default)]
struct PointRequests {
    calls: Vec<HookCall>,
    /// Instructions as text. They are adjacent to the original instruction: calls before it come
    /// before this text, calls after it come after. Calls and text never replace an instruction
    /// together.
    text: Option<String>,
}

/// A code object being instrumented.
pub struct Instrumentation<'a> {
    /// What new code must keep.
    rules: Rules,
    object: &'a CodeObject,
    program: Disassembly,
    lines: LineTable,
    components: Vec<Component>,
    sources: Vec<HookSource>,
    requests: BTreeMap<ProgramPoint, PointRequests>,
    /// Where the code of functions was asked to go.
    placements: BTreeMap<FunctionIndex, Placement>,
    is_checked: bool,
    keeping: Vec<Keeping>,
}

/// A rewritten code object.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The new code object.
    pub object: CodeObject,
    /// Where everything went.
    pub layout: CodeLayout,
    /// What the checker is to prove.
    pub claims: Claims,
    /// The data of each source of hooks, and its ELF virtual address in the new code object.
    pub data: Vec<(Pc, HookData)>,
    /// What was done and what was not.
    pub report: Report,
}

impl<'a> Instrumentation<'a> {
    /// Reads a code object's code.
    ///
    /// # Errors
    /// [`RewriteError::Flow`] for code that cannot be read, [`RewriteError::NoRules`] for code that may
    /// not be changed since the rules that it must keep are not known, and
    /// [`RewriteError::ExpertMode`].
    pub fn new(object: &'a CodeObject) -> Result<Instrumentation<'a>, RewriteError> {
        let program = Disassembly::read(object)?;
        if program.target.generation() >= Generation::Gfx12 {
            let turns_on = program.instructions.iter().find(|own| may_enable(own));
            if let Some(Inst { pc, .. }) = turns_on {
                return Err(RewriteError::ExpertMode { pc: *pc });
            }
        }
        Ok(Instrumentation {
            rules: program.rules()?,
            components: components(object, &program),
            lines: object.lines().unwrap_or_default(),
            sources: Vec::new(),
            requests: BTreeMap::new(),
            placements: BTreeMap::new(),
            is_checked: true,
            keeping: Keeping::ORDER.to_vec(),
            object,
            program,
        })
    }

    /// The code.
    pub fn program(&self) -> &Disassembly {
        &self.program
    }

    /// The instructions that a selection is of.
    pub fn select(&self, selection: &Selection) -> Vec<InstIndex> {
        selection.of(&self.program, &self.lines)
    }

    /// Adds a source of hooks, read for this code's target.
    pub fn add_source(&mut self, source: HookSource) -> SourceIndex {
        self.sources.push(source);
        SourceIndex(self.sources.len() - 1)
    }

    /// Whether the result is checked, as it is by default.
    pub fn set_checked(&mut self, is_checked: bool) {
        self.is_checked = is_checked;
    }

    /// Says where the code of a kernel or a device function goes. Without a word a function moves
    /// where it can be moved; hooks in one that cannot be get trampolines. So do hooks in one that
    /// a function that stays leads to, where that way may not be mended.
    ///
    /// # Errors
    /// [`RewriteError::NoFunction`]. Whether a function can be moved shows in
    /// [`Instrumentation::rewrite`].
    pub fn place(&mut self, function: &str, placement: Placement) -> Result<(), RewriteError> {
        let functions = &self.program.functions;
        let (index, _) = functions
            .enumerated()
            .find(|(_, own)| *own.name == *function)
            .ok_or_else(|| RewriteError::NoFunction {
                wanted: function.to_owned(),
                present: functions.iter().map(|own| own.name.to_string()).collect(),
            })?;
        self.placements.insert(index, placement);
        Ok(())
    }

    /// Says where the code of all functions goes.
    pub fn place_all(&mut self, placement: Placement) {
        let functions = self.program.functions.indices();
        self.placements = functions.iter().map(|index| (index, placement)).collect();
    }

    /// How values that hooks ask for all through a kernel may be kept, the best way first; by
    /// default in [`Keeping::ORDER`].
    pub fn set_keeping(&mut self, keeping: &[Keeping]) {
        self.keeping = keeping.to_vec();
    }

    /// Asks for a hook at an instruction. Several hooks at one place run in the order asked.
    pub fn call(&mut self, at: InstIndex, when: When, call: HookCall) {
        let requests = self.requests.entry(ProgramPoint::new(at, when)).or_default();
        if when == When::Instead {
            requests.text = None;
        }
        requests.calls.push(call);
    }

    /// Asks for an instruction to be removed.
    pub fn remove(&mut self, at: InstIndex) {
        self.replace(at, "");
    }

    /// Asks for an instruction to be replaced by others, of any length: text for the assembler,
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

    /// The functions that share registers with the one of an instruction.
    pub fn component_of(&self, at: InstIndex) -> Option<&Component> {
        let function = self.program.function_of(at);
        self.components.iter().find(|own| own.functions.contains(&function))
    }

    /// Sets registers aside, in all kernels that come to an instruction: no instruction names them,
    /// no hook gets them, and waves have them. Nothing where there are no more.
    pub fn reserve(&mut self, at: InstIndex, wanted: RegisterRun) -> Option<RegisterRange> {
        let function = self.program.function_of(at);
        let components = &mut self.components;
        let component = components.iter_mut().find(|own| own.functions.contains(&function))?;
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

    /// Compiles the hooks and makes the new code object. The given one stays as it is.
    ///
    /// # Errors
    /// [`RewriteError`]: nothing is half done. Sites that had to be left out are no error but in
    /// the report.
    pub fn rewrite(&self, compiler: &HookCompiler) -> Result<Rewritten, RewriteError> {
        build::Build::new(self, compiler)?.finish()
    }
}
