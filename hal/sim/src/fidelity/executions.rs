//! The instructions of a dispatch, and how often each was executed.

use crate::instruction::{Inner, Op};
use crate::shadow::Named;
use crate::translate::coverage::{Treatment, treatment_of, unsettled_bits};
use crate::translate::program::Program;
use crate::wave::Machine;
use flipwave_device::ModuleId;
use flipwave_isa::Pc;
use std::iter;
use std::sync::Arc;

/// How often the instructions of a dispatch were executed.
pub struct Executions {
    programs: Vec<Arc<Program>>,
    /// By the number of a program and the dword of its code.
    sites: Vec<Vec<Option<Site>>>,
    /// The program of the last instruction.
    last: usize,
}

struct Site {
    instruction: Arc<Instruction>,
    executions: u64,
}

/// An instruction, and how exact it is.
pub struct Instruction {
    /// The code object it belongs to.
    pub module: ModuleId,
    /// Its ELF virtual address.
    pub pc: Pc,
    /// As the assembler prints it.
    pub text: String,
    /// The operations that it consists of, mostly one.
    pub operations: Vec<(String, Treatment)>,
    /// The registers that it names.
    pub named: Named,
    /// Bits of each word of its results that are not settled.
    pub unsettled: u32,
}

impl Executions {
    /// None yet, of code of these programs.
    pub fn new(programs: Vec<Arc<Program>>) -> Executions {
        let sites = programs.iter().map(|_| Vec::new()).collect();
        Executions { programs, sites, last: 0 }
    }

    /// Counts an execution.
    pub fn execute(&mut self, pc: u64, op: &Op, machine: Machine) -> &Arc<Instruction> {
        let Executions { programs, sites, last } = self;
        if !programs[*last].contains(pc) {
            // Whatever is executed is of one of them.
            *last = programs.iter().position(|own| own.contains(pc)).unwrap_or(*last);
        }
        let program = &programs[*last];
        let dword = if program.contains(pc) { program.index_of(pc) } else { 0 };
        let sites = &mut sites[*last];
        if dword >= sites.len() {
            sites.resize_with(dword + 1, || None);
        }
        let site = sites[dword].get_or_insert_with(|| {
            let module = ModuleId(*last as u32);
            Site { instruction: Arc::new(Instruction::of(op, module, machine)), executions: 0 }
        });
        site.executions += 1;
        &site.instruction
    }

    /// All of them.
    pub fn into_counts(self) -> impl Iterator<Item = (Arc<Instruction>, u64)> {
        self.sites.into_iter().flatten().flatten().map(|site| (site.instruction, site.executions))
    }
}

impl Instruction {
    fn of(op: &Op, module: ModuleId, machine: Machine) -> Instruction {
        let named = |op: &Op| (op.inst.operation.name().to_owned(), treatment_of(op, machine));
        Instruction {
            module,
            pc: op.inst.pc,
            text: op.inst.text.clone(),
            operations: parts(op).map(named).collect(),
            named: Named::of(&op.inst, machine),
            unsettled: parts(op).fold(0, |bits, op| bits | unsettled_bits(op, machine)),
        }
    }
}

/// The operations that an instruction consists of.
fn parts(op: &Op) -> impl Iterator<Item = &Op> {
    let (first, second) = match op.inner.as_deref() {
        Some(Inner::Dual(halves)) => (&halves.first, Some(&halves.second)),
        _ => (op, None),
    };
    iter::once(first).chain(second)
}
