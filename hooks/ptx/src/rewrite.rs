//! The module with hooks.

use crate::call::{At, Caller, Reads};
use crate::emitter::{Emitter, Temporaries, added_name, declare, temporary_name};
use crate::instrumentation::Insertion;
use crate::library::number_of;
use crate::{HookCall, Instrumentation, Lanes, LibraryIndex, Place, Point, PtxHookError, names};
use flipwave_arch::Pc;
use flipwave_ptx::{
    Block, Declaration, Declarator, Function, Guard, Instruction, Item, ItemKind, Linkage, Module,
    Name, Operand, Origin, Position, ScalarType, Space, Statement, StatementKind, ValueType, carry,
    pc_of,
};
use std::collections::HashMap;

/// A module with hooks.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The module.
    pub module: Module,
    /// Origin of each instruction of the module.
    pub origins: Vec<Origin>,
    /// Names of each library's variables and functions in the module, by their names in the source.
    symbols: Vec<HashMap<Name, Name>>,
}

impl Rewritten {
    /// Address in the original code of the instruction at an address; of an inserted instruction, the address
    /// of the next original one in the order of the text.
    pub fn original(&self, pc: Pc) -> Option<Pc> {
        let number = usize::try_from(pc.0 / u64::from(flipwave_ptx::INSTRUCTION_BYTES)).ok()?;
        self.origins.get(number..)?.iter().find_map(|origin| origin.pc())
    }

    /// Address of an instruction of the original code.
    pub fn moved(&self, original: Pc) -> Option<Pc> {
        let origin = Origin::Original(original);
        self.origins.iter().position(|found| *found == origin).map(pc_of)
    }

    /// Name in the module of a variable or function of a library.
    pub fn symbol(&self, library: LibraryIndex, name: &str) -> Option<&str> {
        self.symbols.get(library.0)?.get(name).map(|name| &**name)
    }
}

impl Instrumentation {
    /// Inserts the requested calls. The result is the same for the same requests.
    ///
    /// # Errors
    /// [`PtxHookError::Refused`] for a call that cannot be inserted; [`PtxHookError::Module`] for hooks that
    /// were compiled for a newer target.
    pub fn rewrite(&self) -> Result<Rewritten, PtxHookError> {
        for library in &self.libraries {
            let hooks = library.target.as_deref().unwrap_or_default();
            let module = self.target().unwrap_or_default();
            if number_of(hooks) > number_of(module) {
                let reason = format!("hooks for {hooks} cannot run in a module for {module}");
                return Err(PtxHookError::Module(reason));
            }
        }
        let prefix = &*self.prefix;
        let symbols: Vec<HashMap<Name, Name>> =
            (0..self.libraries.len()).map(|index| self.library_names(index, prefix)).collect();
        let preserves_carry =
            self.code.instructions.iter().any(|inst| inst.accesses().sources.contains(&carry()));
        let mut module = Module::default();
        let mut origins = Vec::new();
        let mut next = 0;
        let mut function = 0;
        let is_header = |item: &Item| {
            matches!(
                item.kind,
                ItemKind::Version { .. } | ItemKind::Target(_) | ItemKind::AddressSize(_)
            )
        };
        let header = self.module.items.iter().take_while(|item| is_header(item)).count();
        for (number, item) in self.module.items.iter().enumerate() {
            if number == header {
                module.items.extend(self.variables.iter().map(variable));
                self.add_libraries(&symbols, &mut module, &mut origins);
            }
            let mut item = item.clone();
            match &mut item.kind {
                ItemKind::Version { major, minor } => {
                    let versions = self.libraries.iter().map(|library| library.version);
                    let newest = versions.chain([(*major, *minor)]).max();
                    (*major, *minor) = newest.unwrap_or((*major, *minor));
                }
                ItemKind::Function(code) if code.body.is_some() => {
                    let splicer = Splicer {
                        instrumentation: self,
                        function,
                        prefix,
                        symbols: &symbols,
                        preserves_carry,
                        next,
                        temporaries: Temporaries::new(),
                        origins: &mut origins,
                    };
                    next = splicer.function(code)?;
                    function += 1;
                }
                _ => {}
            }
            module.items.push(item);
        }
        Ok(Rewritten { module, origins, symbols })
    }

