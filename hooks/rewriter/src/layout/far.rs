//! Trampolines out of branch range: the distance between the old and the new text exceeds the range of
//! a branch, without space for islands in between.
//!
//! A branch at the edited instruction goes to unused words of the old text, which hold a jump of 24
//! bytes or more; a second jump goes back. Jumps clobber an SGPR pair and SCC.

use super::LayoutError;
use super::encoding::{ChainShape, Encoding};
use super::finish::Text;
use super::reach::{Hop, HopLocation, MARGIN, REACH, Reach};
use super::stream::Location;
use crate::flow::{Disassembly, Function, InstIndex};
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Pc, Sgpr};
use std::collections::{BTreeMap, BTreeSet};

/// Size in bytes of a branch and a jump in the old text.
pub(super) fn branch_and_jump_size(chain: &ChainShape) -> usize {
    chain.far_jump + 4
}

/// Reason to refuse a site without free registers for the jump `direction` ("there" or "back").
pub(super) fn no_pair(direction: &str) -> String {
    format!(
        "the trampoline is out of branch range, and no SGPR pair with SCC is free for a jump \
         {direction}"
    )
}

/// Returns `true` if new text at an address is out of branch range of a function, even with islands.
pub(crate) fn is_far(
    object: &CodeObject,
    program: &Disassembly,
    function: &Function,
    address: Pc,
) -> bool {
    let segment = object.segment_at(program.entry(function));
    segment.is_some_and(|segment| address.0.saturating_sub(segment.end()) > REACH - 2 * MARGIN)
}

/// A jump in the old text.
#[derive(Clone, Copy, Debug)]
pub(super) struct FarJump {
    /// Address of the jump.
    at: u64,
    pair: Sgpr,
    to: Location,
}

/// Allocates jumps in the old text.
pub(super) struct JumpAllocator {
    /// Free addresses, with space for one jump each.
    free: BTreeSet<u64>,
    /// Size of a jump in bytes.
    size: u64,
    /// Allocated jumps.
    pub jumps: Vec<FarJump>,
    /// Sites without a jump, with reasons.
    pub refused: Vec<(Pc, String)>,
}

impl JumpAllocator {
    /// Creates an allocator of the unused words `slots` of the old text.
    pub fn new(slots: &BTreeSet<u64>, chain: &ChainShape) -> JumpAllocator {
        let size = chain.far_jump as u64;
        let mut free = BTreeSet::new();
        let mut run: Option<(u64, u64)> = None;
        for &slot in slots {
            let (start, end) = match run {
                Some((start, end)) if end == slot => (start, slot + 4),
                _ => (slot, slot + 4),
            };
            run = if end - start == size {
                free.insert(start);
                None
            } else {
                Some((start, end))
            };
        }
        JumpAllocator { free, size, jumps: Vec::new(), refused: Vec::new() }
    }

    /// Redirects the branch to a trampoline out of range to a new jump, and removes the words of the jump
    /// from `slots`. Records a refusal if there are no free registers or words.
    pub fn redirect(
        &mut self,
        mut hop: Hop,
        pc: Pc,
        index: InstIndex,
        free_pairs: &BTreeMap<InstIndex, Sgpr>,
        slots: &mut BTreeSet<u64>,
    ) -> Option<Hop> {
        let Some(pair) = free_pairs.get(&index) else {
            self.refused.push((pc, no_pair("there")));
            return None;
        };
        let below = self.free.range(..pc.0).next_back();
        let above = self.free.range(pc.0..).next();
        let nearest = below.into_iter().chain(above).min_by_key(|address| address.abs_diff(pc.0));
        let Some(at) = nearest.copied().filter(|at| at.abs_diff(pc.0) < REACH) else {
            let reason = "the old code has no unused words within branch range for a jump";
            self.refused.push((pc, reason.to_owned()));
            return None;
        };
        self.free.remove(&at);
        for word in 0..self.size / 4 {
            slots.remove(&(at + 4 * word));
        }
        self.jumps.push(FarJump { at, pair: *pair, to: hop.to });
        hop.to = Location::Address(at);
        hop.at = HopLocation::Fixed(Location::Address(pc.0));
        Some(hop)
    }
}

impl FarJump {
    /// Writes the jump to the old text.
    pub fn put(
        &self,
        encoding: &mut Encoding,
        reach: &Reach,
        text: &mut Text,
    ) -> Result<(), LayoutError> {
        let code = encoding.far_jump(self.pair)?;
        for (address, word) in (self.at..).step_by(4).zip(code.as_chunks().0) {
            text.put(address, u32::from_le_bytes(*word));
        }
        text.put_address(&encoding.chain, self.at, reach.addresses.of(self.to));
        Ok(())
    }
}
