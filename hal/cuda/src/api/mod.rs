//! Functions that applications call.
//!
//! Applications pass pointers as C programs do. [`Out`], [`In`] and [`Text`] are pointers to results,
//! values and strings.

mod driver;
mod runtime;

use crate::driver::{Context, Device, Driver, Stream, opened};
use crate::handles::lock;
use crate::queue;
use crate::status::Status;
use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::sync::Arc;

/// A pointer to a result; null for results that the application does not want.
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Out<T> {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    /// Stores a result.
    ///
    /// # Errors
    /// [`Status::INVALID_VALUE`] for a null pointer.
    pub fn put(self, value: T) -> Result<(), Status> {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the application's pointer to a result of this type.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Stores a result, unless the pointer is null.
    pub fn put_if_wanted(self, value: T) {
        let _ = self.put(value);
    }

    /// Stores the result with a number in an array.
    pub fn put_at(self, number: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: the application's array of results of this type.
            unsafe { self.0.add(number).write_unaligned(value) };
        }
    }

    /// The previous value.
    pub fn get(self) -> Option<T>
    where
        T: Copy,
    {
        // SAFETY: the application's pointer to a value of this type.
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }
}

/// A pointer to values; null for none.
#[repr(transparent)]
pub struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> In<T> {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T: Copy> In<T> {
    /// Returns `true` for a null pointer.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The pointer as a number.
    pub fn address(self) -> usize {
        self.0 as usize
    }

    /// The value.
    ///
    /// # Errors
    /// [`Status::INVALID_VALUE`] for a null pointer.
    pub fn get(self) -> Result<T, Status> {
        self.get_at(0)
    }

    /// The value with a number in an array.
    ///
    /// # Errors
    /// [`Status::INVALID_VALUE`] for a null pointer.
    pub fn get_at(self, number: usize) -> Result<T, Status> {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the application's array of values of this type.
        Ok(unsafe { self.0.add(number).read_unaligned() })
    }

    /// The values of an array.
    ///
    /// # Errors
    /// [`Status::INVALID_VALUE`] for a null pointer.
    pub fn array(self, count: usize) -> Result<Vec<T>, Status> {
        (0..count).map(|number| self.get_at(number)).collect()
    }
}

/// A string that ends with a zero.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text(*const c_char);

impl Text {
    /// The string.
    ///
    /// # Errors
    /// [`Status::INVALID_VALUE`] for a null pointer.
    pub fn get(self) -> Result<String, Status> {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the application's string.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }
}

/// Stores a string in a buffer of the application, with a final zero.
///
/// # Errors
/// [`Status::INVALID_VALUE`] for a null pointer.
fn put_text(buffer: Out<u8>, bytes: i32, text: &str) -> Result<(), Status> {
    let size = usize::try_from(bytes).ok().filter(|size| *size > 0).ok_or(Status::INVALID_VALUE)?;
    let kept = text.bytes().take(size - 1).chain([0]);
    buffer.get().ok_or(Status::INVALID_VALUE)?;
    kept.enumerate().for_each(|(number, byte)| buffer.put_at(number, byte));
    Ok(())
}

thread_local! {
    /// Handles of the thread's contexts; the last is the current one, 0 for none.
    static CONTEXTS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// The stack of the thread's contexts.
fn with_contexts<T>(change: impl FnOnce(&mut Vec<usize>) -> T) -> T {
    CONTEXTS.with_borrow_mut(change)
}

/// The driver.
///
/// # Errors
/// [`Status::NOT_INITIALIZED`].
fn driver() -> Result<&'static Driver, Status> {
    opened().ok_or(Status::NOT_INITIALIZED)
}

/// The current context of a thread and its device.
#[derive(Clone)]
struct Current {
    driver: &'static Driver,
    /// Handle of the context.
    handle: usize,
    context: Arc<Context>,
}

impl Current {
    /// The context of this thread, also after a fault.
    ///
    /// # Errors
    /// [`Status::NOT_INITIALIZED`], [`Status::INVALID_CONTEXT`], and [`Status::NOT_PERMITTED`] in a function that
    /// the application has put into a stream.
    fn any() -> Result<Current, Status> {
        let driver = driver()?;
        if queue::is_executing() {
            // A function that the application has put into a stream would wait for itself.
            return Err(Status::NOT_PERMITTED);
        }
        let handle = with_contexts(|contexts| contexts.last().copied()).unwrap_or(0);
        let context = driver.contexts.get(handle).ok_or(Status::INVALID_CONTEXT)?;
        Ok(Current { driver, handle, context })
    }

    /// The context of this thread.
    ///
    /// # Errors
    /// The errors of [`Current::any`], and that of an earlier fault.
    fn get() -> Result<Current, Status> {
        let current = Current::any()?;
        current.device().check()?;
        Ok(current)
    }

    fn device(&self) -> &'static Device {
        &self.driver.devices[self.context.device]
    }

    /// A stream by handle; 0 to 2 are default streams.
    fn stream(&self, handle: usize) -> Result<Arc<Stream>, Status> {
        match handle {
            0..=2 => Ok(Arc::clone(&self.device().default_stream)),
            handle => self.driver.streams.get(handle).ok_or(Status::INVALID_HANDLE),
        }
    }
}

/// Handle of the primary context of a device, which is made if it does not exist.
fn primary_context(driver: &Driver, device: usize) -> usize {
    let mut primary = lock(&driver.devices[device].primary);
    *primary.0.get_or_insert_with(|| driver.contexts.add(Context { device, flags: 0 }))
}

/// Defines functions with the names and types of the API. Each has a body that returns `Result<(), Status>`, which
/// `convert` makes a code of; names after `|` are further names of it. `entries` returns names and addresses.
macro_rules! api {
    (convert $convert:path; $($name:ident $(| $alias:ident)* ($($arguments:tt)*) $body:block)*) => {
        $(
            $crate::api::api_function! { $convert; $name ($($arguments)*) $body }
            $crate::api::api_aliases! { $name ($($arguments)*) $($alias)* }
        )*

        /// Names and addresses of the functions.
        #[allow(dead_code, reason = "only functions of the driver are looked up by name")]
        pub fn entries() -> Vec<(&'static str, usize)> {
            vec![
                $(
                    (stringify!($name), $name as *const () as usize),
                    $((stringify!($alias), $alias as *const () as usize),)*
                )*
            ]
        }
    };
}

macro_rules! api_function {
    ($convert:path; $name:ident ($($argument:ident: $type:ty),* $(,)?) $body:block) => {
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        unsafe extern "C" fn $name($($argument: $type),*) -> i32 {
            $convert(|| -> Result<(), $crate::status::Status> { $body })
        }
    };
}

macro_rules! api_aliases {
    ($name:ident $arguments:tt) => {};
    ($name:ident $arguments:tt $alias:ident $($others:ident)*) => {
        $crate::api::api_alias! { $name $alias $arguments }
        $crate::api::api_aliases! { $name $arguments $($others)* }
    };
}

macro_rules! api_alias {
    ($name:ident $alias:ident ($($argument:ident: $type:ty),* $(,)?)) => {
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        unsafe extern "C" fn $alias($($argument: $type),*) -> i32 {
            // SAFETY: another name of the function.
            unsafe { $name($($argument),*) }
        }
    };
}
use {api, api_alias, api_aliases, api_function};
