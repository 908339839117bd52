//! Encodings of the instructions that layout inserts, assembled by LLVM, and of the instruction fields
//! that layout changes.

use super::LayoutError;
use flipwave_isa::hazard::SgprWait;
use flipwave_isa::{Generation, Isa, Rules, Sgpr, Target};
use std::collections::BTreeMap;

/// Encodings for one target.
pub(super) struct Encoding {
    isa: Isa,
    /// `s_branch` with an offset of zero.
    pub branch: u32,
    /// `s_nop 0`.
    pub nop: u32,
    /// Padding after the end of the code.
    pub end: EndOfCode,
    /// `true` if the target has the hardware bug of branches over 63 words.
    pub offset_3f_bug: bool,
    /// Shape of address chains.
    pub chain: ChainShape,
    address_chains: BTreeMap<Sgpr, Vec<u8>>,
    far_jumps: BTreeMap<Sgpr, Vec<u8>>,
}

/// Padding that instruction prefetch may read after the last instruction (LLVM's
/// `AMDGPUTargetStreamer::EmitCodeEnd`).
#[derive(Clone, Copy, Debug)]
pub(super) struct EndOfCode {
    /// The padding word.
    pub word: u32,
    /// Size of a cache line in bytes; padding starts at a line.
    pub line: u64,
    /// Number of lines.
    pub lines: u64,
}

/// Shape of an address chain: `s_getpc_b64` and two additions with literals, or one addition with a literal of
/// 64 bits (gfx1250), which leaves SCC alone. On targets where vector
/// operations may read scalar registers late, a wait follows the `s_getpc_b64`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChainShape {
    /// Size in bytes.
    pub size: usize,
    /// Offsets of the literals.
    pub literals: [usize; 2],
    /// Size in bytes of a jump to any address: the chain, a wait if required, and `s_setpc_b64`.
    pub far_jump: usize,
}

impl ChainShape {
    fn new(generation: Generation, has_wait: bool) -> ChainShape {
        if generation >= Generation::Gfx125 {
            return ChainShape { size: 16, literals: [8, 12], far_jump: 20 };
        }
        let wait = if has_wait { 4 } else { 0 };
        ChainShape { size: 20 + wait, literals: [8 + wait, 16 + wait], far_jump: 24 + 2 * wait }
    }
}

/// Text of the wait for scalar registers written by the SALU, on targets where vector operations may
/// read scalar registers late.
fn scalar_wait(target: &Target, wave_size: u8) -> Option<String> {
    let rules = Rules::of(target, wave_size)?;
    Some(rules.sgpr_hazards?.mitigation(SgprWait::FOR_SALU).text() + "\n")
}

/// Text of an address chain with placeholder literals.
pub(crate) fn address_chain(target: &Target, wave_size: u8, destination: Sgpr) -> String {
    let (low, high) = (destination.0, destination.0.saturating_add(1));
    if target.generation() >= Generation::Gfx125 {
        let literal = format!("0x{PLACEHOLDER:x}{PLACEHOLDER:x}");
        return format!(
            "s_getpc_b64 s[{low}:{high}]\ns_add_nc_u64 s[{low}:{high}], s[{low}:{high}], {literal}"
        );
    }
    let wait = scalar_wait(target, wave_size).unwrap_or_default();
    format!(
        "s_getpc_b64 s[{low}:{high}]\n\
         {wait}s_add_u32 s{low}, s{low}, 0x{PLACEHOLDER:x}\n\
         s_addc_u32 s{high}, s{high}, 0x{PLACEHOLDER:x}"
    )
}

impl Encoding {
    /// Decoder and assembler of the target.
    pub fn isa(&self) -> &Isa {
        &self.isa
    }

    /// Assembles the encodings for a target and a wave size.
    pub fn new(target: &Target, wave_size: u8) -> Result<Encoding, LayoutError> {
        let isa = Isa::with_wave_size(target, wave_size)?;
        let word = |text: &str| -> Result<u32, LayoutError> {
            let bytes = isa.assemble(text)?;
            first_word(&bytes).ok_or(LayoutError::Encoding { text: text.to_owned() })
        };
        let generation = target.generation();
        let (filling, line, lines) = match generation {
            Generation::Gfx6 | Generation::Gfx7 | Generation::Gfx8 | Generation::Gfx9 => {
                ("s_nop 0", 4, 0)
            }
            Generation::Gfx90a | Generation::Gfx940 => ("s_nop 0", 64, 16),
            Generation::Gfx10 => ("s_code_end", 64, 3),
            Generation::Gfx11 | Generation::Gfx12 | Generation::Gfx125 => ("s_code_end", 128, 3),
        };
        Ok(Encoding {
            branch: word("s_branch 0")?,
            nop: word("s_nop 0")?,
            end: EndOfCode { word: word(filling)?, line, lines },
            offset_3f_bug: target.has_offset_3f_bug(),
            chain: ChainShape::new(generation, scalar_wait(target, wave_size).is_some()),
            address_chains: BTreeMap::new(),
            far_jumps: BTreeMap::new(),
            isa,
        })
    }

