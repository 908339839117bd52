//! Tools that check the program and report faults that they find.

use crate::program::error::PrepareError;
use flipwave_device::{Address, ModuleId};
use flipwave_machine::Simulator;
use flipwave_tools::Tool;

/// Inserts the hooks of a detector into the code of a platform.
pub trait DetectorMethod {
    /// The tool.
    fn tool(&self) -> &Tool;

    /// Inserts hooks into a loaded module and loads the result in addition. Fault sites and locations remain
    /// those of the original module.
    ///
    /// # Errors
    /// [`PrepareError`] if the tool fails, or a hook cannot be inserted.
    fn load(
        &self,
        machine: &mut Simulator,
        module: ModuleId,
    ) -> Result<LoadedDetector, PrepareError>;
}

/// A module with the hooks of a detector.
pub struct LoadedDetector {
    /// The module.
    pub module: ModuleId,
    /// The counters that its hooks use.
    pub counters: Vec<DetectorCounter>,
}

/// The counter of a detector in device memory: a 64-bit number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetectorCounter {
    /// Name of the detector.
    pub name: String,
    /// The address.
    pub address: Address,
    /// Size in bytes.
    pub bytes: usize,
}
