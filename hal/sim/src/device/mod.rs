//! The embedded GPU as a device: its memory, the code that is loaded, and dispatches.

mod checks;
mod divided_survey;
mod helpers;
mod module;
mod parallel;
mod queued;
mod unsupported;

pub use checks::{StrictCheck, SurveyCheck};
pub use unsupported::Unsupported;

use crate::dispatch::checker::{Checker, Unchecked};
use crate::dispatch::execution::{Execution, Progress};
use crate::dispatch::global_sync::GlobalSync;
use crate::dispatch::launch::{Launch, PlacedKernel};
use crate::dispatch::observer::{Observer, Unobserved};
use crate::dispatch::policy::Policy;
use crate::dispatch::schedule::Scheduler;
use crate::dispatch::spare::Spares;
use crate::memory::{AddressSpace, Footprints, Noting};
use crate::translate::program::Program;
use crate::wave::Level;
use flipwave_codeobj::{CodeObject, Descriptor, LineTable};
use flipwave_device::{
    Address, Completion, Device, DeviceError, DeviceFault, Dispatch, FaultCause, ModuleId,
};
use flipwave_isa::{Pc, Residency, Target};
use helpers::Helpers;
use module::Module;
use parallel::Lengths;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A GPU in this process. A clone is an independent device in the same state; code and its
/// decoded form are shared.
#[derive(Clone, Debug)]
pub struct EmbeddedGpu {
    target: Target,
    level: Level,
    space: AddressSpace,
    policy: Policy,
    modules: Vec<Arc<Module>>,
    /// Modules that run in place of others, by their indices.
    stand_ins: BTreeMap<usize, usize>,
    /// The code of each module, by the module's index; for each wave size of the target, in the
    /// order of [`Target::wave_sizes`].
    programs: Vec<Vec<Arc<Program>>>,
    spare: Spares,
    /// The resources of global wave sync as the last dispatch has left them.
    sync: GlobalSync,
    /// The threads that dispatches are divided among.
    helpers: Helpers,
    /// What is known of kernels that have been executed.
    lengths: Lengths,
}

/// What is noted of accesses to device memory.
enum Notes<'a> {
    None,
    /// What each workgroup touches.
    Touched(&'a mut Footprints),
    /// What each instruction writes.
    Written,
}

impl EmbeddedGpu {
    /// A GPU with nothing loaded.
    ///
    /// # Errors
    /// [`Unsupported::Target`] if the embedded GPU does not execute the target's
    /// code.
    pub fn new(target: Target) -> Result<EmbeddedGpu, DeviceError> {
        if target.compute_units().is_none() {
            let (wanted, supported) = (target.to_string(), Target::modelled().collect());
            return Err(Unsupported::Target { wanted, supported }.into());
        }
        Ok(EmbeddedGpu {
            level: Level::detect(),
            space: AddressSpace::default(),
            policy: Policy::default(),
            modules: Vec::new(),
            stand_ins: BTreeMap::new(),
            spare: Spares::default(),
            sync: GlobalSync::default(),
            helpers: Helpers::default(),
            lengths: Lengths::default(),
            programs: vec![Vec::new(); target.wave_sizes().len()],
            target,
        })
    }

    /// The policy for dispatches that begin from now on.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Changes the policy for dispatches that begin from now on.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// Lets clones of this device from now on share its memory, as far as they do not write it. What
    /// a device writes becomes its own, an allocation at a time.
    pub fn share_memory(&mut self) {
        self.space.share();
    }

    /// Whether what waves can see of the device is the same as of a clone of it: memory, and what
    /// dispatches have left of global wave sync.
    pub fn is_in_state_of(&self, other: &EmbeddedGpu) -> bool {
        self.space.is_same(&other.space) && self.sync == other.sync
    }

    /// Which of so many bytes from an address on may be others than in another device's memory, of which it is
    /// a clone or which is one of it, by their offsets from there: all but those that they
    /// [share](EmbeddedGpu::share_memory).
    pub fn unshared_with(
        &self,
        other: &EmbeddedGpu,
        start: Address,
        bytes: u64,
    ) -> Vec<Range<u64>> {
        self.space.unshared_with(&other.space, start, bytes)
    }

    /// Bytes of the host that this device's memory takes beside that of another one, of which it is a clone
    /// or which is one of it: what they [share](EmbeddedGpu::share_memory) does not count.
    pub fn host_bytes_beside(&self, other: &EmbeddedGpu) -> u64 {
        self.space.host_bytes_beside(&other.space)
    }

    /// Like [`Device::dispatch`], with an observer that sees what executes.
    ///
    /// # Errors
    /// As [`Device::dispatch`].
    pub fn dispatch_observed(
        &mut self,
        dispatch: &Dispatch,
        observer: &mut dyn Observer,
    ) -> Result<Completion, DeviceError> {
        let mut execution = self.begin(dispatch)?;
        self.finish(&mut execution, observer, &mut Unchecked)
    }

