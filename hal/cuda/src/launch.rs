//! Interface to the code that runs an application's kernels: plain, or observed by a tool.

use flipwave_device::{Address, Completion, DeviceError, DeviceFault, Dispatch, ModuleId};
use flipwave_machine::{Execution, Machine, Progress, Unobserved};
use flipwave_ptx_sim::PtxGpu;
use std::ops::Range;
use std::sync::Arc;

/// A kernel launch of the application.
#[derive(Clone, Debug)]
pub struct KernelLaunch {
    /// Number of the launch, in order of execution.
    pub number: u32,
    /// Number of the device.
    pub device: usize,
    /// Number of the stream, in order of creation; 0 for the default stream.
    pub stream: u64,
    /// The dispatch.
    pub dispatch: Dispatch,
    /// The module of the kernel.
    pub code: Arc<LoadedCode>,
}

/// Code of a loaded module.
#[derive(Debug, PartialEq, Eq)]
pub struct LoadedCode {
    /// The PTX text, with a comment for the address of each variable, see [`crate::module_of`].
    pub text: String,
}

/// Memory that kernels of a device may access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryMap {
    /// Device memory: allocations and variables of modules.
    pub device: Vec<Range<Address>>,
    /// Host memory.
    pub host: Vec<Range<Address>>,
}

/// Drives the execution of kernels. All calls come from one thread.
pub trait LaunchDriver: Send {
    /// Called before the first instruction of a kernel.
    ///
    /// # Errors
    /// Errors of the tool; they end the application.
    fn begin(
        &mut self,
        _gpu: &PtxGpu,
        _map: &MemoryMap,
        _launch: &KernelLaunch,
    ) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Returns the module that is executed: that of the launch, or a rewritten one, see
    /// [`PtxGpu::load_rewritten`]. Called after [`LaunchDriver::begin`].
    ///
    /// # Errors
    /// The errors of [`LaunchDriver::begin`].
    fn module(
        &mut self,
        _gpu: &mut PtxGpu,
        launch: &KernelLaunch,
    ) -> Result<ModuleId, DeviceError> {
        Ok(launch.dispatch.module)
    }

    /// Returns `true` if the other functions need the map of memory; without, it is empty.
    fn needs_map(&self) -> bool {
        false
    }

    /// Called when a kernel is ready and before its first instruction.
    ///
    /// # Errors
    /// The errors of [`LaunchDriver::begin`].
    fn start(&mut self, _gpu: &PtxGpu, _execution: &Execution) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Continues a kernel until it has executed `until` wave instructions since its start.
    ///
    /// # Errors
    /// The errors of [`Machine::advance`].
    fn advance(
        &mut self,
        gpu: &mut PtxGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        gpu.advance(execution, &mut Unobserved, until)
    }

    /// Number of wave instructions after which the watchdog ends a kernel as hung.
    fn limit(&self, _: &KernelLaunch) -> u64 {
        u64::MAX
    }

    /// Called when a kernel has ended, before the application is notified. Places of a fault are in the module
    /// that was executed.
    ///
    /// # Errors
    /// The errors of [`LaunchDriver::begin`].
    fn end(
        &mut self,
        _gpu: &PtxGpu,
        _map: &MemoryMap,
        _launch: &KernelLaunch,
        _completion: &Completion,
    ) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Called before the host reads device memory.
    fn before_read(&mut self, _gpu: &PtxGpu, _map: &MemoryMap, _from: Address, _bytes: u64) {}

    /// Called when the application unloads a module of a device.
    fn unload(&mut self, _device: usize, _gpu: &mut PtxGpu, _module: ModuleId) {}
}

/// Runs kernels without further tasks.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainLaunchDriver;

impl LaunchDriver for PlainLaunchDriver {}

/// A kernel that a fault has ended.
#[derive(Clone, Copy, Debug)]
pub struct FaultedLaunch<'a> {
    /// The launch.
    pub launch: &'a KernelLaunch,
    /// The fault. Its places are in the code of the application.
    pub fault: &'a DeviceFault,
    /// The fault as text, with the source line if the module has lines.
    pub text: &'a str,
}

/// Describes a fault, with the source line if the module has lines.
pub(crate) fn fault_text(gpu: &PtxGpu, launch: &KernelLaunch, fault: &DeviceFault) -> String {
    let lines = gpu.lines(launch.dispatch.module);
    let line = lines.and_then(|lines| lines.lookup(fault.place.pc));
    fault.report(line.as_ref()).to_string()
}
