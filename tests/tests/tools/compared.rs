//! Comparison of a tool with an observer on the same program.

use super::observer::{Blind, Clocks, Look, Reading, Site, Sites};
use flipwave_codeobj::CodeObject;
use flipwave_device::{Address, Completion, Device, DeviceError, Dispatch, ModuleId};
use flipwave_hooks::flow::{Disassembly, InstIndex};
use flipwave_injector::Workload;
use flipwave_isa::{Class, Inst, MemorySpace, Register, Target};
use flipwave_sim::{EmbeddedGpu, Leads, Observer, Policy, Unobserved};
use flipwave_tests::{gpu, hook_compiler};
use flipwave_tools::{
    Cell, InstructionCount, MemoryTrace, ObservableTool, ObservedAccesses, ObservedExecutions,
    OpcodeHistogram, Options, Row, ToolFile, ToolScope, WavePosition, measure,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// A shipped tool whose rows can be computed from observations.
pub trait Compared {
    type Observer: Observer;

    /// The name of the tool.
    const NAME: &str;

    /// Creates an observer of one dispatch that records everything.
    fn observer() -> Self::Observer;

    fn expected(scope: &ToolScope<'_>, seen: &Seen<Self::Observer>) -> Vec<Row>;

    /// Sorts rows so that their order does not depend on the schedule of waves.
    fn ordered(rows: Vec<Row>) -> Vec<Row> {
        rows
    }

    /// Asserts that tool and observer have the same rows, except for lost records.
    fn agree(rows: &DispatchRows) {
        assert_eq!(rows.lost, 0, "records are lost");
        let pairs = rows.tool.iter().zip(&rows.observed);
        if let Some((tool, observed)) = pairs.into_iter().find(|(tool, observed)| tool != observed)
        {
            panic!("dispatch of `{}`: tool {tool:?}\nobserver {observed:?}", rows.kernel);
        }
        assert_eq!(rows.tool.len(), rows.observed.len(), "{}", rows.kernel);
    }
}

/// Observations of a dispatch.
pub struct Seen<O> {
    /// Observer of the original code.
    observer: O,
    /// Clock readings in the instrumented code.
    clocks: Clocks,
    /// Address ranges of the code object's data, and their new start in the instrumented module.
    moved: Vec<(Range<u64>, u64)>,
}

/// Rows of tool and observer for one dispatch.
pub struct DispatchRows {
    pub kernel: String,
    pub tool: Vec<Row>,
    pub observed: Vec<Row>,
    pub lost: u64,
}

/// Results for a program.
pub struct Run {
    pub dispatches: Vec<DispatchRows>,
    /// Instructions executed in all dispatches, without and with hooks.
    pub executed: [u64; 2],
}

/// The embedded GPU with observers. Before each instrumented dispatch, a clone of the device runs the
/// original dispatch: the same memory, the same addresses, the same order of waves.
struct Watched<T: Compared> {
    gpu: EmbeddedGpu,
    originals: std::vec::IntoIter<Dispatch>,
    blind: fn(&Inst) -> bool,
    seen: Vec<Seen<T::Observer>>,
    executed: u64,
}

impl<T: Compared> Device for Watched<T> {
    fn target(&self) -> &Target {
        self.gpu.target()
    }

    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        self.gpu.allocate(bytes)
    }

    fn free(&mut self, address: Address) -> Result<(), DeviceError> {
        self.gpu.free(address)
    }

    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        self.gpu.write(address, bytes)
    }

    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.gpu.read(address, bytes)
    }

    fn load(&mut self, code_object: &CodeObject) -> Result<ModuleId, DeviceError> {
        self.gpu.load(code_object)
    }

    fn address_of(&self, module: ModuleId, address: u64) -> Result<Address, DeviceError> {
        self.gpu.address_of(module, address)
    }

    fn dispatch(&mut self, dispatch: &Dispatch) -> Result<Completion, DeviceError> {
        let original = self.originals.next().expect("as many dispatches as in the original");
        self.gpu.set_policy(self.policy(dispatch));
        let mut observer = Blind::new(T::observer(), self.blind);
        let end = self.gpu.clone().dispatch_observed(&original, &mut observer)?;
        let moved = self.moved_segments(original.module, dispatch.module)?;
        match end {
            Completion::Completed(statistics) => self.executed += statistics.wave_instructions,
            Completion::Faulted(fault) => panic!("the program faults: {fault}"),
        }
        let mut clocks = Blind::new(Clocks::default(), self.blind);
        let end = self.gpu.dispatch_observed(dispatch, &mut clocks);
        let (observer, clocks) = (observer.observer, clocks.observer);
        self.seen.push(Seen { observer, clocks, moved });
        end
    }
}

