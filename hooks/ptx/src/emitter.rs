//! Instructions inserted at one instruction of the original code.

use flipwave_arch::RegisterId;
use flipwave_ptx::{
    CARRY, Expression, Function, FunctionCode, Guard, Instruction, Name, Number, Operand, Position,
    Radix, Register, ScalarType, Statement, StatementKind,
};
use std::collections::BTreeMap;

/// Numbers of temporary registers by type.
pub(crate) type Temporaries = BTreeMap<ScalarType, u64>;

/// Collects instructions, and gives them temporary registers.
pub(crate) struct Emitter<'a> {
    /// Prefix of the names of temporary registers.
    prefix: &'a str,
    /// The original function.
    function: &'a FunctionCode,
    /// Guard of the following instructions.
    pub guard: Option<Guard>,
    /// Position of the original instruction.
    position: Position,
    /// Temporary registers in use.
    used: Temporaries,
    /// Temporary registers that the function needs.
    most: &'a mut Temporaries,
    /// The instructions.
    pub statements: Vec<Statement>,
}

/// A word of a register.
pub(crate) struct Part {
    register: Register,
    name: Name,
    word: u16,
}

impl<'a> Emitter<'a> {
    pub fn new(
        prefix: &'a str,
        function: &'a FunctionCode,
        position: Position,
        most: &'a mut Temporaries,
    ) -> Emitter<'a> {
        let (used, statements) = Default::default();
        Emitter { prefix, function, guard: None, position, used, most, statements }
    }

    /// A temporary register.
    pub fn temporary(&mut self, kind: ScalarType) -> Name {
        let number = self.used.entry(kind).or_default();
        let name = temporary_name(self.prefix, kind, &number.to_string());
        *number += 1;
        let most = self.most.entry(kind).or_default();
        *most = (*most).max(*number);
        name
    }

    /// Returns the temporary registers of `act` to be used again.
    pub fn scoped<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let used = self.used.clone();
        let result = act(self);
        self.used = used;
        result
    }

    /// Appends an instruction with the current guard.
    pub fn op(&mut self, name: &str, operands: Vec<Operand>) {
        let guard = self.guard.clone();
        let inst = Instruction { guard, name: name.into(), operands };
        self.statements.push(self.statement(inst));
    }

    /// An instruction as a statement at the position of the original one.
    pub fn statement(&self, inst: Instruction) -> Statement {
        let kind = StatementKind::Instruction(Box::new(inst));
        Statement { position: self.position, kind }
    }

    fn part(&self, id: RegisterId) -> Result<Part, String> {
        find_word(self.function, id)
    }

    /// The declared register of a word.
    pub fn register_of(&self, id: RegisterId) -> Result<(Register, Name), String> {
        self.part(id).map(|part| (part.register, part.name))
    }

    /// Copies a register to a temporary one of the same type.
    pub fn copy(&mut self, register: Register, name: &str) -> Name {
        let to = self.temporary(register.kind);
        let operands = vec![Operand::symbol(&to), Operand::symbol(name)];
        self.op(&format!("mov.{}", untyped(register.kind)), operands);
        to
    }

    /// Reads a word or predicate to a temporary register of 32 bits. `renamed` is the name to use for the
    /// word's register.
    pub fn read_word(&mut self, id: RegisterId, renamed: Option<&str>) -> Result<Name, String> {
        let value = self.temporary(ScalarType::B32);
        let to = Operand::symbol(&value);
        if id.class.rank == CARRY.rank {
            self.op("addc.u32", vec![to, number(0), number(0)]);
            return Ok(value);
        }
        let part = self.part(id)?;
        let from = Operand::symbol(renamed.unwrap_or(&part.name));
        match part.register.kind.bits() {
            1 => self.op("selp.b32", vec![to, number(1), number(0), from]),
            8 => self.op("cvt.u32.u8", vec![to, from]),
            16 => {
                let half = self.temporary(ScalarType::B16);
                self.op("mov.b16", vec![Operand::symbol(&half), from]);
                self.op("cvt.u32.u16", vec![to, Operand::symbol(&half)]);
            }
            32 => self.op("mov.b32", vec![to, from]),
            128 => {
                let halves = self.halves(from);
                let half = halves[usize::from(part.word / 2)].clone();
                let other = Operand::symbol(&self.temporary(ScalarType::B32));
                let words = if part.word % 2 == 0 { vec![to, other] } else { vec![other, to] };
                self.op("mov.b64", vec![Operand::Vector(words), half]);
            }
            _ => {
                let other = Operand::symbol(&self.temporary(ScalarType::B32));
                let halves = if part.word == 0 { vec![to, other] } else { vec![other, to] };
                self.op("mov.b64", vec![Operand::Vector(halves), from]);
            }
        }
        Ok(value)
    }

    /// Copies the halves of a register of 128 bits to temporary registers.
    fn halves(&mut self, from: Operand) -> [Operand; 2] {
        let halves = [(); 2].map(|()| Operand::symbol(&self.temporary(ScalarType::B64)));
        self.op("mov.b128", vec![Operand::Vector(halves.to_vec()), from]);
        halves
    }

    /// Copies a register of 64 bits with one of its words replaced to a temporary register.
    fn with_word(&mut self, from: Operand, word: u16, value: Operand) -> Operand {
        let [low, high] = [(); 2].map(|()| Operand::symbol(&self.temporary(ScalarType::B32)));
        self.op("mov.b64", vec![Operand::Vector(vec![low.clone(), high.clone()]), from]);
        let words = if word == 0 { vec![value, high] } else { vec![low, value] };
        let changed = Operand::symbol(&self.temporary(ScalarType::B64));
        self.op("mov.b64", vec![changed.clone(), Operand::Vector(words)]);
        changed
    }

    /// Writes a register of 32 bits to a word or predicate.
    pub fn write_word(
        &mut self,
        id: RegisterId,
        renamed: Option<&str>,
        value: &str,
    ) -> Result<(), String> {
        let value = Operand::symbol(value);
        if id.class.rank == CARRY.rank {
            let sum = Operand::symbol(&self.temporary(ScalarType::B32));
            // Carries unless the value is 0.
            self.op("add.cc.u32", vec![sum, value, hexadecimal(u32::MAX.into())]);
            return Ok(());
        }
        let part = self.part(id)?;
        let to = Operand::symbol(renamed.unwrap_or(&part.name));
        match part.register.kind.bits() {
            1 => self.op("setp.ne.u32", vec![to, value, number(0)]),
            8 => self.op("cvt.u8.u32", vec![to, value]),
            16 => {
                let half = Operand::symbol(&self.temporary(ScalarType::B16));
                self.op("cvt.u16.u32", vec![half.clone(), value]);
                self.op("mov.b16", vec![to, half]);
            }
            32 => self.op("mov.b32", vec![to, value]),
            128 => {
                let mut halves = self.halves(to.clone());
                let half = &mut halves[usize::from(part.word / 2)];
                *half = self.with_word(half.clone(), part.word % 2, value);
                self.op("mov.b128", vec![to, Operand::Vector(halves.to_vec())]);
            }
            _ => {
                let halves = [(); 2].map(|()| Operand::symbol(&self.temporary(ScalarType::B32)));
                self.op("mov.b64", vec![Operand::Vector(halves.to_vec()), to.clone()]);
                let [low, high] = halves;
                let halves = if part.word == 0 { vec![value, high] } else { vec![low, value] };
                self.op("mov.b64", vec![to, Operand::Vector(halves)]);
            }
        }
        Ok(())
    }
}

