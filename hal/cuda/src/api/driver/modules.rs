//! Modules and libraries.

use super::code;
use crate::api::{Current, In, Out, Text, api, driver};
use crate::driver::report;
use crate::fat_binary::{HEADER_BYTES, WRAPPER, container_bytes};
use crate::status::Status;
use std::ffi::{CStr, c_char};
use std::path::Path;

/// Structure that refers to a fat binary, as clang emits it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Wrapper {
    magic: u32,
    version: u32,
    content: *const u8,
    unused: usize,
}

/// The bytes of an image that the application passes by its address: PTX that ends with a zero, a fat binary or a
/// structure that refers to one, or machine code.
///
/// # Errors
/// [`Status::INVALID_VALUE`], [`Status::INVALID_IMAGE`].
pub fn image_bytes(image: In<u8>) -> Result<Vec<u8>, Status> {
    let magic = image.array(4)?;
    let number = u32::from_le_bytes([magic[0], magic[1], magic[2], magic[3]]);
    if number == WRAPPER {
        // SAFETY: the structure that begins with this number.
        let wrapper = unsafe { (image.address() as *const Wrapper).read_unaligned() };
        if wrapper.version > 2 || wrapper.content.is_null() {
            return Err(Status::INVALID_IMAGE);
        }
        return image_bytes(In(wrapper.content));
    }
    if magic == b"\x7fELF" {
        return Ok(magic);
    }
    let is_container = magic == 0xba55_ed50u32.to_le_bytes();
    if is_container {
        let header = image.array(HEADER_BYTES)?;
        let size = header.first_chunk().and_then(container_bytes).ok_or(Status::INVALID_IMAGE)?;
        return image.array(size);
    }
    // SAFETY: text that ends with a zero, as the API demands of other images.
    Ok(unsafe { CStr::from_ptr(image.address() as *const c_char) }.to_bytes().to_vec())
}

/// Loads an image in the current context.
pub fn read_image(image: In<u8>) -> Result<usize, Status> {
    let current = Current::get()?;
    let bytes = image_bytes(image)?;
    current.driver.load(current.handle, current.context.device, &bytes)
}

fn read_file(path: &str) -> Result<usize, Status> {
    let current = Current::get()?;
    let bytes = flipwave_host::input::read(Path::new(path), flipwave_host::input::BINARY);
    let mut bytes = bytes.map_err(|error| {
        report(&format!("{path}: {error}"));
        Status::FILE_NOT_FOUND
    })?;
    if !bytes.starts_with(b"\x7fELF") {
        let text = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        if bytes[..text].is_ascii() {
            bytes.truncate(text);
        }
    }
    current.driver.load(current.handle, current.context.device, &bytes)
}

/// Address and size of a variable.
pub(in crate::api) fn variable(module: usize, name: &str) -> Result<(u64, usize), Status> {
    let driver = driver()?;
    let module = driver.modules.get(module).ok_or(Status::INVALID_HANDLE)?;
    let gpu = driver.devices[module.device].gpu();
    let program = gpu.program(module.id).ok_or(Status::INVALID_HANDLE)?;
    let (address, bytes) = program.variable(name).ok_or(Status::NOT_FOUND)?;
    Ok((address.0, bytes as usize))
}

fn unload(module: usize) -> Result<(), Status> {
    let driver = driver()?;
    if driver.unload(module) { Ok(()) } else { Err(Status::INVALID_HANDLE) }
}

/// Handle of a kernel.
pub(in crate::api) fn function(module: usize, name: &str) -> Result<usize, Status> {
    let driver = driver()?;
    driver.modules.get(module).ok_or(Status::INVALID_HANDLE)?;
    driver.function(module, name).ok_or(Status::NOT_FOUND)
}

/// Number of kernels.
fn count(module: usize) -> Result<usize, Status> {
    let driver = driver()?;
    let module = driver.modules.get(module).ok_or(Status::INVALID_HANDLE)?;
    let gpu = driver.devices[module.device].gpu();
    Ok(gpu.program(module.id).map_or(0, |program| program.code.kernels().count()))
}

fn global(address: Out<u64>, bytes: Out<usize>, module: usize, name: Text) -> Result<(), Status> {
    let (found, size) = variable(module, &name.get()?)?;
    address.put_if_wanted(found);
    bytes.put_if_wanted(size);
    Ok(())
}

api! { convert code;
    cuModuleLoad(module: Out<usize>, path: Text) {
        module.put(read_file(&path.get()?)?)
    }

    cuModuleLoadData | cuModuleLoadFatBinary (module: Out<usize>, image: In<u8>) {
        module.put(read_image(image)?)
    }

    cuModuleLoadDataEx(
        module: Out<usize>, image: In<u8>, _count: u32, _options: usize, _values: usize,
    ) {
        module.put(read_image(image)?)
    }

    cuModuleUnload(module: usize) {
        unload(module)
    }

    cuModuleGetFunction(result: Out<usize>, module: usize, name: Text) {
        Current::get()?;
        result.put(function(module, &name.get()?)?)
    }

    cuModuleGetFunctionCount(result: Out<u32>, module: usize) {
        result.put(count(module)? as u32)
    }

    cuModuleGetGlobal_v2 | cuModuleGetGlobal (
        address: Out<u64>, bytes: Out<usize>, module: usize, name: Text,
    ) {
        Current::get()?;
        global(address, bytes, module, name)
    }

    cuModuleGetLoadingMode(mode: Out<i32>) {
        // Eager.
        mode.put(1)
    }

    cuLibraryLoadData(
        library: Out<usize>, image: In<u8>, _options: usize, _values: usize, _count: u32,
        _library_options: usize, _library_values: usize, _library_count: u32,
    ) {
        library.put(read_image(image)?)
    }

    cuLibraryLoadFromFile(
        library: Out<usize>, path: Text, _options: usize, _values: usize, _count: u32,
        _library_options: usize, _library_values: usize, _library_count: u32,
    ) {
        library.put(read_file(&path.get()?)?)
    }

    cuLibraryUnload(library: usize) {
        unload(library)
    }

    cuLibraryGetKernel(kernel: Out<usize>, library: usize, name: Text) {
        kernel.put(function(library, &name.get()?)?)
    }

    cuLibraryGetKernelCount(result: Out<u32>, library: usize) {
        result.put(count(library)? as u32)
    }

    cuLibraryGetModule(module: Out<usize>, library: usize) {
        driver()?.modules.get(library).ok_or(Status::INVALID_HANDLE)?;
        module.put(library)
    }

    cuLibraryGetGlobal | cuLibraryGetManaged (
        address: Out<u64>, bytes: Out<usize>, library: usize, name: Text,
    ) {
        global(address, bytes, library, name)
    }

    cuKernelGetFunction(function: Out<usize>, kernel: usize) {
        driver()?.functions.get(kernel).ok_or(Status::INVALID_HANDLE)?;
        function.put(kernel)
    }

    cuKernelGetLibrary | cuFuncGetModule (module: Out<usize>, function: usize) {
        let function = driver()?.functions.get(function).ok_or(Status::INVALID_HANDLE)?;
        module.put(function.module_handle)
    }

    cuLinkCreate_v2 | cuLinkCreate (_count: u32, _options: usize, _values: usize, _state: Out<usize>) {
        report(&"linking of modules (cuLinkCreate) is not supported");
        Err(Status::NOT_SUPPORTED)
    }
}
