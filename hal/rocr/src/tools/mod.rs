//! The HSA tools library: interception of code objects and dispatches inside an application.
//!
//! The runtime loads the library named by `HSA_TOOLS_LIB` and calls its `OnLoad` with the tables
//! through which it calls its own functions. [`install`] replaces entries of these tables. From then on
//! an [`Interceptor`] handles every loaded code object and every dispatched kernel.
//!
//! **Code.** A code object may be replaced by one that has each kernel twice, in its original version
//! and in an instrumented version under another name; both versions share all variables. A separate
//! instrumented code object would have its own copy of the variables.
//!
//! **Dispatches.** Queues of the application become intercepted queues
//! (`hsa_amd_queue_intercept_create`). Each dispatch of a kernel from a code object becomes four
//! packets: a barrier that signals that all preceding packets are done; a barrier that waits for the
//! interceptor; the dispatch; and a barrier that delays the following packets and the application's
//! completion signal until the interceptor has handled the end. Dispatches of all queues run one after
//! another and are numbered in that order. Therefore a kernel that waits for a kernel of another queue
//! waits forever.
//!
//! The version of a kernel is selected when its packet is submitted, before its dispatch number is
//! known, because submitted packets cannot be changed. Values that depend on the number are written to
//! the hooks' memory.
//!
//! Not intercepted: code objects that are read through the loader's extension table, and the deprecated
//! `hsa_code_object_t`; HIP uses neither. Timing events include the time of the interceptor.
//!
//! **Signals.** [`watch_stores`] is for clients that only need to know when packets may have been
//! submitted. [`replace_waits`] is for clients that implement the application's waits.
//!
//! Newer ROCm ignores `HSA_TOOLS_LIB` if rocprofiler-register is active, unless
//! `HSA_TOOLS_ROCPROFILER_V1_TOOLS` is set. rocprofiler-register passes the same tables to the library
//! named by `ROCPROFILER_REGISTER_LIBRARY`.

mod alternate;
mod api_table;
mod code;
mod copy_engine;
mod faults;
mod gate;
mod interceptor;
mod load;
mod memory;
mod queue;
mod runtime;
mod shutdown;
mod signal;
mod stores;
mod waits;

pub use api_table::{install, shut_down};
pub use copy_engine::CopyEngine;
pub use hsa_sys::HsaApiTable;
pub use interceptor::{CodeId, Dispatch, Interceptor, Replacement, Version};
pub use memory::Memory;
pub use shutdown::{MappedRanges, unmap_at_shutdown};
pub use stores::watch_stores;
pub use waits::{Sleep, replace_waits};
