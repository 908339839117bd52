//! Kernels: attributes, occupancy and launches.

use super::code;
use crate::api::{Current, In, Out, api, driver};
use crate::device;
use crate::driver::Function;
use crate::launch::KernelLaunch;
use crate::queue::Work;
use crate::status::Status;
use flipwave_device::Dispatch;
use flipwave_machine::Machine;
use std::ffi::c_char;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Values of `extra`: the end, the buffer with arguments, and its size.
const EXTRA_END: usize = 0;
const EXTRA_BUFFER: usize = 1;
const EXTRA_SIZE: usize = 2;

/// A launch as the application requests it.
#[derive(Clone, Copy)]
pub struct LaunchRequest {
    /// Handle of the kernel.
    pub function: usize,
    /// Workgroups per dimension.
    pub grid: [u32; 3],
    /// Threads of a workgroup per dimension.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: usize,
    /// Handle of the stream.
    pub stream: usize,
    /// Addresses of the arguments.
    pub arguments: In<usize>,
    /// Arguments in another form; null if `arguments` is given.
    pub extra: In<usize>,
    /// `true` if workgroups wait for each other.
    pub is_cooperative: bool,
}

impl LaunchRequest {
    /// A launch of workgroups that do not wait for each other, with the addresses of its arguments.
    pub fn new(
        function: usize,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: usize,
        stream: usize,
        arguments: In<usize>,
    ) -> LaunchRequest {
        let (extra, is_cooperative) = (In(std::ptr::null()), false);
        LaunchRequest {
            function,
            grid,
            block,
            shared_bytes,
            stream,
            arguments,
            extra,
            is_cooperative,
        }
    }
}

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LaunchConfig {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    stream: usize,
    attributes: In<LaunchAttribute>,
    count: u32,
}

/// `CUlaunchAttribute`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LaunchAttribute {
    /// The attribute.
    pub id: i32,
    _padding: u32,
    /// The value.
    pub value: [u64; 8],
}

/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`.
pub const COOPERATIVE: i32 = 2;
/// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`.
const CLUSTER: i32 = 4;

/// Returns `true` if a launch is cooperative.
///
/// # Errors
/// [`Status::NOT_SUPPORTED`] for clusters of several workgroups.
pub fn read_attributes(attributes: In<LaunchAttribute>, count: u32) -> Result<bool, Status> {
    let mut is_cooperative = false;
    for attribute in attributes.array(count as usize)? {
        match attribute.id {
            COOPERATIVE => is_cooperative = attribute.value[0] as u32 != 0,
            CLUSTER
                if [
                    attribute.value[0] as u32,
                    (attribute.value[0] >> 32) as u32,
                    attribute.value[1] as u32,
                ] != [1; 3] =>
            {
                return Err(Status::NOT_SUPPORTED);
            }
            _ => {}
        }
    }
    Ok(is_cooperative)
}

/// The arguments of a kernel, as they lie in its parameter space.
fn arguments(function: &Function, request: &LaunchRequest) -> Result<Vec<u8>, Status> {
    let end = function.parameters.iter().map(|(offset, bytes)| offset + bytes).max().unwrap_or(0);
    let mut content = vec![0; end as usize];
    if request.extra.is_null() {
        for (number, (offset, bytes)) in function.parameters.iter().enumerate() {
            let value = In(request.arguments.get_at(number)? as *const u8);
            let value = value.array(*bytes as usize)?;
            content[*offset as usize..][..value.len()].copy_from_slice(&value);
        }
        return Ok(content);
    }
    let (mut buffer, mut size, mut number) = (In(std::ptr::null::<u8>()), 0, 0);
    loop {
        match request.extra.get_at(number)? {
            EXTRA_END => break,
            EXTRA_BUFFER => buffer = In(request.extra.get_at(number + 1)? as *const u8),
            EXTRA_SIZE => size = In(request.extra.get_at(number + 1)? as *const usize).get()?,
            _ => return Err(Status::INVALID_VALUE),
        }
        number += 2;
    }
    let given = buffer.array(size.min(content.len()))?;
    content[..given.len()].copy_from_slice(&given);
    Ok(content)
}

