//! Observers in the embedded GPU that count without hooks.

use flipwave_device::WaveId;
use flipwave_isa::{Inst, Lane, MemoryOperand, MemorySpace, Pc, Register};
use flipwave_sim::{Executed, Observer, Watch, WaveState};
use flipwave_tools::WavePosition;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// An observer that misses the first execution of an instruction for which `blind` returns `true`.
#[derive(Clone, Debug)]
pub struct Blind<O> {
    pub observer: O,
    blind: fn(&Inst) -> bool,
    has_missed: bool,
    /// `true` during the missed execution.
    misses: bool,
}

impl<O> Blind<O> {
    pub fn new(observer: O, blind: fn(&Inst) -> bool) -> Blind<O> {
        Blind { observer, blind, has_missed: false, misses: false }
    }
}

impl<O: Observer> Observer for Blind<O> {
    fn watches(&mut self, wave: WaveId) -> bool {
        self.observer.watches(wave)
    }

    fn before(&mut self, inst: &Inst, wave: WaveId, state: &mut WaveState<'_>) {
        self.misses = !self.has_missed && (self.blind)(inst);
        self.has_missed |= self.misses;
        if !self.misses {
            self.observer.before(inst, wave, state);
        }
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        if self.misses { Watch::On } else { self.observer.after(executed, state) }
    }
}

/// Counts of an instruction.
#[derive(Clone, Debug, Default)]
pub struct Site {
    pub executions: u64,
    /// Executions with an active lane.
    pub active: u64,
    pub lines_64: u64,
    pub lines_128: u64,
    pub lds_accesses: u64,
    pub conflicts: u64,
    pub divergent: u64,
    /// Memory operand, decoded once.
    operand: Option<MemoryOperand>,
}

/// Properties to observe in addition to executions and EXEC, since each costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    Nothing,
    Lines,
    Conflicts,
}

/// Counts of the instructions of a dispatch.
#[derive(Clone, Debug)]
pub struct Sites {
    pub sites: HashMap<Pc, Site>,
    look: Look,
    /// EXEC before the current instruction.
    exec: u64,
}

impl Sites {
    pub fn new(look: Look) -> Sites {
        Sites { sites: HashMap::new(), look, exec: 0 }
    }
}

impl Observer for Sites {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn before(&mut self, inst: &Inst, _: WaveId, state: &mut WaveState<'_>) {
        self.exec = state.exec().0;
        let operand = || Site { operand: inst.memory_operand(), ..Site::default() };
        let site = self.sites.entry(inst.pc).or_insert_with(operand);
        site.executions += 1;
        site.active += u64::from(self.exec != 0);
        let Some(operand) = &site.operand else { return };
        let bytes = operand.access.bytes / operand.offsets.len() as u8;
        match self.look {
            Look::Nothing => {}
            Look::Lines => {
                let all = state.accessed().into_iter().flatten();
                let bytes: Vec<u64> =
                    all.flat_map(|(_, address)| address..address + u64::from(bytes)).collect();
                site.lines_64 += lines(&bytes, 64);
                site.lines_128 += lines(&bytes, 128);
            }
            Look::Conflicts if operand.access.space == MemorySpace::Lds && self.exec != 0 => {
                let elements = state.accessed();
                site.lds_accesses += elements.len() as u64;
                site.conflicts +=
                    elements.iter().map(|addresses| conflicts(addresses, bytes)).sum::<u64>();
            }
            Look::Conflicts => {}
        }
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        let writes_exec =
            executed.inst.writes.iter().any(|register| register.contains(Register::ExecLo));
        if let (true, Some(site)) = (writes_exec, self.sites.get_mut(&executed.inst.pc)) {
            let (before, after) = (self.exec, state.exec().0);
            let is_part = after | before == before && after != before;
            site.divergent += u64::from(is_part && after != 0);
        }
        Watch::On
    }
}

/// Number of cache lines of `size` bytes that contain one of the bytes.
fn lines(bytes: &[u64], size: u64) -> u64 {
    let mut lines: Vec<u64> = bytes.iter().map(|byte| byte / size).collect();
    lines.sort_unstable();
    lines.dedup();
    lines.len() as u64
}

/// Cycles beyond the first for each group of lanes: LDS has 32 banks of four bytes and delivers 128 bytes
/// per cycle.
fn conflicts(addresses: &[(Lane, u64)], bytes: u8) -> u64 {
    let words = u64::from(bytes.div_ceil(4));
    let mut groups: BTreeMap<u64, BTreeMap<u64, BTreeSet<u64>>> = BTreeMap::new();
    for (lane, address) in addresses {
        let banks = groups.entry(u64::from(lane.0) / (32 / words)).or_default();
        for word in address / 4..address / 4 + words {
            banks.entry(word % 32).or_default().insert(word);
        }
    }
    let turns = |banks: &BTreeMap<u64, BTreeSet<u64>>| banks.values().map(BTreeSet::len).max();
    groups.values().filter_map(turns).map(|turns| turns as u64 - 1).sum()
}

/// Clock readings of waves. The embedded GPU's clock is the number of instructions that the wave has
/// executed.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    pub readings: BTreeMap<WavePosition, Vec<Reading>>,
    executed: HashMap<WaveId, u64>,
}

/// A clock reading.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    pub is_constant: bool,
    pub value: u64,
}

impl Observer for Clocks {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn after(&mut self, executed: &Executed<'_>, _: &mut WaveState<'_>) -> Watch {
        let count = self.executed.entry(executed.wave).or_default();
        *count += 1;
        let reading = match executed.inst.operation.name() {
            "s_memtime" => Reading { is_constant: false, value: *count },
            // The upper of two words, which stays zero here.
            "s_getreg_b32" if executed.inst.text.contains("SHADER_CYCLES_HI") => return Watch::On,
            "s_getreg_b32" if executed.inst.text.contains("SHADER_CYCLES_LO") => {
                Reading { is_constant: false, value: *count }
            }
            "s_getreg_b32" if executed.inst.text.contains("SHADER_CYCLES") => {
                Reading { is_constant: false, value: *count & 0xf_ffff }
            }
            "s_memrealtime" | "s_sendmsg_rtn_b64" => Reading { is_constant: true, value: *count },
            _ => return Watch::On,
        };
        self.readings.entry(executed.wave.into()).or_default().push(reading);
        Watch::On
    }
}

#[test]
fn different_words_of_one_bank_conflict() {
    let conflicts = |bytes, address: fn(u64) -> u64| {
        let lanes: Vec<(Lane, u64)> =
            (0..64).map(|lane| (Lane(lane), address(lane.into()))).collect();
        conflicts(&lanes, bytes)
    };
    assert_eq!(conflicts(4, |lane| 4 * lane), 0);
    assert_eq!(conflicts(4, |_| 64), 0);
    assert_eq!(conflicts(4, |lane| 8 * lane), 2);
    assert_eq!(conflicts(4, |lane| 128 * lane), 62);
    assert_eq!(conflicts(8, |lane| 8 * lane), 0);
    assert_eq!(conflicts(16, |lane| 16 * lane), 0);
}
