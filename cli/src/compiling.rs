//! The service that compiles frequently executed code of the embedded GPU to host code.

use flipwave_host::cache::cache_folder;
use flipwave_jit::Service;
use std::path::PathBuf;

/// Starts the compile service for this process and the applications that it starts. Returns `None` if
/// compilation is disabled or the service cannot be started; all code is interpreted then.
pub fn start() -> Option<Service> {
    if std::env::var("FLIPWAVE_TIER").is_ok_and(|tier| tier == "interpreter") {
        return None;
    }
    let program = std::env::current_exe().ok()?;
    let service = Service::start(program, folder()).ok()?;
    flipwave_jit::use_service(service.address().clone());
    Some(service)
}

/// The folder for compiled blocks, inside the user's cache. A private temporary cache stores none, because
/// the service may still write after this process has ended and removed the folder.
fn folder() -> PathBuf {
    let cache = cache_folder();
    let name = cache.file_name().unwrap_or_default().to_string_lossy();
    let is_temporary = cache.parent() == Some(std::env::temp_dir().as_path());
    if is_temporary && name.starts_with("flipwave-cache-") {
        return PathBuf::from("/dev/null");
    }
    cache.join("blocks")
}
