//! Loaded code objects.

use crate::HsaError;
use flipwave_codeobj::{CodeObject, Kernel};
use flipwave_device::{Address, DeviceError, Dispatch, KernelPacket};
use flipwave_isa::Pc;
use hsa_sys::*;
use std::ffi::CString;
use std::ops::Range;
use std::ptr::{null, null_mut};

/// Maximum number of work-items of a workgroup.
const MAX_WORKGROUP_SIZE: u64 = 1024;

/// A loaded code object.
#[derive(Debug)]
pub struct Module {
    functions: Functions,
    executable: hsa_executable_t,
    /// Kept alive because the runtime's list of loaded code for debuggers refers to its bytes.
    object: CodeObject,
    /// Range of ELF virtual addresses.
    pub image: Range<u64>,
    /// Memory address minus ELF virtual address.
    pub bias: u64,
}

/// A kernel of a module.
#[derive(Debug)]
pub struct LoadedKernel<'a> {
    kernel: &'a Kernel,
    /// Memory address of the descriptor.
    descriptor: Address,
}

/// The launch of a kernel.
#[derive(Debug)]
pub struct Launch {
    /// The packet, without arguments and completion signal.
    pub packet: KernelPacket,
    /// Number of waves.
    pub waves: u64,
    /// ELF virtual address at which waves start.
    pub start: Pc,
}

impl Module {
    pub fn load(
        functions: &Functions,
        gpu: hsa_agent_t,
        object: &CodeObject,
    ) -> Result<Module, DeviceError> {
        let failed = |error: HsaError| DeviceError::Load(error.to_string());
        let mut executable = hsa_executable_t::default();
        // SAFETY: options are null, and `executable` outlives the call, which writes a handle to it.
        let status = unsafe {
            (functions.hsa_executable_create_alt)(
                HSA_PROFILE_FULL,
                HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
                null(),
                &mut executable,
            )
        };
        HsaError::check("hsa_executable_create_alt", status).map_err(failed)?;
        let segments = object.segments();
        let start = segments.first().map_or(0, |segment| segment.address);
        let end = segments.last().map_or(0, |segment| segment.end());
        let object = object.clone();
        // From here on dropping the module destroys the executable.
        let mut module =
            Module { functions: *functions, executable, object, image: start..end, bias: 0 };
        module.load_into_executable(gpu).map_err(failed)?;
        let Some(first) = module.object.kernels().first() else {
            return Err(DeviceError::Load("the code object has no kernel".to_owned()));
        };
        let descriptor = module.descriptor(gpu, &first.symbol).map_err(failed)?;
        module.bias = descriptor.0.wrapping_sub(first.descriptor.address);
        Ok(module)
    }

    /// Loads the code object into the executable and freezes it.
    fn load_into_executable(&self, gpu: hsa_agent_t) -> Result<(), HsaError> {
        let functions = &self.functions;
        let bytes = self.object.bytes();
        let mut reader = hsa_code_object_reader_t::default();
        // SAFETY: the bytes live as long as the module.
        let status = unsafe {
            (functions.hsa_code_object_reader_create_from_memory)(
                bytes.as_ptr().cast(),
                bytes.len(),
                &mut reader,
            )
        };
        HsaError::check("hsa_code_object_reader_create_from_memory", status)?;
        // SAFETY: executable and reader are valid handles; options and the destination of the loaded
        // code object may be null.
        let loaded = unsafe {
            (functions.hsa_executable_load_agent_code_object)(
                self.executable,
                gpu,
                reader,
                null(),
                null_mut(),
            )
        };
        // SAFETY: created above and destroyed once. A failure leaks the reader.
        let _ = unsafe { (functions.hsa_code_object_reader_destroy)(reader) };
        HsaError::check("hsa_executable_load_agent_code_object", loaded)?;
        // SAFETY: the executable is a valid handle; options may be null.
        let status = unsafe { (functions.hsa_executable_freeze)(self.executable, null()) };
        HsaError::check("hsa_executable_freeze", status)
    }

    /// Memory address of the descriptor with this symbol.
    fn descriptor(&self, gpu: hsa_agent_t, symbol: &str) -> Result<Address, HsaError> {
        let name = CString::new(symbol).unwrap_or_default();
        let mut found = hsa_executable_symbol_t::default();
        // SAFETY: the name is NUL-terminated; the name, `gpu` and `found` outlive the call; the
        // executable is a valid handle.
        let status = unsafe {
            (self.functions.hsa_executable_get_symbol_by_name)(
                self.executable,
                name.as_ptr(),
                &gpu,
                &mut found,
            )
        };
        HsaError::check("hsa_executable_get_symbol_by_name", status)?;
        let mut address = 0u64;
        // SAFETY: this attribute has 64 bits.
        let status = unsafe {
            (self.functions.hsa_executable_symbol_get_info)(
                found,
                HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT,
                (&raw mut address).cast(),
            )
        };
        HsaError::check("hsa_executable_symbol_get_info", status)?;
        Ok(Address(address))
    }

    /// Memory address of the first byte of the image.
    pub fn start(&self) -> u64 {
        self.bias.wrapping_add(self.image.start)
    }

    pub fn kernel(&self, name: &str) -> Result<LoadedKernel<'_>, DeviceError> {
        let kernel = self.object.kernel(name).ok_or_else(|| DeviceError::UnknownKernel {
            wanted: name.to_owned(),
            present: self.object.kernels().iter().map(|kernel| kernel.name.to_string()).collect(),
        })?;
        let descriptor = Address(self.bias.wrapping_add(kernel.descriptor.address));
        Ok(LoadedKernel { kernel, descriptor })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: created by `load`, and none of its kernels runs. A failure leaks the executable.
        let _ = unsafe { (self.functions.hsa_executable_destroy)(self.executable) };
    }
}

impl LoadedKernel<'_> {
    /// Validates a dispatch and prepares its launch.
    pub fn launch(&self, dispatch: &Dispatch) -> Result<Launch, DeviceError> {
        let invalid =
            |reason: String| DeviceError::BadLaunch { kernel: dispatch.kernel.clone(), reason };
        let descriptor = &self.kernel.descriptor;
        let (grid, workgroup) = (dispatch.grid, dispatch.workgroup);
        if dispatch.queued.is_some() {
            return Err(invalid("its packet is in a queue of another runtime".to_owned()));
        }
        let items: u64 = workgroup.iter().map(|size| u64::from(*size)).product();
        if grid.contains(&0) || !(1..=MAX_WORKGROUP_SIZE).contains(&items) {
            return Err(invalid(format!(
                "a grid of {grid:?} work-items in workgroups of {workgroup:?}; expected no 0, and at \
                 most {MAX_WORKGROUP_SIZE} work-items in a workgroup"
            )));
        }
        let needed = self.kernel.metadata.kernarg_segment_size as usize;
        if dispatch.kernarg.len() < needed {
            let given = dispatch.kernarg.len();
            return Err(invalid(format!("{given} bytes of arguments; expected {needed}")));
        }
        let packet = KernelPacket {
            workgroup,
            grid,
            private_bytes: descriptor.private_segment_fixed_size,
            lds_bytes: descriptor.group_segment_fixed_size.saturating_add(dispatch.dynamic_lds),
            kernel: self.descriptor,
            kernarg: Address(0),
            completion: Address(0),
        };
        let waves = dispatch.waves(descriptor.wavefront_size().into());
        Ok(Launch { packet, waves, start: descriptor.start() })
    }
}
