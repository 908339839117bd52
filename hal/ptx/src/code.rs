//! Code of a module: instructions with addresses, and operands whose names are resolved.

use crate::{
    Constant, Form, FunctionKind, Name, Position, Register, ScalarType, Space, SpecialOperand,
};
use flipwave_arch::{Pc, RegisterId, RegisterSpan, SourceLine, SourceLines};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// Size of an instruction in bytes. PTX has no encoding; addresses are those of a machine whose
/// instructions have 16 bytes, as on NVIDIA's GPUs since Volta.
pub const INSTRUCTION_BYTES: u8 = 16;

/// The code and the variables of a module.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// The functions that have code, in the order of the module.
    pub functions: Vec<FunctionCode>,
    /// The instructions of all functions, by ascending address.
    pub instructions: Vec<crate::Inst>,
    /// The variables that all lanes share: outside functions, and shared ones in functions.
    pub variables: Vec<Variable>,
    /// Words and predicates of a wave.
    pub registers: RegisterCounts,
    /// Source lines by instruction.
    pub(crate) lines: Vec<Option<SourceLine>>,
}

/// Numbers of registers of a wave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterCounts {
    /// Words of 32 bits.
    pub words: u16,
    /// Predicates.
    pub predicates: u16,
}

/// The code of a function.
#[derive(Clone, Debug)]
pub struct FunctionCode {
    /// The name.
    pub name: Name,
    /// Position of the name.
    pub position: Position,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// Numbers of the instructions in [`Code::instructions`].
    pub instructions: Range<usize>,
    /// Parameters, in order.
    pub parameters: Vec<Slot>,
    /// Return parameters, in order.
    pub results: Vec<Slot>,
    /// Bytes of local memory that a call needs: variables in `.local` and `.param`.
    pub frame_bytes: u64,
    /// Words of the function's registers.
    pub words: Range<u16>,
    /// Predicates of the function.
    pub predicates: Range<u16>,
    /// Declared registers by number of their first word.
    pub names: Vec<(Register, Name)>,
    /// Values of `.reqntid`, `.maxntid` and other directives with numbers.
    pub directives: Vec<(Name, Vec<u64>)>,
}

impl FunctionCode {
    /// Address of the first instruction.
    pub fn entry(&self) -> Pc {
        pc_of(self.instructions.start)
    }

    /// Gives the registers of the function other numbers: `first` is added to theirs.
    pub(crate) fn shift_registers(&mut self, first: RegisterCounts) {
        let words = &mut self.words;
        *words = words.start + first.words..words.end + first.words;
        let predicates = &mut self.predicates;
        *predicates = predicates.start + first.predicates..predicates.end + first.predicates;
        for (register, _) in &mut self.names {
            register.first = crate::inst::shifted(register.first, first);
        }
        for slot in self.parameters.iter_mut().chain(&mut self.results) {
            if let Slot::Register(register) = slot {
                register.first = crate::inst::shifted(register.first, first);
            }
        }
    }

    /// The register with a name, or one of its words, see [`Code::register_name`]. Of several registers of a name, the
    /// first has no number.
    fn named(&self, name: &str) -> Option<RegisterSpan> {
        self.names.iter().find_map(|(register, declared)| {
            // Names may contain anything that suffixes do.
            let rest = name.strip_prefix(&**declared)?;
            let namesakes = self.names.iter().filter(|(_, known)| known == declared);
            let place = namesakes.take_while(|(known, _)| known != register).count() + 1;
            let (wanted, rest) = match rest.strip_prefix('#') {
                Some(rest) => {
                    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                    (rest[..end].parse().ok()?, &rest[end..])
                }
                None => (1, rest),
            };
            if place != wanted {
                return None;
            }
            if rest.is_empty() {
                return Some(RegisterSpan::new(register.first, register.words()));
            }
            let word = word_suffixes(*register).iter().position(|suffix| *suffix == rest)?;
            Some(RegisterSpan::new(register.iter().nth(word)?, 1))
        })
    }

    /// Name of the register that a word or predicate belongs to, with the number of the word in it.
    pub fn register_name(&self, id: RegisterId) -> Option<(&str, u16)> {
        self.names.iter().find_map(|(register, name)| {
            let word = register.iter().position(|word| word == id)?;
            Some((&**name, word as u16))
        })
    }
}

/// A place for a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A register.
    Register(Register),
    /// Bytes in the frame of a device function, or in the arguments of a kernel.
    #[allow(missing_docs)]
    Memory { offset: u64, bytes: u64 },
}

