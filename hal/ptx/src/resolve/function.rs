//! Functions: registers, frames, labels and instructions.

use super::Labels;
use super::error::{ResolveError, ResolveErrorKind, error};
use super::operand::{Context, guard, operands};
use super::scope::{Entity, Scope};
use super::variable;
use crate::code::{array_bytes, natural_alignment};
use crate::registers::words;
use crate::{
    Block, Code, Declaration, Form, Function, FunctionCode, FunctionKind, Inst, InstParts, Name,
    PREDICATES, Parameter, Performance, Position, Register, ScalarType, Signature, Slot, Space,
    StatementKind, WORDS, pc_of,
};
use flipwave_arch::{RegisterId, SourceLine};
use std::collections::HashMap;
use std::sync::Arc;

/// Paths of source files by number.
type Files = HashMap<u64, Arc<str>>;

/// Resolves a function and appends its code.
pub(super) fn function(
    function: &Function,
    number: usize,
    globals: &Scope,
    files: &Files,
    code: &mut Code,
) -> Result<(), ResolveError> {
    let Some(body) = &function.body else { return Ok(()) };
    let mut resolver = Resolver {
        number,
        kind: function.kind,
        globals,
        scopes: vec![Scope::default()],
        labels: Labels::new(),
        files,
        line: None,
        words: 0,
        predicates: 0,
        names: Vec::new(),
        frame: 0,
        code,
    };
    let start = resolver.code.instructions.len();
    resolver.label(body, &mut { start })?;
    let results = resolver.parameters(&function.results)?;
    let parameters = resolver.parameters(function.parameters.as_deref().unwrap_or_default())?;
    resolver.scopes.push(Scope::default());
    resolver.block(body)?;
    let Resolver { words, predicates, names, frame, code, .. } = resolver;
    let directives = function.directives.iter().filter_map(|directive| match directive {
        Performance::Numbers { name, values } => Some((name.clone(), values.clone())),
        Performance::Pragma(_) => None,
    });
    code.functions.push(FunctionCode {
        name: function.name.clone(),
        position: function.position,
        kind: function.kind,
        instructions: start..code.instructions.len(),
        parameters,
        results,
        frame_bytes: frame,
        words: 0..words,
        predicates: 0..predicates,
        names,
        directives: directives.collect(),
    });
    Ok(())
}

/// State while a function is resolved.
struct Resolver<'a> {
    number: usize,
    kind: FunctionKind,
    globals: &'a Scope,
    /// Names of the function, those of the innermost block last.
    scopes: Vec<Scope>,
    labels: Labels,
    files: &'a Files,
    line: Option<SourceLine>,
    words: u16,
    predicates: u16,
    names: Vec<(Register, Name)>,
    /// Bytes of the frame so far.
    frame: u64,
    code: &'a mut Code,
}

