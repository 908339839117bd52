//! Operations of global wave sync.

/// Operation on a resource of global wave sync. Operands come from the first active lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncOperation {
    /// Sets the counter.
    Initialize,
    /// Releases a waiting wave, or increments the counter.
    Signal,
    /// Repeats [`SyncOperation::Signal`] by the operand.
    SignalMany,
    /// Waits until the counter is above zero, and decrements it.
    Wait,
    /// Releases all waiting waves.
    ReleaseAll,
    /// Waits until the number of waves in the counter has arrived, then releases them and sets the
    /// counter for the next time.
    Barrier,
}

impl SyncOperation {
    /// Returns the operation with a canonical name.
    pub fn find(name: &str) -> Option<SyncOperation> {
        Some(match name.strip_prefix("ds_gws_")? {
            "init" => SyncOperation::Initialize,
            "sema_v" => SyncOperation::Signal,
            "sema_br" => SyncOperation::SignalMany,
            "sema_p" => SyncOperation::Wait,
            "sema_release_all" => SyncOperation::ReleaseAll,
            "barrier" => SyncOperation::Barrier,
            _ => return None,
        })
    }
}

/// An operation with its resource and operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncRequest {
    /// The operation.
    pub operation: SyncOperation,
    /// Number of the resource, modulo 64.
    pub resource: u32,
    /// The operand.
    pub value: u32,
}
