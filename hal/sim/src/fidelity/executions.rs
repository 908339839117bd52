//! Execution counts of the instructions of a dispatch.

use crate::instruction::{Op, Run, Stretch, StretchMap};
use crate::shadow::Named;
use crate::translate::coverage::{Treatment, treatment_of, unsettled_bits};
use crate::translate::program::Program;
use crate::wave::Machine;
use flipwave_device::ModuleId;
use flipwave_isa::Pc;
use std::mem;
use std::sync::Arc;

/// Execution counts of the instructions of a dispatch.
pub struct Executions {
    programs: Vec<Arc<Program>>,
    /// Sites by number of the program and dword of its code.
    sites: Vec<Vec<Option<Site>>>,
    /// Program of the last instruction.
    last: usize,
    stretches: StretchMap<StretchCount>,
}

/// Execution count of an uninterrupted sequence.
struct StretchCount {
    /// Counted instructions of the sequence, and their device addresses.
    sites: Vec<(u64, Op)>,
    /// `true` if it may load from device memory or LDS.
    accesses: bool,
    executions: u64,
}

impl StretchCount {
    /// Creates a count of zero.
    #[cold]
    fn of(stretch: Stretch<'_>) -> StretchCount {
        let places = places(stretch);
        let accesses = |op: &Op| !matches!(op.run, Run::Vector(_) | Run::Scalar(_));
        let sites = stretch.counted().map(|(index, op)| (places[index], op.clone())).collect();
        StretchCount { sites, accesses: stretch.ops.iter().any(accesses), executions: 0 }
    }
}

struct Site {
    instruction: Arc<Instruction>,
    executions: u64,
}

/// An instruction, and its fidelity.
pub struct Instruction {
    /// Code object that contains it.
    pub module: ModuleId,
    /// ELF virtual address.
    pub pc: Pc,
    /// Assembly text.
    pub text: String,
    /// Component operations, mostly one.
    pub operations: Vec<(String, Treatment)>,
    /// Registers that it names.
    pub named: Named,
    /// Unsettled bits of each word of its results.
    pub unsettled: u32,
}

impl Executions {
    /// Creates counts of zero for the code of these programs.
    pub fn new(programs: Vec<Arc<Program>>) -> Executions {
        let sites = programs.iter().map(|_| Vec::new()).collect();
        Executions { programs, sites, last: 0, stretches: StretchMap::default() }
    }

    /// Counts an execution.
    pub fn execute(&mut self, pc: u64, op: &Op, machine: Machine) -> &Arc<Instruction> {
        let site = self.site(pc, op, machine);
        site.executions += 1;
        &site.instruction
    }

    /// Returns `true` if a sequence may load from device memory or LDS.
    pub fn accesses(&mut self, stretch: Stretch<'_>) -> bool {
        self.stretch(stretch).accesses
    }

    /// Counts executions of a sequence.
    pub fn execute_stretch(&mut self, stretch: Stretch<'_>, times: u64) {
        self.stretch(stretch).executions += times;
    }

    fn stretch(&mut self, stretch: Stretch<'_>) -> &mut StretchCount {
        let place = self.stretches.place(stretch);
        let place =
            place.unwrap_or_else(|| self.stretches.insert(stretch, StretchCount::of(stretch)));
        &mut self.stretches.known()[place]
    }

    /// Counts one execution of the first `count` instructions of a sequence.
    #[cold]
    pub fn execute_first(&mut self, stretch: Stretch<'_>, count: usize, machine: Machine) {
        let places = places(stretch);
        for (index, op) in stretch.counted().take_while(|(index, _)| *index < count) {
            self.site(places[index], op, machine).executions += 1;
        }
    }

    /// Returns all executed instructions and their counts.
    pub fn into_counts(
        mut self,
        machine: Machine,
    ) -> impl Iterator<Item = (Arc<Instruction>, u64)> {
        for StretchCount { sites, executions, .. } in mem::take(&mut self.stretches).into_known() {
            for (pc, op) in sites {
                self.site(pc, &op, machine).executions += executions;
            }
        }
        let sites = self.sites.into_iter().flatten().flatten();
        let executed = sites.filter(|site| site.executions > 0);
        executed.map(|site| (site.instruction, site.executions))
    }

    /// Site of the instruction at a device address.
    fn site(&mut self, pc: u64, op: &Op, machine: Machine) -> &mut Site {
        let Executions { programs, sites, last, .. } = self;
        if !programs[*last].contains(pc) {
            // Every executed instruction is in one of them.
            *last = programs.iter().position(|program| program.contains(pc)).unwrap_or(*last);
        }
        let program = &programs[*last];
        let dword = if program.contains(pc) { program.index_of(pc) } else { 0 };
        let sites = &mut sites[*last];
        if dword >= sites.len() {
            sites.resize_with(dword + 1, || None);
        }
        sites[dword].get_or_insert_with(|| {
            let module = ModuleId(*last as u32);
            Site { instruction: Arc::new(Instruction::of(op, module, machine)), executions: 0 }
        })
    }
}

/// Device addresses of a sequence's instructions.
fn places(stretch: Stretch<'_>) -> Vec<u64> {
    let next = |place: &mut u64, op: &Op| {
        let address = *place;
        *place = place.wrapping_add(op.size.into());
        Some(address)
    };
    stretch.ops.iter().scan(stretch.start, next).collect()
}

impl Instruction {
    fn of(op: &Op, module: ModuleId, machine: Machine) -> Instruction {
        let named = |op: &Op| (op.inst.operation.name().to_owned(), treatment_of(op, machine));
        Instruction {
            module,
            pc: op.inst.pc,
            text: op.inst.text.clone(),
            operations: op.parts().map(named).collect(),
            named: Named::of(&op.inst, machine),
            unsettled: unsettled_bits(op, machine),
        }
    }
}