/// A variable that all lanes share.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Position of the name.
    pub position: Position,
    /// The name.
    pub name: Name,
    /// The state space.
    pub space: Space,
    /// Alignment in bytes, a power of two.
    pub alignment: u64,
    /// Size in bytes; 0 for `.extern` arrays without size.
    pub bytes: u64,
    /// `true` if the variable is defined in another module, or by the launch.
    pub is_external: bool,
    /// Initial bytes; empty for zeroes.
    pub content: Vec<u8>,
    /// Addresses to be added to the content.
    pub relocations: Vec<Relocation>,
}

/// An address in the initial value of a variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Relocation {
    /// Offset of the value in bytes.
    pub offset: u64,
    /// Size of the value in bytes.
    pub bytes: u64,
    /// The symbol.
    pub symbol: Symbol,
    /// Number added to the address.
    pub addend: i64,
    /// Position of the address's lowest bit in the value: 8 for the second byte.
    pub shift: u32,
    /// `true` for a generic address.
    pub is_generic: bool,
}

/// A named address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// A variable, by number in [`Code::variables`].
    Variable(usize),
    /// A function that has code, by number in [`Code::functions`].
    Function(usize),
    /// A function without code.
    External(Name),
}

/// An operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A register.
    Register(Register),
    /// The inverse of a predicate.
    Not(Register),
    /// A constant.
    Constant(Constant),
    /// A special register.
    Special(SpecialOperand),
    /// The address of a variable or function, plus a number.
    Symbol(Symbol, i64),
    /// The address in local memory of a variable of the function.
    Frame(u64),
    /// The offset of a kernel parameter in the arguments.
    Parameter(u64),
    /// An instruction.
    Label(Pc),
    /// The targets of an indexed branch.
    Targets(Vec<Pc>),
    /// The functions that an indirect call may reach.
    Functions(Vec<usize>),
    /// A prototype.
    Prototype(Arc<Signature>),
    /// `{a, b}`.
    Vector(Vec<Argument>),
    /// `a|b`.
    Pair(Box<[Argument; 2]>),
    /// `(a, b)`.
    List(Vec<Argument>),
    /// Memory at an address.
    Memory(Address),
    /// A part of a register: `%r1.h0`.
    Part(Register, Name),
    /// `_`.
    Sink,
}

/// `[base+offset]`; further parts are coordinates of textures and tensors.
#[derive(Clone, Debug, PartialEq)]
pub struct Address {
    /// A register, symbol, frame or parameter address, or a constant.
    pub base: Box<Argument>,
    /// Number of bytes added.
    pub offset: i64,
    /// Further parts.
    pub others: Vec<Argument>,
}

/// Sizes of parameters of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// Number of return parameters.
    pub results: usize,
    /// Number of parameters.
    pub parameters: usize,
}

/// A guard with its register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The predicate.
    pub register: RegisterId,
    /// `true` if lanes execute the instruction where the predicate is false.
    pub is_negated: bool,
}

/// Parts of an instruction.
#[derive(Clone, Debug)]
pub struct InstParts {
    /// The address.
    pub pc: Pc,
    /// Position in the text.
    pub position: Position,
    /// Opcode and modifiers.
    pub form: Form,
    /// The guard.
    pub guard: Option<Condition>,
    /// The operands.
    pub operands: Vec<Argument>,
    /// Number of the function in [`Code::functions`].
    pub function: usize,
}

/// An instruction that no chip has, in place of the instruction that represents it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmulatedInst {
    /// Name of the operation.
    pub operation: String,
    /// Text of the instruction, without its semicolon.
    pub text: String,
    /// Words and predicates that it writes.
    pub destinations: Vec<RegisterId>,
    /// Words and predicates that it reads, without its guard.
    pub sources: Vec<RegisterId>,
}

/// Origin of an instruction in a module with hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The instruction at this address of the original code.
    Original(Pc),
    /// Part of the code that replaces the emulated instruction at this address of the original code. The last
    /// instruction of that code is the original one.
    Emulated(Pc),
    /// Inserted before the next original instruction.
    Before,
    /// Inserted after an original instruction, or in a function of hooks.
    After,
}

impl Origin {
    /// The address in the original code; `None` for instructions of hooks around an original instruction.
    pub fn pc(self) -> Option<Pc> {
        match self {
            Origin::Original(pc) | Origin::Emulated(pc) => Some(pc),
            Origin::Before | Origin::After => None,
        }
    }

    /// Returns `true` for instructions that the original code does not have.
    pub fn is_inserted(self) -> bool {
        !matches!(self, Origin::Original(_))
    }
}

