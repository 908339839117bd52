//! The operations of global wave sync.

/// What an instruction does with a resource. Those that take a number take it from the first
/// active lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncOperation {
    /// Sets the counter.
    Initialize,
    /// Lets a waiting wave go on, or counts up.
    Signal,
    /// As many times [`SyncOperation::Signal`].
    SignalMany,
    /// Waits until the counter is above zero, and counts down.
    Wait,
    /// Lets all waiting waves go on.
    ReleaseAll,
    /// Waits until as many waves as the counter says have come before, then lets all go on and
    /// sets the counter for the next time.
    Barrier,
}

impl SyncOperation {
    /// The operation of a canonical name.
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

/// An instruction with its resource and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncRequest {
    /// What is done.
    pub operation: SyncOperation,
    /// Which resource, modulo 64.
    pub resource: u32,
    /// The number that goes with it.
    pub value: u32,
}