/// Checks and submits a launch.
///
/// # Errors
/// [`Status`]; faults are reported later.
pub fn launch(request: LaunchRequest) -> Result<(), Status> {
    let current = Current::get()?;
    let function = current.driver.functions.get(request.function).ok_or(Status::INVALID_HANDLE)?;
    let stream = current.stream(request.stream)?;
    let found = current.device();
    let grid = [0, 1, 2].map(|axis| request.grid[axis].checked_mul(request.block[axis]));
    let [Some(x), Some(y), Some(z)] = grid else { return Err(Status::NOT_SUPPORTED) };
    let threads: u64 = request.block.iter().map(|size| u64::from(*size)).product();
    let [_, rows, slices] = request.grid;
    if [x, y, z].contains(&0) || rows > 65535 || slices > 65535 || request.block[2] > 64 {
        return Err(Status::INVALID_VALUE);
    }
    if threads > function.most_threads {
        return Err(Status::INVALID_VALUE);
    }
    let dynamic = request.shared_bytes as u64;
    if dynamic > most_dynamic_bytes(&function) {
        return Err(Status::INVALID_VALUE);
    }
    if request.is_cooperative {
        let resident = device::resident_workgroups(
            found,
            function.registers,
            function.shared_bytes + dynamic,
            threads,
        );
        let workgroups: u64 = request.grid.iter().map(|count| u64::from(*count)).product();
        if workgroups > resident * device::MULTIPROCESSORS as u64 {
            return Err(Status::COOPERATIVE_LAUNCH_TOO_LARGE);
        }
    }
    let dispatch = Dispatch {
        module: function.module.id,
        kernel: function.name.clone(),
        grid: [x, y, z],
        workgroup: request.block,
        kernarg: arguments(&function, &request)?,
        dynamic_lds: request.shared_bytes as u32,
        instruction_limit: u64::MAX,
        queued: None,
        is_cooperative: request.is_cooperative,
    };
    // Refuses what the GPU does not permit, before the work is submitted.
    found.gpu().begin(&dispatch).map_err(|error| Status::from(&error))?;
    let code = Arc::clone(&function.module.code);
    current.driver.submit(
        &stream,
        Work::Kernel(Box::new(KernelLaunch {
            number: 0,
            device: stream.device,
            stream: stream.number,
            dispatch,
            code,
        })),
    );
    Ok(())
}

/// Bytes of dynamic shared memory that launches of a kernel may use.
fn most_dynamic_bytes(function: &Function) -> u64 {
    let allowed = function.most_dynamic_bytes.load(Ordering::Relaxed);
    device::DEFAULT_SHARED_BYTES.saturating_sub(function.shared_bytes).max(allowed.into())
}

/// An attribute of a kernel (`CUfunction_attribute`).
pub fn attribute(function: &Function, number: i32) -> Result<i32, Status> {
    let driver = driver()?;
    let found = &driver.devices[function.module.device];
    let (major, minor) = found.capability();
    Ok(match number {
        0 => function.most_threads as i32,
        1 => function.shared_bytes as i32,
        2 => 0,
        3 => function.local_bytes as i32,
        4 => function.registers as i32,
        5 | 6 => (major * 10 + minor) as i32,
        7 => 0,
        8 => most_dynamic_bytes(function) as i32,
        9 => -1,
        10..=15 => 0,
        _ => return Err(Status::INVALID_VALUE),
    })
}

