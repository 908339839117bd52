//! Ranges to which an application gives names, one within another, as ROCTX has them for profilers: what
//! it submits to the GPU within one is a part of it. That library is told, too, where it is loaded.

use crate::driver;
use crate::real::real;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

thread_local! {
    /// The names of the ranges in which this thread is, the outermost first.
    static RANGES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Begins a range; how many there are around it.
#[unsafe(no_mangle)]
unsafe extern "C" fn roctxRangePushA(name: *const c_char) -> c_int {
    // SAFETY: text that ends with a zero, as the library asks for.
    let text = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy());
    let text = text.unwrap_or_default().replace(char::is_control, " ");
    // A thread that is at its end is in no range.
    let around = RANGES.try_with(|ranges| {
        ranges.borrow_mut().push(text);
        ranges.borrow().len() as c_int - 1
    });
    driver::enter(&path());
    real!(roctxRangePushA(name): fn(*const c_char) -> c_int, around.unwrap_or(-1))
}

/// Ends the innermost range; how many there are around it, less than 0 where there is none.
#[unsafe(no_mangle)]
unsafe extern "C" fn roctxRangePop() -> c_int {
    let around = RANGES.try_with(|ranges| {
        ranges.borrow_mut().pop()?;
        Some(ranges.borrow().len() as c_int)
    });
    driver::enter(&path());
    real!(roctxRangePop(): fn() -> c_int, around.ok().flatten().unwrap_or(-1))
}

/// The range in which this thread is, with those around it: `model/layer 0`; empty for none.
pub fn path() -> CString {
    let names = RANGES.try_with(|ranges| ranges.borrow().join("/")).unwrap_or_default();
    // There is no zero in it: each name is the text before one.
    CString::new(names).unwrap_or_default()
}