/// Suffixes of the words of a register.
fn word_suffixes(register: Register) -> &'static [&'static str] {
    match register.words() {
        1 => &[""],
        2 => &[".lo", ".hi"],
        _ => &[".w0", ".w1", ".w2", ".w3"],
    }
}

/// Address of an instruction by its number.
pub fn pc_of(number: usize) -> Pc {
    Pc(number as u64 * u64::from(INSTRUCTION_BYTES))
}

impl Code {
    /// Number of the instruction at an address; `None` outside the code.
    pub fn number_of(&self, pc: Pc) -> Option<usize> {
        let size = u64::from(INSTRUCTION_BYTES);
        let number = usize::try_from(pc.0 / size).ok()?;
        (pc.0.is_multiple_of(size) && number < self.instructions.len()).then_some(number)
    }

    /// The instruction at an address.
    pub fn at(&self, pc: Pc) -> Option<&crate::Inst> {
        self.number_of(pc).map(|number| &self.instructions[number])
    }

    /// The function with a name.
    pub fn function(&self, name: &str) -> Option<&FunctionCode> {
        self.functions.iter().find(|function| &*function.name == name)
    }

    /// Replaces an instruction, for observers, by an emulated one that has its place, guard and form.
    pub fn set_emulated(&mut self, number: usize, emulated: &EmulatedInst) {
        if let Some(inst) = self.instructions.get_mut(number) {
            *inst = inst.emulated(emulated);
        }
    }

    /// Name of a word, predicate or the carry at an instruction, as the module declares the register: `%r5`, `%p1`. A word
    /// of a register of 64 bits is `%rd3.lo` or `%rd3.hi`, one of 128 bits `%q1.w0` to `%q1.w3`. If a function declares
    /// several registers of a name, the second is `%r1#2`. Registers of other functions than the instruction's begin
    /// with the function's name: `scale:%r1`.
    pub fn register_name(&self, pc: Pc, id: RegisterId) -> Option<String> {
        if id == crate::carry() {
            return Some(id.to_string());
        }
        let current = self.at(pc)?.function;
        let (number, place) =
            self.functions.iter().enumerate().find_map(|(number, function)| {
                let of_register =
                    |(register, _): &(Register, Name)| register.iter().any(|word| word == id);
                Some((number, function.names.iter().position(of_register)?))
            })?;
        let function = &self.functions[number];
        let (register, name) = &function.names[place];
        let namesakes = function.names[..place].iter().filter(|(_, known)| known == name).count();
        let mut text = match number == current {
            true => name.to_string(),
            false => format!("{}:{name}", function.name),
        };
        if namesakes > 0 {
            text.push_str(&format!("#{}", namesakes + 1));
        }
        let word = register.iter().position(|word| word == id)?;
        text.push_str(word_suffixes(*register).get(word)?);
        Some(text)
    }

    /// The word, predicate or carry with a name at an instruction, see [`Code::register_name`].
    pub fn register_named(&self, pc: Pc, name: &str) -> Option<RegisterId> {
        if name == crate::carry().to_string() {
            return Some(crate::carry());
        }
        let (function, name) = self.split_name(name);
        let function = match function {
            Some(function) => self.function(function)?,
            None => self.functions.get(self.at(pc)?.function)?,
        };
        let span = function.named(name)?;
        (span.words == 1).then_some(span.first)
    }

    /// The registers that functions declare under a name, whichever functions do: whole registers (`%rd3`), or words as
    /// in [`Code::register_name`]. `scale:%r1` is only that of the function `scale`.
    pub fn registers_named(&self, name: &str) -> Vec<RegisterSpan> {
        let (function, name) = self.split_name(name);
        let functions = self.functions.iter();
        let chosen = functions.filter(|found| function.is_none_or(|name| *found.name == *name));
        chosen.filter_map(|function| function.named(name)).collect()
    }

    /// Names of the registers that functions declare, each once: `%p1 to %p3, %rd0, ...`.
    pub fn declared_names(&self) -> String {
        let names = self.functions.iter().flat_map(|function| &function.names);
        let mut by_prefix: BTreeMap<&str, BTreeSet<(u64, &str)>> = BTreeMap::new();
        for (_, name) in names {
            let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
            let number = name[prefix.len()..].parse().unwrap_or(0);
            by_prefix.entry(prefix).or_default().insert((number, name));
        }
        let mut ranges: Vec<String> = Vec::new();
        for names in by_prefix.values() {
            let mut all = names.iter().peekable();
            while let Some((first, name)) = all.next() {
                let mut last = (*first, *name);
                while let Some(next) = all.next_if(|next| next.0 == last.0 + 1) {
                    last = *next;
                }
                ranges.push(match last.1 == *name {
                    true => (*name).to_owned(),
                    false => format!("{name} to {}", last.1),
                });
            }
        }
        ranges.join(", ")
    }

