//! The interface of simulated GPUs.

use super::fidelity::Executions;
use super::gpu::PtxGpu;
use super::run::Company;
use super::survey::{PtxCounts, PtxSurvey};
use crate::StrictCheck;
use flipwave_arch::{Architecture, LaneMask, Pc, RegisterId, RegisterSpan, SourceLines};
use flipwave_device::{Address, DeviceError, Dispatch, ModuleId, WaveLocation};
use flipwave_machine::{
    Exactness, Execution, FaultDetail, Fidelity, FidelityCheck, Footprints, Machine, Observer,
    OutsideSegment, Progress, Stalls, Survey, Unobserved, WaveState,
};
use flipwave_ptx::{CallGraph, Code, PREDICATES, WORDS};
use std::any::Any;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

/// The counts of a survey of this machine.
fn counts(survey: &mut dyn Survey) -> Option<&mut PtxCounts> {
    survey.as_any_mut().downcast_mut::<PtxSurvey>()?.0.as_mut()
}

/// The fidelity check of this machine.
fn executions(check: &mut dyn FidelityCheck) -> Option<&mut Executions> {
    check.as_any_mut().downcast_mut()
}

/// Company of an observer alone.
fn observed(observer: &mut dyn Observer) -> Company<'_> {
    Company {
        observer,
        counts: None,
        footprints: None,
        fidelity: None,
        is_recording: false,
        strict: None,
    }
}

impl PtxGpu {
    /// Advances an execution with checks of the strict level; much slower. See [`Machine::advance`].
    ///
    /// # Errors
    /// See [`Machine::advance`].
    pub fn advance_checked(
        &mut self,
        execution: &mut Execution,
        check: &mut StrictCheck,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let mut observer = Unobserved;
        let mut company = Company { strict: Some(check), ..observed(&mut observer) };
        self.run(execution, &mut company, until)
    }
}

impl Machine for PtxGpu {
    /// Faults have no context: the instruction and its line are known from the PC.
    fn set_fault_detail(&mut self, _: FaultDetail) {}

