//! Patterns that match proxies in PTX.
//!
//! A pattern is an instruction of PTX, with names in place of registers and numbers that may vary. It is read as a
//! kernel in which each name is a register of the operand's size, or a number.

use crate::pattern::{Kind, Mismatch};
use crate::{Binding, Instruction};
use flipwave_arch::RegisterId;
use flipwave_ptx::{
    Address, Argument, Class, Code, Constant, Inst, Register, ScalarType, parse, resolve,
};
use std::fmt::Write;

/// Placeholder of the first named number in an example; the second one has the next number.
const FIRST_NUMBER: u64 = 0x5f1b_a5e0_0000;

/// Errors returned when reading a pattern for PTX.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PtxPatternError {
    /// A named operand is of a kind that PTX does not have.
    #[error(
        "operand `{name}`: PTX has no operands of kind `{binding}`; expected `pred`, `b16`, `b32`, `b64`, \
         `b128` or `imm`"
    )]
    OtherKind {
        /// The name.
        name: String,
        /// The binding of the operand.
        binding: Binding,
    },
    /// The name of an operand is no identifier of PTX.
    #[error("operand `{0}`: expected a name of letters, digits and `_`")]
    Name(String),
    /// The pattern is not PTX.
    #[error("the proxy `{text}` is no instruction of PTX: {reason}")]
    Syntax {
        /// The pattern.
        text: String,
        /// The error.
        reason: String,
    },
    /// The opcode is unknown.
    #[error("the proxy `{0}` has an unknown opcode")]
    Opcode(String),
    /// The pattern has no instruction or more than one.
    #[error("the proxy `{0}` is not a single instruction")]
    NotSingle(String),
    /// The pattern has a guard.
    #[error("the proxy `{0}` has a guard; remove it, because proxies match with any guard")]
    Guard(String),
    /// The instruction is a branch, a call, a barrier or the end of a lane.
    #[error("the proxy `{0}` changes control flow, which a hook cannot do")]
    ControlFlow(String),
    /// A named operand does not occur in the instruction.
    #[error("operand `{name}` ({binding}) is not in the proxy `{text}`")]
    Unused {
        /// The name.
        name: String,
        /// The binding of the operand.
        binding: Binding,
        /// The pattern.
        text: String,
    },
}

/// A named operand of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedOperand {
    /// The name.
    pub name: String,
    /// The values that it accepts.
    pub binding: Binding,
    /// `true` if the instruction writes it.
    pub is_written: bool,
    /// `true` if the instruction reads it.
    pub is_read: bool,
    /// Its placeholder in the example.
    example: Example,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Example {
    Register(RegisterId),
    Number(u64),
}

/// The value of a named operand in an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandValue {
    /// A register.
    Register(Register),
    /// The bits of a number.
    Number(u64),
}

/// A pattern that matches the proxies of an emulated instruction.
#[derive(Clone, Debug)]
pub struct PtxPattern {
    /// The instruction with examples in place of names.
    example: Inst,
    /// The named operands, in the order of the proxy.
    pub operands: Vec<NamedOperand>,
}

impl PtxPattern {
    /// Reads the pattern of an instruction.
    ///
    /// # Errors
    /// [`PtxPatternError`].
    pub fn new(instruction: &Instruction) -> Result<PtxPattern, PtxPatternError> {
        let text = || instruction.proxy.clone();
        let mut module =
            ".version 9.1\n.target sm_90a\n.address_size 64\n.entry proxy()\n{\n".to_owned();
        let mut numbers: Vec<(&str, String)> = Vec::new();
        for (name, binding) in &instruction.operands {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let has_letter = name.starts_with(|c: char| c.is_ascii_alphabetic());
            if !has_letter || !name.chars().all(is_plain) {
                return Err(PtxPatternError::Name(name.clone()));
            }
            match binding.kind {
                // Writing to a string does not fail.
                Kind::Ptx(kind) => _ = writeln!(module, ".reg .{} {name};", kind.name()),
                Kind::Immediate => {
                    let number = FIRST_NUMBER + numbers.len() as u64;
                    numbers.push((name, format!("{number:#x}")));
                }
                Kind::Registers(_) => {
                    let (name, binding) = (name.clone(), *binding);
                    return Err(PtxPatternError::OtherKind { name, binding });
                }
            }
        }
        let proxy = instruction.proxy.trim().trim_end_matches(';');
        let _ = writeln!(module, "{};\n}}", with_numbers(proxy, &numbers));
        let syntax = |reason: String| PtxPatternError::Syntax { text: text(), reason };
        let tree = parse(&module).map_err(|error| syntax(error.kind.to_string()))?;
        let code = resolve(&tree).map_err(|error| syntax(error.kind.to_string()))?;
        let [example] = &code.instructions[..] else {
            return Err(PtxPatternError::NotSingle(text()));
        };
        match example.form.class() {
            None => return Err(PtxPatternError::Opcode(text())),
            Some(Class::Control | Class::Call | Class::Synchronization) => {
                return Err(PtxPatternError::ControlFlow(text()));
            }
            Some(_) => {}
        }
        if example.guard.is_some() {
            return Err(PtxPatternError::Guard(text()));
        }
        let operands = named_operands(instruction, &code, example, &numbers)?;
        Ok(PtxPattern { example: example.clone(), operands })
    }

