//! The tools library: what runs inside of an application because `HSA_TOOLS_LIB` names it.
//!
//! The runtime calls `OnLoad` of such a library with the tables through which it calls its own
//! functions. [`install`] puts other functions into some places of them. From then on an
//! [`Interceptor`] is asked about every code object that is loaded and every kernel that is
//! dispatched.
//!
//! **Code.** In place of a code object another one may be loaded that has its kernels twice, as
//! they were and under other names: both versions then share one copy of all variables. Loading
//! instrumented code as a code object of its own would give it variables of its own.
//!
//! **Dispatches.** A queue of the application is made one that shows its packets
//! (`hsa_amd_queue_intercept_create`). Each dispatch of a kernel from a code object becomes four
//! packets: a barrier that signals when all before is done; a barrier that waits until the
//! interceptor is ready; the dispatch; and a barrier that keeps what follows, and the application's
//! completion signal, until the interceptor has seen the end. Dispatches of all queues run one
//! after another, and are numbered in that order. Kernels that wait for another queue's kernel
//! would wait for ever.
//!
//! Which version of a kernel runs is settled when its packet is submitted, before its number is
//! known: a packet in a queue cannot be changed any more. What depends on the number goes into the
//! memory of the hooks.
//!
//! Not seen: code objects that are read with functions of the loader's extension table, and the
//! deprecated `hsa_code_object_t`; HIP uses neither. Events that measure time measure the
//! interceptor, too.
//!
//! **Doorbells.** [`watch_stores`] is for those who need no more than when packets are submitted.
//! [`replace_waits`] is for those who end the application's waits themselves.
//!
//! Newer ROCm ignores `HSA_TOOLS_LIB` where rocprofiler-register is active, unless
//! `HSA_TOOLS_ROCPROFILER_V1_TOOLS` is set; and rocprofiler-register gives the same tables to the
//! library that `ROCPROFILER_REGISTER_LIBRARY` names.

mod beside;
mod code;
mod copy_engine;
mod ends;
mod faults;
mod gate;
mod interceptor;
mod load;
mod memory;
mod queue;
mod replaced;
mod signal;
mod stores;
mod waits;

pub use ends::{Mapped, unmap_at_end};
pub use hsa_sys::HsaApiTable;
pub use interceptor::{CodeId, Dispatch, Interceptor, Replacement, Version};
pub use memory::Memory;
pub use replaced::{install, shut_down};
pub use stores::watch_stores;
pub use waits::{Sleep, replace_waits};

use code::Registry;
use flipwave_device::FaultCause;
use gate::Gate;
use hsa_sys::{AmdExtFunctions, CoreApiTable};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// All that there is of the tools library in a process.
struct Tools {
    /// The runtime's own functions.
    core: CoreApiTable,
    amd: AmdExtFunctions,
    interceptor: Box<dyn Interceptor>,
    registry: Mutex<Registry>,
    gate: Gate,
}

static TOOLS: OnceLock<Tools> = OnceLock::new();

impl Tools {
    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports a fault to the interceptor.
    fn fault(&self, cause: &FaultCause) {
        let dispatch = self.gate.under_way();
        let memory = match &dispatch {
            Some(dispatch) => self.memory().of_stopped(dispatch.gpu),
            None => self.memory(),
        };
        self.interceptor.fault(dispatch.as_ref(), cause, &memory);
    }

    fn memory(&self) -> Memory {
        Memory::new(self.core.hsa_memory_copy_fn)
    }
}
