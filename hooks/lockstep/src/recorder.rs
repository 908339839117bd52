//! Records the execution of a version as one digest of register values per original instruction.

use super::addresses::AddressMap;
use super::compared::{Compared, Registers, VectorRegister};
use super::comparison::LockstepReport;
use super::replaced::{ReplacedInsts, Results};
use flipwave_device::WaveId;
use flipwave_hooks::flow::InstIndex;
use flipwave_isa::{Inst, Lane, Register};
use flipwave_sim::{Executed, Observer, Watch, WaveState};
use std::collections::{BTreeMap, VecDeque};

/// The data that the recorders of both versions share.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Addresses of both versions.
    pub addresses: &'a AddressMap,
    /// Registers to compare.
    pub compared: &'a Compared<'a>,
    /// Replaced instructions.
    pub replaced: &'a ReplacedInsts<'a>,
}

/// A register value that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparedValue {
    pub register: Register,
    pub lane: Option<Lane>,
    pub bits: u32,
}

/// A position in the execution of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub wave: WaveId,
    /// The number of original instructions executed before.
    pub number: u64,
}

/// The original instructions that a wave has executed.
#[derive(Default)]
struct InstStream {
    /// The number of instructions that have been compared and removed.
    compared: u64,
    /// The instructions that the other version has not executed yet, with their digests.
    waiting: VecDeque<(InstIndex, u64)>,
}

/// The version that is recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Original,
    Instrumented,
}

/// Observer that records the execution of a version.
pub struct Recorder<'a> {
    role: Role,
    replaced: &'a ReplacedInsts<'a>,
    /// The results of replaced instructions.
    results: Results,
    /// The original instructions by their addresses in this version.
    instructions: &'a BTreeMap<u64, InstIndex>,
    compared: &'a Compared<'a>,
    /// Translates values of both versions, so that a number that only looks like an address of the
    /// instrumented code stays equal.
    addresses: &'a AddressMap,
    streams: BTreeMap<WaveId, InstStream>,
    registers: u64,
    /// The position whose register values are kept.
    wanted: Option<Position>,
    /// The instruction at the wanted position and its register values, once it has been reached.
    pub found: Option<(InstIndex, Vec<ComparedValue>)>,
}

impl<'a> Recorder<'a> {
    pub fn new(role: Role, context: Context<'a>, wanted: Option<Position>) -> Recorder<'a> {
        let Context { addresses, compared, replaced } = context;
        Recorder {
            role,
            replaced,
            results: Results::default(),
            instructions: match role {
                Role::Original => addresses.originals(),
                Role::Instrumented => addresses.instrumented(),
            },
            compared,
            addresses,
            streams: BTreeMap::new(),
            registers: 0,
            wanted,
            found: None,
        }
    }

    /// Returns `true` if the other version needs results of this one.
    pub fn exports_results(&self) -> bool {
        !self.replaced.is_empty()
    }

    /// Takes the results that `source` has recorded.
    pub fn import_results(&mut self, source: &mut Recorder<'_>) {
        self.results = std::mem::take(&mut source.results);
    }

    /// Calls `visit` with each value that is compared.
    fn visit(
        &self,
        registers: &Registers,
        state: &WaveState<'_>,
        mut visit: impl FnMut(ComparedValue),
    ) {
        let first = Lane(0);
        for register in &registers.scalars {
            if let Some(bits) = state.read(*register, first) {
                let bits = self.addresses.translate(bits);
                visit(ComparedValue { register: *register, lane: None, bits });
            }
        }
        let exec = state.exec().0;
        let all = u64::MAX >> (64 - u32::from(self.compared.wave_size.clamp(1, 64)));
        for VectorRegister { register, in_active, in_masked } in &registers.vectors {
            let Some(lanes) = state.lanes(*register) else { continue };
            let mask = if *in_active { exec } else { 0 } | if *in_masked { !exec } else { 0 };
            let mut remaining = mask & all;
            while remaining != 0 {
                let lane = remaining.trailing_zeros() as u8;
                remaining &= remaining - 1;
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
        if self.role == Role::Instrumented && !self.replaced.is_empty() {
            self.results.record(self.replaced, wave, inst.pc.0, state);
        }
        let Some(index) = self.instructions.get(&inst.pc.0).copied() else { return };
        let registers = self.compared.before(index);
        let number = self
            .streams
            .get(&wave)
            .map_or(0, |stream| stream.compared + stream.waiting.len() as u64);
        if self.wanted == Some(Position { wave, number }) {
            let mut values = Vec::new();
            self.visit(registers, state, |value| values.push(value));
            self.found = Some((index, values));
        }
        let mut digest = u64::from(index.0);
        self.visit(registers, state, |value| {
            digest = (digest.rotate_left(5) ^ u64::from(value.bits)).wrapping_mul(MIX);
        });
        self.registers += (registers.scalars.len() + registers.vectors.len()) as u64;
        self.streams.entry(wave).or_default().waiting.push_back((index, digest));
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        if self.role == Role::Original && !self.replaced.is_empty() {
            self.results.replay(self.replaced, executed.wave, executed.inst.pc.0, state);
        }
        Watch::On
    }
}

/// The multiplier of the digest, an odd number without regular bit patterns: the fraction of the golden
/// ratio.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// The meaning of instructions that only one version has executed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Leftovers {
    /// The other version may still execute them, or was stopped by a fault.
    Allowed,
    /// A difference, because both versions have completed.
    Differ,
}

/// Compares and removes the instructions that both versions have executed. Returns the position of the
/// first difference.
pub fn compare(
    original: &mut Recorder<'_>,
    instrumented: &mut Recorder<'_>,
    leftovers: Leftovers,
    report: &mut LockstepReport,
) -> Option<Position> {
    report.registers = original.registers;
    let waves = original.streams.keys().chain(instrumented.streams.keys());
    let waves: Vec<WaveId> = waves.copied().collect();
    for wave in waves {
        let before = original.streams.entry(wave).or_default();
        let after = instrumented.streams.entry(wave).or_default();
        while let (Some(left), Some(right)) = (before.waiting.front(), after.waiting.front()) {
            if left != right {
                return Some(Position { wave, number: before.compared });
            }
            before.waiting.pop_front();
            after.waiting.pop_front();
            before.compared += 1;
            after.compared += 1;
            report.instructions += 1;
        }
        let has_leftovers = !before.waiting.is_empty() || !after.waiting.is_empty();
        if leftovers == Leftovers::Differ && has_leftovers {
            return Some(Position { wave, number: before.compared });
        }
    }
    None
}
