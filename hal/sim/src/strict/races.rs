//! Data races: two waves access the same bytes, one of them writes, and nothing orders the
//! accesses.
//!
//! Barriers order the waves of a workgroup: the actions of a wave before its signal precede those
//! of other waves after their wait. Atomic operations, global wave sync and loads that observe
//! other workgroups order waves of the whole dispatch: the actions of a wave before a release
//! precede those of other waves after a later acquire. Atomic operations release, and so does a
//! store whose bytes another wave acquires; operations that return values written by others
//! acquire. These count regardless of their address and memory order: a race hidden by one can be
//! missed, but no ordered accesses are reported.
//!
//! Not reported: conflicts between lanes of one wave; atomic operations and loads that observe
//! other workgroups; waves that store the same value; loads in a loop that waits for a changed
//! value.

mod clocks;
mod history;
mod spin;

use super::facts::Facts;
use super::footprint::{self, Footprint};
use super::violation::{Finding, SharedMemory};
use crate::instruction::control::{Control, SplitBarrier};
use crate::instruction::lds::LdsAccess;
use crate::instruction::vector_memory::Transfer;
use crate::instruction::{Element, Op, Run};
use crate::translate::program::Program;
use crate::wave::Wave;
use clocks::{Clocks, WaveNumber};
use flipwave_device::{Dim3, WaveId};
use flipwave_isa::{Lane, LaneMask};
use history::{Access, Conflict, History, Kind};
use rustc_hash::FxHashMap;
use spin::waits_for_change;
use std::sync::Arc;

/// Access history of a dispatch.
#[derive(Default)]
pub struct Races {
    clocks: Clocks,
    memory: History,
    /// LDS histories, by workgroup.
    lds: FxHashMap<Dim3, History>,
    sites: Vec<Arc<Facts>>,
    /// Index of an instruction among the sites, by device address.
    site_numbers: FxHashMap<u64, usize>,
    /// For each load, by device address, whether it waits for another wave.
    waiting: FxHashMap<u64, bool>,
}

/// Bytes that an instruction accesses.
struct Accessed {
    space: SharedMemory,
    kind: Kind,
    footprints: Vec<Footprint<u64>>,
    /// The data operand of a store, if its value is known.
    stored: Option<Element>,
}

impl Races {
    /// Records the start of a wave.
    pub fn start(&mut self, wave: WaveId) {
        self.clocks.start(wave);
    }

    /// Records that waves of a workgroup pass a barrier together.
    pub fn pass_barrier(&mut self, waves: impl Iterator<Item = WaveId>) {
        let waves: Vec<WaveNumber> = waves.filter_map(|id| self.clocks.resume(id)).collect();
        waves.iter().for_each(|wave| self.clocks.signal(*wave));
        waves.iter().for_each(|wave| self.clocks.wait(*wave));
    }

    /// Records an operation of a wave on its workgroup's barrier.
    pub fn split_barrier(&mut self, wave: WaveId, operation: SplitBarrier) {
        let Some(wave) = self.clocks.resume(wave) else { return };
        match operation {
            SplitBarrier::Signal | SplitBarrier::SignalIsFirst => self.clocks.signal(wave),
            SplitBarrier::Wait => self.clocks.wait(wave),
            SplitBarrier::State | SplitBarrier::Init | SplitBarrier::Join | SplitBarrier::Leave => {
            }
        }
    }

    /// Records the next instruction of a wave; returns a race with an earlier access.
    pub fn follow(
        &mut self,
        wave: &Wave,
        op: &Op,
        facts: &Arc<Facts>,
        program: Option<&Program>,
    ) -> Option<(Finding, LaneMask)> {
        let number = self.clocks.resume(wave.id)?;
        if matches!(op.run, Run::Control(Control::Sync(_))) {
            self.clocks.release(number);
            self.clocks.acquire_later(number);
            return None;
        }
        let is_atomic = is_atomic(op);
        let acquires = op.inst.sees_other_workgroups(wave.machine.generation)
            || is_atomic && op.inst.destinations().next().is_some();
        if is_atomic {
            self.clocks.release(number);
        }
        let mut first = None;
        if !is_atomic {
            let waits = op.inst.flags.loads && self.waits_for_change(wave.pc, op, program);
            for mut accessed in accessed(wave, op) {
                if accessed.kind == Kind::Read && (acquires || waits) {
                    accessed.kind = Kind::Acquire;
                }
                let found = self.touch(wave, number, op, facts, &accessed);
                first = first.or(found);
            }
            if waits {
                self.clocks.acquire(number);
            }
        }
        if acquires {
            self.clocks.acquire(number);
        }
        first
    }

    fn waits_for_change(&mut self, pc: u64, op: &Op, program: Option<&Program>) -> bool {
        let waits = || program.is_some_and(|program| waits_for_change(program, pc, op));
        *self.waiting.entry(pc).or_insert_with(waits)
    }

