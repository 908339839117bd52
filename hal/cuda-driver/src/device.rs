//! A GPU that runs PTX.

use crate::context::Context;
use crate::functions::*;
use crate::module::{Kernel, Module};
use crate::stream::{KernelEnd, Stream};
use crate::{CudaError, DeviceInfo, Driver, HostBuffer, OpenError};
use flipwave_device::{
    Address, AllocatedRanges, Completion, DeviceError, DeviceFault, Dispatch, FaultCause, ModuleId,
    Statistics, WaveId, WaveLocation,
};
use flipwave_ptx::{Code, WARP_SIZE};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Alignment of dynamic shared memory, in bytes.
const DYNAMIC_ALIGNMENT: u32 = 16;

/// Kernel that writes the address at which shared memory begins: the driver may reserve some of it.
const SHARED_BASE: &str = "\
.version 7.0
.target sm_75
.address_size 64
.extern .shared .align 16 .b8 first[];
.visible .entry shared_base(.param .u64 result)
{
    .reg .b32 %r;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [result];
    cvta.to.global.u64 %rd1, %rd0;
    mov.u32 %r, first;
    st.global.u32 [%rd1], %r;
    ret;
}
";

/// A GPU accessed through NVIDIA's driver: hardware, or the simulated GPU in a process started by `flipwave exec`.
///
/// Limitations of hardware:
/// - It does not count instructions. [`Dispatch::instruction_limit`] is ignored; a dispatch ends as hung after the time
///   set by [`CudaDevice::set_time_limit`], with an instruction count of 0. Of [`Statistics`] only the number of
///   waves, computed from the launch, is nonzero.
/// - It reports that a dispatch faulted, not where: the location of a fault is the kernel's entry and the first wave,
///   and addresses are 0.
/// - After a fault, the process can no longer use the GPU, nor read its memory; only a [`HostBuffer`] keeps what kernels
///   have written. After a hang, the process can only end, without waiting for the driver's exit handlers.
#[derive(Debug)]
pub struct CudaDevice {
    info: DeviceInfo,
    context: Context,
    stream: Stream,
    ranges: AllocatedRanges,
    modules: Vec<Module>,
    /// Address at which shared memory begins, once it is known.
    shared_base: Option<u32>,
    time_limit: Duration,
    stopped: Arc<AtomicBool>,
}

impl CudaDevice {
    /// The default time limit.
    const TIME_LIMIT: Duration = Duration::from_secs(60);

