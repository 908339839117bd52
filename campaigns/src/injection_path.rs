//! The ways to inject faults.

/// How faults are injected. Both ways strike the same sites with the same result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InjectionPath {
    /// Inside of the embedded GPU.
    #[default]
    Embedded,
    /// By hooks in rewritten code, as on any device.
    Hook,
}
