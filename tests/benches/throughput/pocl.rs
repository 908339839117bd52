//! Kernels as native code, compiled and run by PoCL on the host's processor. The ratio between the embedded
//! GPU and native code depends little on the machine.

use flipwave_campaigns::{Argument, Campaign, Code, Prepared};
use flipwave_device::{Address, Device};
use flipwave_tests::gpu;
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::Device as ClDevice;
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use opencl3::platform::get_platforms;
use opencl3::program::Program;
use opencl3::types::{CL_BLOCKING, cl_uchar};
use std::error::Error;
use std::ptr;
use std::time::{Duration, Instant};

/// A kernel with its arguments on PoCL's CPU device.
pub struct Native {
    // Keeps the context of the buffers and the program of the kernel alive.
    _context: Context,
    _program: Program,
    queue: CommandQueue,
    kernel: Kernel,
    arguments: Vec<Value>,
    grid: Vec<usize>,
    workgroup: Vec<usize>,
}

/// An argument of the kernel.
enum Value {
    Buffer { memory: Buffer<cl_uchar>, start: Vec<u8> },
    Scalar(Vec<u8>),
}

impl Native {
    /// Prepares the single launch of a campaign, with the content of the device's buffers.
    ///
    /// # Errors
    /// If PoCL is missing, is not limited to one thread, or cannot run the kernel.
    pub fn new(campaign: &Campaign, prepared: &Prepared) -> Result<Native, Box<dyn Error>> {
        let device = one_thread_device()?;
        let kernels = campaign.kernels().ok_or("no kernels")?;
        let launch = kernels.launches.first().ok_or("no launch")?;
        let Code::Source { path, .. } = &launch.code else { return Err("no source".into()) };
        let context = Context::from_device(&device).map_err(said("a context"))?;
        let source = std::fs::read_to_string(path)?;
        let program = Program::create_and_build_from_source(&context, &source, "")?;
        let kernel = Kernel::create(&program, &launch.kernel).map_err(said("the kernel"))?;
        let queue = CommandQueue::create_default_with_properties(&context, 0, 0)
            .map_err(said("a queue"))?;
        let kernarg = &prepared.workload.program.dispatches[0].kernarg;
        let mut arguments = Vec::new();
        let mut at = 0usize;
        for argument in &launch.arguments {
            let size = match argument {
                Argument::Value(value) => value.size(),
                _ => 8,
            };
            at = at.next_multiple_of(size.next_power_of_two());
            let bytes = &kernarg[at..at + size];
            at += size;
            arguments.push(match argument {
                // A scalar is aligned to its size; a struct may not be.
                Argument::Value(value) if ![1, 2, 4, 8].contains(&value.size()) => {
                    return Err("a struct as an argument".into());
                }
                Argument::Value(_) => Value::Scalar(bytes.to_vec()),
                Argument::Buffer(index) => {
                    let buffer = &kernels.buffers[*index];
                    let size = buffer.element.bytes_of(buffer.count as u64);
                    let mut start = vec![0; size.ok_or("a buffer of no size")? as usize];
                    let address = Address(u64::from_le_bytes(bytes.try_into()?));
                    gpu(&prepared.workload.device).read(address, &mut start)?;
                    // SAFETY: no host memory is passed.
                    let memory = unsafe {
                        Buffer::create(&context, CL_MEM_READ_WRITE, start.len(), ptr::null_mut())
                    }
                    .map_err(said("a buffer"))?;
                    Value::Buffer { memory, start }
                }
                Argument::Null => return Err("a null pointer as an argument".into()),
                Argument::Pointer(_) => return Err("a pointer into a buffer as an argument".into()),
                Argument::LocalMemory(_) => return Err("local memory as an argument".into()),
            });
        }
        let sizes = |sizes: [u32; 3]| sizes.map(|size| size as usize).to_vec();
        Ok(Native {
            _context: context,
            _program: program,
            queue,
            kernel,
            arguments,
            grid: sizes(launch.grid),
            workgroup: sizes(launch.workgroup),
        })
    }

    /// Runs the kernel once on buffers with their initial content. Returns the duration.
    ///
    /// # Errors
    /// If OpenCL reports an error.
    pub fn run(&mut self) -> Result<Duration, Box<dyn Error>> {
        let mut execute = ExecuteKernel::new(&self.kernel);
        for argument in &mut self.arguments {
            match argument {
                Value::Buffer { memory, start } => {
                    // SAFETY: the buffer has the length of `start`, and the call blocks.
                    unsafe { self.queue.enqueue_write_buffer(memory, CL_BLOCKING, 0, start, &[]) }
                        .map_err(said("a copy"))?;
                    // SAFETY: the argument is a buffer.
                    unsafe { execute.set_arg(memory) };
                }
                Value::Scalar(bytes) => match bytes[..] {
                    // SAFETY: the argument has four bytes.
                    [a, b, c, d] => unsafe {
                        execute.set_arg(&u32::from_le_bytes([a, b, c, d]));
                    },
                    _ => return Err("a scalar that is not of four bytes".into()),
                },
            }
        }
        execute.set_global_work_sizes(&self.grid).set_local_work_sizes(&self.workgroup);
        let start = Instant::now();
        // SAFETY: the arguments are those of the campaign's launch.
        unsafe { execute.enqueue_nd_range(&self.queue) }.map_err(said("a launch"))?;
        self.queue.finish().map_err(said("a launch"))?;
        Ok(start.elapsed())
    }

    /// Current content of the buffer that is argument `index`.
    ///
    /// # Errors
    /// If OpenCL reports an error.
    pub fn buffer(&self, index: usize) -> Result<Vec<u8>, Box<dyn Error>> {
        let Value::Buffer { memory, start } = &self.arguments[index] else {
            return Err("the argument is no buffer".into());
        };
        let mut bytes = vec![0; start.len()];
        // SAFETY: the buffer has that length, and the call blocks.
        unsafe { self.queue.enqueue_read_buffer(memory, CL_BLOCKING, 0, &mut bytes, &[]) }
            .map_err(said("a copy"))?;
        Ok(bytes)
    }
}

/// PoCL's device. Fails if it uses more than one thread.
fn one_thread_device() -> Result<ClDevice, Box<dyn Error>> {
    for platform in get_platforms().map_err(said("OpenCL"))? {
        if platform.name().map_err(said("a platform"))? != "Portable Computing Language" {
            continue;
        }
        for id in platform.get_devices(opencl3::device::CL_DEVICE_TYPE_ALL).map_err(said("PoCL"))? {
            let device = ClDevice::new(id);
            if device.max_compute_units().map_err(said("PoCL"))? == 1 {
                return Ok(device);
            }
        }
        return Err("PoCL uses several threads: set POCL_MAX_PTHREAD_COUNT=1".into());
    }
    Err("PoCL is not installed".into())
}

/// Formats an OpenCL error with the failed action.
fn said<E: std::fmt::Display>(what: &str) -> impl Fn(E) -> String {
    move |error| format!("{what}: {error}")
}
