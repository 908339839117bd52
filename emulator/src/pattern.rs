//! Patterns that match proxies.
//!
//! A pattern is an instruction in assembly syntax, with names in place of registers and numbers that may
//! vary. LLVM assembles it with an example value for each name, so every instruction that LLVM can encode
//! can be a proxy. Decoding the result shows which operand each name stands for.

use flipwave_isa::{
    AccVgpr, AssembleError, DecodeError, Inst, Isa, Operand, Pc, Register, RegisterRange, Role,
    Sgpr, Value, Vgpr,
};
use flipwave_ptx::ScalarType;
use std::fmt;
use std::str::FromStr;

/// The values that a named operand of a proxy accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The kind of the operand.
    pub kind: Kind,
    /// The number of consecutive registers; 1 for immediates.
    pub words: u8,
}

/// The kind of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Registers of a register file of AMD GPUs.
    Registers(File),
    /// A PTX register: a predicate, or any register with the size of this type.
    Ptx(ScalarType),
    /// A constant.
    Immediate,
}

/// A register file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// VGPRs.
    Vgpr,
    /// AccVGPRs.
    AccVgpr,
    /// SGPRs.
    Sgpr,
}

/// Error returned when parsing an invalid binding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid kind of operand `{0}`; expected `vgpr`, `agpr` or `sgpr`, with the number of registers if \
     there are several (`vgpr x2`); in PTX `pred`, `b16`, `b32`, `b64` or `b128`; or `imm`"
)]
pub struct UnknownBinding(String);

/// Types that name the sizes of PTX registers.
const PTX_KINDS: [ScalarType; 5] =
    [ScalarType::Pred, ScalarType::B16, ScalarType::B32, ScalarType::B64, ScalarType::B128];

impl FromStr for Binding {
    type Err = UnknownBinding;

    fn from_str(text: &str) -> Result<Binding, UnknownBinding> {
        let unknown = || UnknownBinding(text.to_owned());
        let is_text = |kind: &&ScalarType| kind.name() == text.trim();
        if let Some(kind) = PTX_KINDS.iter().find(is_text) {
            return Ok(Binding { kind: Kind::Ptx(*kind), words: 1 });
        }
        let mut parts = text.split_whitespace();
        let file = match parts.next() {
            Some("vgpr") => Some(File::Vgpr),
            Some("agpr") => Some(File::AccVgpr),
            Some("sgpr") => Some(File::Sgpr),
            Some("imm") => None,
            _ => return Err(unknown()),
        };
        let words = match parts.next().map(|words| words.strip_prefix('x')) {
            None => 1,
            Some(Some(words)) => {
                words.parse().ok().filter(|words| (1..=32).contains(words)).ok_or_else(unknown)?
            }
            Some(None) => return Err(unknown()),
        };
        match (file, parts.next()) {
            (Some(file), None) => Ok(Binding { kind: Kind::Registers(file), words }),
            (None, None) if words == 1 => Ok(Binding { kind: Kind::Immediate, words }),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.kind {
            Kind::Registers(File::Vgpr) => "vgpr",
            Kind::Registers(File::AccVgpr) => "agpr",
            Kind::Registers(File::Sgpr) => "sgpr",
            Kind::Ptx(kind) => kind.name(),
            Kind::Immediate => "imm",
        };
        match self.words {
            1 => f.write_str(name),
            words => write!(f, "{name} x{words}"),
        }
    }
}

impl Binding {
    /// An example value for the operand with this number, which is unlikely to occur elsewhere in a pattern.
    /// `None` for operands that AMD GPUs do not have.
    fn example(self, number: usize) -> Option<Value> {
        // Register numbers that satisfy every alignment, distinct for as many operands as can occur.
        let step = usize::from(self.words.next_power_of_two().max(4));
        let first = |registers: usize| ((32 + number * step) % registers) as u8;
        Some(match self.kind {
            Kind::Ptx(_) => return None,
            Kind::Registers(file) => {
                let first = match file {
                    File::Vgpr => Register::Vgpr(Vgpr(first(224).into())),
                    File::AccVgpr => Register::AccVgpr(AccVgpr(first(224))),
                    File::Sgpr => Register::Sgpr(Sgpr(first(96))),
                };
                Value::Register(RegisterRange::new(first, self.words))
            }
            Kind::Immediate => Value::Integer(33 + number as i64 % 31),
        })
    }

