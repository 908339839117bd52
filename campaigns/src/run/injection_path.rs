//! Injection inside the embedded GPU or with hooks.

/// Injection mechanism. Both accept the same fault sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InjectionPath {
    /// Inside the embedded GPU.
    #[default]
    Embedded,
    /// With hooks in rewritten code, as on any device.
    Hook,
}
