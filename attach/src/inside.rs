//! The side that is inside of the application.

use crate::session::Session;
use flipwave_device::DeviceError;
use flipwave_kfd::{Driver, Machine};
use flipwave_sim::{EmbeddedGpu, Execution, Progress, Unobserved};
use std::sync::Arc;

/// Exit code of the application where the tool fails.
const TOOL_FAILED: i32 = 2;

extern "C" fn attach() {
    flipwave_kfd::on_open(open);
}

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static ATTACH: extern "C" fn() = attach;

/// The machine for the runtime of this process.
fn open() -> Option<Arc<Machine>> {
    let machine = Session::of_process().and_then(|session| {
        let target = session.target()?;
        Machine::start(&target, session.gpus, Box::new(Plain)).map_err(|error| error.to_string())
    });
    machine.map_err(|reason| fail(&reason)).ok()
}

/// Ends the application because the tool cannot go on.
fn fail(reason: &str) {
    eprintln!("flipwave: {reason}");
    // SAFETY: ends the process at once. What the runtime would do at an orderly end may wait for
    // the GPU, which has stopped.
    unsafe { libc::_exit(TOOL_FAILED) };
}

/// Executes, and nothing else.
struct Plain;

impl Driver for Plain {
    fn advance(
        &mut self,
        gpu: &mut EmbeddedGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        gpu.advance(execution, &mut Unobserved, until)
    }

    fn fail(&mut self, error: &DeviceError) {
        fail(&error.to_string());
    }
}