    /// Returns `true` if the operand accepts a value.
    fn accepts(self, value: &Value) -> bool {
        match (self.kind, value) {
            (Kind::Registers(file), Value::Register(range)) => {
                let is_of_file = match range.first {
                    Register::Vgpr(_) => file == File::Vgpr,
                    Register::AccVgpr(_) => file == File::AccVgpr,
                    Register::Sgpr(_) => file == File::Sgpr,
                    // VCC counts as a pair of SGPRs.
                    Register::VccLo => file == File::Sgpr,
                    _ => false,
                };
                is_of_file && range.words == self.words
            }
            (
                Kind::Immediate,
                Value::Integer(_) | Value::Float(_) | Value::Literal(_) | Value::WideLiteral(_),
            ) => true,
            _ => false,
        }
    }
}

/// A pattern that matches the proxies of an emulated instruction.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    /// The instruction with example values in place of names.
    example: Inst,
    /// The name and the binding of each named operand, by operand number.
    names: Vec<Option<(String, Binding)>>,
}

/// Errors returned when creating a pattern.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PatternError {
    /// LLVM cannot assemble the pattern.
    #[error("the proxy `{text}` does not assemble for {target}, read as `{example}`: {reason}")]
    Assemble {
        /// The pattern.
        text: String,
        /// The target.
        target: String,
        /// The pattern with example values.
        example: String,
        /// The error message of LLVM.
        reason: AssembleError,
    },
    /// The pattern has no instruction or more than one.
    #[error("the proxy `{text}` is not a single instruction")]
    NotSingle {
        /// The pattern.
        text: String,
    },
    /// The instruction is a branch, a barrier or the end of a program.
    #[error("the proxy `{text}` changes control flow, which a hook cannot do")]
    ControlFlow {
        /// The pattern.
        text: String,
    },
    /// A named operand does not occur in the instruction.
    #[error(
        "operand `{name}` ({binding}) is not in the proxy `{text}`, or not as a separate operand"
    )]
    Unused {
        /// The name.
        name: String,
        /// The binding of the operand.
        binding: Binding,
        /// The pattern.
        text: String,
    },
    /// A named operand is of a kind that the target does not have.
    #[error("operand `{name}`: {target} has no operands of kind `{binding}`")]
    OtherKind {
        /// The name.
        name: String,
        /// The binding of the operand.
        binding: Binding,
        /// The target.
        target: String,
    },
    /// The assembled example cannot be decoded.
    #[error("the proxy `{text}`: {reason}")]
    Decode {
        /// The pattern.
        text: String,
        /// The decoding error.
        reason: DecodeError,
    },
}

/// The difference between an instruction and a pattern with the same operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The number of matching parts; the closest match has the most.
    pub matching_parts: usize,
    /// The first difference.
    pub reason: String,
}

impl Pattern {
    /// Creates a pattern for the instruction set `isa`.
    ///
    /// # Errors
    /// [`PatternError`].
    pub fn new(
        text: &str,
        operands: &[(String, Binding)],
        isa: &Isa,
    ) -> Result<Pattern, PatternError> {
        let mut examples: Vec<(&str, Value)> = Vec::new();
        for (number, (name, binding)) in operands.iter().enumerate() {
            let example = binding.example(number).ok_or_else(|| PatternError::OtherKind {
                name: name.clone(),
                binding: *binding,
                target: isa.target().to_string(),
            })?;
            examples.push((name, example));
        }
        let line = with_examples(text, &examples);
        let bytes = isa.assemble(&line).map_err(|reason| PatternError::Assemble {
            text: text.to_owned(),
            target: isa.target().to_string(),
            example: line.clone(),
            reason,
        })?;
        let not_single = || PatternError::NotSingle { text: text.to_owned() };
        if bytes.is_empty() {
            return Err(not_single());
        }
        let example = isa
            .decode(&bytes, Pc(0))
            .map_err(|reason| PatternError::Decode { text: text.to_owned(), reason })?;
        if usize::from(example.size) != bytes.len() {
            return Err(not_single());
        }
        if example.flags.branch || example.ends_wave() || example.flags.barrier {
            return Err(PatternError::ControlFlow { text: text.to_owned() });
        }
        let names = example.operands.iter().map(|operand| {
            let at = examples.iter().position(|(_, value)| *value == operand.value)?;
            operands.get(at).cloned()
        });
        let names: Vec<Option<(String, Binding)>> = names.collect();
        let is_used = |name: &String| names.iter().flatten().any(|(used, _)| used == name);
        if let Some((name, binding)) = operands.iter().find(|(name, _)| !is_used(name)) {
            let (name, text) = (name.clone(), text.to_owned());
            return Err(PatternError::Unused { name, binding: *binding, text });
        }
        Ok(Pattern { text: text.to_owned(), example, names })
    }