/// The declared register of a function that contains a word or predicate.
pub(crate) fn find_word(function: &FunctionCode, id: RegisterId) -> Result<Part, String> {
    let names = &function.names;
    let word_of = |register: &Register| {
        let word = id.number.checked_sub(register.first.number)?;
        let is_inside = register.first.class.rank == id.class.rank && word < register.words();
        is_inside.then_some(word)
    };
    let mut all = names.iter().enumerate();
    let found = all.find_map(|(index, (register, name))| {
        let word = word_of(register)?;
        Some((index, Part { register: *register, name: name.clone(), word }))
    });
    let (index, found) = found.ok_or_else(|| {
        format!(
            "{id} is no register of function `{}`, so that hooks in it cannot reach it",
            function.name
        )
    })?;
    // Elements of a vector follow each other.
    let neighbours = [index.wrapping_sub(1), index + 1].map(|index| names.get(index));
    let is_vector = neighbours.into_iter().flatten().any(|(_, name)| *name == found.name);
    if is_vector {
        return Err(format!("hooks cannot reach `{}`, an element of a vector", found.name));
    }
    Ok(found)
}

/// Name of temporary registers of a type: with an empty number, their common prefix.
pub(crate) fn temporary_name(prefix: &str, kind: ScalarType, number: &str) -> Name {
    format!("%{prefix}_{}_{number}", kind.name()).into()
}

/// Name of registers that requests add to a function: with an empty number, their common prefix.
pub(crate) fn added_name(prefix: &str, kind: ScalarType, number: &str) -> Name {
    format!("%{prefix}_added_{}_{number}", kind.name()).into()
}

/// Name of the type of moves of a type's bits.
pub(crate) fn untyped(kind: ScalarType) -> String {
    if kind == ScalarType::Pred { "pred".to_owned() } else { format!("b{}", kind.bits()) }
}

/// A decimal constant.
pub(crate) fn number(value: u64) -> Operand {
    Operand::Value(Expression::Number(Number::decimal(value)))
}

/// A hexadecimal constant.
pub(crate) fn hexadecimal(value: u64) -> Operand {
    let radix = Radix::Hexadecimal;
    Operand::Value(Expression::Number(Number::Integer { value, radix, is_unsigned: false }))
}

/// Declares registers, whose names follow from the type and a number.
pub(crate) fn declare(
    function: &mut Function,
    counts: &Temporaries,
    name: impl Fn(ScalarType, &str) -> Name,
) {
    let Some(body) = &mut function.body else { return };
    let position = function.position;
    let declarations = counts.iter().map(|(kind, count)| {
        let declaration = flipwave_ptx::Declaration {
            linkage: None,
            space: flipwave_ptx::Space::Reg,
            bank: None,
            attributes: Vec::new(),
            alignment: None,
            kind: flipwave_ptx::ValueType { scalar: *kind, elements: 1 },
            declarators: vec![flipwave_ptx::Declarator {
                position,
                name: name(*kind, ""),
                count: Some(*count),
                dimensions: Vec::new(),
                initializer: None,
            }],
        };
        Statement { position, kind: StatementKind::Declaration(Box::new(declaration)) }
    });
    // After the registers of the function, whose words keep their numbers.
    let is_register = |statement: &Statement| matches!(&statement.kind, StatementKind::Declaration(declaration) if declaration.space == flipwave_ptx::Space::Reg);
    let end = body.statements.iter().take_while(|statement| is_register(statement)).count();
    body.statements.splice(end..end, declarations);
}
