//! Errors and versions.

use super::{LAST, code};
use crate::api::driver::procedures::find;
use crate::api::{Out, Text, api};
use crate::device::VERSION;
use crate::status::Status;
use std::ffi::c_char;

/// Returns the last error of the thread, and forgets it unless it belongs to the context.
#[unsafe(no_mangle)]
extern "C" fn cudaGetLastError() -> i32 {
    let last = LAST.get();
    LAST.set(last.filter(|status| status.is_sticky()));
    last.map_or(0, |status| status.0)
}

/// Returns the last error of the thread.
#[unsafe(no_mangle)]
extern "C" fn cudaPeekAtLastError() -> i32 {
    LAST.get().map_or(0, |status| status.0)
}

/// Returns the name of an error.
#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorName(error: i32) -> *const c_char {
    Status(error).runtime_name().as_ptr().cast()
}

/// Returns the description of an error.
#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorString(error: i32) -> *const c_char {
    Status(error).description().unwrap_or("unrecognized error code\0").as_ptr().cast()
}

api! { convert code;
    cudaRuntimeGetVersion | cudaDriverGetVersion (version: Out<i32>) {
        version.put(VERSION)
    }

    cudaGetDriverEntryPoint | cudaGetDriverEntryPoint_ptsz (
        name: Text, function: Out<usize>, flags: u64, status: Out<i32>,
    ) {
        let found = find(&name.get()?, flags);
        // cudaDriverEntryPointSuccess or cudaDriverEntryPointSymbolNotFound.
        status.put_if_wanted(i32::from(found.is_none()));
        function.put(found.unwrap_or(0))
    }
}