impl Resolver<'_> {
    /// Collects the labels of a block, whose first instruction has the number `next`.
    fn label(&mut self, block: &Block, next: &mut usize) -> Result<(), ResolveError> {
        for statement in &block.statements {
            match &statement.kind {
                StatementKind::Instruction(_) => *next += 1,
                StatementKind::Block(inner) => self.label(inner, next)?,
                StatementKind::Label(name) => {
                    let previous = self.labels.insert(name.clone(), pc_of(*next));
                    previous.map_or(Ok(()), |_| Err(duplicate(statement.position, name)))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn declare(
        &mut self,
        position: Position,
        name: &Name,
        entity: Entity,
    ) -> Result<(), ResolveError> {
        let scope = self.scopes.last_mut();
        if scope.is_some_and(|scope| scope.declare(name.clone(), entity)) {
            return Ok(());
        }
        Err(duplicate(position, name))
    }

    /// Assigns words to a register.
    fn register(
        &mut self,
        position: Position,
        kind: ScalarType,
        name: Name,
    ) -> Result<Register, ResolveError> {
        let (class, count) = if kind == ScalarType::Pred {
            (&PREDICATES, &mut self.predicates)
        } else {
            (&WORDS, &mut self.words)
        };
        let register = Register { first: RegisterId { class, number: *count }, kind };
        let end = count.checked_add(words(kind)).filter(|end| *end < u16::MAX);
        *count = end.ok_or_else(|| error(position, ResolveErrorKind::TooManyRegisters))?;
        self.names.push((register, name));
        Ok(register)
    }

    /// Reserves bytes in the frame.
    fn reserve(
        &mut self,
        position: Position,
        name: &Name,
        bytes: u64,
        alignment: u64,
    ) -> Result<u64, ResolveError> {
        let offset = self.frame.checked_next_multiple_of(alignment.max(1));
        let end = offset.and_then(|offset| offset.checked_add(bytes));
        let end = end.filter(|end| *end <= 1 << 40);
        self.frame =
            end.ok_or_else(|| error(position, ResolveErrorKind::Size(name.to_string())))?;
        Ok(self.frame - bytes)
    }

    fn parameters(&mut self, parameters: &[Parameter]) -> Result<Vec<Slot>, ResolveError> {
        // Arguments of a kernel begin at offset 0; its frame does not contain them.
        let mut arguments = 0u64;
        let mut slots = Vec::new();
        for parameter in parameters {
            let Parameter { position, name, kind, .. } = parameter;
            let bytes = array_bytes(kind.bytes(), &parameter.dimensions, 0);
            let bytes = bytes
                .filter(|bytes| *bytes <= 1 << 40)
                .ok_or_else(|| error(*position, ResolveErrorKind::Size(name.to_string())))?;
            let natural = natural_alignment(kind.scalar, kind.elements);
            let alignment = parameter.alignment.unwrap_or(natural);
            if !alignment.is_power_of_two() || alignment > 1 << 20 {
                return Err(error(*position, ResolveErrorKind::Alignment(alignment)));
            }
            let (slot, entity) = if parameter.space == Space::Reg {
                let register = self.register(*position, kind.scalar, name.clone())?;
                (Slot::Register(register), Entity::Registers(vec![register]))
            } else if self.kind == FunctionKind::Entry {
                let offset = arguments.next_multiple_of(alignment);
                arguments = offset + bytes;
                (Slot::Memory { offset, bytes }, Entity::Parameter(offset))
            } else {
                let offset = self.reserve(*position, name, bytes, alignment)?;
                (Slot::Memory { offset, bytes }, Entity::Frame(offset))
            };
            slots.push(slot);
            self.declare(*position, name, entity)?;
        }
        Ok(slots)
    }

    fn block(&mut self, block: &Block) -> Result<(), ResolveError> {
        // Prototypes and tables may follow their uses.
        for statement in &block.statements {
            let (label, entity) = match &statement.kind {
                StatementKind::Prototype(prototype) => {
                    let [results, parameters] =
                        [prototype.results.len(), prototype.parameters.len()];
                    let signature = Arc::new(Signature { results, parameters });
                    (&prototype.label, Entity::Prototype(signature))
                }
                StatementKind::CallTargets { label, functions } => {
                    (label, Entity::Functions(functions.clone()))
                }
                StatementKind::BranchTargets { label, targets } => {
                    (label, Entity::Targets(targets.clone()))
                }
                _ => continue,
            };
            self.declare(statement.position, label, entity)?;
        }
        for statement in &block.statements {
            match &statement.kind {
                StatementKind::Declaration(declaration) => {
                    self.declaration(declaration, statement.position)?;
                }
                StatementKind::Block(inner) => {
                    self.scopes.push(Scope::default());
                    self.block(inner)?;
                    self.scopes.pop();
                }
                StatementKind::Location(location) => {
                    let file = self.files.get(&location.file).cloned();
                    self.line = file.map(|file| SourceLine {
                        file,
                        line: location.line.try_into().unwrap_or(0),
                        column: location.column.try_into().unwrap_or(0),
                    });
                }
                StatementKind::Instruction(inst) => {
                    let context = Context {
                        globals: self.globals,
                        scopes: &self.scopes,
                        labels: &self.labels,
                        position: statement.position,
                    };
                    let form = Form::of(&inst.name);
                    let guard = guard(inst, &context)?;
                    let operands = operands(inst, &context)?;
                    let pc = pc_of(self.code.instructions.len());
                    let (position, function) = (statement.position, self.number);
                    let parts = InstParts { pc, position, form, guard, operands, function };
                    self.code.instructions.push(Inst::new(parts, inst.to_string().into()));
                    self.code.lines.push(self.line.clone());
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn declaration(
        &mut self,
        declaration: &Declaration,
        position: Position,
    ) -> Result<(), ResolveError> {
        match declaration.space {
            Space::Reg => self.registers(declaration),
            Space::Local | Space::Param => {
                for declarator in &declaration.declarators {
                    let bytes = variable::bytes(declaration, declarator)?;
                    let alignment = variable::alignment(declaration, declarator)?;
                    let name = &declarator.name;
                    let offset = self.reserve(position, name, bytes, alignment)?;
                    self.declare(position, name, Entity::Frame(offset))?;
                }
                Ok(())
            }
            _ => {
                let Some(scope) = self.scopes.last_mut() else { return Ok(()) };
                variable::declare_shared(declaration, scope, &mut self.code.variables)?;
                variable::initialize(declaration, scope, &mut self.code.variables)
            }
        }
    }

    fn registers(&mut self, declaration: &Declaration) -> Result<(), ResolveError> {
        for declarator in &declaration.declarators {
            let names: Vec<Name> = match declarator.count {
                Some(count) if count >= u64::from(u16::MAX) => {
                    return Err(error(declarator.position, ResolveErrorKind::TooManyRegisters));
                }
                Some(count) => {
                    (0..count).map(|number| format!("{}{number}", declarator.name).into()).collect()
                }
                None => vec![declarator.name.clone()],
            };
            for name in names {
                let elements = (0..declaration.kind.elements).map(|_| {
                    self.register(declarator.position, declaration.kind.scalar, name.clone())
                });
                let elements = elements.collect::<Result<Vec<_>, _>>()?;
                self.declare(declarator.position, &name, Entity::Registers(elements))?;
            }
        }
        Ok(())
    }
}

fn duplicate(position: Position, name: &Name) -> ResolveError {
    error(position, ResolveErrorKind::Duplicate(name.to_string()))
}
