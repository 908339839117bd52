//! The service that compiles what the embedded GPU executes often.

use flipwave_host::cache::cache_folder;
use flipwave_jit::Service;
use std::path::PathBuf;

/// Starts it for this process and for the applications that it starts; nothing where it is not wanted,
/// or cannot be had: then all is interpreted.
pub fn start() -> Option<Service> {
    if std::env::var("FLIPWAVE_TIER").is_ok_and(|tier| tier == "interpreter") {
        return None;
    }
    let program = std::env::current_exe().ok()?;
    let service = Service::start(program, folder()).ok()?;
    flipwave_jit::use_service(service.address().clone());
    Some(service)
}

/// Where blocks are kept: in the user's cache. In that of this process alone nothing is kept, as the
/// service may still write when the process has ended and has removed it.
fn folder() -> PathBuf {
    let cache = cache_folder();
    let name = cache.file_name().unwrap_or_default().to_string_lossy();
    let is_temporary = cache.parent() == Some(std::env::temp_dir().as_path());
    if is_temporary && name.starts_with("flipwave-cache-") {
        return PathBuf::from("/dev/null");
    }
    cache.join("blocks")
}
