//! What waves execute, seen by the embedded GPU; nothing here knows of hooks.

use flipwave_device::WaveId;
use flipwave_hooks::tools::Wave;
use flipwave_isa::{Inst, Lane, LaneMask, MemoryOperand, MemorySpace, Pc, Register, RegisterRange};
use flipwave_sim::{Executed, Observer, Watch, WaveState};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What was seen of an instruction.
#[derive(Clone, Debug, Default)]
pub struct Site {
    pub executions: u64,
    /// Executions with a lane running.
    pub active: u64,
    pub lines_64: u64,
    pub lines_128: u64,
    pub lds_accesses: u64,
    pub conflicts: u64,
    pub divergent: u64,
    /// Decoded once.
    operand: Option<MemoryOperand>,
}

/// An access of a lane, or of a wave to scalar memory.
#[derive(Clone, Copy, Debug)]
pub struct Touch {
    pub pc: Pc,
    pub wave: Wave,
    pub lane: Option<u8>,
    pub address: u64,
    pub bytes: u8,
}

/// What is looked at besides executions: each costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    Executions,
    Trace,
    Lines,
    Conflicts,
}

/// What was seen of a dispatch.
#[derive(Clone, Debug)]
pub struct Observed {
    pub sites: HashMap<Pc, Site>,
    pub trace: Vec<Touch>,
    look: Look,
    /// EXEC before the instruction that is executing.
    exec: u64,
    /// The first instruction that this holds for is not seen.
    blind: fn(&Inst) -> bool,
    has_missed: bool,
}

pub fn wave(id: WaveId) -> Wave {
    let [workgroup_x, workgroup_y, workgroup_z] = id.workgroup;
    Wave { workgroup_x, workgroup_y, workgroup_z, wave: id.wave }
}

impl Observed {
    pub fn new(look: Look, blind: fn(&Inst) -> bool) -> Observed {
        let (sites, trace) = (HashMap::new(), Vec::new());
        Observed { sites, trace, look, exec: 0, blind, has_missed: false }
    }
}

impl Observer for Observed {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn before(&mut self, inst: &Inst, id: WaveId, state: &mut WaveState<'_>) {
        self.exec = exec(state);
        let operand = || Site { operand: inst.memory_operand(), ..Site::default() };
        let site = self.sites.entry(inst.pc).or_insert_with(operand);
        if !self.has_missed && (self.blind)(inst) {
            self.has_missed = true;
            return;
        }
        site.executions += 1;
        site.active += u64::from(self.exec != 0);
        if self.look == Look::Executions {
            return;
        }
        let Some(operand) = site.operand.take() else { return };
        let space = operand.access.space;
        let lanes: Vec<Lane> = match space {
            MemorySpace::Scalar => vec![Lane(0)],
            _ => LaneMask(self.exec).lanes().collect(),
        };
        let bytes = operand.access.bytes / operand.offsets.len() as u8;
        let elements: Vec<Vec<(Lane, u64)>> = operand
            .offsets
            .iter()
            .map(|offset| {
                let address = |lane: &Lane| address(&operand, *offset, *lane, state);
                lanes.iter().map(|lane| (*lane, address(lane))).collect()
            })
            .collect();
        let all = elements.iter().flatten();
        match self.look {
            Look::Executions => {}
            Look::Trace => self.trace.extend(all.map(|(lane, address)| Touch {
                pc: inst.pc,
                wave: wave(id),
                lane: (space != MemorySpace::Scalar).then_some(lane.0),
                address: *address,
                bytes,
            })),
            Look::Lines => {
                let bytes: Vec<u64> =
                    all.flat_map(|(_, address)| *address..*address + u64::from(bytes)).collect();
                site.lines_64 += lines(&bytes, 64);
                site.lines_128 += lines(&bytes, 128);
            }
            Look::Conflicts if space == MemorySpace::Lds && self.exec != 0 => {
                site.lds_accesses += elements.len() as u64;
                let all = elements.iter();
                site.conflicts += all.map(|own| conflicts(own, bytes)).sum::<u64>();
            }
            Look::Conflicts => {}
        }
        site.operand = Some(operand);
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        let writes_exec = executed.inst.writes.iter().any(|own| own.contains(Register::ExecLo));
        if let (true, Some(site)) = (writes_exec, self.sites.get_mut(&executed.inst.pc)) {
            let (before, after) = (self.exec, exec(state));
            let is_part = after | before == before && after != before;
            site.divergent += u64::from(is_part && after != 0);
        }
        Watch::On
    }
}

/// The lanes that run; in waves of 32 lanes the upper half is zero.
fn exec(state: &WaveState<'_>) -> u64 {
    value(state, RegisterRange::new(Register::ExecLo, 2), Lane(0))
}

