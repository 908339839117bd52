//! Decoding and assembling for one target.

use crate::cache::Cache;
use crate::ffi::{self, Description, McOperand, Session, SubtargetFeature};
use crate::inst::{Inst, Pc};
use crate::{
    Generation, Register, RegisterRange, Setting, Target, Vgpr, decode, exact, source, survived,
    unused,
};
use std::cell::RefCell;
use std::ffi::CString;
use std::fmt::Write;

/// Decodes and assembles the instructions of one [`Target`], through LLVM's MC layer.
///
/// An `Isa` serves one thread at a time: it may be sent to another thread but not shared. Give
/// each thread its own.
pub struct Isa {
    target: Target,
    wave_size: u8,
    accum_offset: Option<u16>,
    session: Session,
    /// What was decoded before.
    cache: RefCell<Cache>,
}

impl Isa {
    /// Bytes of the longest instruction of any target: an image instruction with scattered
    /// addresses has five words (gfx10).
    pub const LONGEST_INSTRUCTION: usize = 20;

    /// Opens `target` for its default wave size.
    ///
    /// # Errors
    /// Where LLVM cannot disassemble the target: gfx6 and gfx7.
    pub fn new(target: &Target) -> Result<Isa, IsaError> {
        Isa::with_wave_size(target, target.default_wave_size())
    }

    /// Opens `target` for waves of 32 or 64 lanes. It matters where both exist (gfx10 and
    /// later): lane masks are one or two scalar registers wide.
    ///
    /// # Errors
    /// As [`Isa::new`], and where the target has no waves of this size.
    pub fn with_wave_size(target: &Target, wave_size: u8) -> Result<Isa, IsaError> {
        let unsupported = |reason| IsaError { target: target.to_string(), reason };
        if target.generation() < Generation::Gfx8 {
            return Err(unsupported("LLVM has no disassembler for it"));
        }
        if !target.wave_sizes().contains(&wave_size) {
            return Err(unsupported("it has no waves of this size"));
        }
        let processor = match target.processor() {
            // Never sold, and dropped by LLVM 20; their instructions are those of gfx942.
            "gfx940" | "gfx941" => "gfx942",
            own => own,
        };
        let processor = CString::new(processor).unwrap_or_default();
        let features = CString::new(features(target, wave_size)).unwrap_or_default();
        let session = Session::open(&processor, &features)
            .ok_or_else(|| unsupported("the LLVM at hand was built without it"))?;
        let cache = RefCell::default();
        Ok(Isa { target: target.clone(), wave_size, accum_offset: None, session, cache })
    }

    /// The same, for code whose VGPRs from `accum_offset` on are decoded as AccVGPRs: see
    /// [`Inst::name_shared_vgprs`].
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

    /// Subtarget features that LLVM knows, with whether this target has each.
    pub fn features(&self) -> Vec<SubtargetFeature> {
        self.session.features()
    }

