//! Addresses of functions by name.

use super::code;
use crate::api::{Out, Text, api};
use crate::driver::report;
use crate::status::Status;
use std::collections::HashMap;
use std::sync::{Once, OnceLock};

/// Flag for functions with a default stream per thread.
const PER_THREAD: u64 = 2;

/// The address of a function; for a name without version, that of the newest version.
pub(in crate::api) fn find(name: &str, flags: u64) -> Option<usize> {
    static ALL: OnceLock<HashMap<&str, usize>> = OnceLock::new();
    let all = ALL.get_or_init(|| super::entries().into_iter().collect());
    let per_thread = if flags & PER_THREAD != 0 { ["_ptsz", "_ptds", ""] } else { [""; 3] };
    let suffixes =
        per_thread.iter().flat_map(|suffix| [format!("_v2{suffix}"), (*suffix).to_owned()]);
    let mut suffixes: Vec<String> = suffixes.collect();
    suffixes.push("_v3".to_owned());
    suffixes.iter().find_map(|suffix| all.get(format!("{name}{suffix}").as_str()).copied())
}

api! { convert code;
    cuGetProcAddress(name: Text, function: Out<usize>, _version: i32, flags: u64) {
        let found = find(&name.get()?, flags);
        function.put(found.unwrap_or(0))?;
        found.map(|_| ()).ok_or(Status::NOT_FOUND)
    }

    cuGetProcAddress_v2(name: Text, function: Out<usize>, _version: i32, flags: u64, status: Out<i32>) {
        let found = find(&name.get()?, flags);
        function.put(found.unwrap_or(0))?;
        // CU_GET_PROC_ADDRESS_SUCCESS or _SYMBOL_NOT_FOUND.
        status.put_if_wanted(i32::from(found.is_none()));
        found.map(|_| ()).ok_or(Status::NOT_FOUND)
    }

    cuGetExportTable(table: Out<usize>, _id: usize) {
        static REPORTED: Once = Once::new();
        REPORTED.call_once(|| {
            report(
                &"the application contains NVIDIA's runtime or a library that needs undocumented parts of the \
                  driver, which are not available; link with `-cudart shared`, and without cuBLAS and other \
                  libraries of NVIDIA",
            );
        });
        table.put(0)?;
        Err(Status::NOT_FOUND)
    }
}
