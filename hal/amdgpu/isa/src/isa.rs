//! Decoder and assembler for one target.

use crate::cache::Cache;
use crate::ffi::{self, Description, McOperand, Session, SubtargetFeature};
use crate::{
    Generation, Register, RegisterRange, Setting, Target, Vgpr, asm_check, decode, exact,
    llvm_crashes, unused_fields,
};
use crate::{Inst, Pc};
use std::cell::RefCell;
use std::ffi::CString;
use std::fmt::Write;

/// Decodes and assembles the instructions of one [`Target`] with LLVM's MC layer.
///
/// An `Isa` can be sent to another thread but not shared: each thread needs its own.
pub struct Isa {
    target: Target,
    wave_size: u8,
    accum_offset: Option<u16>,
    session: Session,
    /// Instructions decoded before.
    cache: RefCell<Cache>,
}

impl Isa {
    /// Length in bytes of the longest instruction of any target: a gfx10 image instruction with
    /// non-sequential addresses (NSA) has five words.
    pub const LONGEST_INSTRUCTION: usize = 20;

    /// Creates the decoder of `target` for its default wave size.
    ///
    /// # Errors
    /// If LLVM cannot disassemble the target: gfx6 and gfx7.
    pub fn new(target: &Target) -> Result<Isa, IsaError> {
        Isa::with_wave_size(target, target.default_wave_size())
    }

    /// Creates the decoder of `target` for waves of 32 or 64 lanes. On targets with both (gfx10 and
    /// later), the wave size determines whether a lane mask is one or two scalar registers.
    ///
    /// # Errors
    /// As [`Isa::new`], and if the target does not support the wave size.
    pub fn with_wave_size(target: &Target, wave_size: u8) -> Result<Isa, IsaError> {
        let unsupported = |reason| IsaError { target: target.to_string(), reason };
        if target.generation() < Generation::Gfx8 {
            return Err(unsupported("LLVM has no disassembler for the target"));
        }
        if !target.wave_sizes().contains(&wave_size) {
            return Err(unsupported("the target does not support the wave size"));
        }
        let processor = match target.processor() {
            // Never sold and removed in LLVM 20; they have the instructions of gfx942.
            "gfx940" | "gfx941" => "gfx942",
            processor => processor,
        };
        let processor = CString::new(processor).unwrap_or_default();
        let features = CString::new(features(target, wave_size)).unwrap_or_default();
        let session = Session::open(&processor, &features)
            .ok_or_else(|| unsupported("the installed LLVM does not support the target"))?;
        let cache = RefCell::default();
        Ok(Isa { target: target.clone(), wave_size, accum_offset: None, session, cache })
    }

    /// Returns this decoder for code in which VGPRs from `accum_offset` on are aliases of AccVGPRs; they are
    /// decoded as AccVGPRs, see [`Inst::replace_vgpr_aliases`].
    #[must_use]
    pub fn with_accum_offset(self, accum_offset: Option<u16>) -> Isa {
        Isa { accum_offset, cache: RefCell::default(), ..self }
    }

    /// The target.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Lanes of a wave: 32 or 64.
    pub fn wave_size(&self) -> u8 {
        self.wave_size
    }

    /// LLVM's subtarget features, including those that this target lacks.
    pub fn features(&self) -> Vec<SubtargetFeature> {
        self.session.features()
    }