/// One or two registers as a number.
fn value(state: &WaveState<'_>, range: RegisterRange, lane: Lane) -> u64 {
    let words = range.iter().take(2).map(|word| state.read(word, lane).unwrap_or(0));
    words.zip([0, 32]).map(|(word, shift)| u64::from(word) << shift).sum()
}

/// Address of an element (the ISA documents, "Address calculation").
fn address(operand: &MemoryOperand, offset: i64, lane: Lane, state: &WaveState<'_>) -> u64 {
    let of = |range: Option<RegisterRange>| range.map_or(0, |own| value(state, own, lane));
    if operand.access.space == MemorySpace::Buffer {
        return buffer_address(operand, offset, lane, state);
    }
    let base = match operand.resource {
        Some(resource) => of(Some(RegisterRange::new(resource.first, 2))) & 0xffff_ffff_ffff,
        None => of(operand.saddr),
    };
    let mut sum = base.wrapping_add(of(operand.vaddr)).wrapping_add(of(operand.soffset));
    sum = sum.wrapping_add_signed(offset);
    if operand.in_m0 {
        sum += of(Some(RegisterRange::new(Register::M0, 1))) & 0xffff;
    }
    if operand.adds_lane {
        sum += 4 * u64::from(lane.0);
    }
    if operand.access.space == MemorySpace::Scalar { sum & !3 } else { sum }
}

/// The same of buffers, in gfx9's resources.
fn buffer_address(operand: &MemoryOperand, offset: i64, lane: Lane, state: &WaveState<'_>) -> u64 {
    let word = |register: Option<Register>| {
        register.and_then(|register| state.read(register, lane)).map_or(0, u64::from)
    };
    let resource = |at| word(operand.resource.and_then(|resource| resource.first.offset(at)));
    let vaddr = |at| word(operand.vaddr.and_then(|vaddr| vaddr.first.offset(at)));
    let adds_lane = resource(3) >> 23 & 1 == 1;
    let mut stride = resource(1) >> 16 & 0x3fff;
    let mut index = if operand.idxen { vaddr(0) } else { 0 };
    if adds_lane {
        stride += (resource(3) >> 15 & 0xf) << 14;
        index += u64::from(lane.0);
    }
    let own = if operand.offen { vaddr(u8::from(operand.idxen)) } else { 0 };
    let offset = own.wrapping_add_signed(offset) & 0xffff_ffff;
    let within = if resource(1) >> 31 & 1 == 1 {
        let rows = 8 << (resource(3) >> 21 & 3);
        let block = index / rows * stride * rows;
        block + offset / 4 * 4 * rows + index % rows * 4 + offset % 4
    } else {
        index * stride + offset
    };
    let base = resource(0) | (resource(1) & 0xffff) << 32;
    base + operand.soffset.map_or(0, |own| value(state, own, lane)) + within
}

/// How many lines of `size` bytes have one of these bytes.
fn lines(bytes: &[u64], size: u64) -> u64 {
    let mut lines: Vec<u64> = bytes.iter().map(|byte| byte / size).collect();
    lines.sort_unstable();
    lines.dedup();
    lines.len() as u64
}

/// Turns beyond the first of each group of lanes: LDS has 32 banks of four bytes, and gives 128
/// bytes at once.
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

/// The clocks that waves read, from what the embedded GPU says its clock is: the instructions that
/// the wave has executed.
#[derive(Clone, Debug)]
pub struct Clocks {
    pub readings: BTreeMap<Wave, Vec<Reading>>,
    executed: HashMap<WaveId, u64>,
    blind: fn(&Inst) -> bool,
    has_missed: bool,
}

/// A clock that was read.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    pub is_constant: bool,
    pub value: u64,
}

impl Clocks {
    pub fn new(blind: fn(&Inst) -> bool) -> Clocks {
        let (readings, executed) = (BTreeMap::new(), HashMap::new());
        Clocks { readings, executed, blind, has_missed: false }
    }
}

impl Observer for Clocks {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn after(&mut self, executed: &Executed<'_>, _: &mut WaveState<'_>) -> Watch {
        if !self.has_missed && (self.blind)(executed.inst) {
            self.has_missed = true;
            return Watch::On;
        }
        let count = self.executed.entry(executed.wave).or_default();
        *count += 1;
        let reading = match executed.inst.operation.name() {
            "s_memtime" => Reading { is_constant: false, value: *count },
            "s_getreg_b32" if executed.inst.text.contains("SHADER_CYCLES") => {
                Reading { is_constant: false, value: *count & 0xf_ffff }
            }
            "s_memrealtime" | "s_sendmsg_rtn_b64" => Reading { is_constant: true, value: *count },
            _ => return Watch::On,
        };
        self.readings.entry(wave(executed.wave)).or_default().push(reading);
        Watch::On
    }
}

#[test]
fn words_of_one_bank_conflict_and_the_same_word_does_not() {
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
