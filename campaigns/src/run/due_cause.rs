//! Causes of DUE outcomes.

use flipwave_device::FaultKind;
use std::fmt;

/// Cause of a DUE outcome: the reason why a run was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DueCause {
    /// The device stopped a dispatch.
    Device(FaultKind),
    /// The application exited with another code than expected.
    ExitCode,
    /// A signal ended the application.
    Signal,
    /// The application exceeded its time limit.
    Timeout,
    /// The application exceeded its memory limit.
    OutOfMemory,
    /// The application exceeded its output limit.
    OutputTooLarge,
    /// The application printed an error of AMD's runtime.
    RuntimeError,
}

impl DueCause {
    /// Name in result tables.
    pub fn name(self) -> &'static str {
        match self {
            DueCause::Device(kind) => kind.name(),
            DueCause::ExitCode => "exit_code",
            DueCause::Signal => "signal",
            DueCause::Timeout => "timeout",
            DueCause::OutOfMemory => "out_of_memory",
            DueCause::OutputTooLarge => "output_too_large",
            DueCause::RuntimeError => "runtime_error",
        }
    }
}

impl fmt::Display for DueCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<FaultKind> for DueCause {
    fn from(kind: FaultKind) -> DueCause {
        DueCause::Device(kind)
    }
}
