//! The runtime's original functions and the interceptor.

use super::{Interceptor, Memory};
use hsa_sys::{AmdExtFunctions, CoreApiTable};
use std::sync::OnceLock;

/// The runtime whose API table is intercepted, one per process.
pub struct Runtime {
    /// Original functions of the core API.
    pub core: CoreApiTable,
    /// Original functions of AMD's extensions.
    pub amd: AmdExtFunctions,
    /// Receives the application's dispatches and faults.
    pub interceptor: Box<dyn Interceptor>,
}

/// Set once the API table is intercepted.
pub static RUNTIME: OnceLock<Runtime> = OnceLock::new();

impl Runtime {
    /// Memory of the GPUs, accessed with the runtime's functions.
    pub fn memory(&self) -> Memory {
        Memory::new(self.core.hsa_memory_copy_fn)
    }
}