impl<T: Compared> Watched<T> {
    /// Policy for both versions of the code: the scratch size of the instrumented code, and waves that
    /// run until they wait or end, so that memory contents do not depend on the number of inserted
    /// instructions.
    fn policy(&self, instrumented: &Dispatch) -> Policy {
        let object = self.gpu.code_object(instrumented.module).expect("a loaded module");
        let kernel = object.kernels().iter().find(|kernel| *kernel.name == *instrumented.kernel);
        let private_bytes = kernel.expect("a kernel").descriptor.private_segment_fixed_size;
        Policy { private_bytes, wave_turn: 1 << 24, leads: Leads::ANY, ..Policy::default() }
    }

    /// Address ranges of a code object's segments in the module `from`, with their start in `to`.
    fn moved_segments(
        &self,
        from: ModuleId,
        to: ModuleId,
    ) -> Result<Vec<(Range<u64>, u64)>, DeviceError> {
        let object = self.gpu.code_object(from).expect("a loaded module");
        let segments = object.segments().iter().filter(|segment| segment.memory_size > 0);
        let ranges = segments.map(|segment| {
            let old = self.gpu.address_of(from, segment.address)?.0;
            let new = self.gpu.address_of(to, segment.address)?.0;
            Ok((old..old + segment.memory_size, new))
        });
        ranges.collect()
    }
}

/// Runs a tool and the observer on a workload. The observer misses one execution of the first
/// instruction for which `blind` returns `true`.
pub fn run<T: Compared>(workload: &Workload, options: &Options, blind: fn(&Inst) -> bool) -> Run {
    run_file::<T>(workload, &shipped(T::NAME), options, blind)
}

/// A shipped tool.
pub fn shipped(name: &str) -> ToolFile {
    ToolFile::shipped(name).unwrap_or_else(|error| panic!("{error}"))
}

/// Like [`run`], for a tool with parameters.
pub fn run_file<T: Compared>(
    workload: &Workload,
    file: &ToolFile,
    options: &Options,
    blind: fn(&Inst) -> bool,
) -> Run {
    let mut dispatches = workload.program.dispatches.clone();
    for dispatch in &mut dispatches {
        dispatch.instruction_limit = dispatch.instruction_limit.saturating_mul(64);
    }
    let originals = dispatches.clone().into_iter();
    let embedded = gpu(&workload.device).clone();
    let mut device =
        Watched::<T> { gpu: embedded, originals, blind, seen: Vec::new(), executed: 0 };
    let code_of = |module| gpu(&workload.device).code_object(module);
    let found = measure(&mut device, code_of, &dispatches, file, options, hook_compiler())
        .unwrap_or_else(|error| panic!("{error}"));
    let refused: Vec<_> =
        found.instrumented.iter().flat_map(|code| &code.rewritten.report.refused).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    let with: u64 = found.tables.iter().map(|table| table.statistics.wave_instructions).sum();
    let rows = found.tables.into_iter().zip(&device.seen).map(|(table, seen)| {
        let object = code_of(dispatches[table.dispatch].module).expect("a loaded module");
        let program = Disassembly::read(object).expect("a program");
        let scope = ToolScope::new(object, &program, Some(&table.kernel));
        DispatchRows {
            kernel: table.kernel,
            tool: T::ordered(table.rows),
            observed: T::ordered(T::expected(&scope, seen)),
            lost: table.lost,
        }
    });
    Run { dispatches: rows.collect(), executed: [device.executed, with] }
}