    /// The pattern in assembly syntax.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The number, name, binding and role of each named operand, in assembly order.
    pub fn operands(&self) -> impl Iterator<Item = (usize, &str, Binding, Role)> {
        self.names.iter().zip(&self.example.operands).enumerate().filter_map(
            |(index, (name, operand))| {
                let (name, binding) = name.as_ref()?;
                Some((index, name.as_str(), *binding, operand.role))
            },
        )
    }

    /// Returns `true` if the instruction reads the registers of the operand with this number.
    pub fn reads(&self, operand: usize) -> bool {
        match self.example.operands.get(operand).map(|operand| &operand.value) {
            Some(Value::Register(range)) => self.example.reads.contains(range),
            _ => false,
        }
    }

    /// Formats the named operands of a matching instruction in assembly syntax.
    pub fn operands_of(&self, inst: &Inst) -> String {
        let operand = |(index, ..): (usize, &str, Binding, Role)| {
            inst.operands.get(index).map(|operand| shown(&operand.value))
        };
        self.operands().filter_map(operand).collect::<Vec<_>>().join(", ")
    }

    /// Matches an instruction against the pattern.
    ///
    /// # Errors
    /// The difference; `None` if the instruction has a different operation.
    pub fn match_inst(&self, inst: &Inst) -> Result<(), Option<Mismatch>> {
        if inst.operation != self.example.operation {
            return Err(None);
        }
        let mismatch = |matching_parts, reason| Err(Some(Mismatch { matching_parts, reason }));
        if inst.operands.len() != self.example.operands.len() {
            return mismatch(0, "different number of operands".to_owned());
        }
        let mut differences = Vec::new();
        for (index, operand) in inst.operands.iter().enumerate() {
            differences.extend(self.operand_difference(index, operand, inst));
        }
        if inst.modifiers != self.example.modifiers {
            differences.push("different modifiers".to_owned());
        }
        match differences.first() {
            None => Ok(()),
            Some(reason) => mismatch(inst.operands.len() + 1 - differences.len(), reason.clone()),
        }
    }

    /// The difference between an operand of `inst` and the pattern, if any.
    fn operand_difference(&self, index: usize, operand: &Operand, inst: &Inst) -> Option<String> {
        let example = self.example.operands.get(index)?;
        if (operand.negate, operand.absolute, operand.sign_extend)
            != (example.negate, example.absolute, example.sign_extend)
        {
            return Some(format!("operand {index} has different negate or absolute modifiers"));
        }
        match self.names.get(index)? {
            Some((name, binding)) => {
                if !binding.accepts(&operand.value) {
                    return Some(format!(
                        "operand {index} is not `{binding}`, as `{name}` must be"
                    ));
                }
                let has_same_name = |(_, named): &(&Operand, &Option<(String, Binding)>)| {
                    named.as_ref().is_some_and(|(other_name, _)| other_name == name)
                };
                let mut same_name = inst.operands.iter().zip(&self.names).filter(has_same_name);
                same_name
                    .any(|(other_operand, _)| other_operand.value != operand.value)
                    .then(|| format!("the operands named `{name}` differ"))
            }
            None if operand.value == example.value => None,
            None => Some(format!(
                "operand {index} is {}, not {}",
                shown(&operand.value),
                shown(&example.value)
            )),
        }
    }
}

/// Formats a value in assembly syntax.
fn shown(value: &Value) -> String {
    match value {
        Value::Register(range) => range.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Literal(number) => format!("{number:#x}"),
        Value::WideLiteral(number) => format!("{number:#x}"),
        Value::Off => "off".to_owned(),
        Value::Symbol(symbol) => symbol.clone(),
    }
}

