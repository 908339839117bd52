//! What a proxy looks like.
//!
//! A pattern is written as the assembler writes the instruction, with names in place of the
//! registers and numbers that may be any. LLVM reads it with an example for each name, so that
//! whatever LLVM can encode can be a proxy, and reports which place each name has.

use flipwave_isa::{
    AccVgpr, AssembleError, DecodeError, Inst, Isa, Operand, Pc, Register, RegisterRange, Role,
    Sgpr, Value, Vgpr,
};
use std::fmt;
use std::str::FromStr;

/// What a named operand of a proxy may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Its kind.
    pub kind: Kind,
    /// Registers in a row; 1 for numbers.
    pub words: u8,
}

/// What an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Registers of a file.
    Registers(File),
    /// A number in the instruction or after it.
    Immediate,
}

/// A file of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// VGPRs.
    Vgpr,
    /// AccVGPRs.
    AccVgpr,
    /// SGPRs.
    Sgpr,
}

/// A binding that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no kind of operand; expected `vgpr`, `agpr` or `sgpr`, with the number of registers \
     where it is more than one (`vgpr x2`), or `imm`"
)]
pub struct UnknownBinding(String);

impl FromStr for Binding {
    type Err = UnknownBinding;

    fn from_str(text: &str) -> Result<Binding, UnknownBinding> {
        let unknown = || UnknownBinding(text.to_owned());
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
            Kind::Immediate => "imm",
        };
        match self.words {
            1 => f.write_str(name),
            words => write!(f, "{name} x{words}"),
        }
    }
}

impl Binding {
    /// An example that nothing else in a pattern is likely to be, by the operand's number.
    fn example(self, number: usize) -> Value {
        // Numbers of registers that every alignment allows, for more operands than any has.
        let step = usize::from(self.words.next_power_of_two().max(4));
        let first = |registers: usize| ((32 + number * step) % registers) as u8;
        match self.kind {
            Kind::Registers(file) => {
                let first = match file {
                    File::Vgpr => Register::Vgpr(Vgpr(first(224).into())),
                    File::AccVgpr => Register::AccVgpr(AccVgpr(first(224))),
                    File::Sgpr => Register::Sgpr(Sgpr(first(96))),
                };
                Value::Register(RegisterRange::new(first, self.words))
            }
            Kind::Immediate => Value::Integer(33 + number as i64 % 31),
        }
    }

    /// Whether an operand is of this kind.
    fn fits(self, value: &Value) -> bool {
        match (self.kind, value) {
            (Kind::Registers(file), Value::Register(range)) => {
                let is_of_file = match range.first {
                    Register::Vgpr(_) => file == File::Vgpr,
                    Register::AccVgpr(_) => file == File::AccVgpr,
                    Register::Sgpr(_) => file == File::Sgpr,
                    // VCC is a pair like others.
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

/// What a proxy looks like.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    /// The instruction with an example for each name.
    example: Inst,
    /// By operand: which name it has, and what it may be.
    names: Vec<Option<(String, Binding)>>,
}

/// A pattern that cannot be.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PatternError {
    /// LLVM does not take it.
    #[error("the proxy `{text}` does not assemble for {target}, read as `{example}`: {reason}")]
    Assemble {
        /// As it is written.
        text: String,
        /// What for.
        target: String,
        /// With examples for names.
        example: String,
        /// LLVM's complaint.
        reason: AssembleError,
    },
    /// More or less than one instruction.
    #[error("the proxy `{text}` is not one instruction")]
    NotOne {
        /// As it is written.
        text: String,
    },
    /// A branch.
    #[error("the proxy `{text}` changes where control goes; that, a hook cannot")]
    Control {
        /// As it is written.
        text: String,
    },
    /// A name that the instruction does not use.
    #[error(
        "operand `{name}` ({binding}) is not in the proxy `{text}`, or not as an operand of its own"
    )]
    Unused {
        /// The name.
        name: String,
        /// What it was to be.
        binding: Binding,
        /// The proxy.
        text: String,
    },
    /// The bytes of an example do not decode.
    #[error("the proxy `{text}`: {reason}")]
    Decode {
        /// As it is written.
        text: String,
        /// Why not.
        reason: DecodeError,
    },
}

/// Why an instruction does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// How much of it fits: the more the nearer.
    pub fitting: usize,
    /// What does not.
    pub reason: String,
}

