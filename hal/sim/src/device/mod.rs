//! The simulated GPU as a device: memory, loaded code, and dispatches.

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
use crate::dispatch::execution::Execution;
use crate::dispatch::global_sync::GlobalSync;
use crate::dispatch::launch::{Launch, PlacedKernel};
use crate::dispatch::observer::{Observer, Unobserved};
use crate::dispatch::policy::Policy;
use crate::dispatch::schedule::Scheduler;
use crate::dispatch::spare::Spares;
use crate::fault::{self, LoadedCode};
use crate::machine::{Amdgpu, OriginalCode, Originals};
use crate::memory::{AddressSpace, WriteRecorder};
use crate::module::Module;
use crate::translate::code::SlotAllocation;
use crate::translate::program::Program;
use crate::wave::Level;
use flipwave_arch::Architecture;
use flipwave_codeobj::{CodeObject, Descriptor, LineTable};
use flipwave_device::{
    Address, Completion, Device, DeviceError, DeviceFault, Dispatch, FaultCause, ModuleId,
};
use flipwave_isa::{Pc, Residency, Target};
use flipwave_machine::{Footprints, Progress};
use helpers::Helpers;
use parallel::Lengths;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A GPU in this process. A clone is an independent device in the same state; clones share code and
/// its decoded form.
#[derive(Clone, Debug)]
pub struct EmbeddedGpu {
    target: Target,
    /// The target as an instruction set.
    architecture: Arc<dyn Architecture>,
    level: Level,
    space: AddressSpace,
    policy: Policy,
    modules: Vec<Arc<Module>>,
    /// Modules that run in place of others, by index.
    stand_ins: BTreeMap<usize, usize>,
    /// Original code of rewritten modules.
    originals: Originals,
    /// Code of each module by its index; for each wave size of the target, in the order of
    /// [`Target::wave_sizes`].
    programs: Vec<Vec<Arc<Program>>>,
    spare: Spares,
    /// Resources of global wave sync after the last dispatch.
    sync: GlobalSync,
    /// Threads that dispatches are divided among.
    helpers: Helpers,
    /// Measured lengths of kernels.
    lengths: Lengths,
}

/// Recording of accesses to device memory.
enum Notes<'a> {
    None,
    /// Accesses of each workgroup.
    Touched(&'a mut Footprints),
    /// Writes of each instruction.
    Written,
}

