//! Values that nothing has read yet, of all registers that faults can strike: what becomes of each is
//! known as soon as an instruction reads or overwrites it, or its wave ends.

use crate::resolve::fate::{Effect, Fate, can_be_followed};
use flipwave_device::WaveId;
use flipwave_isa::{LaneMask, Opcode, Register};
use std::collections::{BTreeMap, HashMap};

/// Where a value was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The instruction's number.
    pub number: usize,
    /// Which execution of it by the wave, from 0.
    pub occurrence: u64,
    /// Instructions that the wave had executed before.
    pub time: u64,
}

/// Values of a register whose fate has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    pub origin: Origin,
    pub register: Register,
    /// The lanes whose values they are; of what lanes share, one.
    pub lanes: LaneMask,
    pub fate: Fate,
}

/// The values of all waves that nothing has read yet.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    waves: HashMap<WaveId, BTreeMap<Register, Vec<Value>>>,
}

/// Values of one register by one instruction.
#[derive(Clone, Copy, Debug)]
struct Value {
    origin: Origin,
    lanes: LaneMask,
}

impl Unread {
    /// A wave has executed an instruction: gives `decide` the values whose fates it shows, in an order
    /// that depends on nothing else. A wave that ends decides all that is left of it.
    pub fn see(&mut self, wave: WaveId, effect: &Effect<'_>, decide: &mut dyn FnMut(Decided)) {
        let Some(registers) = self.waves.get_mut(&wave) else { return };
        if effect.reads_unknown_registers() {
            for (register, values) in std::mem::take(registers) {
                for Value { origin, lanes } in values {
                    decide(Decided { origin, register, lanes, fate: Fate::Read });
                }
            }
            return;
        }
        let mut take = |register: Register, gone: LaneMask, fate: Fate| {
            let Some(values) = registers.get_mut(&register) else { return };
            values.retain_mut(|Value { origin, lanes: left }| {
                let lanes = LaneMask(left.0 & gone.0);
                if lanes != LaneMask::EMPTY {
                    decide(Decided { origin: *origin, register, lanes, fate });
                }
                left.0 &= !gone.0;
                *left != LaneMask::EMPTY
            });
        };
        for register in effect.registers_read() {
            take(register, effect.reads(register), Fate::Read);
        }
        for register in effect.registers_written() {
            take(register, effect.overwrites(register), Fate::Overwritten);
        }
        if effect.inst.operation.opcode() == Opcode::SEndpgm {
            self.end(wave, decide);
        }
    }

    /// A wave has written a register: values to be followed from now on. Of registers that cannot be
    /// followed they count as read.
    pub fn write(
        &mut self,
        wave: WaveId,
        (origin, register, lanes): (Origin, Register, LaneMask),
        decide: &mut dyn FnMut(Decided),
    ) {
        let lanes = if register.is_per_lane() { lanes } else { LaneMask(1) };
        if lanes == LaneMask::EMPTY {
            return;
        }
        if !can_be_followed(register) {
            return decide(Decided { origin, register, lanes, fate: Fate::Read });
        }
        let registers = self.waves.entry(wave).or_default();
        registers.entry(register).or_default().push(Value { origin, lanes });
    }

    fn end(&mut self, wave: WaveId, decide: &mut dyn FnMut(Decided)) {
        for (register, values) in self.waves.remove(&wave).unwrap_or_default() {
            for Value { origin, lanes } in values {
                decide(Decided { origin, register, lanes, fate: Fate::Dead });
            }
        }
    }

    /// All waves have ended: what is left nothing will read. The order is none of its own.
    pub fn finish(mut self, decide: &mut dyn FnMut(WaveId, Decided)) {
        let waves: Vec<WaveId> = self.waves.keys().copied().collect();
        for wave in waves {
            self.end(wave, &mut |decided| decide(wave, decided));
        }
    }
}