/// Sets an attribute of a kernel.
pub fn set_attribute(function: &Function, number: i32, value: i32) -> Result<(), Status> {
    let driver = driver()?;
    let (_, opt_in) = device::shared_bytes(&driver.devices[function.module.device]);
    match number {
        8 => {
            let value = u32::try_from(value).map_err(|_| Status::INVALID_VALUE)?;
            if u64::from(value) + function.shared_bytes > opt_in {
                return Err(Status::INVALID_VALUE);
            }
            function.most_dynamic_bytes.store(value, Ordering::Relaxed);
            Ok(())
        }
        9..=15 => Ok(()),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// The kernel of a handle.
pub fn find(function: usize) -> Result<Arc<Function>, Status> {
    driver()?.functions.get(function).ok_or(Status::INVALID_HANDLE)
}

/// Workgroups of a kernel that are resident on a multiprocessor.
pub fn occupancy(function: usize, threads: i32, shared: usize) -> Result<i32, Status> {
    let function = find(function)?;
    let threads = u64::try_from(threads).ok().filter(|threads| *threads > 0);
    let threads = threads.ok_or(Status::INVALID_VALUE)?;
    let found = &driver()?.devices[function.module.device];
    let shared = function.shared_bytes + shared as u64;
    Ok(device::resident_workgroups(found, function.registers, shared, threads) as i32)
}

/// Workgroups of a grid, and threads of a workgroup, with the most resident waves.
pub fn best_size(
    function: usize,
    shared: impl Fn(i32) -> usize,
    limit: i32,
) -> Result<(i32, i32), Status> {
    let most = find(function)?.most_threads as i32;
    let most = if limit > 0 { most.min(limit) } else { most };
    let mut best = (0, 0);
    for threads in (1..=most / 32).rev().map(|waves| 32 * waves) {
        let resident = occupancy(function, threads, shared(threads))?;
        if resident * threads > best.0 * best.1 {
            best = (resident, threads);
        }
    }
    Ok((best.0 * device::MULTIPROCESSORS, best.1))
}

type SharedOfBlock = Option<unsafe extern "C" fn(i32) -> usize>;

fn shared_of(function: SharedOfBlock, bytes: usize) -> impl Fn(i32) -> usize {
    move |threads| match function {
        // SAFETY: the application's function.
        Some(function) => unsafe { function(threads) },
        None => bytes,
    }
}

api! { convert code;
    cuFuncGetAttribute(value: Out<i32>, number: i32, function: usize) {
        value.put(attribute(&*find(function)?, number)?)
    }

    cuFuncSetAttribute(function: usize, number: i32, value: i32) {
        set_attribute(&*find(function)?, number, value)
    }

    cuKernelGetAttribute(value: Out<i32>, number: i32, kernel: usize, _device: i32) {
        value.put(attribute(&*find(kernel)?, number)?)
    }

    cuKernelSetAttribute(number: i32, value: i32, kernel: usize, _device: i32) {
        set_attribute(&*find(kernel)?, number, value)
    }

    cuFuncSetCacheConfig | cuFuncSetSharedMemConfig (function: usize, _config: i32) {
        find(function).map(|_| ())
    }

    cuKernelSetCacheConfig(kernel: usize, _config: i32, _device: i32) {
        find(kernel).map(|_| ())
    }

    cuFuncGetName | cuKernelGetName (name: Out<*const c_char>, function: usize) {
        let found = find(function)?;
        let text = std::ffi::CString::new(found.name.as_str()).unwrap_or_default();
        // The application may keep the name as long as the module, whose end is not known here.
        name.put(text.into_raw())
    }

    cuFuncGetParamInfo | cuKernelGetParamInfo (
        function: usize, number: usize, offset: Out<usize>, bytes: Out<usize>,
    ) {
        let found = find(function)?;
        let parameter = found.parameters.get(number).ok_or(Status::INVALID_VALUE)?;
        offset.put(parameter.0 as usize)?;
        bytes.put_if_wanted(parameter.1 as usize);
        Ok(())
    }

    cuFuncLoad(function: usize) {
        find(function).map(|_| ())
    }

    cuOccupancyMaxActiveBlocksPerMultiprocessor(
        count: Out<i32>, function: usize, threads: i32, shared: usize,
    ) {
        count.put(occupancy(function, threads, shared)?)
    }

    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        count: Out<i32>, function: usize, threads: i32, shared: usize, _flags: u32,
    ) {
        count.put(occupancy(function, threads, shared)?)
    }

    cuOccupancyMaxPotentialBlockSize(
        grid: Out<i32>, block: Out<i32>, function: usize, shared_function: SharedOfBlock,
        shared: usize, limit: i32,
    ) {
        let best = best_size(function, shared_of(shared_function, shared), limit)?;
        grid.put(best.0)?;
        block.put(best.1)
    }

    cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<i32>, block: Out<i32>, function: usize, shared_function: SharedOfBlock,
        shared: usize, limit: i32, _flags: u32,
    ) {
        let best = best_size(function, shared_of(shared_function, shared), limit)?;
        grid.put(best.0)?;
        block.put(best.1)
    }

    cuOccupancyAvailableDynamicSMemPerBlock(
        bytes: Out<usize>, function: usize, blocks: i32, _threads: i32,
    ) {
        let found = find(function)?;
        let (all, opt_in) = device::shared_bytes(&driver()?.devices[found.module.device]);
        let blocks = u64::try_from(blocks).ok().filter(|blocks| *blocks > 0);
        let each = (all / blocks.ok_or(Status::INVALID_VALUE)?).saturating_sub(1024).min(opt_in);
        bytes.put(each.saturating_sub(found.shared_bytes) as usize)
    }

    cuLaunchKernel | cuLaunchKernel_ptsz (
        function: usize,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        shared_bytes: u32,
        stream: usize,
        arguments: In<usize>,
        extra: In<usize>,
    ) {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let bytes = shared_bytes as usize;
        let request = LaunchRequest::new(function, grid, block, bytes, stream, arguments);
        launch(LaunchRequest { extra, ..request })
    }

    cuLaunchCooperativeKernel | cuLaunchCooperativeKernel_ptsz (
        function: usize,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        shared_bytes: u32,
        stream: usize,
        arguments: In<usize>,
    ) {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let bytes = shared_bytes as usize;
        let request = LaunchRequest::new(function, grid, block, bytes, stream, arguments);
        launch(LaunchRequest { is_cooperative: true, ..request })
    }

    cuLaunchKernelEx | cuLaunchKernelEx_ptsz (
        config: In<LaunchConfig>, function: usize, arguments: In<usize>, extra: In<usize>,
    ) {
        let config = config.get()?;
        let is_cooperative =
            config.count > 0 && read_attributes(config.attributes, config.count)?;
        let LaunchConfig { grid, block, stream, .. } = config;
        let bytes = config.shared_bytes as usize;
        let request = LaunchRequest::new(function, grid, block, bytes, stream, arguments);
        launch(LaunchRequest { extra, is_cooperative, ..request })
    }
}