    /// Names of the symbols of a library in the module.
    fn library_names(&self, index: usize, prefix: &str) -> HashMap<Name, Name> {
        let mut all = HashMap::new();
        let mut add = |name: &Name| {
            all.insert(name.clone(), format!("{prefix}{index}_{name}").into());
        };
        for item in &self.libraries[index].items {
            match &item.kind {
                ItemKind::Function(function) => add(&function.name),
                ItemKind::Variable(declaration) => {
                    declaration.declarators.iter().for_each(|found| add(&found.name));
                }
                ItemKind::Alias(alias) => add(&alias.name),
                _ => {}
            }
        }
        all
    }

    /// Appends the variables and functions of all libraries, whose instructions have no origin.
    fn add_libraries(
        &self,
        symbols: &[HashMap<Name, Name>],
        module: &mut Module,
        origins: &mut Vec<Origin>,
    ) {
        for (library, names) in self.libraries.iter().zip(symbols) {
            let rename = &mut |name: &mut Name| {
                if let Some(new) = names.get(name) {
                    *name = new.clone();
                }
            };
            for item in &library.items {
                let mut item = item.clone();
                item.position = Position::default();
                match &mut item.kind {
                    ItemKind::Variable(declaration) => {
                        declaration
                            .declarators
                            .iter_mut()
                            .for_each(|found| rename(&mut found.name));
                        names::of_initializers(declaration, rename);
                    }
                    ItemKind::Function(function) => {
                        rename(&mut function.name);
                        if let Some(body) = &mut function.body {
                            names::of_block(body, rename);
                            origins.resize(origins.len() + instructions(body), Origin::After);
                        }
                    }
                    ItemKind::Alias(alias) => {
                        rename(&mut alias.name);
                        rename(&mut alias.function);
                    }
                    _ => {}
                }
                module.items.push(item);
            }
        }
    }
}

/// The declaration of an added variable.
fn variable((name, kind): &(Name, ScalarType)) -> Item {
    let position = Position::default();
    let declarator = Declarator {
        position,
        name: name.clone(),
        count: None,
        dimensions: Vec::new(),
        initializer: None,
    };
    let declaration = Declaration {
        linkage: Some(Linkage::Visible),
        space: Space::Global,
        bank: None,
        attributes: Vec::new(),
        alignment: Some(kind.bytes()),
        kind: ValueType { scalar: *kind, elements: 1 },
        declarators: vec![declarator],
    };
    Item { position, kind: ItemKind::Variable(Box::new(declaration)) }
}

/// Number of instructions in a block.
fn instructions(block: &Block) -> usize {
    let count = |statement: &Statement| match &statement.kind {
        StatementKind::Instruction(_) => 1,
        StatementKind::Block(inner) => instructions(inner),
        _ => 0,
    };
    block.statements.iter().map(count).sum()
}

/// Inserts calls into one function.
struct Splicer<'a> {
    instrumentation: &'a Instrumentation,
    /// Number of the function.
    function: usize,
    prefix: &'a str,
    symbols: &'a [HashMap<Name, Name>],
    preserves_carry: bool,
    /// Number of the next instruction.
    next: usize,
    temporaries: Temporaries,
    origins: &'a mut Vec<Origin>,
}

