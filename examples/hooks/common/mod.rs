//! Helpers for the examples: compile a kernel, upload buffers, and launch on the embedded GPU.

use flipwave_codeobj::CodeObject;
use flipwave_device::{Address, ArgumentValue, Completion, Device, Dispatch, ModuleId, layout};
use flipwave_sim::EmbeddedGpu;
use std::error::Error;
use std::process::Command;

/// Compiles a kernel in OpenCL C that needs no library.
pub fn compile(text: &str) -> Result<CodeObject, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (source, object) = (folder.path().join("kernel.cl"), folder.path().join("kernel.co"));
    std::fs::write(&source, text)?;
    let status = Command::new("clang-22")
        .args(["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-nogpulib", "-O3", "-o"])
        .args([&object, &source])
        .status()?;
    if !status.success() {
        return Err("the kernel does not compile".into());
    }
    Ok(CodeObject::parse(&std::fs::read(object)?)?)
}

/// Copies bytes into new device memory.
pub fn upload(device: &mut EmbeddedGpu, bytes: &[u8]) -> Result<Address, Box<dyn Error>> {
    let address = device.allocate(bytes.len() as u64)?;
    device.write(address, bytes)?;
    Ok(address)
}

/// Runs the first kernel of a loaded code object in a grid of `lanes` work-items.
pub fn launch(
    device: &mut EmbeddedGpu,
    object: &CodeObject,
    module: ModuleId,
    lanes: u32,
    buffers: &[Address],
) -> Result<(), Box<dyn Error>> {
    let kernel = object.kernels().first().ok_or("no kernel")?;
    let values: Vec<ArgumentValue> = buffers.iter().copied().map(ArgumentValue::Buffer).collect();
    let (grid, workgroup) = ([lanes, 1, 1], [64, 1, 1]);
    let arguments = layout(kernel, &values, grid, workgroup)?;
    let end = device.dispatch(&Dispatch {
        module,
        kernel: kernel.name.to_string(),
        grid,
        workgroup,
        kernarg: arguments.kernarg,
        dynamic_lds: arguments.dynamic_lds,
        instruction_limit: 10_000_000,
        queued: None,
        is_cooperative: false,
    })?;
    match end {
        Completion::Completed(_) => Ok(()),
        Completion::Faulted(fault) => Err(fault.to_string().into()),
    }
}
