//! Kernels and variables of the program's own code, which the compiler registers when the program starts.

use super::ready;
use crate::api::driver::modules::{function, image_bytes, variable};
use crate::api::{In, Out, Text};
use crate::handles::lock;
use crate::status::Status;
use std::collections::HashMap;
use std::sync::Mutex;

/// A fat binary of the program.
#[derive(Default)]
struct Binary {
    /// Address of the structure that refers to it.
    image: usize,
    /// Handles of the loaded modules by device.
    modules: HashMap<usize, usize>,
    /// Addresses of the program's pointers to managed variables, with names.
    managed: Vec<(usize, String)>,
}

/// The code of the program.
#[derive(Default)]
struct Registry {
    binaries: Vec<Binary>,
    /// Number of the binary and name of each kernel, by the address of its host function.
    functions: HashMap<usize, (usize, String)>,
    /// Number of the binary and name of each variable, by the address of its host variable.
    variables: HashMap<usize, (usize, String)>,
}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

fn with_registry<T>(change: impl FnOnce(&mut Registry) -> T) -> T {
    change(lock(&REGISTRY).get_or_insert_default())
}

/// The module of a binary on the current device, which is loaded on the first call.
fn module_of(number: usize) -> Result<usize, Status> {
    let current = ready()?;
    let device = current.context.device;
    let (known, image) = with_registry(|registry| {
        let binary = registry.binaries.get(number);
        (
            binary.and_then(|binary| binary.modules.get(&device).copied()),
            binary.map(|binary| binary.image),
        )
    });
    if let Some(known) = known {
        return Ok(known);
    }
    let bytes = image_bytes(In(image.ok_or(Status::INVALID_DEVICE_FUNCTION)? as *const u8))?;
    let module = current.driver.load(current.handle, device, &bytes)?;
    let managed = with_registry(|registry| {
        let binary = &mut registry.binaries[number];
        binary.modules.insert(device, module);
        binary.managed.clone()
    });
    for (pointer, name) in managed {
        if let Ok((address, _)) = variable(module, &name) {
            Out(pointer as *mut u64).put_if_wanted(address);
        }
    }
    Ok(module)
}

/// Handle of the kernel of a host function.
///
/// # Errors
/// [`Status::INVALID_DEVICE_FUNCTION`], and errors of loading.
pub fn kernel(host: usize) -> Result<usize, Status> {
    let found = with_registry(|registry| registry.functions.get(&host).cloned());
    let (binary, name) = found.ok_or(Status::INVALID_DEVICE_FUNCTION)?;
    function(module_of(binary)?, &name).map_err(|_| Status::INVALID_DEVICE_FUNCTION)
}

/// Address and size in bytes of the variable of a host variable.
///
/// # Errors
/// [`Status::INVALID_SYMBOL`], and errors of loading.
pub fn symbol(host: usize) -> Result<(u64, usize), Status> {
    let found = with_registry(|registry| registry.variables.get(&host).cloned());
    let (binary, name) = found.ok_or(Status::INVALID_SYMBOL)?;
    variable(module_of(binary)?, &name).map_err(|_| Status::INVALID_SYMBOL)
}

/// Registers a fat binary; the handle points to its number.
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinary(wrapper: usize) -> *mut usize {
    let number = with_registry(|registry| {
        registry.binaries.push(Binary { image: wrapper, ..Binary::default() });
        registry.binaries.len() - 1
    });
    // The program keeps the handle until it ends.
    Box::into_raw(Box::new(number))
}

/// Ends the registration of a fat binary.
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinaryEnd(_handle: *mut usize) {}

/// Called when the program ends.
#[unsafe(no_mangle)]
extern "C" fn __cudaUnregisterFatBinary(_handle: *mut usize) {}

/// Adds a symbol of a fat binary, given as the number of the binary and its name, to the registry. Invalid handles and
/// names are ignored: registration cannot fail.
fn register(handle: Out<usize>, name: Text, add: impl FnOnce(&mut Registry, (usize, String))) {
    if let (Some(number), Ok(name)) = (handle.get(), name.get()) {
        with_registry(|registry| add(registry, (number, name)));
    }
}

/// Registers a kernel.
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFunction(
    handle: Out<usize>,
    host: usize,
    _device: usize,
    name: Text,
    _limit: i32,
    _thread: usize,
    _block: usize,
    _block_size: usize,
    _grid_size: usize,
    _warp_size: usize,
) -> i32 {
    register(handle, name, |registry, symbol| drop(registry.functions.insert(host, symbol)));
    0
}

/// Registers a variable.
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterVar(
    handle: Out<usize>,
    host: usize,
    _device: usize,
    name: Text,
    _is_external: i32,
    _bytes: usize,
    _is_constant: i32,
    _is_global: i32,
) {
    register(handle, name, |registry, symbol| drop(registry.variables.insert(host, symbol)));
}

/// Registers a managed variable; `pointer` is the program's pointer to it.
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterManagedVar(
    handle: Out<usize>,
    pointer: usize,
    _device: usize,
    name: Text,
    _is_external: i32,
    _bytes: usize,
    _is_constant: i32,
    _is_global: i32,
) {
    register(handle, name, |registry, (number, name)| {
        registry.variables.insert(pointer, (number, name.clone()));
        if let Some(binary) = registry.binaries.get_mut(number) {
            binary.managed.push((pointer, name));
        }
    });
}

/// Loads the module of a fat binary, before the program uses a managed variable.
#[unsafe(no_mangle)]
extern "C" fn __cudaInitModule(handle: Out<usize>) -> i8 {
    let loaded = handle.get().ok_or(Status::INVALID_VALUE).and_then(module_of);
    i8::from(loaded.is_ok())
}