/// Asserts that a tool and the observer agree.
pub fn check<T: Compared>(workload: &Workload, options: &Options) {
    check_file::<T>(workload, &shipped(T::NAME), options);
}

/// Asserts that a tool with parameters and the observer agree.
pub fn check_file<T: Compared>(workload: &Workload, file: &ToolFile, options: &Options) {
    for rows in &run_file::<T>(workload, file, options, |_| false).dispatches {
        T::agree(rows);
    }
}

/// A row for each instruction of the scope for which `fits` returns `true`.
fn rows<const N: usize>(
    scope: &ToolScope<'_>,
    observed: &Sites,
    fits: impl Fn(&Inst) -> bool,
    numbers: impl Fn(&Site) -> [u64; N],
) -> Vec<Row> {
    let nothing = Site::default();
    let row_at = |at: InstIndex| {
        let pc = scope.program().inst(at)?.pc;
        let mut row = Vec::from(scope.location(at)?.cells());
        row.extend(numbers(observed.sites.get(&pc).unwrap_or(&nothing)).map(Cell::Unsigned));
        Some(row)
    };
    scope.select(fits).into_iter().filter_map(row_at).collect()
}

impl Compared for InstructionCount {
    type Observer = ObservedExecutions;

    const NAME: &str = <InstructionCount as ObservableTool>::NAME;

    fn observer() -> ObservedExecutions {
        <InstructionCount as ObservableTool>::observer(0)
    }

    fn expected(scope: &ToolScope<'_>, seen: &Seen<ObservedExecutions>) -> Vec<Row> {
        InstructionCount::observed_rows(scope, &seen.observer)
    }
}

impl Compared for OpcodeHistogram {
    type Observer = ObservedExecutions;

    const NAME: &str = <OpcodeHistogram as ObservableTool>::NAME;

    fn observer() -> ObservedExecutions {
        <OpcodeHistogram as ObservableTool>::observer(0)
    }

    fn expected(scope: &ToolScope<'_>, seen: &Seen<ObservedExecutions>) -> Vec<Row> {
        OpcodeHistogram::observed_rows(scope, &seen.observer)
    }
}

/// Index of the column `workgroup_x` of a memory trace.
const WORKGROUP: usize = 3;
/// Index of its column `address`.
const ADDRESS: usize = 8;

/// The wave of a row that has it at a column.
fn wave_at(row: &[Cell], column: usize) -> WavePosition {
    let number = |at: usize| row[column + at].number().expect("a number") as u32;
    let [workgroup_x, workgroup_y, workgroup_z, wave] = [0, 1, 2, 3].map(number);
    WavePosition { workgroup_x, workgroup_y, workgroup_z, wave }
}

impl Compared for MemoryTrace {
    type Observer = ObservedAccesses;

    const NAME: &str = <MemoryTrace as ObservableTool>::NAME;

    fn observer() -> ObservedAccesses {
        <MemoryTrace as ObservableTool>::observer(u32::MAX)
    }

    fn expected(scope: &ToolScope<'_>, seen: &Seen<ObservedAccesses>) -> Vec<Row> {
        let mut rows = MemoryTrace::observed_rows(scope, &seen.observer);
        for row in &mut rows {
            let address = row[ADDRESS].number().expect("an address");
            let moved = seen.moved.iter().find(|(old, _)| old.contains(&address));
            if let Some((old, new)) = moved {
                row[ADDRESS] = Cell::Unsigned(address - old.start + new);
            }
        }
        rows
    }

    fn ordered(mut rows: Vec<Row>) -> Vec<Row> {
        rows.sort_by_key(|row| wave_at(row, WORKGROUP));
        rows
    }

