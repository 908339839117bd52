//! Named ranges of an application (ROCTX), which may be nested. Dispatches that the application
//! submits within a range belong to it. The calls are passed on to the ROCTX library if it is
//! loaded.

use crate::agent;
use crate::real::real;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

thread_local! {
    /// Names of the ranges that this thread is in, outermost first.
    static RANGES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Begins a range. Returns the number of ranges around it.
#[unsafe(no_mangle)]
unsafe extern "C" fn roctxRangePushA(name: *const c_char) -> c_int {
    // SAFETY: ROCTX requires a zero-terminated text.
    let text = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy());
    let text = text.unwrap_or_default().replace(char::is_control, " ");
    // Fails at the end of a thread, which is in no range then.
    let depth = RANGES.try_with(|ranges| {
        ranges.borrow_mut().push(text);
        ranges.borrow().len() as c_int - 1
    });
    agent::enter_range(&path());
    real!(roctxRangePushA(name): fn(*const c_char) -> c_int, depth.unwrap_or(-1))
}

/// Ends the innermost range. Returns the number of ranges around it, or a negative number if there
/// was no range.
#[unsafe(no_mangle)]
unsafe extern "C" fn roctxRangePop() -> c_int {
    let depth = RANGES.try_with(|ranges| {
        ranges.borrow_mut().pop()?;
        Some(ranges.borrow().len() as c_int)
    });
    agent::enter_range(&path());
    real!(roctxRangePop(): fn() -> c_int, depth.ok().flatten().unwrap_or(-1))
}

/// Names of the ranges that this thread is in, such as `model/layer 0`; empty for none.
pub fn path() -> CString {
    let names = RANGES.try_with(|ranges| ranges.borrow().join("/")).unwrap_or_default();
    // Cannot fail: names come from zero-terminated texts.
    CString::new(names).unwrap_or_default()
}
