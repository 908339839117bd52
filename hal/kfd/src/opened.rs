//! The machine of this process, made when the runtime asks for one for the first time.

use crate::machine::Machine;
use std::sync::{Arc, OnceLock};

type Opener = fn() -> Option<Arc<Machine>>;

static OPENER: OnceLock<Opener> = OnceLock::new();
static MACHINE: OnceLock<Option<Arc<Machine>>> = OnceLock::new();

/// Says who makes the machine when the runtime asks for one for the first time.
pub fn on_open(opener: Opener) {
    let _ = OPENER.set(opener);
}

/// The machine, if one can be made.
pub fn machine() -> Option<&'static Arc<Machine>> {
    MACHINE.get_or_init(|| OPENER.get().and_then(|open| open())).as_ref()
}

/// Has the machine of this process, if there is one, look at once which packets its compute queues
/// have got: packets are executed in the order in which they were seen. To be called when the
/// application has submitted some.
pub fn note_submissions() {
    if let Some(Some(machine)) = MACHINE.get() {
        machine.note_submissions();
    }
}