/// Replaces the names in a pattern by example values.
fn with_examples(text: &str, examples: &[(&str, Value)]) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mnemonic, mut operands) = text.split_at(text.find(' ').unwrap_or(text.len()));
    let mut line = mnemonic.to_owned();
    while let Some(start) = operands.find(is_word) {
        let (before, after) = operands.split_at(start);
        let (word, after) = after.split_at(after.find(|c| !is_word(c)).unwrap_or(after.len()));
        line.push_str(before);
        match examples.iter().find(|(name, _)| *name == word) {
            Some((_, value)) => line.push_str(&shown(value)),
            None => line.push_str(word),
        }
        operands = after;
    }
    line + operands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn isa() -> Isa {
        Isa::new(&"gfx90a".parse().expect("a target")).expect("LLVM has it")
    }

    fn pattern(text: &str, operands: &[(&str, &str)]) -> Result<Pattern, PatternError> {
        let binding = |(name, binding): &(&str, &str)| {
            ((*name).to_owned(), binding.parse::<Binding>().expect("a binding"))
        };
        let operands: Vec<(String, Binding)> = operands.iter().map(binding).collect();
        Pattern::new(text, &operands, &isa())
    }

    fn matches(pattern: &Pattern, text: &str) -> Result<(), Option<String>> {
        let isa = isa();
        let bytes = isa.assemble(text).expect(text);
        let inst = isa.decode(&bytes, Pc(0)).expect(text);
        pattern.match_inst(&inst).map_err(|mismatch| mismatch.map(|mismatch| mismatch.reason))
    }

    #[test]
    fn bindings_round_trip_and_invalid_ones_are_rejected() {
        for text in ["vgpr", "agpr x16", "sgpr x2", "imm", "pred", "b16", "b64", "b128"] {
            assert_eq!(text.parse::<Binding>().expect(text).to_string(), text);
        }
        for text in
            ["", "vgpr 2", "vgpr x0", "vgpr x33", "imm x2", "vgpr x2 x2", "v0", "f32", "b32 x2"]
        {
            assert!(text.parse::<Binding>().is_err(), "{text}");
        }
    }

    #[test]
    fn pattern_matches_any_register_for_a_name_and_nothing_else() {
        let operands = [("dst", "vgpr"), ("src", "vgpr")];
        let pattern = pattern("v_or_b32 dst, 0xfefefefe, src", &operands).expect("a pattern");
        assert_eq!(matches(&pattern, "v_or_b32 v7, 0xfefefefe, v200"), Ok(()));
        // Numbers and registers in the pattern match only themselves.
        let reason = matches(&pattern, "v_or_b32 v7, 0xfefefeff, v200").expect_err("a mismatch");
        assert_eq!(reason.as_deref(), Some("operand 1 is 0xfefefeff, not 0xfefefefe"));
        assert_eq!(matches(&pattern, "v_and_b32 v7, 0xfefefefe, v200"), Err(None));
        let sdwa = "v_or_b32_sdwa v7, v1, v2 dst_sel:BYTE_0";
        assert!(matches(&pattern, sdwa).is_err_and(|reason| reason.is_some()));
    }

    #[test]
    fn repeated_name_matches_only_equal_registers() {
        let operands = [("acc", "vgpr"), ("a", "vgpr")];
        let pattern = pattern("v_bfi_b32 acc, a, acc, 5", &operands).expect("a pattern");
        assert_eq!(matches(&pattern, "v_bfi_b32 v3, v4, v3, 5"), Ok(()));
        let reason = matches(&pattern, "v_bfi_b32 v3, v4, v5, 5").expect_err("two registers");
        assert_eq!(reason.as_deref(), Some("the operands named `acc` differ"));
    }

    #[test]
    fn modifiers_and_signs_must_match() {
        let names = [("d", "vgpr"), ("a", "vgpr"), ("b", "vgpr")];
        let pattern = pattern("v_add_f32 d, -a, b clamp", &names).expect("a pattern");
        assert_eq!(matches(&pattern, "v_add_f32 v1, -v2, v3 clamp"), Ok(()));
        assert!(matches(&pattern, "v_add_f32 v1, v2, v3 clamp").is_err());
        assert!(matches(&pattern, "v_add_f32 v1, -v2, v3").is_err());
    }

    #[test]
    fn invalid_proxies_are_rejected() {
        let dst = [("dst", "vgpr")];
        let refused =
            |text, operands: &[(&str, &str)]| pattern(text, operands).expect_err(text).to_string();
        assert!(refused("v_mov_b32 dst, v0\ns_nop 0", &dst).contains("not a single instruction"));
        assert!(refused("", &[]).contains("not a single instruction"));
        assert!(refused("s_branch 4", &[]).contains("changes control flow"));
        assert!(refused("s_endpgm", &[]).contains("changes control flow"));
        assert!(refused("s_setpc_b64 to", &[("to", "sgpr x2")]).contains("control"));
        assert!(refused("v_mov_b32 dst, v0", &[("dst", "vgpr"), ("x", "imm")]).contains("`x`"));
        assert!(refused("v_nothing dst", &dst).contains("does not assemble"));
        let many: Vec<(String, Binding)> =
            (0..300).map(|n| (format!("x{n}"), "vgpr x32".parse().expect("a binding"))).collect();
        assert!(Pattern::new("v_mov_b32 x0, x1", &many, &isa()).is_err());
    }
}
