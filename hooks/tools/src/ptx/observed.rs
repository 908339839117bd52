//! Tables of shipped tools from an observer in the simulated GPU, which executes the original PTX.

use super::access::access;
use super::scope::PtxScope;
use crate::inst_facts::AccessFacts;
use crate::stream::MOST_AT_ONCE;
use crate::{
    Cell, CodeScope, InstLocation, InstructionCount, MemoryTrace, ObservableTool, OpcodeHistogram,
    Row, WavePosition,
};
use flipwave_arch::{Instruction, Lane, LaneMask, RegisterId};
use flipwave_device::WaveId;
use flipwave_hooks::flow::{InstIndex, Key};
use flipwave_machine::{Executed, Observer, Watch, WaveState};
use flipwave_ptx::{Argument, Code, Inst, ScalarType, Symbol};
use flipwave_ptx_sim::Program;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The shipped tools that an observer can replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Observed {
    InstructionCount,
    OpcodeHistogram,
    MemoryTrace,
}

/// An access to memory by a lane.
#[derive(Clone, Copy, Debug)]
struct LaneAccess {
    /// Number of the instruction.
    inst: usize,
    wave: WaveId,
    lane: Lane,
    address: u64,
    bytes: u32,
}

/// Observes one dispatch of a kernel for the table of a shipped tool.
#[derive(Clone, Debug)]
pub struct PtxObservation {
    tool: Observed,
    kernel: String,
    code: Arc<Code>,
    /// Addresses of variables in their state spaces, in the order of the code.
    variables: Vec<u64>,
    /// Executions by waves, by number of the instruction.
    executions: HashMap<usize, u64>,
    accesses: Vec<LaneAccess>,
    /// The maximum number of accesses that are kept.
    capacity: usize,
    lost: u64,
}

impl PtxObservation {
    /// Prepares to observe a dispatch of `kernel` for the shipped tool with a name; `None` if the tool needs hooks.
    /// Keeps at most `records` records if these are less than a wave may append at once.
    pub fn new(
        name: &str,
        program: &Program,
        kernel: &str,
        records: u32,
    ) -> Option<PtxObservation> {
        let tool = match name {
            InstructionCount::NAME => Observed::InstructionCount,
            OpcodeHistogram::NAME => Observed::OpcodeHistogram,
            MemoryTrace::NAME => Observed::MemoryTrace,
            _ => return None,
        };
        // As with hooks, nothing is lost if waves can wait for space in a ring of this size.
        let is_limited = u64::from(records) < MOST_AT_ONCE;
        let numbers = 0..program.code.variables.len();
        Some(PtxObservation {
            tool,
            kernel: kernel.to_owned(),
            code: Arc::clone(&program.code),
            variables: numbers.filter_map(|number| program.variable_address(number)).collect(),
            executions: HashMap::new(),
            accesses: Vec::new(),
            capacity: if is_limited { records.max(1) as usize } else { usize::MAX },
            lost: 0,
        })
    }

    /// The names of the columns, after those of [`DispatchColumns`](crate::DispatchColumns).
    pub fn columns(&self) -> Vec<String> {
        let columns = match self.tool {
            Observed::InstructionCount => InstructionCount::COLUMNS,
            Observed::OpcodeHistogram => OpcodeHistogram::COLUMNS,
            Observed::MemoryTrace => MemoryTrace::COLUMNS,
        };
        columns.iter().map(|name| (*name).to_owned()).collect()
    }

    /// The number of records missing because their number is limited.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The rows of the table. Records are in the order in which waves executed them.
    pub fn rows(&self) -> Vec<Row> {
        let scope = PtxScope::new(&self.code, Some(&self.kernel));
        let is_reached = |number: &usize| scope.contains(InstIndex::new(*number));
        let reached = (0..self.code.instructions.len()).filter(is_reached);
        match self.tool {
            Observed::InstructionCount => {
                let row = |number| {
                    let mut row = Vec::from(self.location(number));
                    row.push(Cell::Unsigned(self.executed(number)));
                    row
                };
                reached.map(row).collect()
            }
            Observed::OpcodeHistogram => {
                let mut operations: BTreeMap<&str, u64> = BTreeMap::new();
                for number in reached.filter(|number| self.executed(*number) > 0) {
                    let operation = self.code.instructions[number].operation().name();
                    *operations.entry(operation).or_default() += self.executed(number);
                }
                let row =
                    |(name, count): (&str, u64)| vec![Cell::text(name), Cell::Unsigned(count)];
                operations.into_iter().map(row).collect()
            }
            Observed::MemoryTrace => {
                let found = self.accesses.iter().filter(|found| is_reached(&found.inst));
                found.map(|found| self.record(found)).collect()
            }
        }
    }

