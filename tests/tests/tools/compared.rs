//! A tool and the observer on the same program.

use crate::observer::{Clocks, Look, Observed, Reading, Site, Touch};
use flipwave_codeobj::CodeObject;
use flipwave_device::{Address, Completion, Device, DeviceError, Dispatch, ModuleId};
use flipwave_hooks::flow::{InstIndex, Program};
use flipwave_hooks::hook::HookCompiler;
use flipwave_hooks::tools::{
    Access, AddressDivergence, BankConflicts, BranchDivergence, Branches, Conflicts, Executions,
    InstructionCount, KernelClock, Lines, MemoryTrace, OpcodeCount, OpcodeHistogram, Options,
    Place, Scope, Tool, Wave, WaveClock, measure,
};
use flipwave_injector::Workload;
use flipwave_isa::{Class, Inst, MemorySpace, Register, Target};
use flipwave_sim::{EmbeddedGpu, Policy};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// A tool whose rows can be had from what the observer saw.
pub trait Compared: Tool<Row: Clone + Debug + PartialEq> {
    /// What the observer looks at.
    const LOOK: Look = Look::Executions;

    fn expected(scope: &Scope<'_>, observed: &Observed, clocks: &Clocks) -> Vec<Self::Row>;

    /// Rows of the tool in an order that does not depend on which wave was first.
    fn ordered(rows: Vec<Self::Row>) -> Vec<Self::Row> {
        rows
    }

    /// Demands that rows are what is expected, but for those that are said to be lost.
    fn agree(both: &Both<Self::Row>) {
        assert_eq!(both.lost, 0, "records are lost");
        let pairs = both.tool.iter().zip(&both.observed);
        if let Some((tool, observed)) = pairs.into_iter().find(|(tool, observed)| tool != observed)
        {
            panic!("dispatch of `{}`: tool {tool:?}\nobserver {observed:?}", both.kernel);
        }
        assert_eq!(both.tool.len(), both.observed.len(), "{}", both.kernel);
    }
}

/// What was found in a dispatch.
pub struct Both<R> {
    pub kernel: String,
    pub tool: Vec<R>,
    pub observed: Vec<R>,
    pub lost: u64,
}

/// What was found in a program.
pub struct Run<R> {
    pub dispatches: Vec<Both<R>>,
    /// Executed in all dispatches, without and with hooks.
    pub executed: [u64; 2],
}

/// The embedded GPU, watched. Each dispatch of instrumented code is run as it was first, on a
/// clone: the same memory, the same addresses, the same order of waves.
struct Watched {
    gpu: EmbeddedGpu,
    originals: std::vec::IntoIter<Dispatch>,
    look: Look,
    blind: fn(&Inst) -> bool,
    seen: Vec<(Observed, Clocks)>,
    executed: u64,
}

impl Device for Watched {
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
        let original = self.originals.next().expect("no more dispatches than there were");
        self.gpu.set_policy(self.policy(dispatch));
        let mut observed = Observed::new(self.look, self.blind);
        let end = self.gpu.clone().dispatch_observed(&original, &mut observed)?;
        self.move_own_data(&mut observed, original.module, dispatch.module)?;
        match end {
            Completion::Completed(statistics) => self.executed += statistics.wave_instructions,
            Completion::Faulted(fault) => panic!("the program faults: {fault}"),
        }
        let mut clocks = Clocks::new(self.blind);
        let end = self.gpu.dispatch_observed(dispatch, &mut clocks);
        self.seen.push((observed, clocks));
        end
    }
}

impl Watched {
    /// As much scratch for the original as for instrumented code, and waves that run until they
    /// wait or end, so that what they find in memory does not depend on how many instructions
    /// were inserted.
    fn policy(&self, instrumented: &Dispatch) -> Policy {
        let object = self.gpu.code_object(instrumented.module).expect("a loaded module");
        let kernel = object.kernels().iter().find(|own| *own.name == *instrumented.kernel);
        let private_bytes = kernel.expect("a kernel").descriptor.private_segment_fixed_size;
        Policy { private_bytes, wave_turn: 1 << 24, ..Policy::default() }
    }

