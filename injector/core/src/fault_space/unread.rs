//! Values of all registers in the fault space that have not been read yet. The next use of each is known as
//! soon as an instruction reads or overwrites it, or its wave ends.

use crate::resolve::def_use::{Effect, NextUse};
use flipwave_arch::{LaneMask, RegisterId};
use flipwave_device::WaveId;
use std::collections::{BTreeMap, HashMap};

/// Execution that wrote a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Number of the instruction.
    pub number: usize,
    /// Number of earlier executions of the instruction by the wave.
    pub occurrence: u64,
    /// Number of instructions that the wave had executed before.
    pub time: u64,
}

/// Values of a register whose next use is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    pub origin: Origin,
    pub register: RegisterId,
    /// Lanes of the values; one lane for scalar registers.
    pub lanes: LaneMask,
    pub next_use: NextUse,
}

/// Values of all waves that have not been read yet.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    waves: HashMap<WaveId, BTreeMap<RegisterId, Vec<Value>>>,
}

/// Values of one register written by one instruction.
#[derive(Clone, Copy, Debug)]
struct Value {
    origin: Origin,
    lanes: LaneMask,
}

impl Unread {
    /// Processes an instruction executed by a wave: calls `decide` for all values whose next uses it
    /// determines, in a deterministic order. The end of a wave determines all its remaining values.
    pub fn see(&mut self, wave: WaveId, effect: &Effect<'_>, decide: &mut dyn FnMut(Decided)) {
        let Some(registers) = self.waves.get_mut(&wave) else { return };
        if effect.reads_unknown_registers() {
            for (register, values) in std::mem::take(registers) {
                for Value { origin, lanes } in values {
                    decide(Decided { origin, register, lanes, next_use: NextUse::Read });
                }
            }
            return;
        }
        let mut take = |register: RegisterId, gone: LaneMask, next_use: NextUse| {
            let Some(values) = registers.get_mut(&register) else { return };
            values.retain_mut(|Value { origin, lanes: left }| {
                let lanes = LaneMask(left.0 & gone.0);
                if lanes != LaneMask::EMPTY {
                    decide(Decided { origin: *origin, register, lanes, next_use });
                }
                left.0 &= !gone.0;
                *left != LaneMask::EMPTY
            });
        };
        effect.inst.for_each_read(&mut |register| {
            take(register, effect.reads(register), NextUse::Read);
        });
        effect.inst.for_each_written(&mut |register| {
            take(register, effect.overwrites(register), NextUse::Overwritten);
        });
        if effect.inst.ends_wave() {
            self.end(wave, decide);
        }
    }

    /// Starts following the values that a wave has written to a register. Values of registers that
    /// cannot be followed count as read.
    pub fn write(
        &mut self,
        wave: WaveId,
        origin: Origin,
        register: RegisterId,
        lanes: LaneMask,
        decide: &mut dyn FnMut(Decided),
    ) {
        let lanes = if register.is_per_lane() { lanes } else { LaneMask(1) };
        if lanes == LaneMask::EMPTY {
            return;
        }
        if !register.class.has_known_readers {
            return decide(Decided { origin, register, lanes, next_use: NextUse::Read });
        }
        let registers = self.waves.entry(wave).or_default();
        registers.entry(register).or_default().push(Value { origin, lanes });
    }

    fn end(&mut self, wave: WaveId, decide: &mut dyn FnMut(Decided)) {
        for (register, values) in self.waves.remove(&wave).unwrap_or_default() {
            for Value { origin, lanes } in values {
                decide(Decided { origin, register, lanes, next_use: NextUse::Dead });
            }
        }
    }

    /// Ends all waves: the remaining values are dead. The order of calls is unspecified.
    pub fn finish(mut self, decide: &mut dyn FnMut(WaveId, Decided)) {
        let waves: Vec<WaveId> = self.waves.keys().copied().collect();
        for wave in waves {
            self.end(wave, &mut |decided| decide(wave, decided));
        }
    }
}