    /// Decodes the instruction at the start of `bytes`, which are located at `pc`. Bytes after the
    /// instruction and fields that the operation does not use are ignored. Decoded instructions are cached
    /// by their words.
    ///
    /// # Errors
    /// - [`DecodeError::Truncated`] if `bytes` end within an instruction;
    /// - [`DecodeError::NotAnInstruction`] if no target has an instruction that begins so;
    /// - [`DecodeError::NotDecoded`] if LLVM does not decode the instruction for this target;
    /// - [`DecodeError::NotExact`] if LLVM's result omits a part of the encoding.
    pub fn decode(&self, bytes: &[u8], pc: Pc) -> Result<Inst, DecodeError> {
        let bytes = &bytes[..bytes.len().min(Isa::LONGEST_INSTRUCTION)];
        if let Some(known) = self.cache.borrow().get(bytes) {
            return Ok(decode::at(known, pc));
        }
        let generation = self.target.generation();
        let Some(description) = self.describe(bytes, pc) else {
            return Err(self.decode_error(bytes, pc));
        };
        let is_exact = exact::is_exact(&description, bytes, generation);
        let words = decode::words(description, bytes, generation, self.wave_size);
        if !is_exact {
            return Err(DecodeError::NotExact { pc, text: words.text });
        }
        let mut inst = decode::at(words.into(), pc);
        if let Some(accum_offset) = self.accum_offset {
            inst.replace_vgpr_aliases(accum_offset);
        }
        self.cache.borrow_mut().add(bytes, &inst.words);
        Ok(inst)
    }

    /// LLVM's description of the instruction at the start of `bytes`, with unused fields cleared if LLVM
    /// rejects them.
    fn describe(&self, bytes: &[u8], pc: Pc) -> Option<Description> {
        let describe = |bytes: &[u8]| {
            if llvm_crashes::crashes_disassembler(bytes, self.target.generation()) {
                return None;
            }
            let mut description = self.session.decode(bytes, pc)?;
            description.text = without_comment(description.text)?;
            let exists = |operand: &McOperand| match operand {
                McOperand::Definition(range) | McOperand::Use { register: range, .. } => {
                    self.has(*range)
                }
                operand => *operand != McOperand::Unknown,
            };
            description.operands.iter().all(exists).then_some(description)
        };
        describe(bytes).or_else(|| {
            unused_fields::decode_with_cleared_fields(bytes, self.target.generation(), describe)
        })
    }

    /// Returns `true` if the target has the registers of a range. LLVM's disassembler accepts registers of
    /// other targets.
    fn has(&self, range: RegisterRange) -> bool {
        let is_gfx125 = self.target.generation() >= Generation::Gfx125;
        match range.first {
            Register::Vgpr(Vgpr(first)) => is_gfx125 || first + u16::from(range.words) <= 256,
            Register::FlatScratchBaseLo | Register::FlatScratchBaseHi => is_gfx125,
            _ => true,
        }
    }

    /// The reason why `bytes` do not decode. A truncated instruction decodes once zeros are appended and is
    /// then longer than `bytes`.
    fn decode_error(&self, bytes: &[u8], pc: Pc) -> DecodeError {
        let mut padded = [0; Isa::LONGEST_INSTRUCTION];
        padded[..bytes.len()].copy_from_slice(bytes);
        let available = bytes.len();
        if available < 4 {
            return DecodeError::Truncated { pc, available, needed: 4 };
        }
        match self.describe(&padded, pc) {
            Some(longer) if usize::from(longer.size) > available => {
                DecodeError::Truncated { pc, available, needed: usize::from(longer.size) }
            }
            _ => {
                let word = |at: usize| {
                    bytes
                        .get(at..at + 4)
                        .and_then(|word| word.try_into().ok())
                        .map(u32::from_le_bytes)
                };
                let words: Vec<u32> = (0..2).filter_map(|index| word(4 * index)).collect();
                let processor = self.target.processor();
                // No generation has a format whose first six bits are all set (ISA manuals,
                // "Microcode formats").
                if words.first().is_some_and(|word| word >> 26 == 0x3f) {
                    DecodeError::NotAnInstruction { pc, processor, words }
                } else {
                    DecodeError::NotDecoded { pc, processor, words }
                }
            }
        }
    }