    /// Gives accesses to a code object's own data the addresses that they have where the
    /// instrumented code is loaded.
    fn move_own_data(
        &self,
        observed: &mut Observed,
        from: ModuleId,
        to: ModuleId,
    ) -> Result<(), DeviceError> {
        let object = self.gpu.code_object(from).expect("a loaded module");
        let segments = object.segments();
        for segment in segments.iter().filter(|own| own.memory_size > 0) {
            let old = self.gpu.address_of(from, segment.address)?.0;
            let new = self.gpu.address_of(to, segment.address)?.0;
            for touch in &mut observed.trace {
                if (old..old + segment.memory_size).contains(&touch.address) {
                    touch.address = touch.address - old + new;
                }
            }
        }
        Ok(())
    }
}

/// Runs a tool on a workload, and the observer, which is blind for one instruction.
pub fn run<T: Compared>(
    workload: &Workload,
    options: &Options,
    blind: fn(&Inst) -> bool,
) -> Run<T::Row> {
    let mut dispatches = workload.dispatches.clone();
    for dispatch in &mut dispatches {
        dispatch.instruction_limit = dispatch.instruction_limit.saturating_mul(64);
    }
    let originals = dispatches.clone().into_iter();
    let gpu = workload.device.clone();
    let mut device =
        Watched { gpu, originals, look: T::LOOK, blind, seen: Vec::new(), executed: 0 };
    let code_of = |module| workload.device.code_object(module);
    let compiler = HookCompiler::find().unwrap_or_else(|error| panic!("{error}"));
    let found = measure::<T, _>(&mut device, code_of, &dispatches, options, &compiler)
        .unwrap_or_else(|error| panic!("{error}"));
    let refused: Vec<_> =
        found.instrumented.iter().flat_map(|own| &own.rewritten.report.refused).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    let with: u64 = found.tables.iter().map(|table| table.statistics.wave_instructions).sum();
    let both = found.tables.into_iter().zip(&device.seen).map(|(table, (observed, clocks))| {
        let object = code_of(dispatches[table.dispatch].module).expect("a loaded module");
        let program = Program::read(object).expect("a program");
        let scope = Scope::new(object, &program, Some(&table.kernel));
        Both {
            kernel: table.kernel,
            tool: T::ordered(table.rows),
            observed: T::ordered(T::expected(&scope, observed, clocks)),
            lost: table.lost,
        }
    });
    Run { dispatches: both.collect(), executed: [device.executed, with] }
}

/// Demands that a tool and the observer agree.
pub fn check<T: Compared>(workload: &Workload, options: &Options) {
    for both in &run::<T>(workload, options, |_| false).dispatches {
        T::agree(both);
    }
}

/// A row for each instruction of the scope that fits.
fn rows<R>(
    scope: &Scope<'_>,
    observed: &Observed,
    fits: impl Fn(&Inst) -> bool,
    row: impl Fn(&Site) -> R,
) -> Vec<(Place, R)> {
    let nothing = Site::default();
    let row_at = |at: InstIndex| {
        let pc = scope.program().inst(at)?.pc;
        Some((scope.place(at)?, row(observed.sites.get(&pc).unwrap_or(&nothing))))
    };
    scope.select(fits).into_iter().filter_map(row_at).collect()
}

impl Compared for InstructionCount {
    fn expected(scope: &Scope<'_>, observed: &Observed, _: &Clocks) -> Vec<Self::Row> {
        rows(scope, observed, |_| true, |site| Executions { executions: site.executions })
    }
}

impl Compared for OpcodeHistogram {
    fn expected(scope: &Scope<'_>, observed: &Observed, _: &Clocks) -> Vec<OpcodeCount> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for inst in &scope.program().instructions {
            if let Some(site) = observed.sites.get(&inst.pc).filter(|site| site.executions > 0) {
                *counts.entry(inst.operation.name().to_owned()).or_default() += site.executions;
            }
        }
        counts
            .into_iter()
            .map(|(operation, executions)| OpcodeCount { operation, executions })
            .collect()
    }
}

impl Compared for MemoryTrace {
    const LOOK: Look = Look::Trace;

