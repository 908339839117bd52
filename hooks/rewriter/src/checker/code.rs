//! The new code as it is: every claimed instruction, decoded from the new code object.

use super::Question;
use super::facts::{FactDecoder, Facts};
use super::finding::{CheckRule, Finding};
use crate::flow::{IndexVec, InstIndex, Key, keys};
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Pc, RegisterSet};
use std::ops::Range;
use std::sync::Arc;

/// Whose an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The guest's.
    Original(InstIndex),
    /// An inserted range's, by its index in [`super::Claims::inserted`].
    Inserted(usize),
}

/// An instruction of the new code.
#[derive(Debug)]
pub struct ClaimedInst {
    /// Its address.
    pub pc: u64,
    /// What it is.
    pub facts: Arc<Facts>,
    /// Whose it is.
    pub owner: Owner,
    /// Whether a branch goes to it.
    pub is_target: bool,
}

impl ClaimedInst {
    /// Address of the next one.
    pub fn end(&self) -> u64 {
        self.pc.wrapping_add(self.facts.size())
    }

    /// Whether a hook or the rewriter put it there.
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
    /// Decodes what is claimed. What cannot be decoded or is claimed twice is a finding, and is
    /// not in the code.
    pub fn read(
        question: &Question<'_>,
        decoder: &mut FactDecoder,
        findings: &mut Vec<Finding>,
    ) -> ClaimedCode {
        let claims = question.claims;
        let mut claimed: Vec<(Range<u64>, Owner)> = Vec::new();
        for (index, inst) in question.program.insts() {
            if let Some(pc) = question.place(index) {
                // Literals may have been added or taken away, so the end is not known yet.
                claimed.push((pc.0..pc.0.saturating_add(inst.size.into()), Owner::Original(index)));
            }
        }
        for (index, inserted) in claims.inserted.iter().enumerate() {
            claimed.push((inserted.range.clone(), Owner::Inserted(index)));
        }
        claimed.sort_by_key(|(range, _)| (range.start, range.end));
        let mut code = ClaimedCode { items: IndexVec::new() };
        for (range, owner) in claimed {
            code.read_range(question, decoder, range, owner, findings);
        }
        code.mark_targets();
        code
    }

    fn read_range(
        &mut self,
        question: &Question<'_>,
        decoder: &mut FactDecoder,
        range: Range<u64>,
        owner: Owner,
        findings: &mut Vec<Finding>,
    ) {
        const LONGEST_INSTRUCTION: usize = 20;
        if self.items.last().is_some_and(|last| last.end() > range.start) {
            findings.push(Finding::at(CheckRule::Control, range.start, "two claims overlap here"));
            return;
        }
        let mut pc = range.start;
        while pc < range.end {
            let bytes = (1..=LONGEST_INSTRUCTION / 4)
                .rev()
                .find_map(|words| question.new.bytes_at(Pc(pc), 4 * words));
            let decoded = match bytes {
                Some(bytes) => decoder.decode(bytes, pc).map_err(|error| error.to_string()),
                None => Err("there is no code at this address".to_owned()),
            };
            match decoded {
                Ok(facts) => {
                    let item = ClaimedInst { pc, facts, owner, is_target: false };
                    pc = item.end();
                    self.items.push(item);
                }
                Err(what) => {
                    findings.push(Finding::at(CheckRule::Control, pc, what));
                    return;
                }
            }
            if matches!(owner, Owner::Original(_)) {
                return;
            }
        }
        if pc != range.end {
            let what = "inserted code ends within an instruction";
            findings.push(Finding::at(CheckRule::Control, range.end, what));
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

    /// The original instruction at an index, if it is one.
    pub fn original(&self, at: ClaimedInstIndex) -> Option<InstIndex> {
        match self.items[at].owner {
            Owner::Original(index) => Some(index),
            Owner::Inserted(_) => None,
        }
    }

    /// Whether an address lies in inserted code.
    pub fn is_inserted(&self, pc: u64) -> bool {
        let after = self.items.partition_point(|item| item.pc <= pc);
        let (before, _) = self.items.split_at(after);
        before.last().is_some_and(|item| item.is_inserted() && pc < item.end())
    }

    /// Registers that instructions name, whether they read or write them.
    pub fn registers(item: &ClaimedInst) -> RegisterSet {
        item.facts.reads.union(item.facts.writes)
    }
}

/// Bytes between claims must be what was there in the original, code that nothing leads to, or,
/// where there was none, what code is padded with.
pub fn check_gaps(question: &Question<'_>, code: &ClaimedCode, findings: &mut Vec<Finding>) {
    for section in question.new.text() {
        let end = section.address.saturating_add(section.size);
        let first = code.items.partition_point(|item| item.pc < section.address);
        let mut pc = section.address;
        for item in code.items.iter().skip(first).take_while(|item| item.pc < end) {
            check_gap(question.original, question.new, pc..item.pc, findings);
            pc = item.end();
        }
        check_gap(question.original, question.new, pc..end, findings);
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
            let what = "code that nobody claims";
            findings.push(Finding::at(CheckRule::Control, pc, what));
            return;
        }
    }
}

/// `s_nop`, `s_code_end` or zeros (AMDGPUUsage, "Code Object", and LLVM's `writeNopData`).
fn is_padding(word: &[u8]) -> bool {
    const S_NOP: [u8; 2] = [0x80, 0xbf];
    const S_CODE_END: [u8; 4] = [0x00, 0x00, 0x9f, 0xbf];
    word.iter().all(|byte| *byte == 0) || word.ends_with(&S_NOP) || word == S_CODE_END
}
