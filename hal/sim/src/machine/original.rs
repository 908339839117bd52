//! The original code of rewritten modules.

use crate::Interest;
use crate::dispatch::observer::{Executed, Observer, StretchObserver};
use crate::dispatch::wave_state::WaveState;
use flipwave_codeobj::LineTable;
use flipwave_device::{WaveId, WaveLocation};
use flipwave_isa::Inst;
use flipwave_machine::Watch;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The original code of a rewritten module.
pub trait OriginalCode: fmt::Debug + Send + Sync {
    /// Creates a view of a dispatch before its first instruction.
    fn view(self: Arc<Self>) -> Box<dyn OriginalView>;

    /// Translates a location in the rewritten code to the original code.
    fn location(&self, location: WaveLocation) -> WaveLocation;

    /// The source lines of the original code; empty without debug information.
    fn lines(&self) -> &LineTable;
}

/// A dispatch of rewritten code as if the original code were executed. Passes the original instructions
/// to an observer, which must be the same for the whole dispatch.
pub trait OriginalView: Send + Sync {
    /// Called before an instruction of the rewritten code.
    fn before(
        &mut self,
        inst: &Inst,
        wave: WaveId,
        state: &mut WaveState<'_>,
        observer: &mut dyn Observer,
    );

    /// Called after an instruction of the rewritten code.
    fn after(
        &mut self,
        executed: &Executed<'_>,
        state: &mut WaveState<'_>,
        observer: &mut dyn Observer,
    ) -> Watch;
}

/// The original code of the rewritten modules of a device, by module.
pub type Originals = BTreeMap<u32, Arc<dyn OriginalCode>>;

/// An observer that sees the original code.
pub(super) struct Viewed<'a> {
    pub view: &'a mut dyn OriginalView,
    pub observer: &'a mut dyn Observer,
}

impl Observer for Viewed<'_> {
    fn watches(&mut self, wave: WaveId) -> bool {
        self.observer.watches(wave)
    }

    fn interest(&self) -> Interest {
        Interest::Every
    }

    fn of_stretches(&mut self) -> Option<&mut dyn StretchObserver> {
        None
    }

    fn before(&mut self, inst: &Inst, wave: WaveId, state: &mut WaveState<'_>) {
        self.view.before(inst, wave, state, self.observer);
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        self.view.after(executed, state, self.observer)
    }
}