    /// Opens a GPU by number, counted from 0.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(gpu: usize) -> Result<CudaDevice, OpenError> {
        let driver = Driver::open()?;
        let mut devices = driver.devices()?;
        let present = devices.len();
        if gpu >= present {
            return Err(OpenError::NoGpu { wanted: gpu, present });
        }
        let info = devices.swap_remove(gpu);
        let context = Context::new(driver.functions, info.handle)?;
        let stream = Stream::new(&context)?;
        Ok(CudaDevice {
            info,
            context,
            stream,
            ranges: AllocatedRanges::default(),
            modules: Vec::new(),
            shared_base: None,
            time_limit: CudaDevice::TIME_LIMIT,
            stopped: Arc::default(),
        })
    }

    /// The GPU.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Sets the time after which a dispatch counts as hung. The limit uses the host's clock, so results near the limit
    /// are not reproducible.
    pub fn set_time_limit(&mut self, limit: Duration) {
        self.time_limit = limit;
    }

    /// Sets a cancellation flag. While it is `true`, current and later dispatches end as hung.
    pub fn set_stopped(&mut self, stopped: Arc<AtomicBool>) {
        self.stopped = stopped;
    }

    /// Allocates zeroed device memory.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        let failed = |error: CudaError| {
            let reason = error.to_string();
            DeviceError::OutOfMemory { bytes, reason }
        };
        let size = usize::try_from(bytes.max(1)).unwrap_or(usize::MAX);
        let functions = self.context.functions().map_err(failed)?;
        let mut address = 0;
        // SAFETY: `address` outlives the call, which writes an address to it.
        let status = unsafe { (functions.cuMemAlloc_v2)(&mut address, size) };
        functions.check("cuMemAlloc", status).map_err(failed)?;
        // SAFETY: device memory of this size, which was just allocated.
        let status = unsafe { (functions.cuMemsetD8_v2)(address, 0, size) };
        functions.check("cuMemsetD8", status).map_err(failed)?;
        self.ranges.add(Address(address), bytes);
        Ok(Address(address))
    }

    /// Frees an allocation; `address` was returned by [`CudaDevice::allocate`].
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    pub fn free(&mut self, address: Address) -> Result<(), DeviceError> {
        self.ranges.remove(address)?;
        let functions = self.context.functions().map_err(internal)?;
        // SAFETY: allocated by `allocate`, and freed once. The driver waits for kernels that use it.
        let status = unsafe { (functions.cuMemFree_v2)(address.0) };
        functions.check("cuMemFree", status).map_err(internal)
    }

    /// Copies bytes to the device.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`]; [`DeviceError::Internal`] after a fault.
    pub fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        self.ranges.check("write", address, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        let functions = self.context.functions().map_err(internal)?;
        // SAFETY: the source has this size, and the destination is device memory, in which the driver checks the range.
        let status =
            unsafe { (functions.cuMemcpyHtoD_v2)(address.0, bytes.as_ptr().cast(), bytes.len()) };
        functions.check("cuMemcpyHtoD", status).map_err(internal)
    }

    /// Copies bytes from the device.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`]; [`DeviceError::Internal`] after a fault.
    pub fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.ranges.check("read", address, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        let functions = self.context.functions().map_err(internal)?;
        // SAFETY: the destination has this size, and the source is device memory, in which the driver checks the range.
        let status = unsafe {
            (functions.cuMemcpyDtoH_v2)(bytes.as_mut_ptr().cast(), address.0, bytes.len())
        };
        functions.check("cuMemcpyDtoH", status).map_err(internal)
    }

    /// Allocates memory of the host that kernels can access.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub fn allocate_on_host(&self, bytes: usize) -> Result<HostBuffer, DeviceError> {
        HostBuffer::new(&self.context, bytes).map_err(|error| {
            let reason = format!("memory of the host: {error}");
            DeviceError::OutOfMemory { bytes: bytes as u64, reason }
        })
    }

    /// Compiles and loads a module.
    ///
    /// # Errors
    /// [`DeviceError::Load`]; other errors of the kernel that measures shared memory, which runs once.
    pub fn load(&mut self, module: &flipwave_ptx::Module) -> Result<ModuleId, DeviceError> {
        if self.shared_base.is_none() {
            self.shared_base = Some(self.find_shared_base()?);
        }
        self.add(module)
    }

    fn add(&mut self, module: &flipwave_ptx::Module) -> Result<ModuleId, DeviceError> {
        let module = Module::load(&self.context, module)?;
        self.modules.push(module);
        Ok(ModuleId(self.modules.len() as u32 - 1))
    }

    /// A loaded module.
    pub fn loaded(&self, module: ModuleId) -> Option<&flipwave_ptx::Module> {
        self.modules.get(module.0 as usize).map(|module| &module.tree)
    }

    /// The code of a loaded module.
    pub fn code(&self, module: ModuleId) -> Option<&Code> {
        self.modules.get(module.0 as usize).map(|module| &module.code)
    }

    /// Address and size in bytes of a variable of a loaded module, which can then be read and written.
    pub fn variable(&mut self, module: ModuleId, name: &str) -> Option<(Address, u64)> {
        let module = self.modules.get(module.0 as usize)?;
        let (address, bytes) = module.variable(&self.context, name)?;
        self.ranges.add(address, bytes);
        Some((address, bytes))
    }

    fn module(&self, id: ModuleId) -> Result<&Module, DeviceError> {
        let unknown =
            || DeviceError::Internal(format!("module {} belongs to another device", id.0));
        self.modules.get(id.0 as usize).ok_or_else(unknown)
    }

    /// Offset in shared memory at which the dynamic part of a kernel begins.
    ///
    /// # Errors
    /// [`DeviceError`] if the kernel does not exist, or the driver cannot tell.
    pub fn dynamic_shared(&self, module: ModuleId, kernel: &str) -> Result<u32, DeviceError> {
        Ok(self.shared_base() + self.declared_shared(module, kernel)?)
    }

    /// Address at which shared memory begins; 0 before the first module is loaded.
    pub fn shared_base(&self) -> u32 {
        self.shared_base.unwrap_or_default()
    }

    /// Bytes of shared memory in front of the dynamic part of a kernel: those that it declares, aligned.
    ///
    /// # Errors
    /// [`DeviceError`] if the kernel does not exist.
    pub fn declared_shared(&self, module: ModuleId, kernel: &str) -> Result<u32, DeviceError> {
        let kernel = self.module(module)?.kernel(&self.context, kernel)?;
        Ok(dynamic_offset(kernel.static_shared))
    }

    fn find_shared_base(&mut self) -> Result<u32, DeviceError> {
        let internal = |reason: String| DeviceError::Internal(reason);
        let module =
            flipwave_ptx::parse(SHARED_BASE).map_err(|error| internal(error.to_string()))?;
        let module = self.add(&module)?;
        let result = self.allocate(4)?;
        let dispatch = Dispatch {
            module,
            kernel: "shared_base".to_owned(),
            grid: [1; 3],
            workgroup: [1; 3],
            kernarg: result.0.to_le_bytes().to_vec(),
            dynamic_lds: DYNAMIC_ALIGNMENT,
            instruction_limit: u64::MAX,
            queued: None,
            is_cooperative: false,
        };
        if let Completion::Faulted(fault) = self.dispatch(&dispatch)? {
            return Err(internal(format!("the test kernel for shared memory: {fault}")));
        }
        let mut bytes = [0; 4];
        self.read(result, &mut bytes)?;
        self.free(result)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Executes a dispatch and waits for its end.
    ///
    /// # Errors
    /// [`DeviceError::UnknownKernel`], [`DeviceError::BadLaunch`]. Faults of the executed code are not errors but
    /// [`Completion::Faulted`].
    pub fn dispatch(&mut self, dispatch: &Dispatch) -> Result<Completion, DeviceError> {
        let kernel = self.module(dispatch.module)?.kernel(&self.context, &dispatch.kernel)?;
        let (place, functions) = (kernel.code.entry(), self.context.functions());
        let functions = functions.map_err(internal)?;
        launch(functions, &self.stream, &kernel, dispatch)
            .map_err(|reason| DeviceError::BadLaunch { kernel: dispatch.kernel.clone(), reason })?;
        let ended = self.stream.wait(functions, self.time_limit, &self.stopped);
        let cause = match ended.map_err(internal)? {
            KernelEnd::Completed => {
                let waves = dispatch.waves(WARP_SIZE.into());
                return Ok(Completion::Completed(Statistics { waves, ..Statistics::default() }));
            }
            KernelEnd::Hung => FaultCause::Watchdog { executed: 0 },
            KernelEnd::Faulted(cause) => cause,
        };
        let wave = WaveId { workgroup: [0; 3], wave: 0 };
        Ok(Completion::Faulted(DeviceFault::new(cause, WaveLocation { pc: place, wave })))
    }
}

