//! State of a dispatch between two instructions.

use flipwave_device::{Completion, Dim3, Statistics, WaveId};
use std::any::Any;
use std::ops::{Deref, DerefMut};

/// A running dispatch: the state of all its waves, their LDS, and whose turn it is. The machine owns
/// the device memory, so that a clone of both, taken together, is the whole state.
pub struct Execution(Box<dyn DispatchState>);

impl Execution {
    /// Wraps the state of a dispatch.
    pub fn new(state: impl DispatchState) -> Execution {
        Execution(Box::new(state))
    }

    /// Copies the execution into no more memory than its state needs; a clone has memory for all
    /// registers that waves can have.
    pub fn compacted(&self) -> Execution {
        Execution(self.0.compacted())
    }

    /// Creates the execution of a single workgroup: it continues as in this execution, provided that the
    /// workgroup is independent of the others (see [`Footprints::dependent`](crate::Footprints::dependent)).
    /// Its statistics, which the limit applies to, begin with what the workgroup has executed already; the
    /// limit is this execution's until it is set. `slot` is the workgroup's slot among the resident ones,
    /// and matters only if the workgroup has not started (see [`Footprint::slot`](crate::Footprint::slot)).
    ///
    /// The new execution needs its own clone of the machine, taken at the same time: the launch's memory
    /// is freed there when it ends.
    ///
    /// Returns `None` if the workgroup has ended, or if the dispatch has no such workgroup or slot.
    pub fn alone(&self, workgroup: Dim3, slot: usize) -> Option<Execution> {
        self.0.alone(workgroup, slot).map(Execution)
    }

    /// Returns `true` if the execution continues like another execution of the same dispatch on a
    /// machine in the same state: waves are in the same state, and it is the turn of the same one.
    pub fn continues_like(&self, other: &Execution) -> bool {
        self.0.continues_like(&*other.0)
    }
}

impl Clone for Execution {
    fn clone(&self) -> Execution {
        Execution(self.0.boxed())
    }
}

impl Deref for Execution {
    type Target = dyn DispatchState;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl DerefMut for Execution {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.0
    }
}

/// A running dispatch whose progress can be limited.
pub trait Limited {
    /// Wave instructions executed so far.
    fn wave_instructions(&self) -> u64;

    /// Sets the number of wave instructions after which the watchdog ends the execution.
    fn set_limit(&mut self, wave_instructions: u64);
}

impl Limited for Execution {
    fn wave_instructions(&self) -> u64 {
        self.0.statistics().wave_instructions
    }

    fn set_limit(&mut self, wave_instructions: u64) {
        self.0.set_limit(wave_instructions);
    }
}

/// State of a dispatch on a machine of one kind, see [`Execution`].
pub trait DispatchState: Any + Send + Sync {
    /// Statistics of the execution so far.
    fn statistics(&self) -> Statistics;

    /// Sets the number of wave instructions after which the watchdog ends the execution.
    fn set_limit(&mut self, wave_instructions: u64);

    /// The workgroup whose turn it is; `None` if no workgroup is resident.
    fn workgroup(&self) -> Option<Dim3>;

    /// Number of instructions that a wave of a resident workgroup has executed; `None` for waves that
    /// have not started, and for waves of workgroups that have ended.
    fn executed(&self, wave: WaveId) -> Option<u64>;

    /// Size in bytes of the registers and LDS in [compact copies](Execution::compacted).
    fn state_bytes(&self) -> u64;

    /// See [`Execution::alone`].
    fn alone(&self, workgroup: Dim3, slot: usize) -> Option<Box<dyn DispatchState>>;

    /// See [`Execution::compacted`].
    fn compacted(&self) -> Box<dyn DispatchState>;

    /// See [`Execution::continues_like`]; `false` for the state of another kind of machine.
    fn continues_like(&self, other: &dyn DispatchState) -> bool;

    /// Returns a copy.
    fn boxed(&self) -> Box<dyn DispatchState>;

    /// The value itself, for its machine.
    fn as_any(&self) -> &dyn Any;

    /// The value itself, for its machine.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// Progress of a dispatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The dispatch can be advanced further.
    Paused,
    /// The dispatch has ended.
    Ended(Completion),
}