    /// Asserts that the tool's rows are the first accesses of each wave.
    fn agree(dispatch: &DispatchRows) {
        assert_eq!(dispatch.tool.len() as u64 + dispatch.lost, dispatch.observed.len() as u64);
        let by_wave = |rows: &[Row]| {
            let mut waves: BTreeMap<WavePosition, Vec<Row>> = BTreeMap::new();
            for row in rows {
                waves.entry(wave_at(row, WORKGROUP)).or_default().push(row.clone());
            }
            waves
        };
        let observed = by_wave(&dispatch.observed);
        for (wave, rows) in by_wave(&dispatch.tool) {
            let all = &observed[&wave];
            let different = rows.iter().zip(all).find(|(tool, observed)| tool != observed);
            if let Some((tool, observed)) = different {
                panic!("dispatch of `{}`: tool {tool:?}\nobserver {observed:?}", dispatch.kernel);
            }
            assert!(rows.len() <= all.len());
        }
    }
}

/// The shipped tool `address-divergence`.
pub struct AddressDivergence;

/// The shipped tool `branch-divergence`.
pub struct BranchDivergence;

/// The shipped tool `bank-conflicts`.
pub struct BankConflicts;

/// The shipped tool `kernel-clock`.
pub struct KernelClock;

impl Compared for AddressDivergence {
    type Observer = Sites;

    const NAME: &str = "address-divergence";

    fn observer() -> Sites {
        Sites::new(Look::Lines)
    }

    fn expected(scope: &ToolScope<'_>, seen: &Seen<Sites>) -> Vec<Row> {
        let by_lane = |inst: &Inst| match inst.memory().map(|access| access.space) {
            Some(MemorySpace::Global | MemorySpace::Flat | MemorySpace::Buffer) => true,
            Some(MemorySpace::Scratch | MemorySpace::Scalar | MemorySpace::Lds) | None => false,
        };
        rows(scope, &seen.observer, by_lane, |site| [site.active, site.lines_64, site.lines_128])
    }
}

impl Compared for BranchDivergence {
    type Observer = Sites;

    const NAME: &str = "branch-divergence";

    fn observer() -> Sites {
        Sites::new(Look::Nothing)
    }

    fn expected(scope: &ToolScope<'_>, seen: &Seen<Sites>) -> Vec<Row> {
        let narrows = |inst: &Inst| {
            let mut operations =
                ["s_and_saveexec_", "s_andn1_", "s_and_b", "s_andn2_b", "s_mov_b", "s_and_not1_b"]
                    .into_iter();
            inst.class() == Class::Salu
                && inst.writes.iter().any(|register| register.contains(Register::ExecLo))
                && operations.any(|start| inst.operation.name().starts_with(start))
        };
        rows(scope, &seen.observer, narrows, |site| [site.executions, site.divergent])
    }
}

impl Compared for BankConflicts {
    type Observer = Sites;

    const NAME: &str = "bank-conflicts";

    fn observer() -> Sites {
        Sites::new(Look::Conflicts)
    }

    fn expected(scope: &ToolScope<'_>, seen: &Seen<Sites>) -> Vec<Row> {
        let is_lds =
            |inst: &Inst| inst.memory().is_some_and(|access| access.space == MemorySpace::Lds);
        rows(scope, &seen.observer, is_lds, |site| [site.lds_accesses, site.conflicts])
    }
}

impl Compared for KernelClock {
    type Observer = Unobserved;

    const NAME: &str = "kernel-clock";

    fn observer() -> Unobserved {
        Unobserved
    }

    fn expected(_: &ToolScope<'_>, seen: &Seen<Unobserved>) -> Vec<Row> {
        let row = |(wave, readings): (&WavePosition, &Vec<Reading>)| {
            let values = |is_constant| {
                let selected =
                    readings.iter().filter(move |reading| reading.is_constant == is_constant);
                selected.map(|reading| reading.value).collect::<Vec<u64>>()
            };
            let (cycles, ticks) = (values(false), values(true));
            let WavePosition { workgroup_x, workgroup_y, workgroup_z, wave } = *wave;
            let position = [workgroup_x, workgroup_y, workgroup_z, wave].map(u64::from);
            let clocks = [
                cycles[1].wrapping_sub(cycles[0]),
                ticks[1].wrapping_sub(ticks[0]),
                cycles[0],
                cycles[1],
                ticks[0],
                ticks[1],
            ];
            position.into_iter().chain(clocks).map(Cell::Unsigned).collect()
        };
        seen.clocks.readings.iter().map(row).collect()
    }
}