    /// Assembles `text`, with one instruction per line, and returns the bytes. Branches may refer to labels
    /// defined in the text. Directives and undefined symbols are errors.
    ///
    /// The text of a decoded instruction assembles to the same bytes, except for literals that LLVM
    /// cannot express: a literal with the bits of an inline constant (as a linker may fill in)
    /// becomes the constant, and the upper half of the literal of a 16-bit operation becomes zero.
    /// Code that is moved therefore keeps its bytes and is not reassembled from text.
    ///
    /// # Errors
    /// LLVM's first error message, with its position in `text`.
    pub fn assemble(&self, text: &str) -> Result<Vec<u8>, AssembleError> {
        asm_check::check(text)?;
        // After some errors LLVM's parser skips to the end of the next statement and does not
        // terminate if there is none.
        let text = format!("{text}\n\n\n\n");
        self.session.assemble(&text).map_err(|ffi::Diagnostic { message, line, column }| {
            AssembleError { line, column, message }
        })
    }
}

/// Removes LLVM's comment about an operand that LLVM does not emit but hardware accepts; returns `None`
/// if `text` has another comment. LLVM's disassembler is lenient: if a field holds a register or a value
/// that the operation does not accept, it decodes the instruction and prints a comment.
fn without_comment(text: String) -> Option<String> {
    /// LLVM up to 21 emitted M0 as the result of `v_readfirstlane_b32` and similar operations.
    const TO_M0: &str = " m0/*Invalid register, operand has 'SReg_32_XM0' register class*/, v";
    if !text.contains("/*") {
        return Some(text);
    }
    let text = text.replace(TO_M0, " m0, v");
    (!text.contains("/*")).then_some(text)
}

/// LLVM's feature string for a target and wave size.
fn features(target: &Target, wave_size: u8) -> String {
    let mut features = String::new();
    for (name, setting) in [("xnack", target.xnack), ("sramecc", target.sramecc)] {
        match setting {
            Setting::Any => {}
            Setting::On => _ = write!(features, "+{name},"),
            Setting::Off => _ = write!(features, "-{name},"),
        }
    }
    if target.generation() >= Generation::Gfx11 {
        // Decode 16-bit operands as register halves; without this feature LLVM decodes low halves only.
        features.push_str("+real-true16,");
    }
    if target.wave_sizes().len() > 1 {
        let other_size = 96 - wave_size;
        _ = write!(features, "+wavefrontsize{wave_size},-wavefrontsize{other_size},");
    }
    features
}

/// Error returned for a target or wave size that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot decode {target}: {reason}")]
pub struct IsaError {
    target: String,
    reason: &'static str,
}

/// Errors returned by [`Isa::decode`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The words are not an instruction of any target.
    #[error("{pc}: not an instruction of {processor}: {}", hexadecimal(.words))]
    NotAnInstruction {
        /// Address of the words.
        pc: Pc,
        /// The processor's name.
        processor: &'static str,
        /// The first one or two words.
        words: Vec<u32>,
    },
    /// LLVM does not decode the words for the target, although the hardware may have such an instruction.
    #[error(
        "{pc}: not decoded: LLVM 22 has no instruction of {processor} that begins with {}",
        hexadecimal(.words)
    )]
    NotDecoded {
        /// Address of the words.
        pc: Pc,
        /// The processor's name.
        processor: &'static str,
        /// The first one or two words.
        words: Vec<u32>,
    },
    /// LLVM decodes the instruction but drops its `op_sel` bits, which select register halves.
    #[error("{pc}: not decoded exactly: LLVM 22 drops the op_sel bits of `{text}`")]
    NotExact {
        /// Address of the instruction.
        pc: Pc,
        /// LLVM's text of the instruction.
        text: String,
    },
    /// The bytes end within an instruction.
    #[error("{pc}: truncated instruction: {needed} bytes needed, {available} available")]
    Truncated {
        /// Address of the instruction.
        pc: Pc,
        /// Number of bytes available.
        available: usize,
        /// Number of bytes needed, at least.
        needed: usize,
    },
}

fn hexadecimal(words: &[u32]) -> String {
    words.iter().map(|word| format!("{word:#010x}")).collect::<Vec<_>>().join(" ")
}

/// Error returned by [`Isa::assemble`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct AssembleError {
    /// Line from 1; 0 if unknown.
    pub line: u32,
    /// Column from 1, in bytes; 0 if unknown.
    pub column: u32,
    /// Error message.
    pub message: String,
}