    /// Records the bytes that an instruction accesses, and returns the first conflict with another
    /// wave.
    fn touch(
        &mut self,
        wave: &Wave,
        number: WaveNumber,
        op: &Op,
        facts: &Arc<Facts>,
        accessed: &Accessed,
    ) -> Option<(Finding, LaneMask)> {
        let Accessed { space, kind, ref footprints, stored } = *accessed;
        let site = *self.site_numbers.entry(wave.pc).or_insert_with(|| {
            self.sites.push(Arc::clone(facts));
            self.sites.len() - 1
        });
        let history = match space {
            SharedMemory::Memory => &mut self.memory,
            SharedMemory::Lds => self.lds.entry(wave.id.workgroup).or_default(),
        };
        let mut first: Option<(u64, Lane, Conflict)> = None;
        for footprint in footprints {
            let data = stored.map(|element| data(wave, op, element, footprint.lane));
            for (address, bytes, value) in dwords(footprint, data.as_deref()) {
                let access = Access { moment: self.clocks.now(number), site, bytes, value };
                let conflict = history.touch(&mut self.clocks, address, kind, access);
                first = first.or(conflict.map(|conflict| (address, footprint.lane, conflict)));
            }
        }
        let (address, lane, Conflict { earlier, kind: earlier_kind }) = first?;
        let finding = Finding::Race {
            space,
            address,
            is_write: kind == Kind::Write,
            earlier: self.sites[earlier.site].instruction(),
            earlier_line: None,
            earlier_is_write: earlier_kind == Kind::Write,
            wave: self.clocks.id(earlier.moment.wave),
        };
        Some((finding, LaneMask(1 << lane.0)))
    }
}

/// Returns `true` for atomic operations.
fn is_atomic(op: &Op) -> bool {
    match op.run {
        Run::VectorMemory(access) => matches!(access.transfer, Transfer::Atomic { .. }),
        Run::Lds(access) => matches!(
            access,
            LdsAccess::Atomic { .. }
                | LdsAccess::Exchange2 { .. }
                | LdsAccess::ExchangeIf
                | LdsAccess::Count { .. }
        ),
        _ => false,
    }
}

/// Bytes accessed by an instruction that is not an atomic operation.
fn accessed(wave: &Wave, op: &Op) -> Vec<Accessed> {
    let wide = |footprints: Vec<Footprint<u32>>| -> Vec<Footprint<u64>> {
        let wide = |access: Footprint<u32>| Footprint {
            lane: access.lane,
            address: access.address.into(),
            bytes: access.bytes,
        };
        footprints.into_iter().map(wide).collect()
    };
    let kind = |stores: bool| if stores { Kind::Write } else { Kind::Read };
    match op.run {
        Run::Lds(access) => {
            let (stores, stored) = match access {
                LdsAccess::Write(element) => (true, Some(element)),
                LdsAccess::Write2 { .. } | LdsAccess::WriteByThread => (true, None),
                _ => (false, None),
            };
            let footprints = wide(footprint::lds(wave, op, access));
            vec![Accessed { space: SharedMemory::Lds, kind: kind(stores), footprints, stored }]
        }
        Run::VectorMemory(access) => {
            let (stores, stored) = match access.transfer {
                Transfer::Store(element) => (true, Some(element)),
                Transfer::StoreFormat(_) | Transfer::StoreBlock | Transfer::StoreFromLds(_) => {
                    (true, None)
                }
                _ => (false, None),
            };
            let device = footprint::device(wave, op, access);
            let flat = wide(footprint::flat_lds(wave, op, access));
            let moved = wide(footprint::moved_lds(wave, op, access));
            let accessed = |space, stores, footprints, stored| Accessed {
                space,
                kind: kind(stores),
                footprints,
                stored,
            };
            vec![
                accessed(SharedMemory::Memory, stores, device, stored),
                accessed(SharedMemory::Lds, stores, flat, stored),
                accessed(SharedMemory::Lds, !stores, moved, None),
            ]
        }
        _ => Vec::new(),
    }
}

/// Bytes that a lane stores.
fn data(wave: &Wave, op: &Op, element: Element, lane: Lane) -> Vec<u8> {
    let Some(first) = op.sources[1].row() else { return Vec::new() };
    let word = |word: u16| element.part(wave.row(first.plus(word)).0[usize::from(lane.0)]);
    let words = (0..u16::from(element.words())).map(word);
    words.flat_map(u32::to_le_bytes).take(element.bytes()).collect()
}

/// Dwords of an access: their addresses, a bit for each accessed byte, and the stored value.
fn dwords<'a>(
    access: &Footprint<u64>,
    data: Option<&'a [u8]>,
) -> impl Iterator<Item = (u64, u8, Option<u32>)> + use<'a> {
    let (start, end) = (access.address, access.address.saturating_add(access.bytes.into()));
    let at = move |byte: u64| {
        let index = byte.checked_sub(start).filter(|_| byte < end)?;
        Some(data.and_then(|data| data.get(index as usize)).copied())
    };
    (start / 4..end.div_ceil(4)).map(move |dword| {
        let (mut bytes, mut value) = (0, Some(0));
        for byte in 0..4 {
            if let Some(stored) = at(dword * 4 + byte) {
                bytes |= 1 << byte;
                let with = |(value, stored): (u32, u8)| value | u32::from(stored) << (8 * byte);
                value = value.zip(stored).map(with);
            }
        }
        (dword * 4, bytes, value)
    })
}