impl Splicer<'_> {
    /// Returns the number of the instruction after the function.
    fn function(mut self, function: &mut Function) -> Result<usize, PtxHookError> {
        let position = function.position;
        let Some(body) = &mut function.body else { return Ok(self.next) };
        let is_register = |statement: &Statement| {
            matches!(&statement.kind, StatementKind::Declaration(declaration)
                if declaration.space == flipwave_ptx::Space::Reg)
        };
        let start = body.statements.iter().take_while(|found| is_register(found)).count();
        let rest = body.statements.split_off(start);
        let entry = self.detached(Point::Entry(self.function), position)?;
        body.statements.extend(entry);
        let mut rest = Block { statements: rest };
        self.block(&mut rest)?;
        body.statements.append(&mut rest.statements);
        let end = self.detached(Point::End(self.function), position)?;
        body.statements.extend(end);
        let prefix = self.prefix;
        if let Some(added) = self.instrumentation.registers.get(&self.function) {
            declare(function, added, |kind, number| added_name(prefix, kind, number));
        }
        declare(function, &self.temporaries, |kind, number| temporary_name(prefix, kind, number));
        Ok(self.next)
    }

    fn block(&mut self, block: &mut Block) -> Result<(), PtxHookError> {
        for mut statement in std::mem::take(&mut block.statements) {
            match statement.kind {
                StatementKind::Instruction(inst) => {
                    let spliced = self.instruction(*inst, statement.position)?;
                    block.statements.extend(spliced);
                    continue;
                }
                StatementKind::Block(ref mut inner) => self.block(inner)?,
                _ => {}
            }
            block.statements.push(statement);
        }
        Ok(())
    }

    /// Calls where there is no instruction.
    fn detached(
        &mut self,
        point: Point,
        position: Position,
    ) -> Result<Vec<Statement>, PtxHookError> {
        let Splicer { instrumentation, prefix, .. } = *self;
        let Some(insertions) = instrumentation.insertions.get(&point) else {
            return Ok(Vec::new());
        };
        let code = &instrumentation.code.functions[self.function];
        let mut temporaries = std::mem::take(&mut self.temporaries);
        let mut emitter = Emitter::new(prefix, code, position, &mut temporaries);
        for insertion in insertions {
            let emitted = self.emit(insertion, None, &mut Reads::default(), &mut emitter);
            emitted.map_err(|reason| PtxHookError::Refused {
                instruction: code.name.to_string(),
                reason,
            })?;
        }
        let statements = emitter.statements;
        self.temporaries = temporaries;
        let origin = if matches!(point, Point::End(_)) { Origin::After } else { Origin::Before };
        self.origins.resize(self.origins.len() + statements.len(), origin);
        Ok(statements)
    }

    fn emit(
        &self,
        insertion: &Insertion,
        at: Option<&At<'_>>,
        reads: &mut Reads,
        emitter: &mut Emitter<'_>,
    ) -> Result<(), String> {
        match insertion {
            Insertion::Call(call) => self.call(call, at, reads, emitter),
            Insertion::Code(code) => {
                for inst in code {
                    let statement = emitter.statement(inst.clone());
                    emitter.statements.push(statement);
                }
                Ok(())
            }
        }
    }

    fn call(
        &self,
        call: &HookCall,
        at: Option<&At<'_>>,
        reads: &mut Reads,
        emitter: &mut Emitter<'_>,
    ) -> Result<(), String> {
        let library = &self.instrumentation.libraries[call.library.0];
        let signature = library.signature(&call.function).map_err(|error| error.to_string())?;
        let target = self.symbols[call.library.0].get(&*call.function).ok_or("an unknown hook")?;
        let caller = Caller { at, target, signature, preserves_carry: self.preserves_carry };
        caller.emit(call, reads, emitter)
    }

    /// An instruction with its calls.
    fn instruction(
        &mut self,
        tree: Instruction,
        position: Position,
    ) -> Result<Vec<Statement>, PtxHookError> {
        let number = self.next;
        self.next += 1;
        let instrumentation = self.instrumentation;
        let inst = &instrumentation.code.instructions[number];
        let inserted =
            |point| instrumentation.insertions.get(&point).map_or(&[][..], Vec::as_slice);
        let [before, instead, after] =
            [Point::Before(number), Point::Instead(number), Point::After(number)].map(inserted);
        let is_removed = instrumentation.removed.contains(&number);
        let kept = instrumentation.kept.get(&number);
        let is_unchanged = before.is_empty() && instead.is_empty() && after.is_empty();
        if is_unchanged && kept.is_none() && !is_removed {
            self.origins.push(Origin::Original(inst.pc));
            let kind = StatementKind::Instruction(Box::new(tree));
            return Ok(vec![Statement { position, kind }]);
        }
        let refused =
            |reason| PtxHookError::Refused { instruction: inst.text().to_owned(), reason };
        let code = &instrumentation.code.functions[self.function];
        let mut temporaries = std::mem::take(&mut self.temporaries);
        let mut emitter = Emitter::new(self.prefix, code, position, &mut temporaries);
        let mut reads = Reads::default();
        let mut at = At { inst, tree: &tree, guard: tree.guard.clone() };
        let is_emulated = instrumentation.emulated.contains(&number);
        let mut emulation = 0;
        for (index, insertion) in before.iter().chain(instead).enumerate() {
            if index == before.len() {
                emulation = emitter.statements.len();
                let is_needed = after.iter().any(needs_guard)
                    || instead.iter().any(|insertion| writes_guard(insertion, inst));
                if is_emulated && is_needed {
                    at.guard = copied_guard(at.guard.take(), &mut emitter);
                }
            }
            for (_, word) in kept.into_iter().flatten().filter(|(count, _)| *count == index) {
                reads.lend(inst, *word, &mut emitter).map_err(refused)?;
            }
            self.emit(insertion, Some(&at), &mut reads, &mut emitter).map_err(refused)?;
        }
        let mut changed = tree.clone();
        substitute(&mut changed, inst.written_operands(), &reads);
        if !is_emulated && after.iter().any(needs_guard) {
            // The instruction or a hook may change the predicate.
            at.guard = copied_guard(changed.guard.clone(), &mut emitter);
        }
        let place = emitter.statements.len();
        if is_emulated {
            // Observers see the emulated instruction end here.
            let end = Operand::symbol(&emitter.temporary(ScalarType::B32));
            emitter.guard = at.guard.clone();
            emitter.op("mov.b32", vec![end, Operand::symbol("%laneid")]);
            emitter.guard = None;
        } else if !is_removed {
            let late = reads.decision.as_ref().map(|decision| Instruction {
                guard: Some(Guard { register: decision.late.clone(), is_negated: false }),
                ..changed.clone()
            });
            let statement = emitter.statement(changed);
            emitter.statements.push(statement);
            let late = late.map(|late| emitter.statement(late));
            emitter.statements.extend(late);
        }
        if let Some(kept) = &reads.carry {
            // Lanes that have not written the carry have it back.
            let is_written = inst.accesses().destinations.contains(&carry()) && !is_removed;
            let inverse =
                tree.guard.clone().map(|guard| Guard { is_negated: !guard.is_negated, ..guard });
            if !is_written || inverse.is_some() {
                emitter.guard = inverse.filter(|_| is_written);
                let restored = emitter.write_word(carry(), None, kept);
                emitter.guard = None;
                restored.map_err(refused)?;
            }
        }
        for insertion in after {
            let reads = &mut Reads::default();
            self.emit(insertion, Some(&at), reads, &mut emitter).map_err(refused)?;
        }
        let statements = emitter.statements;
        self.temporaries = temporaries;
        let origin = |index: usize| match index {
            index if index < place && is_emulated && index >= emulation => {
                Origin::Emulated(inst.pc)
            }
            index if index < place => Origin::Before,
            index if index == place && (!is_removed || is_emulated) => Origin::Original(inst.pc),
            _ => Origin::After,
        };
        self.origins.extend((0..statements.len()).map(origin));
        Ok(statements)
    }
}

