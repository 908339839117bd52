//! Treatment of dispatches that cannot progress.

/// Treatment of waves that all wait, some of them in loops in which nothing changes. If all waves
/// wait at barriers or have halted, the dispatch ends in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stalls {
    /// The watchdog ends the dispatch; its count does not depend on how workgroups are executed.
    #[default]
    Ignore,
    /// The dispatch ends at once: nothing else can change memory in the meantime.
    End,
    /// The stall is reported, and the dispatch continues.
    Report,
}
