//! Requests that only AMD's platform serves.

/// Error returned where a command needs AMD's instruction set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{target}` is not an AMD GPU; this command or option is available for AMD GPUs only")]
pub struct OtherPlatformError {
    /// The target.
    pub target: String,
}
