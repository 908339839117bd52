//! Readers, executables and kernels of the application.

use super::beside::Beside;
use super::load::Entry;
use super::{CodeId, Replacement, Tools, Version};
use crate::HsaError;
use flipwave_codeobj::{CodeObject, Kernel};
use flipwave_device::{Address, KernelPacket};
use hsa_sys::{hsa_agent_t, hsa_code_object_reader_t, hsa_executable_t};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// What is known of the application's code.
#[derive(Default)]
pub struct Registry {
    /// What readers were made for.
    pub readers: HashMap<hsa_code_object_reader_t, Arc<CodeObject>>,
    executables: HashMap<hsa_executable_t, Executable>,
    /// By the address of the descriptor that dispatches name.
    kernels: HashMap<u64, Arc<LoadedKernel>>,
    codes: u32,
}

#[derive(Default)]
struct Executable {
    codes: Vec<LoadedCode>,
    /// The addresses of its kernels' descriptors.
    kernels: Vec<u64>,
}

/// A code object in an executable.
pub struct LoadedCode {
    pub id: CodeId,
    pub agent: hsa_agent_t,
    pub original: Arc<CodeObject>,
    /// What was loaded in its place. The runtime lists its bytes for debuggers, so that they stay
    /// as long as the executable.
    pub replacement: Option<Replacement>,
}

/// A kernel that can be dispatched.
#[derive(Debug)]
pub struct LoadedKernel {
    pub code: CodeId,
    pub name: Arc<str>,
    /// The GPU that it is loaded for.
    pub gpu: hsa_agent_t,
    /// The code object that it is of.
    pub original: Arc<CodeObject>,
    /// Its index there.
    pub index: usize,
    /// The version that the kernel's name is for.
    named: Entry,
    /// The other version, if that came with the code.
    other: Option<Entry>,
    /// The same of code that was loaded as it is, once the kernel has been met.
    beside: OnceLock<Option<Beside>>,
    /// Whether something else was loaded in place of the code object.
    is_replaced: bool,
}

impl LoadedKernel {
    /// The kernel is about to be dispatched, perhaps for the first time.
    pub fn meet(&self, tools: &Tools) {
        if !self.is_replaced {
            self.beside.get_or_init(|| Beside::load(tools, self));
        }
    }

    fn other(&self) -> Option<Entry> {
        self.other.or_else(|| Some(self.beside.get()?.as_ref()?.entry))
    }

    pub fn has_other(&self) -> bool {
        self.other().is_some()
    }

    fn entry(&self, version: Version) -> Entry {
        match version {
            Version::Named => self.named,
            Version::Other => self.other().unwrap_or(self.named),
        }
    }

    /// What was added to ELF virtual addresses of a version's code.
    pub fn bias(&self, version: Version) -> u64 {
        self.entry(version).bias
    }

    /// A packet that runs a version of the kernel.
    pub fn packet(&self, packet: KernelPacket, version: Version) -> KernelPacket {
        let entry = self.entry(version);
        let private_bytes = packet.private_bytes.saturating_add(entry.more_private);
        KernelPacket { kernel: entry.descriptor, private_bytes, ..packet }
    }
}

/// Gives the address of the descriptor that a symbol of an executable is for.
pub type FindKernel<'a> = dyn Fn(&str, hsa_agent_t) -> Result<Address, HsaError> + 'a;

impl Registry {
    pub fn next_code(&mut self) -> CodeId {
        self.codes += 1;
        CodeId(self.codes - 1)
    }

    pub fn add_code(&mut self, executable: hsa_executable_t, code: LoadedCode) {
        self.executables.entry(executable).or_default().codes.push(code);
    }

    /// An executable is ready: its kernels have addresses.
    pub fn add_kernels(&mut self, executable: hsa_executable_t, find: &FindKernel<'_>) {
        let Some(own) = self.executables.get_mut(&executable) else { return };
        for code in &own.codes {
            for (index, kernel) in code.original.kernels().iter().enumerate() {
                // A kernel that the runtime does not have cannot be dispatched.
                let Ok(kernel) = loaded(code, (index, kernel), find) else { continue };
                own.kernels.push(kernel.named.descriptor.0);
                self.kernels.insert(kernel.named.descriptor.0, Arc::new(kernel));
            }
        }
    }

    /// An executable is given up. What it was loaded from is given back, and its kernels, to be kept
    /// until it is gone.
    pub fn remove_executable(
        &mut self,
        executable: hsa_executable_t,
    ) -> (Vec<LoadedCode>, Vec<Arc<LoadedKernel>>) {
        let Some(own) = self.executables.remove(&executable) else { return Default::default() };
        let kernels = own.kernels.iter().filter_map(|descriptor| self.kernels.remove(descriptor));
        (own.codes, kernels.collect())
    }

    pub fn kernel(&self, descriptor: Address) -> Option<Arc<LoadedKernel>> {
        self.kernels.get(&descriptor.0).cloned()
    }
}

fn loaded(
    code: &LoadedCode,
    (index, kernel): (usize, &Kernel),
    find: &FindKernel<'_>,
) -> Result<LoadedKernel, HsaError> {
    let before = kernel.descriptor.private_segment_fixed_size;
    let entry = |symbol: &str| -> Result<Entry, HsaError> {
        let new = code.replacement.as_ref().and_then(|own| own.object.kernel(symbol));
        let after = new.map_or(before, |own| own.descriptor.private_segment_fixed_size);
        let descriptor = find(symbol, code.agent)?;
        // Both versions are of one image, in which the named descriptor has not moved.
        Ok(Entry { descriptor, bias: 0, more_private: after.saturating_sub(before) })
    };
    let named = entry(&kernel.symbol)?;
    let bias = named.descriptor.0.wrapping_sub(kernel.descriptor.address);
    let other = code.replacement.as_ref().and_then(|own| own.others.get(&kernel.name));
    Ok(LoadedKernel {
        code: code.id,
        name: Arc::clone(&kernel.name),
        gpu: code.agent,
        original: Arc::clone(&code.original),
        index,
        named: Entry { bias, ..named },
        other: other.map(|symbol| entry(symbol)).transpose()?.map(|own| Entry { bias, ..own }),
        beside: OnceLock::new(),
        is_replaced: code.replacement.is_some(),
    })
}
