//! The interface of interceptors.

use super::{CopyEngine, Memory};
use crate::HsaError;
use flipwave_codeobj::CodeObject;
use flipwave_device::{Address, FaultCause, KernelPacket};
use flipwave_isa::Pc;
use hsa_sys::hsa_agent_t;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Identifier of a code object loaded by the application, numbered in load order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeId(pub u32);

/// A code object to load instead of the application's. Variables and kernel descriptors must have the
/// same addresses as in the original.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// The code object.
    pub object: CodeObject,
    /// Descriptor symbols of alternate versions by kernel name. A kernel without an entry has only the
    /// version in `object` under its name.
    pub alternates: BTreeMap<Arc<str>, String>,
}

/// A version of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The version under the kernel's own name.
    Primary,
    /// The version in [`Replacement::alternates`] or from [`Interceptor::load_alternate`].
    Alternate,
}

/// A dispatch that is about to run or has ended.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// Execution order among the dispatches of kernels from code objects, counted from 0.
    pub number: u32,
    /// The kernel's code object.
    pub code: CodeId,
    /// The kernel's name.
    pub kernel: Arc<str>,
    /// The version that is executed.
    pub version: Version,
    /// The packet.
    pub packet: KernelPacket,
    /// Memory address minus ELF virtual address in the executed code object.
    pub bias: u64,
    pub(crate) gpu: hsa_agent_t,
}

impl Dispatch {
    /// Converts an ELF virtual address of the executed code object to a memory address.
    pub fn address_of(&self, pc: Pc) -> Address {
        Address(self.bias.wrapping_add(pc.0))
    }

    /// Access to memory of the dispatch's GPU while it runs.
    ///
    /// # Errors
    /// [`HsaError`].
    pub fn copy_engine(&self) -> Result<CopyEngine, HsaError> {
        CopyEngine::new(self.gpu)
    }
}

/// Handler of an application's code objects and dispatches.
pub trait Interceptor: Send + Sync {
    /// Called before a code object is loaded, on a thread of the application. Returns the code object to
    /// load instead, or `None` to load the original.
    fn load(&self, code: CodeId, object: &CodeObject) -> Option<Replacement>;

    /// Called when a kernel of an original code object is dispatched for the first time, on a thread of
    /// the application. Returns a code object with an alternate version of the kernel under the same
    /// name, which is loaded into its own executable.
    fn load_alternate(
        &self,
        _code: CodeId,
        _object: &CodeObject,
        _kernel: &Arc<str>,
    ) -> Option<CodeObject> {
        None
    }

    /// Called if the runtime rejects the code object returned by [`Interceptor::load_alternate`]. The
    /// kernel then has only its primary version.
    fn alternate_rejected(&self, _code: CodeId, _kernel: &Arc<str>, _reason: &crate::HsaError) {}

    /// Called if the runtime rejects the code object returned by [`Interceptor::load`]. The original is
    /// then loaded.
    fn replacement_rejected(&self, code: CodeId, reason: &crate::HsaError);

    /// Called when a dispatch of a kernel with two versions is submitted. Returns the version to
    /// execute.
    fn version(&self, code: CodeId, kernel: &Arc<str>, packet: &KernelPacket) -> Version;

    /// Called before a dispatch starts. No other dispatch of a kernel from a code object runs on any GPU
    /// until this returns.
    fn begin(&self, dispatch: &Dispatch, memory: &Memory);

    /// Called after a dispatch has ended, before the application is notified.
    fn end(&self, dispatch: &Dispatch, memory: &Memory);

    /// Time after which a dispatch counts as hung; `None` for no limit.
    fn time_limit(&self) -> Option<Duration> {
        None
    }

    /// Called when the runtime reports a fault, before it reports the fault to the application, and when
    /// a dispatch exceeds the time limit. `dispatch` is the running dispatch, in which most faults occur.
    fn fault(&self, _dispatch: Option<&Dispatch>, _cause: &FaultCause, _memory: &Memory) {}

    /// Called when the application shuts the runtime down.
    fn finish(&self);
}