    fn architecture(&self) -> &Arc<dyn Architecture> {
        &self.architecture
    }

    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        self.memory.allocate(bytes)
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
        if self.memory.write(address, bytes) { Ok(()) } else { Err(missing) }
    }

    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let (operation, length) = ("read", bytes.len() as u64);
        let missing = DeviceError::NotAllocated { operation, address, bytes: length };
        if self.memory.read(address, bytes) { Ok(()) } else { Err(missing) }
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
        let other = other.as_any().downcast_ref::<PtxGpu>();
        other.is_some_and(|other| self.memory == other.memory)
    }

    fn unshared_with(&self, other: &dyn Machine, start: Address, bytes: u64) -> Vec<Range<u64>> {
        match other.as_any().downcast_ref::<PtxGpu>() {
            Some(other) => self.memory.unshared(&other.memory, start, bytes),
            None => std::iter::once(0..bytes).collect(),
        }
    }

    fn added_host_bytes(&self, other: &dyn Machine) -> u64 {
        match other.as_any().downcast_ref::<PtxGpu>() {
            Some(other) => self.memory.added_bytes(&other.memory),
            None => self.memory.allocations().into_iter().map(|(_, bytes)| bytes).sum(),
        }
    }

    fn stalls(&self) -> Stalls {
        self.stalls
    }

    fn set_stalls(&mut self, stalls: Stalls) {
        self.stalls = stalls;
    }

    fn wave_lanes(&self, _: &Dispatch) -> u8 {
        flipwave_ptx::WARP_SIZE
    }

    /// Registers of the kernel and of the functions that it may call.
    fn registers(&self, dispatch: &Dispatch, _: &dyn WaveState) -> Vec<RegisterSpan> {
        let Some(code) = self.seen_code(dispatch.module) else { return Vec::new() };
        let functions = &code.functions;
        let kernel = functions.iter().position(|found| *found.name == *dispatch.kernel);
        let reachable = kernel.map(|kernel| CallGraph::of(code).reachable(kernel));
        let span = |class, range: &Range<u16>| {
            let first = RegisterId { class, number: range.start };
            (!range.is_empty()).then(|| RegisterSpan::new(first, range.end - range.start))
        };
        let reachable = reachable.into_iter().flatten().map(|number| &functions[number]);
        let spans = reachable.flat_map(|function| {
            [span(&WORDS, &function.words), span(&PREDICATES, &function.predicates)]
        });
        spans.flatten().collect()
    }

    fn lines(&self, module: ModuleId) -> Option<&dyn SourceLines> {
        self.seen_code(module).map(|code| code as &dyn SourceLines)
    }

    fn register_name(&self, module: ModuleId, pc: Pc, register: RegisterId) -> Option<String> {
        self.seen_code(module)?.register_name(pc, register)
    }

    fn register_named(&self, module: ModuleId, pc: Pc, name: &str) -> Option<RegisterId> {
        self.seen_code(module)?.register_named(pc, name)
    }

    fn registers_named(&self, module: ModuleId, name: &str) -> Vec<RegisterSpan> {
        self.seen_code(module).map(|code| code.registers_named(name)).unwrap_or_default()
    }

    fn declared_registers(&self, module: ModuleId) -> Option<String> {
        self.seen_code(module).map(Code::declared_names)
    }

    fn is_rewritten(&self, module: ModuleId) -> bool {
        self.program(module).is_some_and(|program| program.original.is_some())
    }

    fn original(&self, module: ModuleId, location: WaveLocation) -> WaveLocation {
        let original = self.program(module).and_then(|program| program.original.as_ref());
        let pc = original.map_or(location.pc, |original| original.pc(location.pc));
        WaveLocation { pc, ..location }
    }

    fn begin(&mut self, dispatch: &Dispatch) -> Result<Execution, DeviceError> {
        self.launch(dispatch).map(Execution::new)
    }

    fn advance(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        self.run(execution, &mut observed(observer), until)
    }

    fn advance_recorded(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        footprints: &mut Footprints,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let mut company = Company { footprints: Some(footprints), ..observed(observer) };
        self.run(execution, &mut company, until)
    }

    fn advance_recording_writes(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let mut company = Company { is_recording: true, ..observed(observer) };
        self.run(execution, &mut company, until)
    }

    fn begin_survey(
        &self,
        _: &Execution,
        counted: Option<LaneMask>,
    ) -> Result<Box<dyn Survey>, DeviceError> {
        Ok(Box::new(PtxSurvey(counted.map(PtxCounts::new))))
    }

    fn advance_surveyed(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        survey: &mut dyn Survey,
        fidelity: Option<&mut dyn FidelityCheck>,
        footprints: Option<&mut Footprints>,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let (counts, fidelity) = (counts(survey), fidelity.and_then(executions));
        let mut company = Company { counts, footprints, fidelity, ..observed(observer) };
        self.run(execution, &mut company, until)
    }

    fn advance_surveyed_divided(
        &mut self,
        execution: &mut Execution,
        survey: &mut dyn Survey,
        fidelity: &mut dyn FidelityCheck,
        footprints: &mut Footprints,
        _: NonZeroUsize,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let (counts, fidelity, footprints) =
            (counts(survey), executions(fidelity), Some(footprints));
        let mut observer = Unobserved;
        let mut company = Company { counts, footprints, fidelity, ..observed(&mut observer) };
        self.run(execution, &mut company, until)
    }

    /// Accesses beyond shared or local memory are faults, so that none are left to report.
    fn outside_segments(&self, _: Box<dyn Survey>) -> Vec<OutsideSegment> {
        Vec::new()
    }

    fn fidelity_check(&self) -> Box<dyn FidelityCheck> {
        Box::new(Executions::default())
    }

    fn begin_fidelity(&self, _: &str, _: &Execution, check: &mut dyn FidelityCheck) {
        if let Some(executions) = executions(check) {
            executions.begin();
        }
    }

    fn has_settled_course(&self, dispatch: &Dispatch, _: bool) -> bool {
        self.program(dispatch.module).is_some_and(|program| {
            let count = program.steps.len();
            (0..count).all(|number| *program.exactness(number) == Exactness::Exact)
        })
    }

    fn advance_with_fidelity(
        &mut self,
        execution: &mut Execution,
        check: &mut dyn FidelityCheck,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let fidelity = executions(check);
        let mut observer = Unobserved;
        let mut company = Company { fidelity, ..observed(&mut observer) };
        self.run(execution, &mut company, until)
    }

    fn fidelity(&self, check: &mut dyn FidelityCheck) -> Fidelity {
        executions(check).map_or_else(Fidelity::default, Executions::take)
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
