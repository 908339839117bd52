//! Kernels: launches, attributes and occupancy.

use super::registry::kernel;
use super::{code, ready};
use crate::api::driver::kernels::{
    LaunchAttribute, LaunchRequest, attribute, best_size, find, launch, occupancy, read_attributes,
    set_attribute,
};
use crate::api::{In, Out, api};
use crate::status::Status;
use std::cell::RefCell;

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Dim3 {
    x: u32,
    y: u32,
    z: u32,
}

impl Dim3 {
    fn array(self) -> [u32; 3] {
        [self.x, self.y, self.z]
    }
}

/// Configuration of a launch, from `<<<...>>>` to the kernel's host function; the beginning of
/// `cudaLaunchConfig_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct CallConfiguration {
    grid: Dim3,
    block: Dim3,
    shared_bytes: usize,
    stream: usize,
}

thread_local! {
    static CONFIGURATIONS: RefCell<Vec<CallConfiguration>> = const { RefCell::new(Vec::new()) };
}

/// Keeps the configuration of a launch.
#[unsafe(no_mangle)]
extern "C" fn __cudaPushCallConfiguration(
    grid: Dim3,
    block: Dim3,
    shared_bytes: usize,
    stream: usize,
) -> u32 {
    let configuration = CallConfiguration { grid, block, shared_bytes, stream };
    CONFIGURATIONS.with_borrow_mut(|all| all.push(configuration));
    0
}

/// `cudaLaunchConfig_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LaunchConfig {
    configuration: CallConfiguration,
    attributes: In<LaunchAttribute>,
    count: u32,
}

/// `cudaFuncAttributes`, up to the fields of version 11.
#[repr(C)]
#[derive(Clone, Copy)]
struct FunctionAttributes {
    sizes: [usize; 3],
    numbers: [i32; 7],
}

/// Workgroups of a launch that may wait for each other.
#[derive(Clone, Copy)]
enum Cooperation {
    None,
    Grid,
}

/// A launch with the types of the runtime.
#[derive(Clone, Copy)]
struct HostLaunch {
    /// The kernel's host function.
    host: usize,
    configuration: CallConfiguration,
    arguments: In<usize>,
    cooperation: Cooperation,
}

/// Starts a kernel.
fn start(request: HostLaunch) -> Result<(), Status> {
    ready()?;
    let HostLaunch { host, configuration, arguments, cooperation } = request;
    let CallConfiguration { grid, block, shared_bytes, stream } = configuration;
    let function = kernel(host)?;
    let (grid, block) = (grid.array(), block.array());
    let threads: u64 = block.iter().map(|size| u64::from(*size)).product();
    let has_threads = grid.iter().all(|count| *count > 0) && (1..=1024).contains(&threads);
    if !has_threads || grid[1] > 65535 || grid[2] > 65535 || block[2] > 64 {
        return Err(Status::INVALID_CONFIGURATION);
    }
    if threads > find(function)?.most_threads {
        return Err(Status::LAUNCH_OUT_OF_RESOURCES);
    }
    let request = LaunchRequest::new(function, grid, block, shared_bytes, stream, arguments);
    let is_cooperative = matches!(cooperation, Cooperation::Grid);
    launch(LaunchRequest { is_cooperative, ..request })
}

api! { convert code;
    __cudaPopCallConfiguration(
        grid: Out<Dim3>, block: Out<Dim3>, shared_bytes: Out<usize>, stream: Out<usize>,
    ) {
        let configuration = CONFIGURATIONS.with_borrow_mut(Vec::pop);
        let configuration = configuration.ok_or(Status::MISSING_CONFIGURATION)?;
        grid.put(configuration.grid)?;
        block.put(configuration.block)?;
        shared_bytes.put(configuration.shared_bytes)?;
        stream.put(configuration.stream)
    }

    cudaLaunchKernel | cudaLaunchKernel_ptsz (
        host: usize, grid: Dim3, block: Dim3, arguments: In<usize>, shared_bytes: usize, stream: usize,
    ) {
        let configuration = CallConfiguration { grid, block, shared_bytes, stream };
        start(HostLaunch { host, configuration, arguments, cooperation: Cooperation::None })
    }

    cudaLaunchCooperativeKernel | cudaLaunchCooperativeKernel_ptsz (
        host: usize, grid: Dim3, block: Dim3, arguments: In<usize>, shared_bytes: usize, stream: usize,
    ) {
        let configuration = CallConfiguration { grid, block, shared_bytes, stream };
        start(HostLaunch { host, configuration, arguments, cooperation: Cooperation::Grid })
    }

    cudaLaunchKernelExC | cudaLaunchKernelExC_ptsz (config: In<LaunchConfig>, host: usize, arguments: In<usize>) {
        let LaunchConfig { configuration, attributes, count } = config.get()?;
        let is_cooperative = count > 0 && read_attributes(attributes, count)?;
        let cooperation = if is_cooperative { Cooperation::Grid } else { Cooperation::None };
        start(HostLaunch { host, configuration, arguments, cooperation })
    }

    cudaFuncGetAttributes(result: Out<FunctionAttributes>, host: usize) {
        ready()?;
        let function = find(kernel(host)?)?;
        let value = |number: i32| attribute(&function, number);
        let sizes = [value(1)? as usize, value(2)? as usize, value(3)? as usize];
        let numbers = [value(0)?, value(4)?, value(5)?, value(6)?, value(7)?, value(8)?, value(9)?];
        result.put(FunctionAttributes { sizes, numbers })
    }

    cudaFuncSetAttribute(host: usize, number: i32, value: i32) {
        ready()?;
        set_attribute(&*find(kernel(host)?)?, number, value)
    }

    cudaFuncSetCacheConfig | cudaFuncSetSharedMemConfig (host: usize, _config: i32) {
        ready()?;
        kernel(host).map(|_| ())
    }

    cudaGetFuncBySymbol(function: Out<usize>, host: usize) {
        ready()?;
        function.put(kernel(host)?)
    }

    cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        count: Out<i32>, host: usize, threads: i32, shared: usize,
    ) {
        ready()?;
        count.put(occupancy(kernel(host)?, threads, shared)?)
    }

    cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        count: Out<i32>, host: usize, threads: i32, shared: usize, _flags: u32,
    ) {
        ready()?;
        count.put(occupancy(kernel(host)?, threads, shared)?)
    }

    cudaOccupancyMaxPotentialBlockSize(
        grid: Out<i32>, block: Out<i32>, host: usize, shared: usize, limit: i32,
    ) {
        ready()?;
        let best = best_size(kernel(host)?, |_| shared, limit)?;
        grid.put(best.0)?;
        block.put(best.1)
    }
}
