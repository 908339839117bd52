//! A GPU that executes the instruction set.

use super::execution::Running;
use super::isa::{LANES, Toy, scalar, vector};
use super::memory::Memory;
use super::survey::{Exact, ToyCounts, ToySurvey};
use super::wave::Reach;
use flipwave_arch::{Architecture, Instruction, LaneMask, RegisterSpan, SourceLines};
use flipwave_device::{
    Address, Completion, DeviceError, DeviceFault, Dispatch, FaultCause, FaultKind, ModuleId,
    WaveLocation,
};
use flipwave_machine::{
    Executed, Execution, FaultDetail, Fidelity, FidelityCheck, Footprints, Interest, Machine,
    Observer, OutsideSegment, Progress, Stalls, Survey, Unobserved, Watch, WaveState,
};
use std::any::Any;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

/// Loaded code.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Code {
    /// One dword an instruction.
    pub dwords: Vec<u32>,
    /// Address of the first instruction of each kernel.
    pub kernels: BTreeMap<String, u64>,
}

/// The GPU.
#[derive(Clone)]
pub struct ToyGpu {
    architecture: Arc<dyn Architecture>,
    pub memory: Memory,
    pub modules: Vec<Arc<Code>>,
    stalls: Stalls,
}

/// The observer and the checks that accompany the execution of a dispatch.
struct Company<'a> {
    observer: &'a mut dyn Observer,
    counts: Option<&'a mut ToyCounts>,
    footprints: Option<&'a mut Footprints>,
}

impl ToyGpu {
    /// A GPU without code.
    pub fn new() -> ToyGpu {
        let (memory, modules, stalls) = Default::default();
        ToyGpu { architecture: Arc::new(Toy), memory, modules, stalls }
    }

    fn run(
        &mut self,
        execution: &mut Execution,
        company: &mut Company<'_>,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let other = || DeviceError::Internal("an execution of another machine".into());
        let running = execution.as_any_mut().downcast_mut::<Running>().ok_or_else(other)?;
        let module = running.dispatch.module.0 as usize;
        let code = self.modules.get(module).cloned().ok_or_else(other)?;
        let words = running.dispatch.kernarg.as_chunks::<4>().0;
        let arguments: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let mut watched = None;
        loop {
            if running.statistics.wave_instructions >= until {
                return Ok(Progress::Paused);
            }
            if running.current.is_none() && !running.start_next(LANES.into()) {
                if let Some(footprints) = &mut company.footprints {
                    footprints.end_all();
                }
                return Ok(Progress::Ended(Completion::Completed(running.statistics)));
            }
            let Some(workgroup) = &mut running.current else { continue };
            let position = workgroup.position;
            let wave = &mut workgroup.waves[workgroup.turn];
            let id = wave.id;
            let faulted = |cause, pc| {
                let place = WaveLocation { pc, wave: id };
                Ok(Progress::Ended(Completion::Faulted(DeviceFault::new(cause, place))))
            };
            if running.statistics.wave_instructions >= running.limit {
                let executed = running.statistics.wave_instructions;
                return faulted(FaultCause::Watchdog { executed }, flipwave_arch::Pc(wave.pc));
            }
            let is_watched = match watched {
                Some((known, is_watched)) if known == id => is_watched,
                _ => company.observer.watches(id),
            };
            watched = Some((id, is_watched));
            let footprint = company.footprints.as_mut().map(|all| all.entry(position, 0));
            let (memory, code, arguments) = (&mut self.memory, &code.dwords[..], &arguments[..]);
            let (written, replacement) = (Vec::new(), None);
            let mut reach =
                Reach { wave, memory, code, arguments, footprint, written, replacement };
            let pc = reach.pc();
            let mut inst = match reach.fetch() {
                Ok(inst) => inst,
                Err(cause) => return faulted(cause, pc),
            };
            let is_called = is_watched
                && match company.observer.interest() {
                    Interest::Every => true,
                    Interest::Address(address) => address == pc,
                    Interest::Operation(operation) => operation == inst.operation(),
                };
            if is_called {
                company.observer.before(&inst, id, &mut reach);
                if reach.pc() != pc {
                    continue;
                }
                inst = match reach.fetch() {
                    Ok(inst) => inst,
                    Err(cause) => return faulted(cause, pc),
                };
            }
            reach.replacement = None;
            if let Err(cause) = reach.execute(&inst) {
                return faulted(cause, pc);
            }
            let lanes = reach.all_lanes();
            if is_called {
                let executed = Executed { inst: &inst, wave: id, lanes };
                let is_over = company.observer.after(&executed, &mut reach) == Watch::Off;
                watched = Some((id, !is_over));
            }
            if let Some(counts) = &mut company.counts {
                counts.count(id, &inst, lanes);
            }
            let operations = if inst.is_executed_by_lanes() { lanes.count() } else { 1 };
            for statistics in [&mut running.statistics, &mut workgroup.statistics] {
                statistics.wave_instructions += 1;
                statistics.lane_operations += u64::from(operations);
            }
            if let Some(footprints) = &mut company.footprints {
                footprints.entry(position, 0).statistics = workgroup.statistics;
            }
            if inst.ends_wave() {
                workgroup.turn += 1;
                if workgroup.turn == workgroup.waves.len() {
                    running.current = None;
                    if let Some(footprints) = &mut company.footprints {
                        footprints.end(position);
                    }
                }
            }
        }
    }
}