    fn executed(&self, number: usize) -> u64 {
        self.executions.get(&number).copied().unwrap_or(0)
    }

    fn location(&self, number: usize) -> [Cell; 3] {
        let inst = &self.code.instructions[number];
        let function = self.code.functions[inst.function].name.to_string();
        InstLocation { function, pc: inst.pc, instruction: inst.text().to_owned() }.cells()
    }

    fn record(&self, access: &LaneAccess) -> Row {
        let mut row = Vec::from(self.location(access.inst));
        let WavePosition { workgroup_x, workgroup_y, workgroup_z, wave } = access.wave.into();
        let numbers = [workgroup_x, workgroup_y, workgroup_z, wave, access.lane.0.into()];
        row.extend(numbers.map(|number| Cell::Unsigned(number.into())));
        row.extend([Cell::Unsigned(access.address), Cell::Unsigned(access.bytes.into())]);
        row
    }

    /// Records an access of an instruction by its active lanes.
    fn trace(&mut self, number: usize, access: AccessFacts, wave: WaveId, state: &dyn WaveState) {
        let code = Arc::clone(&self.code);
        let inst = &code.instructions[number];
        for lane in executing(inst, state).lanes() {
            let Some(address) = self.address(inst, lane, state) else { continue };
            if self.accesses.len() == self.capacity {
                self.lost += 1;
                continue;
            }
            let bytes = access.bytes;
            self.accesses.push(LaneAccess { inst: number, wave, lane, address, bytes });
        }
    }

    /// The address that a lane accesses, in the state space of the instruction.
    fn address(&self, inst: &Inst, lane: Lane, state: &dyn WaveState) -> Option<u64> {
        let address = inst.operands.iter().find_map(|operand| match operand {
            Argument::Memory(address) => Some(address),
            _ => None,
        })?;
        let word = |register: RegisterId| state.read(register, lane).map(u64::from);
        let base = match &*address.base {
            Argument::Register(register) => {
                let high = (register.words() == 2).then(|| register.first.offset(1)).flatten();
                word(register.first)? | high.and_then(word).unwrap_or(0) << 32
            }
            Argument::Symbol(Symbol::Variable(number), addend) => {
                self.variables.get(*number)?.wrapping_add_signed(*addend)
            }
            Argument::Frame(offset) => state.frame_base().wrapping_add(*offset),
            Argument::Constant(value) => value.bits(ScalarType::B64),
            _ => return None,
        };
        Some(base.wrapping_add_signed(address.offset))
    }
}

/// The lanes at an instruction whose guard is true.
fn executing(inst: &Inst, state: &dyn WaveState) -> LaneMask {
    let active = state.active();
    let Some(guard) = inst.guard else { return active };
    let is_true = |lane: &Lane| state.read(guard.register, *lane) == Some(1);
    let lanes = active.lanes().filter(|lane| is_true(lane) != guard.is_negated);
    LaneMask(lanes.fold(0, |mask, lane| mask | 1 << lane.0))
}

impl Observer for PtxObservation {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn before(&mut self, inst: &dyn Instruction, wave: WaveId, state: &mut dyn WaveState) {
        let Some(number) = self.code.number_of(inst.pc()) else { return };
        *self.executions.entry(number).or_default() += 1;
        if self.tool == Observed::MemoryTrace
            && let Some(access) = access(&self.code, &self.code.instructions[number])
        {
            self.trace(number, access, wave, state);
        }
    }

    fn after(&mut self, _: &Executed<'_>, _: &mut dyn WaveState) -> Watch {
        Watch::On
    }
}