impl Pattern {
    /// Reads a pattern for what `isa` decodes.
    ///
    /// # Errors
    /// [`PatternError`].
    pub fn new(
        text: &str,
        operands: &[(String, Binding)],
        isa: &Isa,
    ) -> Result<Pattern, PatternError> {
        let examples: Vec<(&str, Value)> = operands
            .iter()
            .enumerate()
            .map(|(number, (name, binding))| (name.as_str(), binding.example(number)))
            .collect();
        let line = with_examples(text, &examples);
        let bytes = isa.assemble(&line).map_err(|reason| PatternError::Assemble {
            text: text.to_owned(),
            target: isa.target().to_string(),
            example: line.clone(),
            reason,
        })?;
        let not_one = || PatternError::NotOne { text: text.to_owned() };
        if bytes.is_empty() {
            return Err(not_one());
        }
        let example = isa
            .decode(&bytes, Pc(0))
            .map_err(|reason| PatternError::Decode { text: text.to_owned(), reason })?;
        if usize::from(example.size) != bytes.len() {
            return Err(not_one());
        }
        if example.flags.branch || example.ends_wave() || example.flags.barrier {
            return Err(PatternError::Control { text: text.to_owned() });
        }
        let names = example.operands.iter().map(|operand| {
            let at = examples.iter().position(|(_, value)| *value == operand.value)?;
            operands.get(at).cloned()
        });
        let names: Vec<Option<(String, Binding)>> = names.collect();
        let is_used = |name: &String| names.iter().flatten().any(|(own, _)| own == name);
        if let Some((name, binding)) = operands.iter().find(|(name, _)| !is_used(name)) {
            let (name, text) = (name.clone(), text.to_owned());
            return Err(PatternError::Unused { name, binding: *binding, text });
        }
        Ok(Pattern { text: text.to_owned(), example, names })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The operands that have names, with their numbers and roles, in the assembler's order.
    pub fn operands(&self) -> impl Iterator<Item = (usize, &str, Binding, Role)> {
        self.names.iter().zip(&self.example.operands).enumerate().filter_map(
            |(index, (name, operand))| {
                let (name, binding) = name.as_ref()?;
                Some((index, name.as_str(), *binding, operand.role))
            },
        )
    }

    /// Whether the instruction reads the registers of an operand.
    pub fn reads(&self, operand: usize) -> bool {
        match self.example.operands.get(operand).map(|own| &own.value) {
            Some(Value::Register(range)) => self.example.reads.contains(range),
            _ => false,
        }
    }

    /// The named operands of an instruction that fits, as the assembler writes them.
    pub fn operands_of(&self, inst: &Inst) -> String {
        let operand = |(index, ..): (usize, &str, Binding, Role)| {
            inst.operands.get(index).map(|own| shown(&own.value))
        };
        self.operands().filter_map(operand).collect::<Vec<_>>().join(", ")
    }

    /// Whether an instruction fits.
    ///
    /// # Errors
    /// What does not, for instructions of the same operation.
    pub fn fit(&self, inst: &Inst) -> Result<(), Option<Mismatch>> {
        if inst.operation != self.example.operation {
            return Err(None);
        }
        let mismatch = |fitting, reason| Err(Some(Mismatch { fitting, reason }));
        if inst.operands.len() != self.example.operands.len() {
            return mismatch(0, "it has another number of operands".to_owned());
        }
        let mut wrong = Vec::new();
        for (index, operand) in inst.operands.iter().enumerate() {
            wrong.extend(self.operand(index, operand, inst));
        }
        if inst.modifiers != self.example.modifiers {
            wrong.push("its modifiers are others".to_owned());
        }
        match wrong.first() {
            None => Ok(()),
            Some(reason) => mismatch(inst.operands.len() + 1 - wrong.len(), reason.clone()),
        }
    }

    /// What is wrong with an operand.
    fn operand(&self, index: usize, operand: &Operand, inst: &Inst) -> Option<String> {
        let example = self.example.operands.get(index)?;
        if (operand.negate, operand.absolute, operand.sign_extend)
            != (example.negate, example.absolute, example.sign_extend)
        {
            return Some(format!("operand {index} is negated or absolute otherwise"));
        }
        match self.names.get(index)? {
            Some((name, binding)) => {
                if !binding.fits(&operand.value) {
                    return Some(format!("operand {index} is no {binding}, as `{name}` must be"));
                }
                let of_same_name = |(_, own): &(usize, &Option<(String, Binding)>)| {
                    own.as_ref().is_some_and(|(own, _)| own == name)
                };
                let mut others = self.names.iter().enumerate().filter(of_same_name);
                let differs = |(other, _): (usize, _)| {
                    inst.operands.get(other).is_some_and(|other| other.value != operand.value)
                };
                others
                    .any(differs)
                    .then(|| format!("`{name}` stands twice, and is not the same both times"))
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

/// A value as messages name it.
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

/// A pattern's text with an example for each name.
fn with_examples(text: &str, examples: &[(&str, Value)]) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mnemonic, mut rest) = text.split_at(text.find(' ').unwrap_or(text.len()));
    let mut line = mnemonic.to_owned();
    while let Some(start) = rest.find(is_word) {
        let (before, after) = rest.split_at(start);
        let (word, after) = after.split_at(after.find(|c| !is_word(c)).unwrap_or(after.len()));
        line.push_str(before);
        match examples.iter().find(|(name, _)| *name == word) {
            Some((_, value)) => line.push_str(&shown(value)),
            None => line.push_str(word),
        }
        rest = after;
    }
    line + rest
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

    fn fits(pattern: &Pattern, text: &str) -> Result<(), Option<String>> {
        let isa = isa();
        let bytes = isa.assemble(text).expect(text);
        let inst = isa.decode(&bytes, Pc(0)).expect(text);
        pattern.fit(&inst).map_err(|mismatch| mismatch.map(|own| own.reason))
    }

    #[test]
    fn bindings_are_read_and_written() {
        for text in ["vgpr", "agpr x16", "sgpr x2", "imm"] {
            assert_eq!(text.parse::<Binding>().expect(text).to_string(), text);
        }
        for text in ["", "vgpr 2", "vgpr x0", "vgpr x33", "imm x2", "vgpr x2 x2", "v0"] {
            assert!(text.parse::<Binding>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_pattern_fits_whatever_its_names_stand_for_and_nothing_else() {
        let own = pattern("v_or_b32 dst, 0xfefefefe, src", &[("dst", "vgpr"), ("src", "vgpr")]);
        let own = own.expect("a pattern");
        assert_eq!(fits(&own, "v_or_b32 v7, 0xfefefefe, v200"), Ok(()));
        // Names that are numbers or registers of the assembler stay what they are.
        let other = fits(&own, "v_or_b32 v7, 0xfefefeff, v200").expect_err("another number");
        assert_eq!(other.as_deref(), Some("operand 1 is 0xfefefeff, not 0xfefefefe"));
        assert_eq!(fits(&own, "v_and_b32 v7, 0xfefefefe, v200"), Err(None));
        let sdwa = "v_or_b32_sdwa v7, v1, v2 dst_sel:BYTE_0";
        assert!(fits(&own, sdwa).is_err_and(|reason| reason.is_some()));
    }

    #[test]
    fn a_name_that_stands_twice_is_the_same_register_twice() {
        let own = pattern("v_bfi_b32 acc, a, acc, 5", &[("acc", "vgpr"), ("a", "vgpr")]);
        let own = own.expect("a pattern");
        assert_eq!(fits(&own, "v_bfi_b32 v3, v4, v3, 5"), Ok(()));
        let other = fits(&own, "v_bfi_b32 v3, v4, v5, 5").expect_err("two registers");
        assert!(other.is_some_and(|reason| reason.contains("stands twice")));
    }

    #[test]
    fn modifiers_and_signs_are_part_of_a_pattern() {
        let names = [("d", "vgpr"), ("a", "vgpr"), ("b", "vgpr")];
        let own = pattern("v_add_f32 d, -a, b clamp", &names).expect("a pattern");
        assert_eq!(fits(&own, "v_add_f32 v1, -v2, v3 clamp"), Ok(()));
        assert!(fits(&own, "v_add_f32 v1, v2, v3 clamp").is_err());
        assert!(fits(&own, "v_add_f32 v1, -v2, v3").is_err());
    }

    #[test]
    fn what_cannot_be_a_proxy_is_refused() {
        let dst = [("dst", "vgpr")];
        let refused =
            |text, operands: &[(&str, &str)]| pattern(text, operands).expect_err(text).to_string();
        assert!(refused("v_mov_b32 dst, v0\ns_nop 0", &dst).contains("not one instruction"));
        assert!(refused("", &[]).contains("not one instruction"));
        assert!(refused("s_branch 4", &[]).contains("changes where control goes"));
        assert!(refused("s_endpgm", &[]).contains("changes where control goes"));
        assert!(refused("s_setpc_b64 to", &[("to", "sgpr x2")]).contains("control"));
        assert!(refused("v_mov_b32 dst, v0", &[("dst", "vgpr"), ("x", "imm")]).contains("`x`"));
        assert!(refused("v_nothing dst", &dst).contains("does not assemble"));
        let many: Vec<(String, Binding)> =
            (0..300).map(|n| (format!("x{n}"), "vgpr x32".parse().expect("a binding"))).collect();
        assert!(Pattern::new("v_mov_b32 x0, x1", &many, &isa()).is_err());
    }
}