/// The counts of a survey of this machine.
fn counts(survey: &mut dyn Survey) -> Option<&mut ToyCounts> {
    survey.as_any_mut().downcast_mut::<ToySurvey>()?.0.as_mut()
}

impl Machine for ToyGpu {
    fn architecture(&self) -> &Arc<dyn Architecture> {
        &self.architecture
    }

    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        Ok(self.memory.allocate(bytes))
    }

    fn allocate_at(&mut self, address: Address, bytes: u64) -> Result<(), DeviceError> {
        self.memory.allocate_at(address, bytes)
    }

    fn free(&mut self, address: Address) -> Result<(), DeviceError> {
        self.memory.free(address)
    }

    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        let (operation, length) = ("write", bytes.len() as u64);
        let missing = DeviceError::NotAllocated { operation, address, bytes: length };
        self.memory.get_mut(address, bytes.len()).ok_or(missing)?.copy_from_slice(bytes);
        Ok(())
    }

    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let (operation, length) = ("read", bytes.len() as u64);
        let missing = DeviceError::NotAllocated { operation, address, bytes: length };
        bytes.copy_from_slice(self.memory.get(address, bytes.len()).ok_or(missing)?);
        Ok(())
    }

    fn read_pages(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.read(address, bytes)
    }

    fn write_pages(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        self.write(address, bytes)
    }

    fn allocations(&self) -> Vec<(Address, u64)> {
        self.memory.allocations()
    }

    fn allocation_around(&self, address: Address) -> Option<Range<Address>> {
        self.memory.around(address)
    }

    fn is_in_state_of(&self, other: &dyn Machine) -> bool {
        let other = other.as_any().downcast_ref::<ToyGpu>();
        other.is_some_and(|other| self.memory == other.memory)
    }

    fn stalls(&self) -> Stalls {
        self.stalls
    }

    fn set_fault_detail(&mut self, _: FaultDetail) {}

    fn set_stalls(&mut self, stalls: Stalls) {
        self.stalls = stalls;
    }

    fn wave_lanes(&self, _: &Dispatch) -> u8 {
        LANES
    }

    fn registers(&self, _: &Dispatch, _: &dyn WaveState) -> Vec<RegisterSpan> {
        vec![RegisterSpan::new(vector(0), 16), RegisterSpan::new(scalar(0), 8)]
    }

    fn lines(&self, _: ModuleId) -> Option<&dyn SourceLines> {
        None
    }

    fn fatal_encodings(&self) -> Vec<(u32, FaultKind)> {
        vec![(u32::MAX, FaultKind::IllegalInstruction)]
    }

    fn begin(&mut self, dispatch: &Dispatch) -> Result<Execution, DeviceError> {
        let code = self.modules.get(dispatch.module.0 as usize);
        let start = code.and_then(|code| code.kernels.get(&dispatch.kernel));
        let unknown = || DeviceError::UnknownKernel {
            wanted: dispatch.kernel.clone(),
            present: code.iter().flat_map(|code| code.kernels.keys().cloned()).collect(),
        };
        Ok(Execution::new(Running::new(dispatch, *start.ok_or_else(unknown)?)))
    }

    fn advance(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        self.run(execution, &mut Company { observer, counts: None, footprints: None }, until)
    }

    fn advance_recorded(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        footprints: &mut Footprints,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let footprints = Some(footprints);
        self.run(execution, &mut Company { observer, counts: None, footprints }, until)
    }

    fn advance_recording_writes(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        self.advance(execution, observer, until)
    }

    fn begin_survey(
        &self,
        _: &Execution,
        counted: Option<LaneMask>,
    ) -> Result<Box<dyn Survey>, DeviceError> {
        Ok(Box::new(ToySurvey(counted.map(ToyCounts::new))))
    }

    fn advance_surveyed(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        survey: &mut dyn Survey,
        _: Option<&mut dyn FidelityCheck>,
        footprints: Option<&mut Footprints>,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let counts = counts(survey);
        self.run(execution, &mut Company { observer, counts, footprints }, until)
    }

    fn advance_surveyed_divided(
        &mut self,
        execution: &mut Execution,
        survey: &mut dyn Survey,
        _: &mut dyn FidelityCheck,
        footprints: &mut Footprints,
        _: NonZeroUsize,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let (counts, footprints) = (counts(survey), Some(footprints));
        self.run(execution, &mut Company { observer: &mut Unobserved, counts, footprints }, until)
    }

    fn outside_segments(&self, _: Box<dyn Survey>) -> Vec<OutsideSegment> {
        Vec::new()
    }

    fn fidelity_check(&self) -> Box<dyn FidelityCheck> {
        Box::new(Exact)
    }

    fn begin_fidelity(&self, _: &str, _: &Execution, _: &mut dyn FidelityCheck) {}

    fn has_settled_course(&self, _: &Dispatch, _: bool) -> bool {
        true
    }

    fn advance_with_fidelity(
        &mut self,
        execution: &mut Execution,
        _: &mut dyn FidelityCheck,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        self.advance(execution, &mut Unobserved, until)
    }

    fn fidelity(&self, _: &mut dyn FidelityCheck) -> Fidelity {
        Fidelity::default()
    }

    fn boxed(&self) -> Box<dyn Machine> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
