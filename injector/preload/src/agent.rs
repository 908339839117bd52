//! The agent: the library with the embedded GPU. It is in the same folder as this library, and is
//! loaded when a device is first opened.

use crate::device::Device;
use crate::real::{fail, real};
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::OnceLock;

/// Functions of the agent. They take the minor number of a render node, or -1 for the compute
/// device. They return a file descriptor, an address or another result, or a negated error number.
struct Agent {
    open: Open,
    map: Map,
    request: Request,
    enter_range: EnterRange,
}

type Open = unsafe extern "C" fn(i32, libc::c_int) -> libc::c_int;
type Map = unsafe extern "C" fn(i32, *mut c_void, usize, libc::c_int, libc::c_int, i64) -> i64;
type Request = unsafe extern "C" fn(i32, libc::c_ulong, *mut c_void) -> libc::c_int;
type EnterRange = unsafe extern "C" fn(*const c_char);

/// File name of the agent.
const FILE: &str = "libflipwave_agent.so";

static AGENT: OnceLock<Option<Agent>> = OnceLock::new();

/// The agent, loaded on the first call; `None` if it cannot be loaded.
fn agent() -> Option<&'static Agent> {
    AGENT.get_or_init(load).as_ref()
}

fn load() -> Option<Agent> {
    let path = agent_path()?;
    // SAFETY: path and names end with a zero. The functions have these types.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if library.is_null() {
            let reason = CStr::from_ptr(libc::dlerror()).to_string_lossy();
            eprintln!("flipwave: cannot load the embedded GPU: {reason}");
            return None;
        }
        let open = libc::dlsym(library, c"flipwave_open_device".as_ptr());
        let map = libc::dlsym(library, c"flipwave_map_device".as_ptr());
        let request = libc::dlsym(library, c"flipwave_request_device".as_ptr());
        let enter_range = libc::dlsym(library, c"flipwave_enter_range".as_ptr());
        if open.is_null() || map.is_null() || request.is_null() || enter_range.is_null() {
            eprintln!("flipwave: {} has another version", path.to_string_lossy());
            return None;
        }
        let agent = Agent {
            open: std::mem::transmute::<*mut c_void, Open>(open),
            map: std::mem::transmute::<*mut c_void, Map>(map),
            request: std::mem::transmute::<*mut c_void, Request>(request),
            enter_range: std::mem::transmute::<*mut c_void, EnterRange>(enter_range),
        };
        // Ranges may have begun before.
        agent.enter_range(&crate::ranges::path());
        Some(agent)
    }
}

/// Path of the agent: in the folder of this library.
fn agent_path() -> Option<CString> {
    // SAFETY: writes one structure of pointers. The name is never freed and ends with a zero.
    let library = unsafe {
        let mut information: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(agent_path as *const c_void, &raw mut information) == 0 {
            return None;
        }
        CStr::from_ptr(information.dli_fname)
    };
    let library = std::path::Path::new(library.to_str().ok()?);
    CString::new(library.with_file_name(FILE).into_os_string().into_encoded_bytes()).ok()
}

fn number(device: Device) -> i32 {
    device.minor().map_or(-1, |minor| minor as i32)
}

/// Opens a device.
pub fn open(device: Device, flags: libc::c_int) -> libc::c_int {
    let Some(agent) = agent() else { return fail(libc::ENODEV) };
    // SAFETY: the agent's function.
    let file = unsafe { (agent.open)(number(device), flags) };
    if file < 0 {
        return fail(-file);
    }
    if let Some(status) = crate::status::file_status(file) {
        device.set_file(status.st_dev, status.st_ino);
    }
    file
}

/// Sets the named range that the application is in; an empty name for none. Has no effect before a
/// device is opened: the agent then asks for the range.
pub fn enter_range(range: &CStr) {
    if let Some(Some(agent)) = AGENT.get() {
        agent.enter_range(range);
    }
}

impl Agent {
    fn enter_range(&self, range: &CStr) {
        let range = if range.is_empty() { std::ptr::null() } else { range.as_ptr() };
        // SAFETY: the agent's function; null or a zero-terminated name.
        unsafe { (self.enter_range)(range) };
    }
}

/// Intercepts ioctl(2). The type of a request is `K` for KFD and `d` for DRM, but other drivers
/// have requests of these types as well.
#[unsafe(no_mangle)]
unsafe extern "C" fn ioctl(
    file: libc::c_int,
    request: libc::c_ulong,
    argument: *mut c_void,
) -> libc::c_int {
    if matches!((request >> 8) as u8, b'K' | b'd')
        && let Some(device) = crate::status::device(file)
        && let Some(agent) = agent()
    {
        // SAFETY: the program's argument for this request.
        let result = unsafe { (agent.request)(number(device), request, argument) };
        return if result < 0 { fail(-result) } else { result };
    }
    real!(ioctl(file, request, argument):
        fn(libc::c_int, libc::c_ulong, *mut c_void) -> libc::c_int, fail(libc::ENOSYS))
}

/// Intercepts functions that map files. Devices are always mapped shared.
macro_rules! map {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(
                address: *mut c_void,
                bytes: usize,
                protection: libc::c_int,
                flags: libc::c_int,
                file: libc::c_int,
                offset: i64,
            ) -> *mut c_void {
                if flags & libc::MAP_SHARED != 0
                    && file >= 0
                    && let Some(device) = crate::status::device(file)
                    && let Some(agent) = agent()
                {
                    let number = number(device);
                    // SAFETY: the program's arguments.
                    let result = unsafe {
                        (agent.map)(number, address, bytes, protection, flags, offset)
                    };
                    if result < 0 {
                        fail(-result as libc::c_int);
                        return libc::MAP_FAILED;
                    }
                    return result as *mut c_void;
                }
                real!($name(address, bytes, protection, flags, file, offset):
                    fn(*mut c_void, usize, libc::c_int, libc::c_int, libc::c_int, i64)
                        -> *mut c_void, libc::MAP_FAILED)
            }
        )*
    };
}
map! { mmap mmap64 }
