//! Who is asked about code and dispatches.

use super::Memory;
use flipwave_codeobj::CodeObject;
use flipwave_device::{Address, FaultCause, KernelPacket};
use flipwave_isa::Pc;
use hsa_sys::hsa_agent_t;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A code object that the application has loaded, by the order in which it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeId(pub u32);

/// What is loaded in place of a code object. Variables, and the descriptors of the kernels, have
/// the addresses that they have in the original.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// The code.
    pub object: CodeObject,
    /// By kernel: the symbol of the descriptor of its other version, where there is one. Without,
    /// the kernel has only the version that it has in the new code.
    pub others: BTreeMap<Arc<str>, String>,
}

/// Which version of a kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// That which the kernel's own name is for.
    Named,
    /// The other one of [`Replacement::others`].
    Other,
}

/// A dispatch that is about to run, or that has run.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// Its number among the dispatches of kernels from code objects, in the order in which they
    /// are executed.
    pub number: u32,
    /// Its code.
    pub code: CodeId,
    /// Its kernel.
    pub kernel: Arc<str>,
    /// What runs.
    pub version: Version,
    /// The packet.
    pub packet: KernelPacket,
    /// What the loader has added to ELF virtual addresses of the code that runs.
    pub bias: u64,
    pub(crate) gpu: hsa_agent_t,
}

impl Dispatch {
    /// Where an ELF virtual address of the loaded code is in memory.
    pub fn address_of(&self, place: Pc) -> Address {
        Address(self.bias.wrapping_add(place.0))
    }
}

/// Is asked about an application's code objects and dispatches.
pub trait Interceptor: Send + Sync {
    /// A code object is about to be loaded: what is to be loaded in its place, if not itself.
    /// Called in a thread of the application.
    fn load(&self, code: CodeId, object: &CodeObject) -> Option<Replacement>;

    /// A kernel of a code object that was loaded as it is is dispatched for the first time: code that has
    /// another version of it, under its own name, to be loaded beside. Called in a thread of the
    /// application.
    fn beside(
        &self,
        _code: CodeId,
        _object: &CodeObject,
        _kernel: &Arc<str>,
    ) -> Option<CodeObject> {
        None
    }

    /// The runtime has not taken what was to be loaded beside; the kernel has one version.
    fn refused_beside(&self, _code: CodeId, _kernel: &Arc<str>, _reason: &crate::HsaError) {}

    /// The runtime has not taken what was to be loaded in place of a code object; the code object
    /// itself is loaded.
    fn refused(&self, code: CodeId, reason: &crate::HsaError);

    /// A dispatch is submitted: the version of the kernel that runs. Asked only for kernels that
    /// have two.
    fn version(&self, code: CodeId, kernel: &str) -> Version;

    /// A dispatch begins when this returns. Nothing of the application's runs meanwhile on any GPU
    /// that a kernel from a code object is the cause of.
    fn begin(&self, dispatch: &Dispatch, memory: &Memory);

    /// A dispatch has ended. The application learns of it when this returns.
    fn end(&self, dispatch: &Dispatch, memory: &Memory);

    /// After which time a dispatch counts as hung; never, if nothing else is said.
    fn time_limit(&self) -> Option<Duration> {
        None
    }

    /// Something went wrong on a GPU, mostly in the dispatch that was under way: the runtime has
    /// reported it, and reports it to the application when this returns; or it takes longer than it
    /// may.
    fn fault(&self, _dispatch: Option<&Dispatch>, _cause: &FaultCause, _memory: &Memory) {}

    /// The application is done with the runtime.
    fn finish(&self);
}
