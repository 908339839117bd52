//! Code objects that are loaded.

use crate::HsaError;
use flipwave_codeobj::{CodeObject, Kernel};
use flipwave_device::{Address, DeviceError, Dispatch, KernelPacket};
use flipwave_isa::Pc;
use hsa_sys::*;
use std::ffi::CString;
use std::ops::Range;
use std::ptr::{null, null_mut};

/// The most work-items of a workgroup.
const LARGEST_WORKGROUP: u64 = 1024;

/// A code object that is loaded.
#[derive(Debug)]
pub struct Module {
    functions: Functions,
    executable: hsa_executable_t,
    /// The runtime lists for debuggers where its bytes are.
    object: CodeObject,
    /// ELF virtual addresses.
    pub image: Range<u64>,
    /// What was added to them.
    pub bias: u64,
}

/// A kernel of a module.
#[derive(Debug)]
pub struct LoadedKernel<'a> {
    kernel: &'a Kernel,
    descriptor: Address,
}

impl Module {
    pub fn load(
        functions: &Functions,
        gpu: hsa_agent_t,
        object: &CodeObject,
    ) -> Result<Module, DeviceError> {
        let failed = |error: HsaError| DeviceError::Load(error.to_string());
        let mut executable = hsa_executable_t::default();
        // SAFETY: no options are named, and `executable` outlives the call, which writes a handle to it.
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
        // From here on the executable is given up with the module.
        let mut module =
            Module { functions: *functions, executable, object, image: start..end, bias: 0 };
        module.put_in(gpu).map_err(failed)?;
        let Some(first) = module.object.kernels().first() else {
            return Err(DeviceError::Load("it has no kernel".to_owned()));
        };
        let descriptor = module.descriptor(gpu, &first.symbol).map_err(failed)?;
        module.bias = descriptor.0.wrapping_sub(first.descriptor.address);
        Ok(module)
    }

    /// Loads the code into the executable.
    fn put_in(&self, gpu: hsa_agent_t) -> Result<(), HsaError> {
        let functions = &self.functions;
        let bytes = self.object.bytes();
        let mut reader = hsa_code_object_reader_t::default();
        // SAFETY: the bytes stay as long as the module.
        let status = unsafe {
            (functions.hsa_code_object_reader_create_from_memory)(
                bytes.as_ptr().cast(),
                bytes.len(),
                &mut reader,
            )
        };
        HsaError::check("hsa_code_object_reader_create_from_memory", status)?;
        // SAFETY: executable and reader were made by the runtime and not destroyed; options and the
        // place for the loaded code object may be null.
        let loaded = unsafe {
            (functions.hsa_executable_load_agent_code_object)(
                self.executable,
                gpu,
                reader,
                null(),
                null_mut(),
            )
        };
        // SAFETY: made above. A failure leaves it behind.
        let _ = unsafe { (functions.hsa_code_object_reader_destroy)(reader) };
        HsaError::check("hsa_executable_load_agent_code_object", loaded)?;
        // SAFETY: the executable was made by the runtime and not destroyed; options may be null.
        let status = unsafe { (functions.hsa_executable_freeze)(self.executable, null()) };
        HsaError::check("hsa_executable_freeze", status)
    }

    /// Where a kernel's descriptor is.
    fn descriptor(&self, gpu: hsa_agent_t, symbol: &str) -> Result<Address, HsaError> {
        let name = CString::new(symbol).unwrap_or_default();
        let mut found = hsa_executable_symbol_t::default();
        // SAFETY: the name ends with zero, and it, `gpu` and `found` outlive the call; the executable was
        // made by the runtime and not destroyed.
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

    /// Where the first byte of the image is.
    pub fn start(&self) -> u64 {
        self.bias.wrapping_add(self.image.start)
    }

    pub fn kernel(&self, name: &str) -> Result<LoadedKernel<'_>, DeviceError> {
        let kernel = self.object.kernel(name).ok_or_else(|| DeviceError::UnknownKernel {
            wanted: name.to_owned(),
            present: self.object.kernels().iter().map(|own| own.name.to_string()).collect(),
        })?;
        let descriptor = Address(self.bias.wrapping_add(kernel.descriptor.address));
        Ok(LoadedKernel { kernel, descriptor })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: made by `load`, and nothing of it runs. A failure leaves it behind.
        let _ = unsafe { (self.functions.hsa_executable_destroy)(self.executable) };
    }
}

impl LoadedKernel<'_> {
    /// The packet of a dispatch, without arguments and signal; how many waves it has; and where it
    /// begins.
    pub fn packet(&self, dispatch: &Dispatch) -> Result<(KernelPacket, u64, Pc), DeviceError> {
        let refused =
            |reason: String| DeviceError::BadLaunch { kernel: dispatch.kernel.clone(), reason };
        let descriptor = &self.kernel.descriptor;
        let (grid, workgroup) = (dispatch.grid, dispatch.workgroup);
        if dispatch.queued.is_some() {
            return Err(refused("its packet is in a queue of another runtime".to_owned()));
        }
        let items: u64 = workgroup.iter().map(|extent| u64::from(*extent)).product();
        if grid.contains(&0) || !(1..=LARGEST_WORKGROUP).contains(&items) {
            return Err(refused(format!(
                "a grid of {grid:?} work-items in workgroups of {workgroup:?}; expected no 0, and at \
                 most {LARGEST_WORKGROUP} work-items in a workgroup"
            )));
        }
        let needed = self.kernel.metadata.kernarg_segment_size as usize;
        if dispatch.kernarg.len() < needed {
            let given = dispatch.kernarg.len();
            return Err(refused(format!("{given} bytes of arguments; expected {needed}")));
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
        Ok((packet, waves(dispatch, descriptor.wavefront_size().into()), descriptor.start()))
    }
}

/// The waves of a launch. Workgroups at the end of a grid may be smaller.
fn waves(dispatch: &Dispatch, lanes: u64) -> u64 {
    // Along each dimension: how many workgroups of full extent, and the extent of the last.
    let parts = [0, 1, 2].map(|dimension| {
        let (grid, group) = (dispatch.grid[dimension], dispatch.workgroup[dimension]);
        [(u64::from(grid / group), u64::from(group)), (1, u64::from(grid % group))]
    });
    let mut waves = 0;
    for x in parts[0] {
        for y in parts[1] {
            for z in parts[2] {
                waves += x.0 * y.0 * z.0 * (x.1 * y.1 * z.1).div_ceil(lanes);
            }
        }
    }
    waves
}

#[cfg(test)]
mod tests {
    use super::*;
    use flipwave_device::ModuleId;

    #[test]
    fn waves_of_smaller_workgroups_count() {
        let dispatch = |grid, workgroup| Dispatch {
            module: ModuleId(0),
            kernel: String::new(),
            grid,
            workgroup,
            kernarg: Vec::new(),
            dynamic_lds: 0,
            instruction_limit: 0,
            queued: None,
        };
        assert_eq!(waves(&dispatch([256, 1, 1], [256, 1, 1]), 64), 4);
        assert_eq!(waves(&dispatch([300, 1, 1], [256, 1, 1]), 64), 5);
        // Four workgroups: of 16x16, 4x16, 16x4 and 4x4 work-items.
        assert_eq!(waves(&dispatch([20, 20, 1], [16, 16, 1]), 64), 4 + 1 + 1 + 1);
    }
}
