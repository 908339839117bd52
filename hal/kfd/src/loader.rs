//! Code objects that the runtime's loader has put into memory. The loader reports them to debuggers
//! in a list like that of the dynamic linker: `_amdgpu_r_debug`, a `struct r_debug` (AMDGPUUsage,
//! "Loaded code object path URI").

use crate::user_memory::read_bytes;
use flipwave_codeobj::CodeObject;
use std::ffi::CStr;
use std::io::{Read, Seek, SeekFrom};

/// `struct link_map` of `<link.h>`.
#[repr(C)]
struct LinkMap {
    bias: u64,
    name: *const libc::c_char,
    dynamic: u64,
    next: *const LinkMap,
    previous: *const LinkMap,
}

/// `struct r_debug` of `<link.h>`.
#[repr(C)]
pub struct LoaderList {
    version: libc::c_int,
    first: *const LinkMap,
}

/// Address of the list of this process's loader; 0 if there is none. Asks the dynamic linker, so it
/// must not be called by a thread that the dynamic linker may wait for.
pub fn find_loader_list() -> u64 {
    // SAFETY: names end with a zero. The library stays loaded, as the caller is called from it.
    unsafe {
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
        let runtime = libc::dlopen(c"libhsa-runtime64.so.1".as_ptr(), flags);
        let handle = if runtime.is_null() { libc::RTLD_DEFAULT } else { runtime };
        let list = libc::dlsym(handle, c"_amdgpu_r_debug".as_ptr());
        if !runtime.is_null() {
            libc::dlclose(runtime);
        }
        list as u64
    }
}

/// A code object in the loader's list.
#[derive(Debug)]
pub struct LoadedObject {
    /// Load bias: the difference between load address and ELF virtual address.
    pub bias: u64,
    uri: Uri,
}

impl LoadedObject {
    /// The code object as it was given to the loader, if it extends to an address. If it was given
    /// as memory, the program may have overwritten it since, see [`LoadedObject::is_file`].
    pub fn original(&self, address: u64) -> Option<CodeObject> {
        // A large code object is not read for an address beyond its end.
        let bytes = read(&self.uri, |bytes| {
            let end = CodeObject::end_in_memory(bytes);
            end.is_some_and(|end| address < self.bias.wrapping_add(end))
        })?;
        CodeObject::from_bytes(bytes).ok()
    }

    /// Returns `true` if the code object was given to the loader as a file.
    pub fn is_file(&self) -> bool {
        self.uri.path.is_some()
    }
}

/// The loaded code object that may contain an address: the last that begins at or before it.
///
/// # Safety
/// `list` is null or the loader's, and the loader does not change it during the call.
pub unsafe fn loaded_object_at(list: *const LoaderList, address: u64) -> Option<LoadedObject> {
    // SAFETY: promised by the caller.
    let mut next = unsafe { list.as_ref() }?.first;
    let mut found: Option<(u64, *const libc::c_char)> = None;
    // SAFETY: entries of the loader's list.
    while let Some(entry) = unsafe { next.as_ref() } {
        if entry.bias <= address && found.is_none_or(|(bias, _)| bias < entry.bias) {
            found = Some((entry.bias, entry.name));
        }
        next = entry.next;
    }
    let (bias, name) = found?;
    // SAFETY: the loader's names end with a zero.
    let uri = unsafe { CStr::from_ptr(name) }.to_str().ok()?;
    Some(LoadedObject { bias, uri: Uri::parse(uri)? })
}

/// Location of the bytes of a code object.
#[derive(Debug, PartialEq, Eq)]
struct Uri {
    /// Path of a file; `None` for memory of this process.
    path: Option<String>,
    offset: u64,
    /// `None` for the rest of the file.
    size: Option<u64>,
}

impl Uri {
    fn parse(text: &str) -> Option<Uri> {
        let (location, range) = text.split_once(['#', '?']).unwrap_or((text, ""));
        let number = |key: &str| {
            let value = range.split('&').find_map(|part| part.strip_prefix(key))?;
            match value.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => value.parse().ok(),
            }
        };
        let path = match location.strip_prefix("file://") {
            Some(path) => Some(unescape(path)?),
            None => location.strip_prefix("memory://").map(|_| None)?,
        };
        Some(Uri { path, offset: number("offset=").unwrap_or(0), size: number("size=") })
    }
}

/// Decodes percent-encoded characters such as `%20`.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after_first @ ..] = rest {
        let (byte, after) = match (first, after_first) {
            (b'%', [high, low, after @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).ok()?;
                (u8::from_str_radix(digits, 16).ok()?, after)
            }
            _ => (*first, after_first),
        };
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

/// Reads the bytes at a location, and returns them if `is_wanted`.
fn read(uri: &Uri, is_wanted: impl FnOnce(&[u8]) -> bool) -> Option<Vec<u8>> {
    let Some(path) = &uri.path else {
        // The program may have unmapped the memory.
        let bytes = read_bytes(uri.offset, usize::try_from(uri.size?).ok()?)?;
        return is_wanted(&bytes).then_some(bytes);
    };
    let mut file = flipwave_host::input::open(path.as_ref()).ok()?;
    file.seek(SeekFrom::Start(uri.offset)).ok()?;
    let mut bytes = Vec::new();
    let size = uri.size.unwrap_or(u64::MAX).min(flipwave_host::input::BINARY);
    file.take(size).read_to_end(&mut bytes).ok()?;
    is_wanted(&bytes).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_and_memory_uris_are_parsed() {
        let uri = Uri::parse("memory://1234#offset=0x7f00&size=4096").unwrap();
        assert_eq!(uri, Uri { path: None, offset: 0x7f00, size: Some(4096) });
        let uri = Uri::parse("file:///tmp/a%20b#offset=16&size=32").unwrap();
        assert_eq!(uri, Uri { path: Some("/tmp/a b".into()), offset: 16, size: Some(32) });
        assert_eq!(Uri::parse("https://example.org"), None);
    }
}