fn internal(error: CudaError) -> DeviceError {
    DeviceError::Internal(error.to_string())
}

/// Offset of dynamic shared memory from the first byte of shared memory.
fn dynamic_offset(static_shared: u32) -> u32 {
    static_shared.next_multiple_of(DYNAMIC_ALIGNMENT)
}

/// Submits a launch; the error is a reason for refusing it.
fn launch(
    functions: &Functions,
    stream: &Stream,
    kernel: &Kernel<'_>,
    dispatch: &Dispatch,
) -> Result<(), String> {
    let Dispatch { grid, workgroup, .. } = dispatch;
    let mut blocks = [0; 3];
    if dispatch.is_cooperative {
        return Err("the workgroups wait for each other; expected an ordinary launch".to_owned());
    }
    for (axis, count) in blocks.iter_mut().enumerate() {
        let (threads, size) = (grid[axis], workgroup[axis]);
        if size == 0 || threads == 0 || threads % size != 0 {
            return Err(format!(
                "{threads} threads in dimension {axis}; expected a multiple of {size}"
            ));
        }
        *count = threads / size;
    }
    let parameters = kernel.code.parameters.iter().map(|slot| match slot {
        flipwave_ptx::Slot::Memory { offset, bytes } => offset + bytes,
        flipwave_ptx::Slot::Register(_) => 0,
    });
    let needed = parameters.max().unwrap_or(0) as usize;
    let given = dispatch.kernarg.len();
    if given < needed {
        return Err(format!("{given} bytes of arguments; expected {needed}"));
    }
    let padding = dynamic_offset(kernel.static_shared) - kernel.static_shared;
    let dynamic = match dispatch.dynamic_lds {
        0 => 0,
        bytes => bytes.saturating_add(padding),
    };
    if let Ok(bytes) = i32::try_from(dynamic)
        && bytes > 0
    {
        // SAFETY: changes an attribute of a function that exists. If the size is not permitted, the launch fails.
        unsafe { (functions.cuFuncSetAttribute)(kernel.handle, MOST_DYNAMIC_SHARED_BYTES, bytes) };
    }
    // The driver copies the arguments during the call.
    let mut size = needed;
    let arguments = dispatch.kernarg.as_ptr().cast_mut().cast::<c_void>();
    let mut extra: [*mut c_void; 5] = [
        PARAMETERS_BUFFER as *mut c_void,
        arguments,
        PARAMETERS_SIZE as *mut c_void,
        (&raw mut size).cast(),
        PARAMETERS_END as *mut c_void,
    ];
    let extra = if needed == 0 { std::ptr::null_mut() } else { extra.as_mut_ptr() };
    // SAFETY: function and stream belong to the current context; `extra` names a buffer of at least `size` bytes, has
    // the form that the driver documents, and outlives the call.
    let status = unsafe {
        (functions.cuLaunchKernel)(
            kernel.handle,
            blocks[0],
            blocks[1],
            blocks[2],
            workgroup[0],
            workgroup[1],
            workgroup[2],
            dynamic,
            stream.handle,
            std::ptr::null_mut(),
            extra,
        )
    };
    functions.check("cuLaunchKernel", status).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_of_shared_memory_is_valid() {
        let module = flipwave_ptx::parse(SHARED_BASE).expect("PTX");
        let code = flipwave_ptx::resolve(&module).expect("names");
        assert_eq!(code.kernels().count(), 1);
    }

    #[test]
    fn dynamic_memory_begins_after_the_static_part() {
        assert_eq!([0, 1, 16, 17].map(dynamic_offset), [0, 16, 16, 32]);
    }
}
