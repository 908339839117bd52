//! Readers, executables and kernels of the application.

use super::alternate::Alternate;
use super::load::Entry;
use super::runtime::Runtime;
use super::{CodeId, Replacement, Version};
use crate::HsaError;
use flipwave_codeobj::CodeObject;
use flipwave_device::{Address, KernelPacket};
use hsa_sys::{hsa_agent_t, hsa_code_object_reader_t, hsa_executable_t};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

/// The application's readers, executables and kernels.
#[derive(Default)]
pub struct Registry {
    /// Code objects by reader.
    pub readers: HashMap<hsa_code_object_reader_t, Arc<CodeObject>>,
    executables: HashMap<hsa_executable_t, Executable>,
    /// Kernels by the descriptor address in dispatch packets.
    kernels: HashMap<u64, Arc<LoadedKernel>>,
    /// Number of code objects so far.
    code_count: u32,
}

/// The registry of this process.
pub fn registry() -> MutexGuard<'static, Registry> {
    static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct Executable {
    codes: Vec<LoadedCode>,
    /// Addresses of the descriptors of the kernels.
    kernels: Vec<u64>,
}

/// A code object in an executable.
pub struct LoadedCode {
    pub id: CodeId,
    pub agent: hsa_agent_t,
    pub original: Arc<CodeObject>,
    /// The code object loaded instead. Kept as long as the executable, because the runtime's list of
    /// loaded code for debuggers refers to its bytes.
    pub replacement: Option<Replacement>,
}

/// A kernel that can be dispatched.
#[derive(Debug)]
pub struct LoadedKernel {
    pub code: CodeId,
    pub name: Arc<str>,
    /// The GPU for which the kernel is loaded.
    pub gpu: hsa_agent_t,
    /// The application's code object with the kernel.
    pub original: Arc<CodeObject>,
    /// Index of the kernel in the code object.
    pub index: usize,
    /// The version under the kernel's name.
    primary: Entry,
    /// The alternate version in the replacement.
    alternate_in_replacement: Option<Entry>,
    /// The alternate version in its own executable, set at the first dispatch of a kernel of an original
    /// code object.
    separate_alternate: OnceLock<Option<Alternate>>,
    /// A replacement was loaded instead of the code object.
    is_replaced: bool,
}

impl LoadedKernel {
    /// Loads the alternate version of a kernel of an original code object at its first dispatch.
    pub fn load_alternate_once(&self, runtime: &Runtime) {
        if !self.is_replaced {
            self.separate_alternate.get_or_init(|| Alternate::load(runtime, self));
        }
    }

    fn alternate(&self) -> Option<Entry> {
        let separate = || Some(self.separate_alternate.get()?.as_ref()?.entry);
        self.alternate_in_replacement.or_else(separate)
    }

    pub fn has_alternate(&self) -> bool {
        self.alternate().is_some()
    }

    fn entry(&self, version: Version) -> Entry {
        match version {
            Version::Primary => self.primary,
            Version::Alternate => self.alternate().unwrap_or(self.primary),
        }
    }

    /// Memory address minus ELF virtual address in the code of a version.
    pub fn bias(&self, version: Version) -> u64 {
        self.entry(version).bias
    }

    /// Changes a packet to execute a version of the kernel.
    pub fn packet(&self, packet: KernelPacket, version: Version) -> KernelPacket {
        let entry = self.entry(version);
        let private_bytes = packet.private_bytes.saturating_add(entry.extra_private_bytes);
        KernelPacket { kernel: entry.descriptor, private_bytes, ..packet }
    }
}

/// Returns the address of the descriptor with a symbol in an executable.
pub type FindKernel<'a> = dyn Fn(&str, hsa_agent_t) -> Result<Address, HsaError> + 'a;

impl Registry {
    pub fn next_code(&mut self) -> CodeId {
        self.code_count += 1;
        CodeId(self.code_count - 1)
    }

    pub fn add_code(&mut self, executable: hsa_executable_t, code: LoadedCode) {
        self.executables.entry(executable).or_default().codes.push(code);
    }

    /// Adds the kernels of a frozen executable.
    pub fn add_kernels(&mut self, executable: hsa_executable_t, find: &FindKernel<'_>) {
        let Some(executable) = self.executables.get_mut(&executable) else { return };
        for code in &executable.codes {
            for index in 0..code.original.kernels().len() {
                // A kernel that the runtime does not find cannot be dispatched.
                let Ok(kernel) = loaded_kernel(code, index, find) else { continue };
                executable.kernels.push(kernel.primary.descriptor.0);
                self.kernels.insert(kernel.primary.descriptor.0, Arc::new(kernel));
            }
        }
    }

    /// Removes an executable. Returns its code objects and kernels, which the caller must keep until the
    /// executable is destroyed.
    pub fn remove_executable(
        &mut self,
        executable: hsa_executable_t,
    ) -> (Vec<LoadedCode>, Vec<Arc<LoadedKernel>>) {
        let Some(removed) = self.executables.remove(&executable) else {
            return Default::default();
        };
        let kernels = removed.kernels.iter();
        let kernels = kernels.filter_map(|descriptor| self.kernels.remove(descriptor));
        (removed.codes, kernels.collect())
    }

    pub fn kernel(&self, descriptor: Address) -> Option<Arc<LoadedKernel>> {
        self.kernels.get(&descriptor.0).cloned()
    }
}

/// Looks up the kernel at an index of a code object in its frozen executable.
fn loaded_kernel(
    code: &LoadedCode,
    index: usize,
    find: &FindKernel<'_>,
) -> Result<LoadedKernel, HsaError> {
    let kernel = &code.original.kernels()[index];
    let old_size = kernel.descriptor.private_segment_fixed_size;
    let replacement = code.replacement.as_ref();
    let entry = |symbol: &str| -> Result<Entry, HsaError> {
        let new = replacement.and_then(|replacement| replacement.object.kernel(symbol));
        let new_size = new.map_or(old_size, |new| new.descriptor.private_segment_fixed_size);
        let descriptor = find(symbol, code.agent)?;
        Ok(Entry { descriptor, bias: 0, extra_private_bytes: new_size.saturating_sub(old_size) })
    };
    let primary = entry(&kernel.symbol)?;
    // Both versions are in one image, where the kernel's descriptor has its original address.
    let bias = primary.descriptor.0.wrapping_sub(kernel.descriptor.address);
    let alternate = replacement.and_then(|replacement| replacement.alternates.get(&kernel.name));
    let alternate = alternate.map(|symbol| entry(symbol)).transpose()?;
    Ok(LoadedKernel {
        code: code.id,
        name: Arc::clone(&kernel.name),
        gpu: code.agent,
        original: Arc::clone(&code.original),
        index,
        primary: Entry { bias, ..primary },
        alternate_in_replacement: alternate.map(|alternate| Entry { bias, ..alternate }),
        separate_alternate: OnceLock::new(),
        is_replaced: code.replacement.is_some(),
    })
}
