//! Simulated GPUs.

use crate::{
    Execution, FaultDetail, Fidelity, FidelityCheck, Footprints, Observer, OutsideSegment,
    Progress, Stalls, Survey, WaveState,
};
use flipwave_arch::{Architecture, LaneMask, Pc, RegisterId, RegisterSpan, SourceLines};
use flipwave_device::{
    Address, DeviceError, Dispatch, FaultKind, KernelPacket, ModuleId, WaveLocation,
};
use std::any::Any;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

/// A simulated GPU with loaded code and data. A clone is an independent machine in the same state.
pub struct Simulator(Box<dyn Machine>);

impl Simulator {
    /// Wraps a machine.
    pub fn new(machine: impl Machine) -> Simulator {
        Simulator(Box::new(machine))
    }

    /// The machine as one of a certain type; `None` if it is another one.
    pub fn downcast<M: Machine>(&self) -> Option<&M> {
        self.0.as_any().downcast_ref()
    }

    /// The machine as one of a certain type; `None` if it is another one.
    pub fn downcast_mut<M: Machine>(&mut self) -> Option<&mut M> {
        self.0.as_any_mut().downcast_mut()
    }

    /// Returns `true` if waves cannot distinguish the machine from a clone of it.
    pub fn is_in_state_of(&self, other: &Simulator) -> bool {
        self.0.is_in_state_of(&*other.0)
    }

    /// Returns the parts of a range that may differ in another machine's memory, as offsets from the
    /// start of the range: all but the parts that they [share](Machine::share_memory). One of the
    /// machines must be a clone of the other.
    pub fn unshared_with(&self, other: &Simulator, start: Address, bytes: u64) -> Vec<Range<u64>> {
        self.0.unshared_with(&*other.0, start, bytes)
    }

    /// Host memory in bytes that this machine's memory takes in addition to another machine's,
    /// without the memory that they [share](Machine::share_memory). One of the machines must be
    /// a clone of the other.
    pub fn added_host_bytes(&self, other: &Simulator) -> u64 {
        self.0.added_host_bytes(&*other.0)
    }
}

impl Clone for Simulator {
    fn clone(&self) -> Simulator {
        Simulator(self.0.boxed())
    }
}

impl fmt::Debug for Simulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Simulator").field(self.architecture()).finish()
    }
}

impl Deref for Simulator {
    type Target = dyn Machine;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl DerefMut for Simulator {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.0
    }
}

/// A simulated GPU of one instruction set.
pub trait Machine: Any + Send + Sync {
    /// The instruction set.
    fn architecture(&self) -> &Arc<dyn Architecture>;

    /// Allocates `bytes` of zeroed device memory.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError>;

    /// Allocates `bytes` of zeroed device memory at an address.
    ///
    /// # Errors
    /// [`DeviceError::Occupied`], [`DeviceError::OutOfMemory`].
    fn allocate_at(&mut self, address: Address, bytes: u64) -> Result<(), DeviceError>;

    /// Frees an allocation.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    fn free(&mut self, address: Address) -> Result<(), DeviceError>;