    /// Prepares a dispatch and executes nothing of it. A clone of the device and of the execution,
    /// taken at the same time, are the whole state; [`EmbeddedGpu::advance`] on the clones gives
    /// what it would have given on the originals.
    ///
    /// # Errors
    /// As [`Device::dispatch`].
    pub fn begin(&mut self, dispatch: &Dispatch) -> Result<Execution, DeviceError> {
        let index = dispatch.module.0 as usize;
        let module = Arc::clone(self.module(dispatch.module)?);
        if let Some(queued) = dispatch.queued
            && module.code_object.is_none()
        {
            return self.begin_queued(queued, dispatch.instruction_limit);
        }
        let kernels = module.code_object.as_ref().map_or(&[][..], CodeObject::kernels);
        let kernel =
            kernels.iter().find(|kernel| *kernel.name == *dispatch.kernel).ok_or_else(|| {
                DeviceError::UnknownKernel {
                    wanted: dispatch.kernel.clone(),
                    present: kernels.iter().map(|kernel| kernel.name.to_string()).collect(),
                }
            })?;
        let at = |pc: Pc| module.bias.wrapping_add(pc.0);
        if let Some(queued) = dispatch.queued {
            let entry = Pc(at(kernel.entry()));
            let descriptor = Descriptor { entry, ..kernel.descriptor.clone() };
            let packet = self.packet_at(queued.packet)?;
            let limit = dispatch.instruction_limit;
            return self.begin_packet(queued, &packet, descriptor, dispatch.module, limit);
        }
        let (policy, target, space) = (self.policy, &self.target, &mut self.space);
        let start = at(kernel.start());
        let replaced = self.stand_ins.get(&index).and_then(|own| self.modules.get(*own));
        let replaced = replaced.and_then(|own| Some((own.bias, own.kernel(&dispatch.kernel)?)));
        let (bias, named) = replaced.unwrap_or((module.bias, kernel));
        let named_at = Address(bias.wrapping_add(named.descriptor.address));
        let placed = PlacedKernel { kernel, start, named: &named.descriptor, named_at };
        let launch = Launch::prepare(dispatch, placed, target, policy, space)?;
        Ok(Execution::new(index, launch, policy, dispatch.instruction_limit))
    }

    /// Lets kernels of `module` run in place of those of `original`: their packets say what those of
    /// the original kernels would, so that a program that reads them finds nothing else.
    ///
    /// # Errors
    /// [`DeviceError::Internal`] if a module is not this device's.
    pub fn stand_in(&mut self, module: ModuleId, original: ModuleId) -> Result<(), DeviceError> {
        self.module(module)?;
        self.module(original)?;
        self.stand_ins.insert(module.0 as usize, original.0 as usize);
        Ok(())
    }

    /// How many workgroups of a dispatch are resident at once.
    ///
    /// # Errors
    /// As [`EmbeddedGpu::begin`].
    pub fn residency(&mut self, dispatch: &Dispatch) -> Result<Residency, DeviceError> {
        let execution = self.begin(dispatch)?;
        let residency = execution.launch.residency;
        self.abandon(execution)?;
        Ok(residency)
    }

    /// Advances a dispatch that [`EmbeddedGpu::begin`] began, until it ends or has executed
    /// `until` wave instructions in all. The observer is asked anew which waves it watches.
    ///
    /// # Errors
    /// None for an execution of this device, or of the one it was cloned from at the time.
    pub fn advance(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        self.advance_with(execution, observer, &mut Unchecked, until, Notes::None)
    }

    /// Like [`EmbeddedGpu::advance`], and adds to `footprints` what each workgroup executes, reads
    /// and writes in device memory; what the observer accesses counts as the wave's. Execution is
    /// the same, and slower.
    ///
    /// # Errors
    /// As [`EmbeddedGpu::advance`].
    pub fn advance_recorded(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        footprints: &mut Footprints,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        self.advance_with(execution, observer, &mut Unchecked, until, Notes::Touched(footprints))
    }

    /// Like [`EmbeddedGpu::advance`], and reports to the observer which bytes of device memory each
    /// instruction writes, see [`WaveState::take_written`](crate::WaveState::take_written). Execution is the same, and slower.
    ///
    /// # Errors
    /// As [`EmbeddedGpu::advance`].
    pub fn advance_noting(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        self.advance_with(execution, observer, &mut Unchecked, until, Notes::Written)
    }

    /// The allocations of the device's memory, those of loaded code objects included: address and
    /// bytes, by ascending address.
    pub fn allocations(&self) -> impl Iterator<Item = (Address, u64)> {
        self.space.allocations()
    }

    /// Like [`Device::read`], of all that waves can read: beyond the end of an allocation to that of
    /// its last page, and on into the allocation that follows there.
    ///
    /// # Errors
    /// As [`Device::read`].
    pub fn read_pages(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.space.read_pages(address, bytes)
    }

