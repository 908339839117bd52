//! Trampolines that branches do not reach: between the old text and the new one lies more than a
//! branch's reach, with no place for an island.
//!
//! A branch at the site leads to words of old text that nobody needs, where a jump of 24 bytes goes
//! on; another one leads back. A jump needs a pair of scalar registers and SCC.

use super::LayoutError;
use super::encoding::{ChainShape, Encoding};
use super::finish::Text;
use super::reach::{At, Hop, MARGIN, REACH, Reach};
use super::stream::Spot;
use crate::flow::{Disassembly, Function, InstIndex};
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Pc, Sgpr};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of old text that hold a branch to a jump and the jump.
pub(super) fn room(chain: &ChainShape) -> usize {
    chain.far_jump + 4
}

/// Why a site is refused that control cannot come to ("there") or from ("back").
pub(super) fn no_pair(way: &str) -> String {
    format!(
        "the trampoline is out of a branch's reach, and no pair of scalar registers and SCC are \
         free for a jump {way}"
    )
}

/// Whether no chain of branches leads from a function to new text at an address.
pub(crate) fn is_far(
    object: &CodeObject,
    program: &Disassembly,
    function: &Function,
    address: Pc,
) -> bool {
    let segment = object.segment_at(program.entry(function));
    segment.is_some_and(|segment| address.0.saturating_sub(segment.end()) > REACH - 2 * MARGIN)
}

/// A jump in old text.
#[derive(Clone, Copy, Debug)]
pub(super) struct FarJump {
    /// Where it is.
    at: u64,
    pair: Sgpr,
    to: Spot,
}

/// Room for jumps in old text.
pub(super) struct Room {
    /// Addresses of places for one jump each.
    places: BTreeSet<u64>,
    /// Bytes of a jump.
    size: u64,
    /// Jumps that have theirs.
    pub jumps: Vec<FarJump>,
    /// Sites that there is no jump for.
    pub refused: Vec<(Pc, String)>,
}

impl Room {
    /// Room in words that nobody needs.
    pub fn new(slots: &BTreeSet<u64>, chain: &ChainShape) -> Room {
        let size = chain.far_jump as u64;
        let mut places = BTreeSet::new();
        let mut run: Option<(u64, u64)> = None;
        for &slot in slots {
            let (start, end) = match run {
                Some((start, end)) if end == slot => (start, slot + 4),
                _ => (slot, slot + 4),
            };
            run = if end - start == size {
                places.insert(start);
                None
            } else {
                Some((start, end))
            };
        }
        Room { places, size, jumps: Vec::new(), refused: Vec::new() }
    }

    /// The way in of a site that is far: a branch to a jump. The words that the jump takes are no
    /// slots any more.
    pub fn way_in(
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
        let below = self.places.range(..pc.0).next_back();
        let above = self.places.range(pc.0..).next();
        let nearest = below.into_iter().chain(above).min_by_key(|place| place.abs_diff(pc.0));
        let Some(at) = nearest.copied().filter(|at| at.abs_diff(pc.0) < REACH) else {
            let reason = "the old code has no room within reach for a jump so far";
            self.refused.push((pc, reason.to_owned()));
            return None;
        };
        self.places.remove(&at);
        for word in 0..self.size / 4 {
            slots.remove(&(at + 4 * word));
        }
        self.jumps.push(FarJump { at, pair: *pair, to: hop.to });
        hop.to = Spot::Address(at);
        hop.at = At::Spot(Spot::Address(pc.0));
        Some(hop)
    }
}

impl FarJump {
    /// Puts the jump into old text.
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