    fn expected(scope: &Scope<'_>, observed: &Observed, _: &Clocks) -> Vec<Self::Row> {
        let places: BTreeMap<_, _> = scope
            .select(|_| true)
            .into_iter()
            .filter_map(|at| scope.place(at))
            .map(|place| (place.pc, place))
            .collect();
        let row = |touch: &Touch| {
            let access = Access { lane: touch.lane, address: touch.address, bytes: touch.bytes };
            (places[&touch.pc].clone(), touch.wave, access)
        };
        observed.trace.iter().map(row).collect()
    }

    fn ordered(mut rows: Vec<Self::Row>) -> Vec<Self::Row> {
        rows.sort_by_key(|(_, wave, _)| *wave);
        rows
    }

    /// Of each wave the first accesses are there.
    fn agree(both: &Both<Self::Row>) {
        assert_eq!(both.tool.len() as u64 + both.lost, both.observed.len() as u64);
        let by_wave = |rows: &[Self::Row]| {
            let mut waves: BTreeMap<Wave, Vec<Self::Row>> = BTreeMap::new();
            for row in rows {
                waves.entry(row.1).or_default().push(row.clone());
            }
            waves
        };
        let observed = by_wave(&both.observed);
        for (wave, rows) in by_wave(&both.tool) {
            let all = &observed[&wave];
            let different = rows.iter().zip(all).find(|(tool, observed)| tool != observed);
            if let Some((tool, observed)) = different {
                panic!("dispatch of `{}`: tool {tool:?}\nobserver {observed:?}", both.kernel);
            }
            assert!(rows.len() <= all.len());
        }
    }
}

impl Compared for AddressDivergence {
    const LOOK: Look = Look::Lines;

    fn expected(scope: &Scope<'_>, observed: &Observed, _: &Clocks) -> Vec<Self::Row> {
        let by_lane = |inst: &Inst| match inst.memory().map(|access| access.space) {
            Some(MemorySpace::Global | MemorySpace::Flat | MemorySpace::Buffer) => true,
            Some(MemorySpace::Scratch | MemorySpace::Scalar | MemorySpace::Lds) | None => false,
        };
        rows(scope, observed, by_lane, |site| Lines {
            accesses: site.active,
            lines_64: site.lines_64,
            lines_128: site.lines_128,
        })
    }
}

impl Compared for BranchDivergence {
    fn expected(scope: &Scope<'_>, observed: &Observed, _: &Clocks) -> Vec<Self::Row> {
        let narrows = |inst: &Inst| {
            let mut operations =
                ["s_and_saveexec_", "s_andn1_", "s_and_b", "s_andn2_b", "s_mov_b", "s_and_not1_b"]
                    .into_iter();
            inst.class() == Class::Salu
                && inst.writes.iter().any(|own| own.contains(Register::ExecLo))
                && operations.any(|start| inst.operation.name().starts_with(start))
        };
        rows(scope, observed, narrows, |site| Branches {
            executions: site.executions,
            divergent: site.divergent,
        })
    }
}

impl Compared for BankConflicts {
    const LOOK: Look = Look::Conflicts;

    fn expected(scope: &Scope<'_>, observed: &Observed, _: &Clocks) -> Vec<Self::Row> {
        let is_lds = |inst: &Inst| inst.memory().is_some_and(|own| own.space == MemorySpace::Lds);
        rows(scope, observed, is_lds, |site| Conflicts {
            accesses: site.lds_accesses,
            conflicts: site.conflicts,
        })
    }
}

impl Compared for KernelClock {
    fn expected(_: &Scope<'_>, _: &Observed, clocks: &Clocks) -> Vec<(Wave, WaveClock)> {
        let row = |(wave, readings): (&Wave, &Vec<Reading>)| {
            let of = |is_constant| {
                let own = readings.iter().filter(move |own| own.is_constant == is_constant);
                own.map(|own| own.value).collect::<Vec<u64>>()
            };
            let (cycles, ticks) = (of(false), of(true));
            let clock = WaveClock {
                cycles: cycles[1].wrapping_sub(cycles[0]),
                ticks: ticks[1].wrapping_sub(ticks[0]),
                begin_cycles: cycles[0],
                end_cycles: cycles[1],
                begin_ticks: ticks[0],
                end_ticks: ticks[1],
            };
            (*wave, clock)
        };
        clocks.readings.iter().map(row).collect()
    }
}
