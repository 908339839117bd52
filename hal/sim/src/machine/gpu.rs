//! The embedded GPU as a machine.

use super::checks::outside_segment;
use super::execution::Running;
use super::observer::MachineObserver;
use super::original::Viewed;
use crate::device::{EmbeddedGpu, SurveyCheck};
use crate::dispatch::observer::{Observer, Unobserved};
use crate::dispatch::policy::Policy;
use crate::fidelity::FidelityCheck;
use flipwave_arch::{Architecture, LaneMask, RegisterId, RegisterSpan, SourceLines};
use flipwave_codeobj::Kernel;
use flipwave_device::{
    Address, Device, DeviceError, Dispatch, FaultKind, KernelPacket, ModuleId, WaveId, WaveLocation,
};
use flipwave_isa::{AccVgpr, Isa, Register, RegisterRange, Sgpr, Vgpr};
use flipwave_machine::{
    Execution, FaultDetail, Fidelity, Footprints, Machine, OutsideSegment, Progress, Stalls,
    Survey, WaveState,
};
use std::any::Any;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

/// The error for a value that another machine has created.
fn foreign(what: &str) -> DeviceError {
    DeviceError::Internal(format!("the {what} belongs to another device"))
}

/// An execution of this kind of machine.
fn running(execution: &mut Execution) -> Result<&mut Running, DeviceError> {
    execution.as_any_mut().downcast_mut().ok_or_else(|| foreign("execution"))
}

/// A survey of this kind of machine.
fn survey_check(survey: &mut dyn Survey) -> Result<&mut SurveyCheck, DeviceError> {
    survey.as_any_mut().downcast_mut().ok_or_else(|| foreign("survey"))
}

/// A fidelity check of this kind of machine.
fn fidelity_check(
    check: &mut dyn flipwave_machine::FidelityCheck,
) -> Result<&mut FidelityCheck, DeviceError> {
    check.as_any_mut().downcast_mut().ok_or_else(|| foreign("fidelity check"))
}

impl EmbeddedGpu {
    /// The kernel of a dispatch, if its code object is loaded.
    fn kernel(&self, dispatch: &Dispatch) -> Option<&Kernel> {
        self.code_object(dispatch.module)?.kernel(&dispatch.kernel)
    }

    /// Calls `run` with an execution and an observer of the original code of its module.
    fn observed<T>(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn flipwave_machine::Observer,
        run: impl FnOnce(
            &mut EmbeddedGpu,
            &mut crate::Execution,
            &mut dyn Observer,
        ) -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        let Running { execution, view } = running(execution)?;
        let mut observer = MachineObserver(observer);
        match self.originals().get(&(execution.home as u32)) {
            None => run(self, execution, &mut observer),
            Some(original) => {
                let view = view.get_or_insert_with(|| Arc::clone(original).view());
                let mut viewed = Viewed { view: &mut **view, observer: &mut observer };
                run(self, execution, &mut viewed)
            }
        }
    }
}