/// Returns `true` if a call changes the guard of its instruction.
fn writes_guard(insertion: &Insertion, inst: &flipwave_ptx::Inst) -> bool {
    let Insertion::Call(call) = insertion else { return false };
    let guard = inst.guard.map(|guard| guard.register);
    call.results.iter().any(|place| match *place {
        Place::Register(register) => guard == Some(register.first),
        Place::Word(word) => guard == Some(word),
        Place::Words(low, high) => guard == Some(low) || guard == Some(high),
        Place::ReadWord(_) | Place::ReadWords(..) | Place::Decision => false,
    })
}

/// Copies a guard, whose predicate is about to change.
fn copied_guard(guard: Option<Guard>, emitter: &mut Emitter<'_>) -> Option<Guard> {
    let guard = guard?;
    let copy = emitter.temporary(ScalarType::Pred);
    let operands = vec![Operand::symbol(&copy), Operand::symbol(&guard.register)];
    emitter.op("mov.pred", operands);
    Some(Guard { register: copy, ..guard })
}

/// Returns `true` if a call after an instruction depends on its guard.
fn needs_guard(insertion: &Insertion) -> bool {
    let Insertion::Call(call) = insertion else { return false };
    call.lanes != Lanes::Active || call.arguments.contains(&crate::Argument::Guard)
}

/// Makes an instruction read other registers. `written` is the number of operands that it writes.
fn substitute(inst: &mut Instruction, written: usize, reads: &Reads) {
    let rename = &mut |name: &mut Name| {
        if let Some(new) = reads.registers.get(name) {
            *name = new.clone();
        }
    };
    if let Some(guard) = &mut inst.guard {
        rename(&mut guard.register);
        if let Some(decision) = &reads.decision {
            *guard = Guard { register: decision.taken.clone(), is_negated: false };
        }
    }
    for (number, operand) in inst.operands.iter_mut().enumerate() {
        if number >= written {
            names::of_operand(operand, rename);
        }
    }
}
