//! The embedded GPU: executes AMDGPU machine code, functionally exact and deterministic.
//!
//! Code objects are loaded as they are. Instructions are decoded once, when they are first
//! reached, and executed on whole waves; what one lane does stands in the tables of
//! `operations` and `scalar`. The same program gives the same bits on every host.

#![allow(clippy::needless_range_loop, reason = "a lane is an index into several rows at once")]

mod aperture;
mod atomic;
mod buffer;
mod byte_set;
mod bytes;
mod checker;
mod control;
mod coverage;
mod dpp;
mod element;
mod execution;
mod footprint;
mod format;
mod global_sync;
mod hardware_register;
mod lane_access;
mod lane_value;
mod launch;
mod lds;
mod level;
mod machine;
mod memory;
mod not_compute;
mod noting;
mod numerics;
mod observer;
mod op;
mod operations;
mod parallel;
mod private;
mod program;
mod recording;
mod resident;
mod rounding;
mod rows;
mod scalar;
mod scalar_memory;
mod schedule;
mod slots;
mod spare_waves;
mod sparse;
mod stall;
mod step;
pub mod strict;
mod translate;
mod vector;
mod vector_memory;
mod wave;
mod wave_copy;
mod wave_state;
mod workgroup;

#[cfg(test)]
mod executed;
#[cfg(test)]
mod generation_tests;
#[cfg(test)]
mod test_support;

pub use byte_set::ByteSet;
pub use coverage::{Treatment, treatment};
pub use execution::{Execution, Progress, StallReport};
pub use footprint::{Footprint, FootprintUnion, Footprints};
pub use memory::AddressSpace;
pub use noting::WrittenByte;
pub use numerics::{Accuracy, Denormals, Nans, Numerics, Rounding};
pub use observer::{Executed, Observer, Unobserved, Watch};
pub use operations::numerics;
pub use wave_state::WaveState;

use checker::{Checker, Unchecked};
use flipwave_codeobj::{CodeObject, Descriptor, LineTable};
use flipwave_device::{
    Address, Completion, Device, DeviceError, DeviceFault, Dispatch, FaultCause, ModuleId,
};
use flipwave_isa::{Isa, Pc, Residency, Rules, Target};
use global_sync::GlobalSync;
use launch::Launch;
use noting::Noting;
use program::Program;
use schedule::Scheduler;
use spare_waves::SpareWaves;
use std::ops::Range;
use std::sync::Arc;
use strict::{LdsBounds, Strict, Violation};
use vector::Level;

/// Processors whose code the embedded GPU executes.
const PROCESSORS: [&str; 7] =
    ["gfx906", "gfx908", "gfx90a", "gfx940", "gfx942", "gfx1030", "gfx1100"];

/// A GPU in this process. A clone is an independent device in the same state; code and its
/// decoded form are shared.
#[derive(Clone, Debug)]
pub struct EmbeddedGpu {
    target: Target,
    level: Level,
    space: AddressSpace,
    policy: Policy,
    modules: Vec<Arc<Module>>,
    /// The code of each module, by the module's index; for each wave size of the target, in the
    /// order of [`Target::wave_sizes`].
    programs: Vec<Vec<Arc<Program>>>,
    spare: SpareWaves,
    /// The resources of global wave sync as the last dispatch has left them.
    sync: GlobalSync,
}

/// What a runtime may do one way or another, none of which a correct program depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Private memory that every work-item has at least, in bytes; more if its kernel asks for it.
    pub private_bytes: u32,
    /// Instructions that a wave executes before the next wave of its workgroup has its turn.
    pub wave_turn: u64,
    /// Rounds of turns that a workgroup has before the next one's turn, where few are resident.
    pub workgroup_turn: u32,
    /// Workgroups that are resident at least, whatever the kernel allocates.
    pub resident_workgroups: u32,
    /// What is done where nothing can happen any more because waves go round in loops.
    pub stalls: Stalls,
}

