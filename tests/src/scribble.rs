//! Overwrites dead registers while a program runs, which must not change its results.

use crate::gpu;
use flipwave_codeobj::CodeObject;
use flipwave_device::{Completion, Device, WaveId};
use flipwave_hooks::dataflow::{Live, Liveness};
use flipwave_hooks::flow::{BlockEnd, Disassembly, InstIndex};
use flipwave_injector::Workload;
use flipwave_isa::{Lane, LaneMask, Register, RegisterSet, Sgpr, Target};
use flipwave_sim::{Executed, Observer, Watch, WaveState};
use std::collections::HashMap;

/// Registers to overwrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrites {
    /// Dead registers, in the lanes in which they are dead.
    Dead,
    /// Registers that are dead in active lanes, in all lanes. An intentional mistake: a write with a
    /// partial EXEC is taken for a complete one.
    DeadIfActive,
    /// Dead registers and one live register. An intentional mistake.
    DeadAndOneLive,
}

/// Runs a workload of one code object, and overwrites registers after each instruction. Returns the
/// content of each output, or the device fault that ended a dispatch.
pub fn scribbled(
    workload: &Workload,
    code_object: &[u8],
    overwrites: Overwrites,
) -> Result<Vec<Vec<u8>>, String> {
    let object = CodeObject::parse(code_object).expect("a code object");
    let program = Disassembly::read(&object).unwrap_or_else(|error| panic!("{error}"));
    let liveness = Liveness::new(&program);
    let mut device = gpu(&workload.device).clone();
    for dispatch in &workload.program.dispatches {
        let mut observer = Scribbler::new(&program, &liveness, overwrites);
        match device.dispatch_observed(dispatch, &mut observer) {
            Ok(Completion::Completed(_)) => {}
            Ok(Completion::Faulted(fault)) => return Err(fault.to_string()),
            Err(error) => panic!("{error}"),
        }
    }
    let read = |output: &flipwave_injector::Buffer| {
        let mut bytes = vec![0; output.bytes];
        device.read(output.address, &mut bytes).expect("an output");
        bytes
    };
    Ok(workload.program.outputs.iter().map(read).collect())
}

struct Scribbler<'a> {
    program: &'a Disassembly,
    /// Registers live after each instruction, and registers that it writes.
    behind: Vec<(Live, RegisterSet)>,
    /// Registers that a program may name.
    nameable: RegisterSet,
    waves: HashMap<WaveId, Garbage>,
    next: u32,
}

/// Registers of a wave that already contain garbage.
#[derive(Default)]
struct Garbage {
    exec: u64,
    /// Garbage in active lanes, and in registers that are not per lane.
    active: RegisterSet,
    /// Garbage in the other lanes.
    masked: RegisterSet,
}

impl<'a> Scribbler<'a> {
    fn new(
        program: &'a Disassembly,
        liveness: &Liveness<'a>,
        overwrites: Overwrites,
    ) -> Scribbler<'a> {
        let behind = program.insts().map(|(index, inst)| {
            let mut live = live_after(program, liveness, index);
            match overwrites {
                Overwrites::Dead => {}
                Overwrites::DeadIfActive => live.masked = live.active,
                Overwrites::DeadAndOneLive => {
                    let file = RegisterSet::VGPRS.union(RegisterSet::SGPRS);
                    if let Some(register) = live.active.intersection(file).iter().next() {
                        live.active.remove(register);
                        live.masked.remove(register);
                    }
                }
            }
            let named = inst.writes.iter().copied().collect();
            let written = if inst.indexes_registers() { nameable(&program.target) } else { named };
            (live, written)
        });
        let behind = behind.collect();
        let nameable = nameable(&program.target);
        Scribbler { program, behind, nameable, waves: HashMap::new(), next: 1 }
    }
}

impl Observer for Scribbler<'_> {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        let Some(index) = self.program.at(executed.inst.pc) else { return Watch::On };
        let (live, written) = self.behind[index.0 as usize];
        let word = |register| state.read(register, Lane(0)).unwrap_or_default();
        let lanes = if self.program.wave_size == 32 { u64::from(u32::MAX) } else { u64::MAX };
        let exec =
            (u64::from(word(Register::ExecLo)) | u64::from(word(Register::ExecHi)) << 32) & lanes;
        let garbage = self.waves.entry(executed.wave).or_default();
        if garbage.exec != exec {
            let everywhere = garbage.active.intersection(garbage.masked);
            (garbage.active, garbage.masked) = (everywhere, everywhere);
        }
        let per_lane = RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS);
        let active = self.nameable.difference(live.active);
        let masked = self.nameable.intersection(per_lane).difference(live.masked);
        let fresh_active = active.difference(garbage.active.difference(written));
        let fresh_masked = masked.difference(garbage.masked.difference(written));
        *garbage = Garbage { exec, active, masked };
        // EXEC is overwritten last, because it determines the dead lanes of the other registers.
        for (set, mask) in [(fresh_masked, lanes & !exec), (fresh_active, exec)] {
            for register in set.iter() {
                let mask = if register.is_per_lane() { mask } else { 1 };
                for lane in LaneMask(mask).lanes() {
                    self.next = self.next.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15);
                    state.write(register, lane, self.next);
                }
            }
        }
        Watch::On
    }
}

/// Registers live after an instruction. After a call, these are the registers live in the callee.
fn live_after(program: &Disassembly, liveness: &Liveness<'_>, index: InstIndex) -> Live {
    let block = &program.blocks[program.block_of(index)];
    if index != block.last() || !matches!(block.end, BlockEnd::Call | BlockEnd::TailCall) {
        return liveness.after(index);
    }
    let calls = &program.functions[block.function].calls;
    let call = calls.iter().find(|call| call.at == index).expect("the call");
    let callees = program.callees(call).into_iter();
    let entries = callees.map(|callee| liveness.entry(program.functions[callee].blocks.start));
    entries.reduce(Live::union).expect("a callee")
}

/// All registers except those that the hardware itself may use at any time.
fn nameable(target: &Target) -> RegisterSet {
    const OTHERS: [Register; 8] = [
        Register::VccLo,
        Register::VccHi,
        Register::FlatScratchLo,
        Register::FlatScratchHi,
        Register::M0,
        Register::Scc,
        Register::ExecLo,
        Register::ExecHi,
    ];
    RegisterSet::VGPRS
        .union(RegisterSet::ACC_VGPRS)
        .iter()
        .chain((0..target.max_sgprs()).map(|n| Register::Sgpr(Sgpr(n))))
        .chain(OTHERS)
        .collect()
}
