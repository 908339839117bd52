//! The claimed instructions, decoded from the new code object.

use super::context::CheckContext;
use super::facts::{FactDecoder, Facts};
use super::finding::{CheckRule, Finding};
use crate::flow::{IndexVec, InstIndex, Key, keys};
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Pc, RegisterSet};
use std::ops::Range;
use std::sync::Arc;

/// The origin of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The original program.
    Original(InstIndex),
    /// A range of inserted code, by its index in [`super::Claims::inserted`].
    Inserted(usize),
}

/// An instruction of the new code.
#[derive(Debug)]
pub struct ClaimedInst {
    /// The address.
    pub pc: u64,
    /// The decoded instruction.
    pub facts: Arc<Facts>,
    /// The origin.
    pub owner: Owner,
    /// A direct branch targets the instruction.
    pub is_target: bool,
}

impl ClaimedInst {
    /// Address after the instruction.
    pub fn end(&self) -> u64 {
        self.pc.wrapping_add(self.facts.size())
    }

    /// Returns `true` if the rewriter inserted the instruction.
    pub fn is_inserted(&self) -> bool {
        matches!(self.owner, Owner::Inserted(_))
    }
}

keys! {
    /// Index of an instruction of the new code.
    ClaimedInstIndex;
}

/// The claimed code, by ascending address.
#[derive(Debug)]
pub struct ClaimedCode {
    items: IndexVec<ClaimedInstIndex, ClaimedInst>,
}

impl ClaimedCode {
    /// Decodes all claimed ranges. Ranges that cannot be decoded or overlap are reported and left out.
    pub fn read(
        context: &CheckContext<'_>,
        decoder: &mut FactDecoder,
        findings: &mut Vec<Finding>,
    ) -> ClaimedCode {
        let claims = context.claims;
        let mut claimed: Vec<(Range<u64>, Owner)> = Vec::new();
        for (index, inst) in context.program.insts() {
            if let Some(pc) = context.new_pc(index) {
                // The new instruction may have a different size, so this end is only an estimate.
                claimed.push((pc.0..pc.0.saturating_add(inst.size.into()), Owner::Original(index)));
            }
        }
        for (index, inserted) in claims.inserted.iter().enumerate() {
            claimed.push((inserted.range.clone(), Owner::Inserted(index)));
        }
        claimed.sort_by_key(|(range, _)| (range.start, range.end));
        let mut code = ClaimedCode { items: IndexVec::new() };
        for (range, owner) in claimed {
            code.read_range(context, decoder, range, owner, findings);
        }
        code.mark_targets();
        code
    }

    fn read_range(
        &mut self,
        context: &CheckContext<'_>,
        decoder: &mut FactDecoder,
        range: Range<u64>,
        owner: Owner,
        findings: &mut Vec<Finding>,
    ) {
        const LONGEST_INSTRUCTION: usize = 20;
        if self.items.last().is_some_and(|last| last.end() > range.start) {
            findings.push(Finding::at(CheckRule::Control, range.start, "claims overlap"));
            return;
        }
        let mut pc = range.start;
        while pc < range.end {
            let bytes = (1..=LONGEST_INSTRUCTION / 4)
                .rev()
                .find_map(|words| context.new.bytes_at(Pc(pc), 4 * words));
            let decoded = match bytes {
                Some(bytes) => decoder.decode(bytes, pc).map_err(|error| error.to_string()),
                None => Err("no code at this address".to_owned()),
            };
            match decoded {
                Ok(facts) => {
                    let item = ClaimedInst { pc, facts, owner, is_target: false };
                    pc = item.end();
                    self.items.push(item);
                }
                Err(message) => {
                    findings.push(Finding::at(CheckRule::Control, pc, message));
                    return;
                }
            }
            if matches!(owner, Owner::Original(_)) {
                return;
            }
        }
        if pc != range.end {
            let message = "claim of inserted code ends within an instruction";
            findings.push(Finding::at(CheckRule::Control, range.end, message));
        }
    }

    fn mark_targets(&mut self) {
        let targets: Vec<u64> =
            self.items.iter().filter_map(|item| item.facts.target(item.pc)).collect();
        for target in targets {
            if let Some(index) = self.index_at(target) {
                self.items[index].is_target = true;
            }
        }
    }

    /// All instructions, by ascending address.
    pub fn items(&self) -> &IndexVec<ClaimedInstIndex, ClaimedInst> {
        &self.items
    }

    /// Index of the instruction at an address.
    pub fn index_at(&self, pc: u64) -> Option<ClaimedInstIndex> {
        self.items.binary_search_by_key(&pc, |item| item.pc).ok().map(ClaimedInstIndex::new)
    }

    /// The instruction at an address.
    pub fn at(&self, pc: u64) -> Option<&ClaimedInst> {
        self.index_at(pc).map(|index| &self.items[index])
    }

    /// The original instruction at an index; `None` for inserted instructions.
    pub fn original(&self, at: ClaimedInstIndex) -> Option<InstIndex> {
        match self.items[at].owner {
            Owner::Original(index) => Some(index),
            Owner::Inserted(_) => None,
        }
    }

    /// Returns `true` if an address lies in inserted code.
    pub fn is_inserted(&self, pc: u64) -> bool {
        let after = self.items.partition_point(|item| item.pc <= pc);
        let (before, _) = self.items.split_at(after);
        before.last().is_some_and(|item| item.is_inserted() && pc < item.end())
    }

    /// Registers that an instruction reads or writes.
    pub fn registers(item: &ClaimedInst) -> RegisterSet {
        item.facts.reads.union(item.facts.writes)
    }
}

/// Checks the bytes between claims: they must equal the original's, or be padding at addresses that
/// the original does not have.
pub fn check_gaps(context: &CheckContext<'_>, code: &ClaimedCode, findings: &mut Vec<Finding>) {
    for section in context.new.text() {
        let end = section.address.saturating_add(section.size);
        let first = code.items.partition_point(|item| item.pc < section.address);
        let mut pc = section.address;
        for item in code.items.iter().skip(first).take_while(|item| item.pc < end) {
            check_gap(context.original, context.new, pc..item.pc, findings);
            pc = item.end();
        }
        check_gap(context.original, context.new, pc..end, findings);
    }
}

fn check_gap(
    original: &CodeObject,
    new: &CodeObject,
    gap: Range<u64>,
    findings: &mut Vec<Finding>,
) {
    let length = gap.end.saturating_sub(gap.start) as usize;
    let Some(bytes) = new.bytes_at(Pc(gap.start), length).filter(|bytes| !bytes.is_empty()) else {
        return;
    };
    if original.bytes_at(Pc(gap.start), length) == Some(bytes) {
        return;
    }
    for (pc, word) in (gap.start..).step_by(4).zip(bytes.chunks(4)) {
        let is_known = match original.bytes_at(Pc(pc), word.len()) {
            Some(old) => old == word,
            None => is_padding(word),
        };
        if !is_known {
            findings.push(Finding::at(CheckRule::Control, pc, "unclaimed code"));
            return;
        }
    }
}

/// Returns `true` for `s_nop`, `s_code_end` and zeros (AMDGPUUsage, "Code Object", and LLVM's `writeNopData`).
fn is_padding(word: &[u8]) -> bool {
    const S_NOP: [u8; 2] = [0x80, 0xbf];
    const S_CODE_END: [u8; 4] = [0x00, 0x00, 0x9f, 0xbf];
    word.iter().all(|byte| *byte == 0) || word.ends_with(&S_NOP) || word == S_CODE_END
}
