//! The service that compiles what the embedded GPU executes often.

use flipwave_hooks::hook::cache_folder;
use flipwave_jit::Service;

/// Starts it for this process and for the applications that it starts; nothing where it is not wanted,
/// or cannot be had: then all is interpreted.
pub fn start() -> Option<Service> {
    if std::env::var("FLIPWAVE_TIER").is_ok_and(|tier| tier == "interpreter") {
        return None;
    }
    let program = std::env::current_exe().ok()?;
    let service = Service::start(program, cache_folder().join("blocks")).ok()?;
    flipwave_jit::use_service(service.address().clone());
    Some(service)
}