    /// Copies bytes to the device.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Copies bytes from the device.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Like [`Machine::read`], for everything that waves can read: includes the rest of an
    /// allocation's last page, and adjacent allocations.
    ///
    /// # Errors
    /// See [`Machine::read`].
    fn read_pages(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Like [`Machine::write`], for the bytes that [`Machine::read_pages`] reads.
    ///
    /// # Errors
    /// See [`Machine::write`].
    fn write_pages(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Addresses and sizes of the allocations in device memory, including loaded code, by ascending
    /// address.
    fn allocations(&self) -> Vec<(Address, u64)>;

    /// The allocation that contains an address.
    fn allocation_around(&self, address: Address) -> Option<Range<Address>>;

    /// Makes future clones of this machine share its memory until they write it.
    fn share_memory(&mut self) {}

    /// See [`Simulator::is_in_state_of`]; `false` for a machine of another type.
    fn is_in_state_of(&self, other: &dyn Machine) -> bool;

    /// See [`Simulator::unshared_with`].
    fn unshared_with(&self, _other: &dyn Machine, _start: Address, bytes: u64) -> Vec<Range<u64>> {
        std::iter::once(0..bytes).collect()
    }

    /// See [`Simulator::added_host_bytes`].
    fn added_host_bytes(&self, _other: &dyn Machine) -> u64 {
        self.allocations().into_iter().map(|(_, bytes)| bytes).sum()
    }

    /// Treatment of dispatches that cannot progress.
    fn stalls(&self) -> Stalls;

    /// Sets the treatment of new dispatches that cannot progress.
    fn set_stalls(&mut self, stalls: Stalls);

    /// Sets the amount of information about faults of new dispatches.
    fn set_fault_detail(&mut self, detail: FaultDetail);

    /// Number of lanes of the waves of a dispatch.
    fn wave_lanes(&self, dispatch: &Dispatch) -> u8;

    /// Registers of a wave of a dispatch that faults can strike, although instructions may not name
    /// them.
    fn registers(&self, dispatch: &Dispatch, state: &dyn WaveState) -> Vec<RegisterSpan>;

    /// Source lines of a module's code; `None` if none are known. For rewritten code, those of the
    /// original code.
    fn lines(&self, module: ModuleId) -> Option<&dyn SourceLines>;

    /// The packet in memory that a dispatch of a runtime executes, and the LDS bytes that its recorded
    /// launch needs; `None` for other dispatches.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`] if there is no such memory.
    fn packet(&self, _dispatch: &Dispatch) -> Result<Option<(KernelPacket, u32)>, DeviceError> {
        Ok(None)
    }

    /// First dwords of instructions that end any dispatch in a known way, with the ending. Empty if code
    /// has no encoding.
    fn fatal_encodings(&self) -> Vec<(u32, FaultKind)> {
        Vec::new()
    }

    /// Name that the original code of a module gives to a register at an instruction; `None` if registers are named as
    /// their classes do.
    fn register_name(&self, _module: ModuleId, _pc: Pc, _register: RegisterId) -> Option<String> {
        None
    }

    /// The register that the original code of a module gives a name to at an instruction.
    fn register_named(&self, _module: ModuleId, _pc: Pc, _name: &str) -> Option<RegisterId> {
        None
    }

    /// The registers that functions of a module's original code declare under a name, or words of them.
    fn registers_named(&self, _module: ModuleId, _name: &str) -> Vec<RegisterSpan> {
        Vec::new()
    }

    /// Names of the registers that a module's original code declares, for messages; `None` if registers are named as
    /// their classes do.
    fn declared_registers(&self, _module: ModuleId) -> Option<String> {
        None
    }

    /// Returns `true` if a module's code was rewritten. Observers see the original code, except those of
    /// [`Machine::advance_recording_writes`].
    fn is_rewritten(&self, _module: ModuleId) -> bool {
        false
    }

    /// Maps a location in rewritten code to the original code.
    fn original(&self, _module: ModuleId, location: WaveLocation) -> WaveLocation {
        location
    }

    /// Prepares a dispatch without executing it. Clones of the machine and of the execution, taken
    /// at the same time, are a complete checkpoint; [`Machine::advance`] on the clones has the
    /// same results as on the originals.
    ///
    /// # Errors
    /// [`DeviceError::UnknownKernel`], [`DeviceError::BadLaunch`].
    fn begin(&mut self, dispatch: &Dispatch) -> Result<Execution, DeviceError>;

    /// Advances a dispatch created by [`Machine::begin`] until it ends or has executed `until`
    /// wave instructions in total. The observer selects the waves it watches again.
    ///
    /// # Errors
    /// [`DeviceError::Internal`] for an execution of another machine.
    fn advance(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        until: u64,
    ) -> Result<Progress, DeviceError>;

    /// Like [`Machine::advance`], and adds the executed instructions and accessed bytes of each
    /// workgroup to `footprints`; accesses by the observer count as the wave's.
    ///
    /// # Errors
    /// See [`Machine::advance`].
    fn advance_recorded(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        footprints: &mut Footprints,
        until: u64,
    ) -> Result<Progress, DeviceError>;

    /// Like [`Machine::advance`], and reports the bytes of device memory that each instruction
    /// writes to the observer, see [`WaveState::take_written`]. The observer sees the code as executed,
    /// rewritten or not.
    ///
    /// # Errors
    /// See [`Machine::advance`].
    fn advance_recording_writes(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        until: u64,
    ) -> Result<Progress, DeviceError>;

    /// Creates a survey for an execution that has not started. It finds accesses beyond the LDS of
    /// a workgroup and beyond the private memory of a work-item. If `counted` is given, it also counts
    /// the executions of waves, and of these lanes.
    ///
    /// # Errors
    /// [`DeviceError::Internal`] for an execution of another machine.
    fn begin_survey(
        &self,
        execution: &Execution,
        counted: Option<LaneMask>,
    ) -> Result<Box<dyn Survey>, DeviceError>;

    /// Like [`Machine::advance`], with a survey. If a fidelity check is given, it is advanced, too; if
    /// `footprints` are given, accesses are added as by [`Machine::advance_recorded`].
    ///
    /// # Errors
    /// See [`Machine::advance`].
    fn advance_surveyed(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        survey: &mut dyn Survey,
        fidelity: Option<&mut dyn FidelityCheck>,
        footprints: Option<&mut Footprints>,
        until: u64,
    ) -> Result<Progress, DeviceError>;

    /// Like [`Machine::advance_surveyed`] without an observer, on at most `threads` threads.
    ///
    /// # Errors
    /// See [`Machine::advance`].
    fn advance_surveyed_divided(
        &mut self,
        execution: &mut Execution,
        survey: &mut dyn Survey,
        fidelity: &mut dyn FidelityCheck,
        footprints: &mut Footprints,
        threads: NonZeroUsize,
        until: u64,
    ) -> Result<Progress, DeviceError>;

    /// Ends a survey and returns the accesses beyond LDS and private memory, at the locations of the
    /// original code.
    fn outside_segments(&self, survey: Box<dyn Survey>) -> Vec<OutsideSegment>;

    /// Creates a fidelity check of a run before its first dispatch.
    fn fidelity_check(&self) -> Box<dyn FidelityCheck>;

    /// Attaches a fidelity check to an execution of `kernel` that has not started. The previous
    /// dispatch of the check must have ended.
    fn begin_fidelity(&self, kernel: &str, execution: &Execution, check: &mut dyn FidelityCheck);

    /// Returns `true` if the code shows that unsettled results cannot change the control flow of
    /// any wave of a dispatch: results of its operations, and results in memory, if earlier
    /// dispatches may have left some there. Returns `false` if the code is not available.
    fn has_settled_course(&self, dispatch: &Dispatch, memory_may_be_marked: bool) -> bool;

    /// Like [`Machine::advance`] without an observer, with a fidelity check.
    ///
    /// # Errors
    /// See [`Machine::advance`].
    fn advance_with_fidelity(
        &mut self,
        execution: &mut Execution,
        check: &mut dyn FidelityCheck,
        until: u64,
    ) -> Result<Progress, DeviceError>;

    /// Returns the fidelity of the dispatches since the last call, all of which must have ended.
    fn fidelity(&self, check: &mut dyn FidelityCheck) -> Fidelity;

    /// Returns a copy.
    fn boxed(&self) -> Box<dyn Machine>;

    /// The value itself, for code of its instruction set.
    fn as_any(&self) -> &dyn Any;

    /// The value itself, for code of its instruction set.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}