    /// Matches an instruction against the pattern, whatever its guard is. Returns the value of each named operand.
    ///
    /// # Errors
    /// The difference; `None` if the instruction has a different operation.
    pub fn match_inst(&self, inst: &Inst) -> Result<Vec<OperandValue>, Option<Mismatch>> {
        if inst.form.name() != self.example.form.name() {
            return Err(None);
        }
        let mut values = vec![None; self.operands.len()];
        let mut matching_parts = 0;
        let mut difference = None;
        let (expected, found) = (&self.example.operands, &inst.operands);
        if expected.len() != found.len() {
            let reason = "different number of operands".to_owned();
            return Err(Some(Mismatch { matching_parts, reason }));
        }
        for (number, (expected, found)) in expected.iter().zip(found).enumerate() {
            match self.match_argument(expected, found, &mut values) {
                Ok(()) => matching_parts += 1,
                Err(reason) => {
                    difference.get_or_insert_with(|| format!("operand {number} {reason}"));
                }
            }
        }
        if let Some(reason) = difference {
            return Err(Some(Mismatch { matching_parts, reason }));
        }
        Ok(values.into_iter().flatten().collect())
    }

    /// Type that numbers in the instruction have.
    fn number_kind(&self) -> ScalarType {
        self.example.form.source().unwrap_or(ScalarType::B64)
    }

    fn match_argument(
        &self,
        expected: &Argument,
        found: &Argument,
        values: &mut [Option<OperandValue>],
    ) -> Result<(), String> {
        if let Some(index) = self.operands.iter().position(|named| named.stands_for(expected)) {
            let named = &self.operands[index];
            let value = named.value(found, self.number_kind())?;
            return match values[index].replace(value) {
                Some(other) if other != value => {
                    Err(format!("differs from another operand named `{}`", named.name))
                }
                _ => Ok(()),
            };
        }
        let differs = || Err(format!("is `{found:?}`, not `{expected:?}`"));
        let mut all = |expected: &[Argument], found: &[Argument]| {
            if expected.len() != found.len() {
                return Err("has another number of parts".to_owned());
            }
            let mut parts = expected.iter().zip(found);
            parts.try_for_each(|(expected, found)| self.match_argument(expected, found, values))
        };
        match (expected, found) {
            (Argument::Vector(expected), Argument::Vector(found))
            | (Argument::List(expected), Argument::List(found)) => all(expected, found),
            (Argument::Pair(expected), Argument::Pair(found)) => all(&expected[..], &found[..]),
            (Argument::Memory(expected), Argument::Memory(found)) => {
                let parts = |address: &Address| {
                    let base = (*address.base).clone();
                    [base].into_iter().chain(address.others.iter().cloned()).collect::<Vec<_>>()
                };
                if expected.offset != found.offset {
                    return Err(format!("has offset {}, not {}", found.offset, expected.offset));
                }
                all(&parts(expected), &parts(found))
            }
            (Argument::Constant(expected), Argument::Constant(found)) => {
                let kind = self.number_kind();
                let [expected, found] = [expected, found].map(|constant| constant.bits(kind));
                if expected == found {
                    Ok(())
                } else {
                    Err(format!("is {found:#x}, not {expected:#x}"))
                }
            }
            _ if expected == found => Ok(()),
            _ => differs(),
        }
    }
}

impl NamedOperand {
    fn stands_for(&self, argument: &Argument) -> bool {
        match (self.example, argument) {
            (Example::Register(first), Argument::Register(register)) => register.first == first,
            (Example::Number(number), Argument::Constant(Constant::Integer { bits, .. })) => {
                *bits == number
            }
            _ => false,
        }
    }

