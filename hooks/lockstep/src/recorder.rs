//! What a side executes, as one number for each original instruction.

use super::addresses::AddressMap;
use super::compared::{Compared, Registers as Names};
use super::substituted::{Results, Substituted};
use super::{LockstepReport, Seen};
use flipwave_device::WaveId;
use flipwave_hooks::flow::InstIndex;
use flipwave_isa::{Inst, Lane, Register};
use flipwave_sim::{Executed, Observer, Watch, WaveState};
use std::collections::{BTreeMap, VecDeque};

/// A value that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparedValue {
    pub register: Register,
    pub lane: Option<Lane>,
    pub bits: u32,
}

/// The original instructions of a wave that the other side has not come to.
#[derive(Default)]
struct InstStream {
    /// How many are gone.
    compared: u64,
    waiting: VecDeque<(InstIndex, u64)>,
}

/// Which side is watched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Original,
    Instrumented,
}

/// Watches a side.
pub struct Recorder<'a> {
    role: Role,
    substituted: &'a Substituted<'a>,
    /// Of instructions that hooks stand in for.
    results: Results,
    /// Original instructions by their addresses on this side.
    instructions: &'a BTreeMap<u64, InstIndex>,
    compared: &'a Compared<'a>,
    /// Applied on both sides: a number that only looks like an address of the instrumented code
    /// stays the same on both.
    addresses: &'a AddressMap,
    streams: BTreeMap<WaveId, InstStream>,
    registers: u64,
    /// The instruction whose values are wanted: of which wave, and its number.
    wanted: Option<(WaveId, u64)>,
    /// That instruction and the values, when it was met.
    pub seen: Option<(InstIndex, Vec<ComparedValue>)>,
}

impl<'a> Recorder<'a> {
    pub fn new(role: Role, seen: Seen<'a>, wanted: Option<(WaveId, u64)>) -> Recorder<'a> {
        let Seen { addresses, compared, substituted } = seen;
        Recorder {
            role,
            substituted,
            results: Results::default(),
            instructions: match role {
                Role::Original => addresses.originals(),
                Role::Instrumented => addresses.places(),
            },
            compared,
            addresses,
            streams: BTreeMap::new(),
            registers: 0,
            wanted,
            seen: None,
        }
    }

    /// Whether the other side needs results of this one.
    pub fn exports_results(&self) -> bool {
        !self.substituted.is_empty()
    }

    /// Takes over the results that the other side has recorded.
    pub fn import_results(&mut self, other: &mut Recorder<'_>) {
        self.results = std::mem::take(&mut other.results);
    }

    /// Visits all values that are compared.
    fn visit(&self, names: &Names, state: &WaveState<'_>, mut visit: impl FnMut(ComparedValue)) {
        let first = Lane(0);
        for register in &names.scalars {
            if let Some(bits) = state.read(*register, first) {
                let bits = self.addresses.translate(bits);
                visit(ComparedValue { register: *register, lane: None, bits });
            }
        }
        let exec = state.exec().0;
        let all = u64::MAX >> (64 - u32::from(self.compared.wave_size.clamp(1, 64)));
        for (register, active, masked) in &names.vectors {
            let Some(lanes) = state.lanes(*register) else { continue };
            let mask = if *active { exec } else { 0 } | if *masked { !exec } else { 0 };
            let mut rest = mask & all;
            while rest != 0 {
                let lane = rest.trailing_zeros() as u8;
                rest &= rest - 1;
                let bits = lanes[usize::from(lane)];
                let bits = self.addresses.translate(bits);
                visit(ComparedValue { register: *register, lane: Some(Lane(lane)), bits });
            }
        }
    }
}

impl Observer for Recorder<'_> {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn before(&mut self, inst: &Inst, wave: WaveId, state: &mut WaveState<'_>) {
        if self.role == Role::Instrumented && !self.substituted.is_empty() {
            self.results.record(self.substituted, wave, inst.pc.0, state);
        }
        let Some(index) = self.instructions.get(&inst.pc.0).copied() else { return };
        let names = self.compared.before(index);
        let number = self
            .streams
            .get(&wave)
            .map_or(0, |stream| stream.compared + stream.waiting.len() as u64);
        if self.wanted == Some((wave, number)) {
            let mut values = Vec::new();
            self.visit(names, state, |value| values.push(value));
            self.seen = Some((index, values));
        }
        let mut digest = u64::from(index.0);
        self.visit(names, state, |value| {
            digest = (digest.rotate_left(5) ^ u64::from(value.bits)).wrapping_mul(MIX);
        });
        self.registers += (names.scalars.len() + names.vectors.len()) as u64;
        self.streams.entry(wave).or_default().waiting.push_back((index, digest));
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        if self.role == Role::Original && !self.substituted.is_empty() {
            self.results.replay(self.substituted, executed.wave, executed.inst.pc.0, state);
        }
        Watch::On
    }
}

/// An odd number without pattern: the golden ratio's fraction.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// Compares what both sides have executed, and forgets what is the same. Gives the wave and the
/// number of the instruction at which they first differ. Where both sides have ended, none may
/// have more than the other.
pub fn compare(
    one: &mut Recorder<'_>,
    two: &mut Recorder<'_>,
    both_ended: bool,
    report: &mut LockstepReport,
) -> Option<(WaveId, u64)> {
    report.registers = one.registers;
    let waves: Vec<WaveId> = one.streams.keys().chain(two.streams.keys()).copied().collect();
    for wave in waves {
        let (left, right) =
            (one.streams.entry(wave).or_default(), two.streams.entry(wave).or_default());
        while let (Some(original), Some(new)) = (left.waiting.front(), right.waiting.front()) {
            if original != new {
                return Some((wave, left.compared));
            }
            left.waiting.pop_front();
            right.waiting.pop_front();
            left.compared += 1;
            right.compared += 1;
            report.instructions += 1;
        }
        if both_ended && !(left.waiting.is_empty() && right.waiting.is_empty()) {
            return Some((wave, left.compared));
        }
    }
    None
}