/// What is done about waves that all wait, some of them in loops in which nothing changes. Waves that
/// only wait at barriers or have halted end the dispatch whatever this says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stalls {
    /// They are left to the watchdog, whose count does not depend on how workgroups are executed.
    #[default]
    Ignore,
    /// The dispatch ends: nobody else can change memory meanwhile.
    End,
    /// They are told, and go on: see [`Execution::take_stall`].
    Report,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            private_bytes: 0,
            wave_turn: 1024,
            workgroup_turn: 64,
            resident_workgroups: 0,
            stalls: Stalls::Ignore,
        }
    }
}

/// The strict level's knowledge of a dispatch under way, see [`EmbeddedGpu::begin_check`].
pub struct StrictCheck(Strict);

/// What is known of accesses to LDS of a dispatch under way, see [`EmbeddedGpu::begin_lds_check`].
pub struct LdsCheck(LdsBounds);

/// What is noted of accesses to device memory.
enum Notes<'a> {
    None,
    /// What each workgroup touches.
    Touched(&'a mut Footprints),
    /// What each instruction writes.
    Written,
}

/// A loaded code object.
#[derive(Debug)]
struct Module {
    /// Nothing for code that came without.
    code_object: Option<CodeObject>,
    /// What is added to an ELF virtual address.
    bias: u64,
    /// The ELF virtual addresses it has.
    image: Range<u64>,
    lines: LineTable,
}

impl Module {
    /// A code object that was loaded so that `bias` is added to the ELF virtual addresses `image`.
    fn of(code_object: &CodeObject, bias: u64, image: Range<u64>) -> Module {
        // Code runs as well where its line table cannot be read.
        let lines = code_object.lines().unwrap_or_default();
        Module { code_object: Some(code_object.clone()), bias, image, lines }
    }

    /// Code that came without a code object, at these addresses.
    fn bare(image: Range<u64>) -> Module {
        Module { code_object: None, bias: 0, image, lines: LineTable::default() }
    }
}

