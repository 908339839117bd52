//! Hardening by duplication.

use super::other_platform::OtherPlatformError;
use crate::harden::HardeningError;
use flipwave_arch::Pc;
use flipwave_device::{Address, Dispatch, ModuleId};
use flipwave_harden::{Candidates, Duplicated, Hardening};
use flipwave_injector::Workload;
use flipwave_machine::Simulator;
use std::collections::BTreeMap;

/// Duplicates instructions in the code of a platform, on its simulated GPUs.
pub trait HardeningMethod {
    /// Finds the instructions of a loaded module that can be duplicated.
    ///
    /// # Errors
    /// [`HardeningError`] if the code cannot be rewritten.
    fn candidates(
        &self,
        machine: &Simulator,
        module: ModuleId,
    ) -> Result<Candidates, HardeningError>;

    /// Hardens a loaded module and loads the result in addition. Fault sites and locations remain those of the
    /// plain module.
    ///
    /// # Errors
    /// [`HardeningError`] if the module cannot be hardened or not be loaded.
    fn harden(
        &self,
        machine: &mut Simulator,
        module: ModuleId,
        hardening: Hardening<'_>,
    ) -> Result<Box<dyn HardenedModule>, HardeningError>;
}

/// A hardened module on the device.
pub trait HardenedModule {
    /// The module.
    fn id(&self) -> ModuleId;

    /// The duplicated instructions, by address in the plain module.
    fn duplicated(&self) -> &BTreeMap<Pc, Duplicated>;

    /// The counter of detected differences.
    ///
    /// # Errors
    /// [`HardeningError::Device`] if the module is not loaded.
    fn counter(&self, machine: &Simulator) -> Result<Option<DifferenceCounter>, HardeningError>;

    /// The code as a file.
    fn file(&self) -> CodeFile;

    /// Executes a dispatch of the plain module of `workload` and the same dispatch of the hardened module, each
    /// on a clone of `machine`, and compares the values of registers.
    ///
    /// # Errors
    /// [`HardeningError::Diverged`] if control flow or memory diverged.
    fn compare_in_lockstep(
        &self,
        workload: &Workload,
        machine: &Simulator,
        plain: &Dispatch,
        hardened: &Dispatch,
    ) -> Result<LockstepSummary, HardeningError>;
}

/// A counter of detected differences in device memory: a 64-bit number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DifferenceCounter {
    /// The address.
    pub address: Address,
    /// Size in bytes.
    pub bytes: usize,
}

/// A file with code.
pub struct CodeFile {
    /// Extension of the file's name.
    pub extension: &'static str,
    /// The content.
    pub bytes: Vec<u8>,
}

/// The error for a machine of another platform, or for code that it does not have.
pub(super) fn other_machine(machine: &Simulator) -> HardeningError {
    OtherPlatformError { target: machine.architecture().target().to_owned() }.into()
}

/// Summary of a lockstep comparison of plain and hardened code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockstepSummary {
    /// Instructions executed by both.
    pub instructions: u64,
    /// Register values compared before these instructions.
    pub registers: u64,
    /// The first register with different values. The comparison of its kernel ended there.
    pub differing: Option<String>,
}