    /// Like [`Device::write`], where [`EmbeddedGpu::read_pages`] reads.
    ///
    /// # Errors
    /// As [`Device::write`].
    pub fn write_pages(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        self.space.write_pages(address, bytes)
    }

    /// A loaded code object.
    pub fn code_object(&self, module: ModuleId) -> Option<&CodeObject> {
        self.modules.get(module.0 as usize)?.code_object.as_ref()
    }

    /// Which source lines the code of a loaded code object is from; empty where that is not said.
    pub fn lines(&self, module: ModuleId) -> Option<&LineTable> {
        self.modules.get(module.0 as usize).map(|module| &module.lines)
    }

    /// The code of each module, decoded for the size of the execution's waves.
    fn programs_of(&self, execution: &Execution) -> Vec<Arc<Program>> {
        let machine = execution.launch.machine;
        let of_machine = |(index, program): (usize, &Arc<Program>)| {
            program.of_machine(machine, index == execution.home)
        };
        self.programs_for(machine.lanes).iter().enumerate().map(of_machine).collect()
    }

    /// The code of each module, decoded for waves of so many lanes.
    fn programs_for(&self, lanes: u8) -> &[Arc<Program>] {
        let size = self.target.wave_sizes().iter().position(|size| *size == lanes);
        size.and_then(|size| self.programs.get(size)).map_or(&[], |own| own)
    }

    /// Advances a dispatch to its end.
    fn finish<C: Checker>(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        checker: &mut C,
    ) -> Result<Completion, DeviceError> {
        loop {
            if let Progress::Ended(end) =
                self.advance_with(execution, observer, checker, u64::MAX, Notes::None)?
            {
                return Ok(end);
            }
        }
    }

    /// Advances a dispatch with an observer and a checker until it ends or has executed `until` wave
    /// instructions in all, and notes what is asked for.
    fn advance_with<C: Checker>(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        checker: &mut C,
        until: u64,
        notes: Notes<'_>,
    ) -> Result<Progress, DeviceError> {
        let programs = self.programs_of(execution);
        if programs.len() <= execution.home {
            return Err(DeviceError::Internal("the execution is of another device".into()));
        }
        let mut scheduler = Scheduler::new(&programs, observer, checker, until, self.spare.take());
        let space = &mut self.space;
        let mut progress = match notes {
            Notes::None => scheduler.run(execution, space, None),
            Notes::Touched(footprints) => scheduler.run(execution, space, Some(footprints)),
            Notes::Written => scheduler.run(execution, &mut Noting::new(space), None),
        };
        self.spare.give(scheduler.into_spare());
        let ended = match &mut progress {
            Progress::Ended(Completion::Faulted(fault)) => Some(fault),
            _ => None,
        };
        let reported = execution.stall.as_mut().map(|report| &mut report.fault);
        ended.into_iter().chain(reported).for_each(|fault| self.add_lines(fault));
        if matches!(progress, Progress::Ended(_)) {
            self.end(execution)?;
        }
        Ok(progress)
    }

    /// Gives back what an execution has had that has ended.
    fn end(&mut self, execution: &Execution) -> Result<(), DeviceError> {
        execution.launch.release(&mut self.space)?;
        self.sync = execution.sync.left_behind();
        Ok(())
    }

    /// Adds the source lines to a fault that names instructions.
    fn add_lines(&self, fault: &mut DeviceFault) {
        let FaultCause::Stalled(stall) = &mut fault.cause else { return };
        for waiting in &mut stall.waits {
            let module = self.modules.get(waiting.module.0 as usize);
            waiting.line = module.and_then(|module| module.lines.lookup(waiting.pc));
        }
    }

    fn module(&self, module: ModuleId) -> Result<&Arc<Module>, DeviceError> {
        let not_loaded = || DeviceError::Internal(format!("no module {} is loaded", module.0));
        self.modules.get(module.0 as usize).ok_or_else(not_loaded)
    }
}

impl Device for EmbeddedGpu {
    fn target(&self) -> &Target {
        &self.target
    }

    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        self.space.allocate(bytes)
    }

    fn free(&mut self, address: Address) -> Result<(), DeviceError> {
        self.space.free(address)
    }

    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        self.space.write(address, bytes)
    }

    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.space.read(address, bytes)
    }

    fn load(&mut self, code_object: &CodeObject) -> Result<ModuleId, DeviceError> {
        self.add_code_object(code_object)
    }

    fn address_of(&self, module: ModuleId, address: u64) -> Result<Address, DeviceError> {
        let module = self.module(module)?;
        if !module.image.contains(&address) {
            let image = module.image.clone();
            return Err(DeviceError::OutsideModule { address, image });
        }
        Ok(Address(module.bias.wrapping_add(address)))
    }

    fn dispatch(&mut self, dispatch: &Dispatch) -> Result<Completion, DeviceError> {
        self.dispatch_observed(dispatch, &mut Unobserved)
    }
}