impl EmbeddedGpu {
    /// A GPU with nothing loaded.
    ///
    /// # Errors
    /// [`DeviceError::UnsupportedTarget`] if the embedded GPU does not execute the target's
    /// code.
    pub fn new(target: Target) -> Result<EmbeddedGpu, DeviceError> {
        if !PROCESSORS.contains(&target.processor()) {
            return Err(DeviceError::UnsupportedTarget {
                wanted: target.to_string(),
                supported: PROCESSORS.to_vec(),
            });
        }
        Ok(EmbeddedGpu {
            level: Level::detect(),
            space: AddressSpace::default(),
            policy: Policy::default(),
            modules: Vec::new(),
            spare: SpareWaves::default(),
            sync: GlobalSync::default(),
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
        let launch = Launch::prepare(dispatch, kernel, start, target, policy, space)?;
        Ok(Execution::new(index, launch, policy, dispatch.instruction_limit))
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

    /// Carries a dispatch on that [`EmbeddedGpu::begin`] began, until it ends or has executed
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
        self.carry_on(execution, observer, &mut Unchecked, until, Notes::None)
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
        self.carry_on(execution, observer, &mut Unchecked, until, Notes::Touched(footprints))
    }

    /// Like [`EmbeddedGpu::advance`], and tells the observer which bytes of device memory each
    /// instruction writes, see [`WaveState::take_written`]. Execution is the same, and slower.
    ///
    /// # Errors
    /// As [`EmbeddedGpu::advance`].
    pub fn advance_noting(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        self.carry_on(execution, observer, &mut Unchecked, until, Notes::Written)
    }

    /// Like [`Device::dispatch`], with what breaks the rules of the hardware besides. Execution is
    /// the same, and much slower.
    ///
    /// # Errors
    /// As [`Device::dispatch`]; [`DeviceError::NoStrictLevel`] for a processor whose rules are not
    /// known here.
    pub fn dispatch_strict(
        &mut self,
        dispatch: &Dispatch,
    ) -> Result<(Completion, Vec<Violation>), DeviceError> {
        let mut execution = self.begin(dispatch)?;
        let mut check = self.begin_check(&execution)?;
        let end = self.finish(&mut execution, &mut Unobserved, &mut check.0)?;
        Ok((end, self.violations(check)))
    }

    /// What finds in an execution, from its beginning on, what breaks the rules of the hardware.
    ///
    /// # Errors
    /// [`DeviceError::NoStrictLevel`] for a processor whose rules are not known here.
    pub fn begin_check(&self, execution: &Execution) -> Result<StrictCheck, DeviceError> {
        let machine = execution.launch.machine;
        let is_known = strict::PROCESSORS.contains(&self.target.processor());
        let rules = Rules::of(&self.target, machine.lanes).filter(|_| is_known);
        let rules = rules.ok_or_else(|| DeviceError::NoStrictLevel {
            target: self.target.to_string(),
            known: strict::PROCESSORS.to_vec(),
        })?;
        let programs = self.programs_of(execution);
        Ok(StrictCheck(Strict::new(rules, &self.target, machine, programs)))
    }

    /// Like [`EmbeddedGpu::advance`], checked; and much slower.
    ///
    /// # Errors
    /// As [`EmbeddedGpu::advance`].
    pub fn advance_checked(
        &mut self,
        execution: &mut Execution,
        check: &mut StrictCheck,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        self.carry_on(execution, &mut Unobserved, &mut check.0, until, Notes::None)
    }

    /// What was found.
    pub fn violations(&self, check: StrictCheck) -> Vec<Violation> {
        self.with_lines(check.0.into_violations())
    }

    /// What finds in an execution, from its beginning on, accesses beyond the LDS of a workgroup.
    pub fn begin_lds_check(&self, execution: &Execution) -> LdsCheck {
        LdsCheck(LdsBounds::new(self.programs_of(execution)))
    }

    /// Like [`EmbeddedGpu::advance`], with the accesses beyond the LDS of a workgroup besides:
    /// hardware reads zero there, and drops what is written. Execution is the same, and hardly
    /// slower.
    ///
    /// # Errors
    /// As [`EmbeddedGpu::advance`].
    pub fn advance_within_lds(
        &mut self,
        execution: &mut Execution,
        check: &mut LdsCheck,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        self.carry_on(execution, &mut Unobserved, &mut check.0, until, Notes::None)
    }

    /// The accesses beyond the LDS of a workgroup that were found.
    pub fn outside_lds(&self, check: LdsCheck) -> Vec<Violation> {
        self.with_lines(check.0.into_violations())
    }

    /// Violations with the source lines of where they are.
    fn with_lines(&self, mut violations: Vec<Violation>) -> Vec<Violation> {
        for violation in &mut violations {
            let module = self.modules.get(violation.place.module.0 as usize);
            violation.line = module.and_then(|module| module.lines.lookup(violation.place.pc));
        }
        violations
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
        let lanes = execution.launch.machine.lanes;
        let size = self.target.wave_sizes().iter().position(|size| *size == lanes);
        let programs = size.and_then(|size| self.programs.get(size)).into_iter().flatten();
        let of_machine = |(index, program): (usize, &Arc<Program>)| {
            program.of_machine(execution.launch.machine, index == execution.home)
        };
        programs.enumerate().map(of_machine).collect()
    }

    /// Carries a dispatch on to its end.
    fn finish<C: Checker>(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        checker: &mut C,
    ) -> Result<Completion, DeviceError> {
        loop {
            if let Progress::Ended(end) =
                self.carry_on(execution, observer, checker, u64::MAX, Notes::None)?
            {
                return Ok(end);
            }
        }
    }

    fn carry_on<C: Checker>(
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
        let scheduler = Scheduler::new(&programs, observer, checker, until, self.spare.take());
        let space = &mut self.space;
        let (mut progress, spare) = match notes {
            Notes::None => scheduler.run(execution, space, None),
            Notes::Touched(footprints) => scheduler.run(execution, space, Some(footprints)),
            Notes::Written => scheduler.run(execution, &mut Noting::new(space), None),
        };
        self.spare.give(spare);
        let ended = match &mut progress {
            Progress::Ended(Completion::Faulted(fault)) => Some(fault),
            _ => None,
        };
        let reported = execution.stall.as_mut().map(|report| &mut report.fault);
        ended.into_iter().chain(reported).for_each(|fault| self.add_lines(fault));
        if matches!(progress, Progress::Ended(_)) {
            execution.launch.release(&mut self.space)?;
            self.sync = execution.sync.left_behind();
        }
        Ok(progress)
    }

    /// Adds the source lines to a fault that names instructions.
    fn add_lines(&self, fault: &mut DeviceFault) {
        let FaultCause::Stalled(stall) = &mut fault.cause else { return };
        for waiting in &mut stall.waits {
            let module = self.modules.get(waiting.module.0 as usize);
            waiting.line = module.and_then(|module| module.lines.lookup(waiting.pc));
        }
    }

    /// Adds a module whose code lies at a device address, and at an ELF virtual address.
    fn add_module(
        &mut self,
        module: Module,
        place: Address,
        virtual_place: Pc,
        code: Vec<u8>,
    ) -> Result<ModuleId, DeviceError> {
        let mut decoded = Vec::new();
        for size in self.target.wave_sizes() {
            let isa = Isa::with_wave_size(&self.target, *size)
                .map_err(|error| DeviceError::Load(error.to_string()))?;
            decoded.push(Program::new(isa, self.level, place.0, virtual_place.0, code.clone()));
        }
        for (programs, program) in self.programs.iter_mut().zip(decoded) {
            programs.push(Arc::new(program));
        }
        self.modules.push(Arc::new(module));
        Ok(ModuleId(self.modules.len() as u32 - 1))
    }

    fn module(&self, module: ModuleId) -> Result<&Arc<Module>, DeviceError> {
        let not_loaded = || DeviceError::Internal(format!("no module {} is loaded", module.0));
        self.modules.get(module.0 as usize).ok_or_else(not_loaded)
    }

    /// The executable bytes of a code object with their ELF virtual address: all executable
    /// sections, and what lies between them.
    fn code(code_object: &CodeObject) -> Option<(Pc, Pc)> {
        let start = code_object.text().map(|section| section.address).min()?;
        let end = code_object.text().map(|section| section.address + section.size).max()?;
        Some((Pc(start), Pc(end)))
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
        if code_object.target().processor() != self.target.processor() {
            return Err(DeviceError::WrongTarget {
                code_object: code_object.target().to_string(),
                device: self.target.to_string(),
            });
        }
        let failed = |reason: String| DeviceError::Load(reason);
        let (start, end) = EmbeddedGpu::code(code_object)
            .ok_or_else(|| failed("it has no executable section".into()))?;
        let span = code_object.load_image(0).map_err(|error| failed(error.to_string()))?;
        let place = self.space.allocate(span.bytes.len() as u64)?;
        let bias = place.0.wrapping_sub(span.address);
        let image = code_object.load_image(bias).map_err(|error| failed(error.to_string()))?;
        self.space.write(place, &image.bytes)?;
        let code_place = Address(bias.wrapping_add(start.0));
        let length = end.0 - start.0;
        let mut code = vec![0; length as usize];
        self.space.read(code_place, &mut code)?;
        // What lies between sections of code may be data.
        let mut text: Vec<_> =
            code_object.text().map(|text| text.address..text.address + text.size).collect();
        text.sort_by_key(|text| text.start);
        for text in text {
            let [start, end] = [text.start, text.end].map(|at| Address(bias.wrapping_add(at)));
            self.space.protect(start..end);
        }
        let image = span.address..span.address + span.bytes.len() as u64;
        self.add_module(Module::of(code_object, bias, image), code_place, Pc(start.0), code)
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