impl EmbeddedGpu {
    /// Creates a GPU without loaded code.
    ///
    /// # Errors
    /// [`Unsupported::Target`] if the simulator does not execute the target's code.
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
            originals: Originals::default(),
            architecture: Arc::new(Amdgpu::new(target.clone())),
            spare: Spares::default(),
            sync: GlobalSync::default(),
            helpers: Helpers::default(),
            lengths: Lengths::default(),
            programs: vec![Vec::new(); target.wave_sizes().len()],
            target,
        })
    }

    /// Policy for new dispatches.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Sets the policy for new dispatches.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// Makes future clones of this device share its memory until they write it. Written memory is
    /// copied one allocation at a time.
    pub fn share_memory(&mut self) {
        self.space.share();
    }

    /// Returns `true` if waves cannot distinguish the device from a clone of it: memory, and the
    /// state of global wave sync, are equal.
    pub fn is_in_state_of(&self, other: &EmbeddedGpu) -> bool {
        self.space.is_same(&other.space) && self.sync == other.sync
    }

    /// Returns the parts of a range that may differ in another device's memory, as offsets from the
    /// start of the range: all but the parts that they [share](EmbeddedGpu::share_memory). One of
    /// the devices must be a clone of the other.
    pub fn unshared_with(
        &self,
        other: &EmbeddedGpu,
        start: Address,
        bytes: u64,
    ) -> Vec<Range<u64>> {
        self.space.unshared_with(&other.space, start, bytes)
    }

    /// Host memory in bytes that this device's memory takes in addition to another device's,
    /// without the memory that they [share](EmbeddedGpu::share_memory). One of the devices must be
    /// a clone of the other.
    pub fn added_host_bytes(&self, other: &EmbeddedGpu) -> u64 {
        self.space.added_host_bytes(&other.space)
    }

    /// Like [`Device::dispatch`], with an observer of the execution.
    ///
    /// # Errors
    /// See [`Device::dispatch`].
    pub fn dispatch_observed(
        &mut self,
        dispatch: &Dispatch,
        observer: &mut dyn Observer,
    ) -> Result<Completion, DeviceError> {
        let mut execution = self.begin(dispatch)?;
        self.finish(&mut execution, observer, &mut Unchecked)
    }

    /// Prepares a dispatch without executing it. Clones of the device and of the execution, taken
    /// at the same time, are a complete checkpoint; [`EmbeddedGpu::advance`] on the clones has the
    /// same results as on the originals.
    ///
    /// # Errors
    /// See [`Device::dispatch`].
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
        let replaced = self.stand_ins.get(&index).and_then(|stand_in| self.modules.get(*stand_in));
        let replaced =
            replaced.and_then(|stand_in| Some((stand_in.bias, stand_in.kernel(&dispatch.kernel)?)));
        let (bias, named) = replaced.unwrap_or((module.bias, kernel));
        let named_at = Address(bias.wrapping_add(named.descriptor.address));
        let placed = PlacedKernel { kernel, start, named: &named.descriptor, named_at };
        let launch = Launch::prepare(dispatch, placed, target, policy, space)?;
        Ok(Execution::new(index, launch, policy, dispatch.instruction_limit))
    }

    /// Makes kernels of `module` run in place of those of `original`. Their packets contain the
    /// values of the original kernels, so that a program that reads them sees no difference.
    ///
    /// # Errors
    /// [`DeviceError::Internal`] if a module is not this device's.
    pub fn stand_in(&mut self, module: ModuleId, original: ModuleId) -> Result<(), DeviceError> {
        self.module(module)?;
        self.module(original)?;
        self.stand_ins.insert(module.0 as usize, original.0 as usize);
        Ok(())
    }

    /// Makes observers of this device as a [`Machine`](flipwave_machine::Machine) see the original code of
    /// a module, which was rewritten.
    pub fn set_original(&mut self, module: ModuleId, original: Arc<dyn OriginalCode>) {
        self.originals.insert(module.0, original);
    }

    /// Original code of rewritten modules.
    pub(crate) fn originals(&self) -> &Originals {
        &self.originals
    }

    /// The instruction set.
    pub(crate) fn architecture_of(&self) -> &Arc<dyn Architecture> {
        &self.architecture
    }

    /// Number of workgroups of a dispatch that are resident at once.
    ///
    /// # Errors
    /// See [`EmbeddedGpu::begin`].
    pub fn residency(&mut self, dispatch: &Dispatch) -> Result<Residency, DeviceError> {
        let execution = self.begin(dispatch)?;
        let residency = execution.launch.residency;
        self.abandon(execution)?;
        Ok(residency)
    }

    /// Advances a dispatch created by [`EmbeddedGpu::begin`] until it ends or has executed `until`
    /// wave instructions in total. The observer selects the waves it watches again.
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

    /// Like [`EmbeddedGpu::advance`], and adds the executed instructions and accessed bytes of each
    /// workgroup to `footprints`; accesses by the observer count as the wave's. Execution is the
    /// same, and slower.
    ///
    /// # Errors
    /// See [`EmbeddedGpu::advance`].
    pub fn advance_recorded(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        footprints: &mut Footprints,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        self.advance_with(execution, observer, &mut Unchecked, until, Notes::Touched(footprints))
    }

    /// Like [`EmbeddedGpu::advance`], and reports the bytes of device memory that each instruction
    /// writes to the observer, see [`WaveState::take_written`](crate::WaveState::take_written).
    /// Execution is the same, and slower.
    ///
    /// # Errors
    /// See [`EmbeddedGpu::advance`].
    pub fn advance_recording_writes(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        self.advance_with(execution, observer, &mut Unchecked, until, Notes::Written)
    }

    /// Addresses and sizes of the allocations in the device's memory, including loaded code
    /// objects, by ascending address.
    pub fn allocations(&self) -> impl Iterator<Item = (Address, u64)> {
        self.space.allocations()
    }

    /// Like [`Device::read`], for everything that waves can read: includes the rest of an
    /// allocation's last page, and adjacent allocations.
    ///
    /// # Errors
    /// See [`Device::read`].
    pub fn read_pages(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.space.read_pages(address, bytes)
    }

    /// Like [`Device::write`], for the bytes that [`EmbeddedGpu::read_pages`] reads.
    ///
    /// # Errors
    /// See [`Device::write`].
    pub fn write_pages(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        self.space.write_pages(address, bytes)
    }

    /// Returns a loaded code object.
    pub fn code_object(&self, module: ModuleId) -> Option<&CodeObject> {
        self.modules.get(module.0 as usize)?.code_object.as_ref()
    }

    /// Line table of a loaded code object; empty if it has none.
    pub fn lines(&self, module: ModuleId) -> Option<&LineTable> {
        self.modules.get(module.0 as usize).map(|module| &module.lines)
    }

    /// Code of each module, decoded for the execution's wave size.
    fn programs_of(&self, execution: &Execution) -> Vec<Arc<Program>> {
        let machine = execution.launch.machine;
        let of_machine = |(index, program): (usize, &Arc<Program>)| {
            let allocation =
                if index == execution.home { SlotAllocation::Eager } else { SlotAllocation::Lazy };
            program.of_machine(machine, allocation)
        };
        self.programs_for(machine.lanes).iter().enumerate().map(of_machine).collect()
    }

    /// Code of each module, decoded for waves of `lanes` lanes.
    fn programs_for(&self, lanes: u8) -> &[Arc<Program>] {
        let size = self.target.wave_sizes().iter().position(|size| *size == lanes);
        size.and_then(|size| self.programs.get(size)).map_or(&[], |programs| programs)
    }

    /// Runs a dispatch to its end.
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

    /// Advances a dispatch with an observer and a checker until it ends or has executed `until`
    /// wave instructions in total, and records accesses as requested by `notes`.
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
            return Err(DeviceError::Internal("the execution belongs to another device".into()));
        }
        let mut scheduler = Scheduler::new(&programs, observer, checker, until, self.spare.take());
        let space = &mut self.space;
        let mut progress = match notes {
            Notes::None => scheduler.run(execution, space, None),
            Notes::Touched(footprints) => scheduler.run(execution, space, Some(footprints)),
            Notes::Written => scheduler.run(execution, &mut WriteRecorder::new(space), None),
        };
        self.spare.give(scheduler.into_spare());
        self.explain(execution, &programs, &mut progress);
        if matches!(progress, Progress::Ended(_)) {
            self.end(execution)?;
        }
        Ok(progress)
    }

    /// Releases the resources of an execution that has ended.
    fn end(&mut self, execution: &Execution) -> Result<(), DeviceError> {
        execution.launch.release(&mut self.space)?;
        self.sync = execution.sync.left_behind();
        Ok(())
    }

    /// Explains the fault that has ended an execution, or the stall that it reports, and releases the
    /// stopped wave.
    fn explain(
        &mut self,
        execution: &mut Execution,
        programs: &[Arc<Program>],
        progress: &mut Progress,
    ) {
        let stopped = execution.stopped.take();
        let ended = match progress {
            Progress::Ended(Completion::Faulted(fault)) => Some(fault),
            _ => None,
        };
        let reported = execution.stall.as_mut().map(|report| &mut report.fault);
        for fault in ended.into_iter().chain(reported) {
            self.add_lines(fault);
            if let Some(stopped) = &stopped {
                let code = LoadedCode { programs, modules: &self.modules };
                let context = fault::explain(stopped, &fault.cause, code, &mut self.space);
                fault.set_context(context);
            }
        }
    }

    /// Adds source lines to a fault that names instructions.
    fn add_lines(&self, fault: &mut DeviceFault) {
        let FaultCause::Stalled(stall) = &mut fault.cause else { return };
        for waiting in &mut stall.waits {
            let module = self.modules.get(waiting.module.0 as usize);
            let line = |module: &Arc<Module>| {
                let line = fault::user_line(module, waiting.pc);
                line.or_else(|| module.lines.lookup(waiting.pc))
            };
            waiting.line = module.and_then(line);
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