    /// The value of an argument that the operand accepts.
    fn value(&self, found: &Argument, number: ScalarType) -> Result<OperandValue, String> {
        match (self.binding.kind, found) {
            (Kind::Ptx(kind), Argument::Register(register))
                if register.kind.bits() == kind.bits()
                    && register.is_predicate() == (kind == ScalarType::Pred) =>
            {
                Ok(OperandValue::Register(*register))
            }
            (Kind::Immediate, Argument::Constant(constant)) => {
                Ok(OperandValue::Number(constant.bits(number)))
            }
            _ => Err(format!("is not `{}`, as `{}` must be", self.binding, self.name)),
        }
    }
}

/// The named operands of an example, in the order of the proxy.
fn named_operands(
    instruction: &Instruction,
    code: &Code,
    example: &Inst,
    numbers: &[(&str, String)],
) -> Result<Vec<NamedOperand>, PtxPatternError> {
    let declared = code.functions.iter().flat_map(|function| &function.names);
    let registers: Vec<(Register, &str)> =
        declared.map(|(register, name)| (*register, &**name)).collect();
    let mut places = Vec::new();
    for (name, binding) in &instruction.operands {
        let register = registers.iter().find(|(_, declared)| declared == name);
        let number = numbers.iter().position(|(named, _)| named == name);
        let example_of = match (register, number) {
            (Some((register, _)), _) => Example::Register(register.first),
            (_, number) => Example::Number(FIRST_NUMBER + number.unwrap_or_default() as u64),
        };
        let mut named = NamedOperand {
            name: name.clone(),
            binding: *binding,
            is_written: false,
            is_read: false,
            example: example_of,
        };
        let mut first = None;
        let mut count = 0;
        for (number, operand) in example.operands.iter().enumerate() {
            let is_written = number < example.written_operands();
            for_each_part(operand, false, &mut |part, is_address| {
                count += 1;
                if named.stands_for(part) {
                    first.get_or_insert(count);
                    named.is_written |= is_written && !is_address;
                    named.is_read |= !is_written || is_address;
                }
            });
        }
        let Some(first) = first else {
            let (name, binding, text) = (name.clone(), *binding, instruction.proxy.clone());
            return Err(PtxPatternError::Unused { name, binding, text });
        };
        places.push((first, named));
    }
    places.sort_by_key(|(first, _)| *first);
    Ok(places.into_iter().map(|(_, named)| named).collect())
}

/// Visits the parts of an operand, with `true` for parts of addresses.
fn for_each_part(argument: &Argument, is_address: bool, visit: &mut dyn FnMut(&Argument, bool)) {
    let mut parts = |all: &[Argument], is_address| {
        all.iter().for_each(|part| for_each_part(part, is_address, visit));
    };
    match argument {
        Argument::Vector(all) | Argument::List(all) => parts(all, is_address),
        Argument::Pair(all) => parts(&all[..], is_address),
        Argument::Memory(address) => {
            for_each_part(&address.base, true, visit);
            address.others.iter().for_each(|part| for_each_part(part, true, visit));
        }
        other => visit(other, is_address),
    }
}