    /// Decodes the instruction at the beginning of `bytes`, which lie at `pc`. What follows the
    /// instruction is ignored, and so are fields that the operation does not use. Words that were
    /// decoded before, wherever they stood, are not decoded again.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] where `bytes` end within an instruction. Where they begin with
    /// none that LLVM decodes for this target: [`DecodeError::NotAnInstruction`] if no target has
    /// one, else [`DecodeError::NotDecoded`]. [`DecodeError::NotExact`] where LLVM leaves out a
    /// part of what is encoded.
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
            inst.name_shared_vgprs(accum_offset);
        }
        self.cache.borrow_mut().add(bytes, &inst.words);
        Ok(inst)
    }

    /// What LLVM says of an instruction, unused fields cleared if it refuses them.
    fn describe(&self, bytes: &[u8], pc: Pc) -> Option<Description> {
        let describe = |bytes: &[u8]| {
            if !survived::is_survived(bytes, self.target.generation()) {
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
        let without = || unused::without(bytes, self.target.generation(), describe);
        describe(bytes).or_else(without)
    }

    /// Whether the target has the registers of a range: LLVM's disassembler lets those of other
    /// targets through.
    fn has(&self, range: RegisterRange) -> bool {
        let is_newest = self.target.generation() >= Generation::Gfx125;
        match range.first {
            Register::Vgpr(Vgpr(first)) => is_newest || first + u16::from(range.words) <= 256,
            Register::FlatScratchBaseLo | Register::FlatScratchBaseHi => is_newest,
            _ => true,
        }
    }

    /// Distinguishes an unknown instruction from one that is cut off: the latter decodes once zeros
    /// are appended, and is then longer than what there was.
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

    /// Assembles `text`, one instruction or several on lines of their own, and returns their
    /// bytes. Labels may be defined and branched to within the text. Directives and symbols
    /// from elsewhere are errors.
    ///
    /// What [`Isa::decode`] prints assembles back to the same bytes, but for literals that LLVM
    /// has no text for: one whose bits are those of an inline constant (as a linker may fill in)
    /// becomes the constant, and the upper half of a literal of a 16-bit operation becomes zero.
    /// Code that is moved keeps its bytes and does not go through text.
    ///
    /// # Errors
    /// LLVM's first complaint, with its place in `text`.
    pub fn assemble(&self, text: &str) -> Result<Vec<u8>, AssembleError> {
        source::check(text)?;
        // After some errors LLVM's parser skips to the end of the next statement, and never
        // comes back where there is none.
        let text = format!("{text}\n\n\n\n");
        self.session.assemble(&text).map_err(|ffi::Complaint { message, line, column }| {
            AssembleError { line, column, message }
        })
    }
}

/// The text of an instruction without LLVM's comment on what LLVM's compiler does not write but
/// hardware executes; `None` with another comment. LLVM's disassembler is lenient: where a field
/// holds a register or a value that the operation does not take, it decodes all the same and prints
/// a comment about it.
fn without_comment(text: String) -> Option<String> {
    /// LLVM up to 21 compiled code with M0 as the result of `v_readfirstlane_b32` and the like.
    const TO_M0: &str = " m0/*Invalid register, operand has 'SReg_32_XM0' register class*/, v";
    let text = match text.contains("/*") {
        true => text.replace(TO_M0, " m0, v"),
        false => text,
    };
    (!text.contains("/*")).then_some(text)
}

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
        // 16-bit operands are halves of registers; without it LLVM decodes low halves alone.
        features.push_str("+real-true16,");
    }
    if target.wave_sizes().len() > 1 {
        let other = 96 - wave_size;
        _ = write!(features, "+wavefrontsize{wave_size},-wavefrontsize{other},");
    }
    features
}

/// A target that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot decode {target}: {reason}")]
pub struct IsaError {
    target: String,
    reason: &'static str,
}

/// Bytes that are no instruction, or none that is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The words are no instruction of any target.
    #[error("{pc}: no instruction of {processor} begins with {}", hexadecimal(.words))]
    NotAnInstruction {
        /// Where.
        pc: Pc,
        /// The processor's name.
        processor: &'static str,
        /// The first one or two words.
        words: Vec<u32>,
    },
    /// LLVM decodes no instruction of the target here. The hardware may have one.
    #[error(
        "{pc}: not decoded: LLVM 22 has no instruction of {processor} that begins with {}",
        hexadecimal(.words)
    )]
    NotDecoded {
        /// Where.
        pc: Pc,
        /// The processor's name.
        processor: &'static str,
        /// The first one or two words.
        words: Vec<u32>,
    },
    /// LLVM decodes the instruction, but leaves out which halves of registers it reads or writes.
    #[error("{pc}: not decoded exactly: LLVM 22 leaves out op_sel, which is set, of `{text}`")]
    NotExact {
        /// Where.
        pc: Pc,
        /// What LLVM prints.
        text: String,
    },
    /// The bytes end within an instruction.
    #[error("{pc}: the instruction is {needed} bytes long, but only {available} are there")]
    Truncated {
        /// Where.
        pc: Pc,
        /// Bytes that are there.
        available: usize,
        /// Bytes of the instruction (at least).
        needed: usize,
    },
}

fn hexadecimal(words: &[u32]) -> String {
    words.iter().map(|word| format!("{word:#010x}")).collect::<Vec<_>>().join(" ")
}

/// A text that does not assemble.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct AssembleError {
    /// Line from 1; 0 where the complaint has no place.
    pub line: u32,
    /// Column from 1, in bytes; 0 where the complaint has no place.
    pub column: u32,
    /// What is wrong.
    pub message: String,
}