    /// Splits the name of a register after the name of its function, if it has one.
    fn split_name<'n>(&self, name: &'n str) -> (Option<&'n str>, &'n str) {
        name.rsplit_once(':').map_or((None, name), |(function, name)| (Some(function), name))
    }

    /// The kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &FunctionCode> {
        self.functions.iter().filter(|function| function.kind == FunctionKind::Entry)
    }
}

impl SourceLines for Code {
    fn lookup(&self, pc: Pc) -> Option<SourceLine> {
        self.lines.get(self.number_of(pc)?)?.clone()
    }
}

/// Bytes of a variable with dimensions; `None` if the size overflows. An unknown dimension counts as
/// `unknown`.
pub(crate) fn array_bytes(element: u64, dimensions: &[Option<u64>], unknown: u64) -> Option<u64> {
    dimensions.iter().try_fold(element, |bytes, size| bytes.checked_mul(size.unwrap_or(unknown)))
}

/// Size of an address in bytes, by the type of the module's addresses.
pub(crate) fn natural_alignment(kind: ScalarType, elements: u8) -> u64 {
    (kind.bytes() * u64::from(elements)).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = ".version 8.3 .target sm_90 .address_size 64
        .func scale() { .reg .b32 %r<3>; .reg .pred %p<3>; mov.u32 %r2, 0; ret; }
        .visible .entry k() {
            .reg .pred %p<3>; .reg .b32 %r<3>; .reg .b64 %rd<3>; .reg .b128 %q; .reg .v2 .f32 v;
            mov.u32 %r1, 0;
            { .reg .b32 %r<2>; mov.u32 %r1, 1; }
            ret;
        }";

    fn code() -> Code {
        crate::resolve(&crate::parse(MODULE).expect("a module")).expect("code")
    }

    #[test]
    fn names_of_all_registers_round_trip() {
        let code = code();
        let pcs = [0, 2].map(pc_of);
        for pc in pcs {
            let mut names = Vec::new();
            for function in &code.functions {
                for id in function.names.iter().flat_map(|(register, _)| register.iter()) {
                    let name = code.register_name(pc, id).expect("a name");
                    assert_eq!(code.register_named(pc, &name), Some(id), "{name}");
                    names.push(name);
                }
            }
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "two registers have a name");
        }
    }

    #[test]
    fn names_are_those_of_the_module() {
        let code = code();
        let kernel = code.function("k").expect("a kernel");
        let find = |name: &str| code.register_named(kernel.entry(), name);
        let shown = |name: &str| find(name).and_then(|id| code.register_name(kernel.entry(), id));
        for name in [
            "%r1",
            "%p2",
            "%rd1.lo",
            "%rd2.hi",
            "%q.w3",
            "scale:%r2",
            "scale:%p1",
            "%r1#2",
            "v#2",
            "%cc",
        ] {
            assert_eq!(shown(name).as_deref(), Some(name));
        }
        assert_eq!(shown("k:%r1").as_deref(), Some("%r1"));
        assert_eq!(find("%r2"), find("%r1").and_then(|id| id.offset(1)));
        let words = |name: &str| -> Vec<String> {
            let spans = code.registers_named(name);
            spans.iter().flat_map(|span| span.iter()).map(|id| id.to_string()).collect()
        };
        let of = |name: &str| find(name).map(|id| id.to_string()).into_iter().collect::<Vec<_>>();
        assert_eq!(words("%rd1"), [of("%rd1.lo"), of("%rd1.hi")].concat());
        assert_eq!(words("%rd1.hi"), of("%rd1.hi"));
        // Of both functions.
        assert_eq!(words("%r1"), [of("scale:%r1"), of("%r1")].concat());
        assert_eq!(words("k:%r1"), of("%r1"));
        assert_eq!((words("%r9"), words("other:%r1")), (vec![], vec![]));
        assert_eq!(code.declared_names(), "%p0 to %p2, %q, %r0 to %r2, %rd0 to %rd2, v");
        for name in [
            "%r3",
            "%rd1",
            "%r1.lo",
            "%q.w4",
            "other:%r1",
            "%r1#3",
            "%r1#0",
            "%r2#2",
            "",
            "#",
            ":%r1",
        ] {
            assert_eq!(find(name), None, "{name}");
        }
    }
}