impl Machine for EmbeddedGpu {
    fn architecture(&self) -> &Arc<dyn Architecture> {
        self.architecture_of()
    }

    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        Device::allocate(self, bytes)
    }

    fn allocate_at(&mut self, address: Address, bytes: u64) -> Result<(), DeviceError> {
        EmbeddedGpu::allocate_at(self, address, bytes)
    }

    fn free(&mut self, address: Address) -> Result<(), DeviceError> {
        Device::free(self, address)
    }

    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        Device::write(self, address, bytes)
    }

    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        Device::read(self, address, bytes)
    }

    fn read_pages(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        EmbeddedGpu::read_pages(self, address, bytes)
    }

    fn write_pages(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        EmbeddedGpu::write_pages(self, address, bytes)
    }

    fn allocations(&self) -> Vec<(Address, u64)> {
        EmbeddedGpu::allocations(self).collect()
    }

    fn allocation_around(&self, address: Address) -> Option<Range<Address>> {
        EmbeddedGpu::allocation_around(self, address)
    }

    fn share_memory(&mut self) {
        EmbeddedGpu::share_memory(self);
    }

    fn is_in_state_of(&self, other: &dyn Machine) -> bool {
        let other = other.as_any().downcast_ref::<EmbeddedGpu>();
        other.is_some_and(|other| EmbeddedGpu::is_in_state_of(self, other))
    }

    fn unshared_with(&self, other: &dyn Machine, start: Address, bytes: u64) -> Vec<Range<u64>> {
        match other.as_any().downcast_ref::<EmbeddedGpu>() {
            Some(other) => EmbeddedGpu::unshared_with(self, other, start, bytes),
            None => std::iter::once(0..bytes).collect(),
        }
    }

    fn added_host_bytes(&self, other: &dyn Machine) -> u64 {
        match other.as_any().downcast_ref::<EmbeddedGpu>() {
            Some(other) => EmbeddedGpu::added_host_bytes(self, other),
            None => EmbeddedGpu::allocations(self).map(|(_, bytes)| bytes).sum(),
        }
    }

    fn stalls(&self) -> Stalls {
        self.policy().stalls
    }

    fn set_stalls(&mut self, stalls: Stalls) {
        self.set_policy(Policy { stalls, ..self.policy() });
    }

    fn set_fault_detail(&mut self, fault_detail: FaultDetail) {
        self.set_policy(Policy { fault_detail, ..self.policy() });
    }

    fn wave_lanes(&self, dispatch: &Dispatch) -> u8 {
        match self.kernel(dispatch).map(|kernel| kernel.descriptor.wavefront_size()) {
            Some(32) => 32,
            _ => 64,
        }
    }

    fn registers(&self, dispatch: &Dispatch, state: &dyn WaveState) -> Vec<RegisterSpan> {
        let file = |first: Register| {
            let all = std::iter::successors(Some(first), |register| register.offset(1));
            let count =
                all.take_while(|register| state.lanes((*register).into()).is_some()).count();
            (count > 0).then(|| RegisterSpan::new(first.into(), count as u16))
        };
        let sgprs = self.kernel(dispatch).map_or(0, |kernel| kernel.descriptor.rsrc1.sgprs);
        // Up to gfx9 the highest six of an allocation are VCC, FLAT_SCRATCH and XNACK_MASK
        // (AMDGPUUsage, "GRANULATED_WAVEFRONT_SGPR_COUNT"); from gfx10 on 106 are numbered.
        let numbered = if sgprs >= 128 { 106 } else { sgprs.saturating_sub(6).min(102) };
        let halves = if state.all_lanes() == LaneMask::FULL { 2 } else { 1 };
        let vectors = [Register::Vgpr(Vgpr(0)), Register::AccVgpr(AccVgpr(0))];
        let mut registers: Vec<RegisterSpan> = vectors.into_iter().filter_map(file).collect();
        let scalars = RegisterId::from(Register::Sgpr(Sgpr(0)));
        registers.push(RegisterSpan::new(scalars, numbered));
        let special = [
            RegisterRange::new(Register::VccLo, halves),
            RegisterRange::new(Register::ExecLo, halves),
            RegisterRange::new(Register::M0, 1),
            RegisterRange::new(Register::Scc, 1),
        ];
        registers.extend(special.map(RegisterSpan::from));
        registers
    }

    fn lines(&self, module: ModuleId) -> Option<&dyn SourceLines> {
        let lines = match self.originals().get(&module.0) {
            Some(original) => original.lines(),
            None => EmbeddedGpu::lines(self, module)?,
        };
        (!lines.is_empty()).then_some(lines)
    }

    fn packet(&self, dispatch: &Dispatch) -> Result<Option<(KernelPacket, u32)>, DeviceError> {
        let Some(queued) = dispatch.queued else { return Ok(None) };
        let mut bytes = [0; KernelPacket::SIZE];
        Device::read(self, queued.packet, &mut bytes)?;
        let kernel = self.kernel(dispatch);
        let declared = kernel.map_or(0, |kernel| kernel.descriptor.group_segment_fixed_size);
        let lds_bytes = declared.saturating_add(dispatch.dynamic_lds);
        Ok(Some((KernelPacket::from_bytes(&bytes), lds_bytes)))
    }

    fn fatal_encodings(&self) -> Vec<(u32, FaultKind)> {
        let isa = Isa::new(Device::target(self)).ok();
        let encoding = |text: &str| {
            let bytes = isa.as_ref()?.assemble(text).ok()?;
            bytes.first_chunk().map(|word| u32::from_le_bytes(*word))
        };
        let texts = [("s_trap 2", FaultKind::Trap), ("s_sethalt 1", FaultKind::Watchdog)];
        let assembled = texts.into_iter().filter_map(|(text, kind)| Some((encoding(text)?, kind)));
        std::iter::once((u32::MAX, FaultKind::IllegalInstruction)).chain(assembled).collect()
    }

    fn is_rewritten(&self, module: ModuleId) -> bool {
        self.originals().contains_key(&module.0)
    }

    fn original(&self, module: ModuleId, location: WaveLocation) -> WaveLocation {
        match self.originals().get(&module.0) {
            Some(original) => original.location(location),
            None => location,
        }
    }

    fn begin(&mut self, dispatch: &Dispatch) -> Result<Execution, DeviceError> {
        Ok(Execution::new(Running::new(EmbeddedGpu::begin(self, dispatch)?)))
    }

    fn advance(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn flipwave_machine::Observer,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        self.observed(execution, observer, |gpu, execution, observer| {
            gpu.advance(execution, observer, until)
        })
    }

    fn advance_recorded(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn flipwave_machine::Observer,
        footprints: &mut Footprints,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        self.observed(execution, observer, |gpu, execution, observer| {
            gpu.advance_recorded(execution, observer, footprints, until)
        })
    }

    fn advance_recording_writes(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn flipwave_machine::Observer,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let execution = &mut running(execution)?.execution;
        let mut observer = MachineObserver(observer);
        EmbeddedGpu::advance_recording_writes(self, execution, &mut observer, until)
    }

    fn begin_survey(
        &self,
        execution: &Execution,
        counted: Option<LaneMask>,
    ) -> Result<Box<dyn Survey>, DeviceError> {
        let running = execution.as_any().downcast_ref::<Running>();
        let Running { execution, .. } = running.ok_or_else(|| foreign("execution"))?;
        Ok(Box::new(EmbeddedGpu::begin_survey(self, execution, counted)))
    }

    fn advance_surveyed(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn flipwave_machine::Observer,
        survey: &mut dyn Survey,
        fidelity: Option<&mut dyn flipwave_machine::FidelityCheck>,
        footprints: Option<&mut Footprints>,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let (check, fidelity) = (survey_check(survey)?, fidelity.map(fidelity_check).transpose()?);
        self.observed(execution, observer, |gpu, execution, observer| {
            gpu.advance_surveyed(execution, observer, check, fidelity, footprints, until)
        })
    }

    fn advance_surveyed_divided(
        &mut self,
        execution: &mut Execution,
        survey: &mut dyn Survey,
        fidelity: &mut dyn flipwave_machine::FidelityCheck,
        footprints: &mut Footprints,
        threads: NonZeroUsize,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let (check, fidelity) = (survey_check(survey)?, fidelity_check(fidelity)?);
        let execution = &mut running(execution)?.execution;
        EmbeddedGpu::advance_surveyed_divided(
            self, execution, check, fidelity, footprints, threads, until,
        )
    }

    fn outside_segments(&self, survey: Box<dyn Survey>) -> Vec<OutsideSegment> {
        let Ok(check) = survey.into_any().downcast::<SurveyCheck>() else { return Vec::new() };
        let found = EmbeddedGpu::outside_segments(self, *check).into_iter().map(|violation| {
            let module = violation.place.module;
            outside_segment(violation, |location| self.original(module, location))
        });
        found.collect()
    }

    fn fidelity_check(&self) -> Box<dyn flipwave_machine::FidelityCheck> {
        Box::new(FidelityCheck::new())
    }

    fn begin_fidelity(
        &self,
        kernel: &str,
        execution: &Execution,
        check: &mut dyn flipwave_machine::FidelityCheck,
    ) {
        if let Some(running) = execution.as_any().downcast_ref::<Running>()
            && let Ok(check) = fidelity_check(check)
        {
            EmbeddedGpu::begin_fidelity(self, kernel, &running.execution, check);
        }
    }

    fn has_settled_course(&self, dispatch: &Dispatch, memory_may_be_marked: bool) -> bool {
        EmbeddedGpu::has_settled_course(self, dispatch, memory_may_be_marked)
    }

    fn advance_with_fidelity(
        &mut self,
        execution: &mut Execution,
        check: &mut dyn flipwave_machine::FidelityCheck,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let check = fidelity_check(check)?;
        let execution = &mut running(execution)?.execution;
        EmbeddedGpu::advance_with_fidelity(self, execution, &mut Unobserved, check, until)
    }

    fn fidelity(&self, check: &mut dyn flipwave_machine::FidelityCheck) -> Fidelity {
        let Ok(check) = fidelity_check(check) else { return Fidelity::default() };
        let mut fidelity = EmbeddedGpu::fidelity(self, check);
        for decision in &mut fidelity.decisions {
            let wave = decision.wave.unwrap_or(WaveId { workgroup: [0; 3], wave: 0 });
            let location = WaveLocation { pc: decision.pc, wave };
            decision.pc = self.original(decision.module, location).pc;
        }
        fidelity
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