/// Replaces names of numbers in the operands of a pattern.
fn with_numbers(text: &str, numbers: &[(&str, String)]) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.' || c == '%';
    let (name, mut operands) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    let mut line = name.to_owned();
    while let Some(start) = operands.find(is_word) {
        let (before, after) = operands.split_at(start);
        let (word, after) = after.split_at(after.find(|c| !is_word(c)).unwrap_or(after.len()));
        line.push_str(before);
        let number = numbers.iter().find(|(named, _)| *named == word);
        line.push_str(number.map_or(word, |(_, number)| number));
        operands = after;
    }
    line + operands
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lanes, Matching};
    use flipwave_hooks::hook::Source;

    fn pattern(proxy: &str, operands: &[(&str, &str)]) -> Result<PtxPattern, PtxPatternError> {
        let binding = |(name, binding): &(&str, &str)| {
            ((*name).to_owned(), binding.parse::<Binding>().expect("a binding"))
        };
        PtxPattern::new(&Instruction {
            name: "new".into(),
            proxy: proxy.into(),
            operands: operands.iter().map(binding).collect(),
            source: Source::default(),
            function: "new".into(),
            lanes: Lanes::Active,
            matching: Matching::Marked,
        })
    }

    /// The reason why an instruction does not match; an empty text for another operation.
    fn difference(pattern: &PtxPattern, text: &str) -> Option<String> {
        let module = format!(
            ".version 7.8 .target sm_80 .address_size 64 .entry k() {{ .reg .pred %p<4>; \
             .reg .b16 %h<4>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>; {text}; }}"
        );
        let code = resolve(&parse(&module).expect(text)).expect(text);
        let found = pattern.match_inst(&code.instructions[0]).err()?;
        Some(found.map(|found| found.reason).unwrap_or_default())
    }

    #[test]
    fn pattern_matches_any_register_of_the_size_and_nothing_else() {
        let names = [("dst", "b32"), ("a", "b32"), ("b", "b32")];
        let pattern = pattern("lop3.b32 dst, a, b, 57, 0xea;", &names).expect("a pattern");
        assert_eq!(difference(&pattern, "lop3.b32 %r1, %r2, %r3, 57, 234"), None);
        assert_eq!(difference(&pattern, "@!%p1 lop3.b32 %r1, %f2, %r1, 0x39, 0xea"), None);
        let other = difference(&pattern, "lop3.b32 %r1, %r2, %r3, 58, 0xea").expect("a number");
        assert_eq!(other, "operand 3 is 0x3a, not 0x39");
        let wide = difference(&pattern, "lop3.b32 %r1, %rd2, %r3, 57, 0xea").expect("a size");
        assert_eq!(wide, "operand 1 is not `b32`, as `a` must be");
        let number = difference(&pattern, "lop3.b32 %r1, 3, %r3, 57, 0xea").expect("a number");
        assert_eq!(number, "operand 1 is not `b32`, as `a` must be");
        assert_eq!(difference(&pattern, "and.b32 %r1, %r2, %r3").as_deref(), Some(""));
    }

    #[test]
    fn operands_of_all_kinds_are_named() {
        let names = [("sum", "b64"), ("a", "b32"), ("b", "imm"), ("c", "b64")];
        let found = pattern("mad.wide.u32 sum, a, b, c", &names).expect("a pattern");
        let roles = |found: &PtxPattern| {
            let all = found.operands.iter();
            all.map(|one| (one.name.clone(), one.is_written, one.is_read)).collect::<Vec<_>>()
        };
        let role = |name: &str, is_written, is_read| (name.to_owned(), is_written, is_read);
        let expected = [
            role("sum", true, false),
            role("a", false, true),
            role("b", false, true),
            role("c", false, true),
        ];
        assert_eq!(roles(&found), expected);
        assert_eq!(difference(&found, "mad.wide.u32 %rd1, %r2, 9, %rd3"), None);
        let names = [("p", "pred"), ("q", "pred"), ("low", "b16"), ("high", "b16")];
        let found = pattern("setp.lt.u16 p|q, low, high", &names).expect("a pattern");
        assert_eq!(difference(&found, "setp.lt.u16 %p2|%p1, %h1, %h2"), None);
        assert_eq!(roles(&found)[..2], [role("p", true, false), role("q", true, false)]);
        let names = [("to", "b64"), ("low", "b32"), ("high", "b32")];
        let found = pattern("st.global.v2.b32 [to+8], {low, high}", &names).expect("a pattern");
        assert_eq!(difference(&found, "st.global.v2.b32 [%rd1+8], {%r1, %r2}"), None);
        assert!(difference(&found, "st.global.v2.b32 [%rd1+16], {%r1, %r2}").is_some());
        let names = [("acc", "b32"), ("a", "b32")];
        let found = pattern("add.s32 acc, a, acc", &names).expect("a pattern");
        assert_eq!(roles(&found)[0], role("acc", true, true));
        let two = difference(&found, "add.s32 %r1, %r2, %r3").expect("two registers");
        assert_eq!(two, "operand 2 differs from another operand named `acc`");
    }

    #[test]
    fn invalid_proxies_are_rejected() {
        let dst = [("dst", "b32")];
        let refused =
            |text, operands: &[(&str, &str)]| pattern(text, operands).expect_err(text).to_string();
        assert!(refused("mov.b32 dst, 0; mov.b32 dst, 1", &dst).contains("not a single"));
        assert!(refused("", &[]).contains("not a single"));
        assert!(refused("bra dst", &dst).contains("changes control flow"));
        assert!(refused("ret", &[]).contains("changes control flow"));
        assert!(refused("bar.sync 0", &[]).contains("changes control flow"));
        assert!(refused("nothing.b32 dst", &dst).contains("unknown opcode"));
        assert!(refused("mov.b32 dst, other", &dst).contains("unknown name `other`"));
        assert!(refused("@p mov.b32 dst, 0", &[("dst", "b32"), ("p", "pred")]).contains("a guard"));
        assert!(refused("mov.b32 dst, 0", &[("dst", "b32"), ("x", "imm")]).contains("`x` (imm)"));
        assert!(refused("mov.b32 dst, 0", &[("dst", "vgpr")]).contains("kind `vgpr`"));
        assert!(refused("mov.b32 1a, 0", &[("1a", "b32")]).contains("a name of letters"));
    }
}
