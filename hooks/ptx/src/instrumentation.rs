//! Requests for hooks in a module.

use crate::emitter::{Temporaries, added_name, find_word};
use crate::hoist::hoist;
use crate::library::target_of;
use crate::{HookCall, HookLibrary, LibraryIndex, Point, PtxHookError, Site, names};
use flipwave_arch::{RegisterId, SourceLine};
use flipwave_ptx::{
    Block, Code, ControlFlow, Instruction, ItemKind, Module, Name, ResolveError, ScalarType,
    StatementKind, resolve,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Code to insert at a point.
#[derive(Clone, Debug)]
pub(crate) enum Insertion {
    Call(HookCall),
    Code(Vec<Instruction>),
}

/// A module and the hooks to insert.
#[derive(Clone, Debug)]
pub struct Instrumentation {
    /// The module, with all registers declared at the beginning of functions.
    pub(crate) module: Module,
    pub(crate) code: Code,
    lines: Vec<Option<SourceLine>>,
    /// Prefix of all names that are added to the module.
    pub(crate) prefix: String,
    pub(crate) libraries: Vec<Arc<HookLibrary>>,
    /// Variables in global memory, with their types.
    pub(crate) variables: Vec<(Name, ScalarType)>,
    /// By number of the function: numbers of added registers.
    pub(crate) registers: BTreeMap<usize, Temporaries>,
    pub(crate) insertions: BTreeMap<Point, Vec<Insertion>>,
    /// Words that instructions read as they are after a number of the insertions before them, by number of the
    /// instruction.
    pub(crate) kept: BTreeMap<usize, Vec<(usize, RegisterId)>>,
    /// Numbers of instructions to remove.
    pub(crate) removed: BTreeSet<usize>,
    /// Numbers of removed instructions that represent emulated ones.
    pub(crate) emulated: BTreeSet<usize>,
}

impl Instrumentation {
    /// Prepares a module.
    ///
    /// # Errors
    /// [`PtxHookError::Resolve`] if its names cannot be resolved; [`PtxHookError::Module`] for addresses of
    /// 32 bits.
    pub fn new(module: &Module) -> Result<Instrumentation, PtxHookError> {
        if module.address_bits() != 64 {
            let reason = "hooks need a module with `.address_size 64`";
            return Err(PtxHookError::Module(reason.to_owned()));
        }
        let mut module = module.clone();
        hoist(&mut module);
        let code = resolve(&module).map_err(|error: ResolveError| PtxHookError::Resolve(error))?;
        let lines =
            code.instructions.iter().map(|inst| flipwave_arch::SourceLines::lookup(&code, inst.pc));
        let lines = lines.collect();
        let prefix = names::unused_prefix(&module);
        let (libraries, variables, registers, insertions) = Default::default();
        let (kept, removed, emulated) = Default::default();
        Ok(Instrumentation {
            module,
            code,
            lines,
            prefix,
            libraries,
            variables,
            registers,
            insertions,
            kept,
            removed,
            emulated,
        })
    }

    /// The code. Addresses and words of registers are those of the module without hooks.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// The target of the module, for which hooks must be compiled.
    pub fn target(&self) -> Option<&str> {
        target_of(&self.module)
    }

    /// The instructions, in the order of their numbers.
    pub fn sites(&self) -> impl Iterator<Item = Site<'_>> {
        self.code.instructions.iter().zip(&self.lines).enumerate().map(|(number, (inst, line))| {
            let function = &self.code.functions[inst.function];
            Site { number, inst, function, line: line.as_ref() }
        })
    }

    /// The instructions in the module's tree, in the order of their numbers. Their registers have the names that
    /// inserted instructions use.
    pub fn instructions(&self) -> Vec<&Instruction> {
        fn collect<'a>(block: &'a Block, found: &mut Vec<&'a Instruction>) {
            for statement in &block.statements {
                match &statement.kind {
                    StatementKind::Instruction(inst) => found.push(inst),
                    StatementKind::Block(inner) => collect(inner, found),
                    _ => {}
                }
            }
        }
        let mut found = Vec::new();
        for item in &self.module.items {
            if let ItemKind::Function(function) = &item.kind {
                function.body.iter().for_each(|body| collect(body, &mut found));
            }
        }
        found
    }

    /// The instruction with a number.
    pub fn site(&self, number: usize) -> Option<Site<'_>> {
        let inst = self.code.instructions.get(number)?;
        let function = &self.code.functions[inst.function];
        Some(Site { number, inst, function, line: self.lines.get(number)?.as_ref() })
    }

    /// Checks that hooks at an instruction can read and write a word.
    ///
    /// # Errors
    /// A message with the reason.
    pub fn check_word(&self, number: usize, word: RegisterId) -> Result<(), String> {
        if word == flipwave_ptx::carry() {
            return Ok(());
        }
        let site = self.site(number).ok_or("there is no instruction of this number")?;
        find_word(site.function, word).map(|_| ())
    }

    /// Places where the basic blocks of a function begin.
    pub fn block_entries(&self, function: usize) -> Vec<Point> {
        let Some(function) = self.code.functions.get(function) else { return Vec::new() };
        let flow = ControlFlow::of(&self.code, function);
        flow.blocks.iter().map(|block| Point::Before(block.instructions.start)).collect()
    }

    /// Places where lanes leave a function: its returns, ends of lanes, and its last instruction if lanes
    /// continue after it.
    pub fn exits(&self, function: usize) -> Vec<Point> {
        let Some(code) = self.code.functions.get(function) else { return Vec::new() };
        let ends = code.instructions.clone().filter(|number| {
            matches!(self.code.instructions[*number].form.opcode(), "ret" | "exit")
        });
        let last = code.instructions.clone().next_back();
        let falls_off = last.is_none_or(|last| {
            let inst = &self.code.instructions[last];
            inst.guard.is_some()
                || !matches!(inst.form.opcode(), "ret" | "exit" | "trap" | "bra" | "brx")
        });
        let end = falls_off.then_some(Point::End(function));
        ends.map(Point::Before).chain(end).collect()
    }

    /// Adds compiled hooks.
    pub fn add_library(&mut self, library: Arc<HookLibrary>) -> LibraryIndex {
        self.libraries.push(library);
        LibraryIndex(self.libraries.len() - 1)
    }

    /// Names of the variables of a library in device memory.
    pub fn variables(&self, library: LibraryIndex) -> Vec<String> {
        let library = self.libraries.get(library.0);
        library.into_iter().flat_map(|library| library.variables()).map(str::to_owned).collect()
    }

    /// Adds a register to a function, for inserted instructions. Words of other registers keep their numbers.
    pub fn add_register(&mut self, function: usize, kind: ScalarType) -> Name {
        let count = self.registers.entry(function).or_default().entry(kind).or_default();
        let name = added_name(&self.prefix, kind, &count.to_string());
        *count += 1;
        name
    }

    /// Adds a variable in global memory, initially 0, that the host finds by its name.
    ///
    /// # Errors
    /// [`PtxHookError::Module`] if the module already declares the name.
    pub fn add_variable(&mut self, name: &str, kind: ScalarType) -> Result<(), PtxHookError> {
        let is_added = self.variables.iter().any(|(added, _)| **added == *name);
        if is_added || names::declared(&self.module).contains(name) {
            return Err(PtxHookError::Module(format!("the module already declares `{name}`")));
        }
        self.variables.push((name.into(), kind));
        Ok(())
    }

    /// Inserts instructions, which use registers and variables of the module and added ones. They are executed as
    /// they are, whatever the guard of the instruction at the point is.
    ///
    /// # Errors
    /// [`PtxHookError::Refused`] if no code can run at the point.
    pub fn insert(&mut self, point: Point, code: Vec<Instruction>) -> Result<(), PtxHookError> {
        self.check_point(point)?;
        self.insertions.entry(point).or_default().push(Insertion::Code(code));
        Ok(())
    }

    /// Requests a call. Calls at one point are executed in the order of requests.
    ///
    /// # Errors
    /// [`PtxHookError::NoFunction`], [`PtxHookError::Call`] if the function cannot be a hook, and
    /// [`PtxHookError::Refused`] if no code can run at the point. Unsuitable arguments are reported by
    /// [`Instrumentation::rewrite`].
    pub fn call(&mut self, point: Point, call: HookCall) -> Result<(), PtxHookError> {
        let library = self.libraries.get(call.library.0);
        let library =
            library.ok_or_else(|| refused("call", "there is no library of this number"))?;
        library.signature(&call.function)?;
        if call.results.iter().any(|place| place.is_read()) && !matches!(point, Point::Before(_)) {
            return Err(refused(
                &call.function,
                "an instruction reads what hooks before it return",
            ));
        }
        self.check_point(point)?;
        if let Point::Instead(number) = point {
            self.removed.insert(number);
        }
        self.insertions.entry(point).or_default().push(Insertion::Call(call));
        Ok(())
    }

    /// Checks that code can run at a point.
    fn check_point(&self, point: Point) -> Result<(), PtxHookError> {
        let (number, is_after) = match point {
            Point::Before(number) | Point::Instead(number) => (number, false),
            Point::After(number) => (number, true),
            Point::Entry(function) | Point::End(function) => {
                if function >= self.code.functions.len() {
                    return Err(refused("function", "there is no function of this number"));
                }
                return Ok(());
            }
        };
        let missing = || refused("call", "there is no instruction of this number");
        let site = self.site(number).ok_or_else(missing)?;
        if is_after && site.leaves() {
            let reason = "lanes do not continue after it, so that no hook can run there";
            return Err(refused(site.inst.text(), reason));
        }
        Ok(())
    }

    /// Makes an instruction read the value that a word has after the calls before the instruction that were requested
    /// so far: what later ones return is seen by later instructions only.
    pub fn keep_read(&mut self, number: usize, word: RegisterId) {
        let insertions = self.insertions.get(&Point::Before(number)).map_or(0, Vec::len);
        self.kept.entry(number).or_default().push((insertions, word));
    }

    /// Requests a hook in place of an instruction, which emulates another one. The hook, with the moves of its
    /// arguments and results, counts as one instruction, see [`Origin::Emulated`](flipwave_ptx::Origin).
    ///
    /// # Errors
    /// See [`Instrumentation::call`].
    pub fn emulate(&mut self, number: usize, call: HookCall) -> Result<(), PtxHookError> {
        self.call(Point::Instead(number), call)?;
        self.emulated.insert(number);
        Ok(())
    }

    /// Removes an instruction. Labels in front of it and hooks around it stay.
    pub fn remove(&mut self, number: usize) {
        self.removed.insert(number);
    }
}

fn refused(instruction: &str, reason: &str) -> PtxHookError {
    PtxHookError::Refused { instruction: instruction.to_owned(), reason: reason.to_owned() }
}