    /// An address chain with placeholder literals that writes the pair starting at `destination`.
    pub fn address_chain(&mut self, destination: Sgpr) -> Result<&[u8], LayoutError> {
        if !self.address_chains.contains_key(&destination) {
            let text = address_chain(self.isa.target(), self.isa.wave_size(), destination);
            let bytes = self.isa.assemble(&text)?;
            let [first, second] = self.chain.literals.map(|at| word_at(&bytes, at));
            if bytes.len() != self.chain.size
                || (first, second) != (Some(PLACEHOLDER), Some(PLACEHOLDER))
            {
                return Err(LayoutError::Encoding { text });
            }
            self.address_chains.insert(destination, bytes);
        }
        Ok(&self.address_chains[&destination])
    }

    /// A jump with placeholder literals that uses the pair starting at `pair`.
    pub fn far_jump(&mut self, pair: Sgpr) -> Result<&[u8], LayoutError> {
        if !self.far_jumps.contains_key(&pair) {
            let mut bytes = self.address_chain(pair)?.to_vec();
            let wait = scalar_wait(self.isa.target(), self.isa.wave_size()).unwrap_or_default();
            let text = format!("{wait}s_setpc_b64 s[{}:{}]", pair.0, pair.0.saturating_add(1));
            bytes.extend(self.isa.assemble(&text)?);
            if bytes.len() != self.chain.far_jump {
                return Err(LayoutError::Encoding { text });
            }
            self.far_jumps.insert(pair, bytes);
        }
        Ok(&self.far_jumps[&pair])
    }
}

/// A literal that is not an inline constant.
const PLACEHOLDER: u32 = 0x1234_5678;

/// SOP2 source encoding of a literal after the instruction (ISA documents, "Scalar operands").
const LITERAL_SOURCE: u32 = 255;

/// Replaces source `index` (0 or 1) of a SOP2 word with a literal: SSRC0 is in bits 0 to 7, SSRC1 in
/// bits 8 to 15 (ISA documents, "SOP2").
pub(super) fn with_literal_source(word: u32, index: usize) -> u32 {
    let shift = if index == 0 { 0 } else { 8 };
    word & !(0xff << shift) | LITERAL_SOURCE << shift
}

/// Sets the 16-bit branch distance of a SOPP or SOPK word, in words from the next instruction (ISA
/// documents, "SOPP" and "SOPK").
pub(super) fn with_distance(word: u32, distance: i16) -> u32 {
    word & 0xffff_0000 | u32::from(distance as u16)
}

pub(super) fn first_word(bytes: &[u8]) -> Option<u32> {
    word_at(bytes, 0)
}

fn word_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn isa(target: &str) -> Isa {
        Isa::new(&target.parse().expect("a target")).expect("an ISA")
    }

    #[test]
    fn literal_source_keeps_operation() {
        for target in ["gfx90a", "gfx942", "gfx1030", "gfx1100"] {
            let isa = isa(target);
            for (text, index) in [("s_addc_u32 s1, s2, 0", 1), ("s_add_u32 s1, -1, s2", 0)] {
                let bytes = isa.assemble(text).expect(text);
                let word = with_literal_source(first_word(&bytes).expect("a word"), index);
                let grown = [word.to_le_bytes(), PLACEHOLDER.to_le_bytes()].concat();
                let expected = match index {
                    0 => "s_add_u32 s1, 0x12345678, s2",
                    _ => "s_addc_u32 s1, s2, 0x12345678",
                };
                assert_eq!(grown, isa.assemble(expected).expect(expected), "{target}: {text}");
            }
        }
    }

    #[test]
    fn branch_distance_field_matches_llvm() {
        for (target, texts) in [
            ("gfx90a", &["s_branch", "s_cbranch_vccz", "s_call_b64 s[2:3],"][..]),
            ("gfx1100", &["s_branch", "s_cbranch_execnz", "s_call_b64 s[2:3],"][..]),
            ("gfx1030", &["s_subvector_loop_begin s2,"][..]),
        ] {
            let isa = isa(target);
            for text in texts {
                let none = isa.assemble(&format!("{text} 0")).expect(text);
                let some = isa.assemble(&format!("{text} 0x1234")).expect(text);
                let word = with_distance(first_word(&none).expect("a word"), 0x1234);
                assert_eq!(word.to_le_bytes().as_slice(), some, "{target}: {text}");
            }
        }
    }
}
