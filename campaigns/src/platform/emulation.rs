//! Programs with emulated instructions.

use super::other_platform::OtherPlatformError;
use flipwave_emulator::{ClosestMatch, EmulateError, Instruction};
use flipwave_injector::{GoldenError, Workload};
use flipwave_tools::ToolError;
use std::collections::BTreeMap;

/// Errors returned when emulating instructions.
#[derive(Debug, thiserror::Error)]
pub enum EmulationError {
    /// An instruction cannot be emulated, or has no proxy.
    #[error(transparent)]
    Emulate(#[from] Box<EmulateError>),
    /// Hooks cannot be compiled or loaded, or a dispatch does not complete.
    #[error(transparent)]
    Tool(#[from] Box<ToolError>),
    /// A dispatch does not complete.
    #[error(transparent)]
    Golden(#[from] GoldenError),
    /// The machine belongs to another platform.
    #[error(transparent)]
    OtherPlatform(#[from] OtherPlatformError),
}

/// Replaces proxies in code of a platform by hooks, on its simulated GPUs.
pub trait EmulationMethod {
    /// Replaces the code of a workload by code that emulates its proxies. Observers see an emulated instruction as
    /// one instruction.
    ///
    /// # Errors
    /// [`EmulationError`] if an instruction cannot be emulated, or has no proxy.
    fn install(
        &self,
        instructions: &[Instruction],
        workload: &mut Workload,
    ) -> Result<(), EmulationError>;

    /// Executes a workload, whose proxies are not replaced yet, with emulated instructions.
    ///
    /// # Errors
    /// [`EmulationError`] if an instruction cannot be emulated, or a dispatch does not complete.
    fn run(
        &self,
        instructions: &[Instruction],
        workload: &Workload,
    ) -> Result<EmulatedRun, EmulationError>;
}

/// Result of a run with emulated instructions.
pub struct EmulatedRun {
    /// Counts of each dispatch that was counted.
    pub dispatches: Vec<EmulatedDispatch>,
    /// Contents of the outputs.
    pub outputs: Vec<Vec<u8>>,
}

/// Counts of a dispatch.
pub struct EmulatedDispatch {
    /// Index of the dispatch.
    pub dispatch: usize,
    /// Its kernel.
    pub kernel: String,
    /// Number of waves.
    pub waves: u64,
    /// Number of wave instructions, of which an emulated one counts once.
    pub instructions: u64,
    /// The proxies in the kernel and the functions that it may call.
    pub proxies: Vec<ExecutedProxy>,
}

/// Executions of a proxy.
pub struct ExecutedProxy {
    /// Name of the emulated instruction.
    pub instruction: String,
    /// Kernel or device function that contains the proxy.
    pub function: String,
    /// Address of the proxy.
    pub pc: String,
    /// Source line, as `file:line`; empty if unknown.
    pub line: String,
    /// Number of executions by waves.
    pub executions: u64,
}

/// Emulated instructions that have proxies, over all code of a program.
#[derive(Default)]
pub(super) struct Matches {
    /// Closest match by name of the emulated instruction; `None` if it has a proxy.
    closest: BTreeMap<String, Option<ClosestMatch>>,
}

impl Matches {
    /// Adds the matches in a module: names of the instructions with proxies, and closest matches by name.
    pub fn add<'a>(
        &mut self,
        instructions: &[Instruction],
        found: impl Iterator<Item = &'a Instruction>,
        closest_match: impl Fn(&str) -> Option<ClosestMatch>,
    ) {
        for instruction in found {
            self.closest.insert(instruction.name.clone(), None);
        }
        for Instruction { name, .. } in instructions {
            let closest = closest_match(name).unwrap_or(ClosestMatch::NoOperation);
            let known = self.closest.entry(name.clone()).or_insert(Some(closest.clone()));
            if matches!(known, Some(ClosestMatch::NoOperation)) {
                *known = Some(closest);
            }
        }
    }

    /// Checks that each emulated instruction has a proxy.
    pub fn check(mut self, instructions: &[Instruction]) -> Result<(), EmulateError> {
        for instruction in instructions {
            if let Some(Some(closest)) = self.closest.remove(&instruction.name) {
                return Err(EmulateError::NoProxy {
                    instruction: instruction.name.clone(),
                    proxy: instruction.proxy.clone(),
                    closest: Box::new(closest),
                });
            }
        }
        Ok(())
    }
}
