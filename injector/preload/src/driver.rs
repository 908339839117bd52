//! The library with the embedded GPU. It is loaded when a device is opened for the first time, from
//! beside this one.

use crate::device::Device;
use crate::real::{fail, real};
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::OnceLock;

/// What it has for us. A device is said by its minor number, -1 for the compute device; what is
/// answered is a file, or what was asked for, or an error of the system with its sign changed.
struct Driver {
    open: Open,
    map: Map,
    request: Request,
    enter: Enter,
}

type Map = unsafe extern "C" fn(i32, *mut c_void, usize, libc::c_int, libc::c_int, i64) -> i64;
type Open = unsafe extern "C" fn(i32, libc::c_int) -> libc::c_int;
type Enter = unsafe extern "C" fn(*const c_char);
type Request = unsafe extern "C" fn(i32, libc::c_ulong, *mut c_void) -> libc::c_int;

/// The file of the library.
const FILE: &str = "libflipwave_agent.so";

static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();

fn driver() -> Option<&'static Driver> {
    DRIVER.get_or_init(load).as_ref()
}

fn load() -> Option<Driver> {
    let path = beside()?;
    // SAFETY: both names end with a zero. The functions have these types.
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
        let enter = libc::dlsym(library, c"flipwave_enter_range".as_ptr());
        if open.is_null() || map.is_null() || request.is_null() || enter.is_null() {
            eprintln!("flipwave: {} is not of this version", path.to_string_lossy());
            return None;
        }
        let driver = Driver {
            open: std::mem::transmute::<*mut c_void, Open>(open),
            map: std::mem::transmute::<*mut c_void, Map>(map),
            request: std::mem::transmute::<*mut c_void, Request>(request),
            enter: std::mem::transmute::<*mut c_void, Enter>(enter),
        };
        // It has not seen what was begun before.
        driver.enter(&crate::ranges::path());
        Some(driver)
    }
}

/// Where it is: beside this library.
fn beside() -> Option<CString> {
    // SAFETY: writes one structure of pointers; the name it gives stays and ends with a zero.
    let own = unsafe {
        let mut information: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(beside as *const c_void, &raw mut information) == 0 {
            return None;
        }
        CStr::from_ptr(information.dli_fname)
    };
    let own = std::path::Path::new(own.to_str().ok()?);
    CString::new(own.with_file_name(FILE).into_os_string().into_encoded_bytes()).ok()
}

fn number(device: Device) -> i32 {
    device.minor().map_or(-1, |minor| minor as i32)
}

/// Opens a device.
pub fn open(device: Device, flags: libc::c_int) -> libc::c_int {
    let Some(driver) = driver() else { return fail(libc::ENODEV) };
    // SAFETY: the library's.
    let file = unsafe { (driver.open)(number(device), flags) };
    if file < 0 {
        return fail(-file);
    }
    if let Some(status) = crate::status::of_file(file) {
        device.remember(status.st_dev, status.st_ino);
    }
    file
}

/// Says in which range the application is, by its path; in none where that is empty. Of a device that
/// was never opened nobody is told.
pub fn enter(range: &CStr) {
    if let Some(Some(driver)) = DRIVER.get() {
        driver.enter(range);
    }
}

impl Driver {
    fn enter(&self, range: &CStr) {
        let range = if range.is_empty() { std::ptr::null() } else { range.as_ptr() };
        // SAFETY: the library's function, with what it takes.
        unsafe { (self.enter)(range) };
    }
}

/// What programs ask of files. Requests have a byte that says whose they are: `K` is the compute
/// driver's, `d` that of what draws, and of each there are others, too.
#[unsafe(no_mangle)]
unsafe extern "C" fn ioctl(
    file: libc::c_int,
    request: libc::c_ulong,
    argument: *mut c_void,
) -> libc::c_int {
    if matches!((request >> 8) as u8, b'K' | b'd')
        && let Some(device) = crate::status::device(file)
        && let Some(driver) = driver()
    {
        // SAFETY: with what the program has given for it.
        let answer = unsafe { (driver.request)(number(device), request, argument) };
        return if answer < 0 { fail(-answer) } else { answer };
    }
    real!(ioctl(file, request, argument):
        fn(libc::c_int, libc::c_ulong, *mut c_void) -> libc::c_int, fail(libc::ENOSYS))
}

/// Functions that map files. Devices are mapped shared.
macro_rules! map {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(
                place: *mut c_void,
                bytes: usize,
                access: libc::c_int,
                flags: libc::c_int,
                file: libc::c_int,
                offset: i64,
            ) -> *mut c_void {
                if flags & libc::MAP_SHARED != 0
                    && file >= 0
                    && let Some(device) = crate::status::device(file)
                    && let Some(driver) = driver()
                {
                    let number = number(device);
                    // SAFETY: with what the program has given for it.
                    let answer = unsafe { (driver.map)(number, place, bytes, access, flags, offset) };
                    if answer < 0 {
                        fail(-answer as libc::c_int);
                        return libc::MAP_FAILED;
                    }
                    return answer as *mut c_void;
                }
                real!($name(place, bytes, access, flags, file, offset):
                    fn(*mut c_void, usize, libc::c_int, libc::c_int, libc::c_int, i64)
                        -> *mut c_void, libc::MAP_FAILED)
            }
        )*
    };
}
map! { mmap mmap64 }
