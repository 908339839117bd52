//! Observers that know no instruction set, as observers of AMD waves.

use super::wave::CommonWave;
use crate::dispatch::observer::{Executed, Interest, Observer, StretchObserver};
use crate::dispatch::wave_state::WaveState;
use crate::instruction::Stretch;
use flipwave_arch::{Instruction, LaneMask, Pc};
use flipwave_device::WaveId;
use flipwave_isa::{Inst, Operation};
use flipwave_machine::{StretchPart, Watch};

/// An observer of AMD waves that passes everything to an observer that knows no instruction set.
pub struct MachineObserver<'a>(pub &'a mut dyn flipwave_machine::Observer);

impl Observer for MachineObserver<'_> {
    fn watches(&mut self, wave: WaveId) -> bool {
        self.0.watches(wave)
    }

    fn interest(&self) -> Interest {
        match self.0.interest() {
            flipwave_machine::Interest::Every => Interest::Every,
            flipwave_machine::Interest::Address(pc) => Interest::Address(pc),
            flipwave_machine::Interest::Operation(name) => {
                Interest::Operation(Operation::named(name.name()))
            }
        }
    }

    fn of_stretches(&mut self) -> Option<&mut dyn StretchObserver> {
        if self.0.of_stretches().is_some() { Some(self) } else { None }
    }

    fn before(&mut self, inst: &Inst, wave: WaveId, state: &mut WaveState<'_>) {
        self.0.before(inst, wave, &mut CommonWave(state));
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        let Executed { inst, wave, lanes } = *executed;
        let executed = flipwave_machine::Executed { inst, wave, lanes };
        self.0.after(&executed, &mut CommonWave(state))
    }
}

impl StretchObserver for MachineObserver<'_> {
    fn allows(&mut self, wave: WaveId, executed: u64, stretch: Stretch<'_>) -> u64 {
        self.0.of_stretches().map_or(0, |observer| observer.allows(wave, executed, &stretch))
    }

    fn executed(&mut self, wave: WaveId, stretch: Stretch<'_>, times: u64, lanes: [LaneMask; 2]) {
        if let Some(observer) = self.0.of_stretches() {
            observer.executed(wave, &stretch, times, lanes);
        }
    }

    fn executed_one(&mut self, wave: WaveId, inst: &Inst, lanes: LaneMask) {
        if let Some(observer) = self.0.of_stretches() {
            observer.executed_one(wave, inst, lanes);
        }
    }
}

impl flipwave_machine::Stretch for Stretch<'_> {
    fn number(&self) -> u64 {
        self.number
    }

    fn has_own_lanes(&self) -> bool {
        Stretch::has_own_lanes(self)
    }

    fn instruction_count(&self) -> u64 {
        self.instructions().len() as u64
    }

    fn has_instruction_at(&self, pc: Pc) -> bool {
        self.instructions().any(|inst| inst.pc == pc)
    }

    fn for_each_instruction<'s>(&'s self, visit: &mut dyn FnMut(&'s dyn Instruction)) {
        self.instructions().for_each(|inst| visit(inst));
    }

    fn for_each_part<'s>(&'s self, visit: &mut dyn FnMut(StretchPart<'s>)) {
        self.parts()
            .for_each(|(inst, is_after_change)| visit(StretchPart { inst, is_after_change }));
    }
}
