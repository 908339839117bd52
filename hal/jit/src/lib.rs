//! JIT compilation of LLVM IR to host code.
//!
//! A compiler may crash, hang or exhaust memory, which must not affect its client, such as a campaign
//! of days or an application. Therefore a separate process, the *service*, compiles: it receives IR as
//! text and returns object code, which clients load without LLVM. The service caches object code on
//! disk. Clients compile on a background thread, see [`in_background`], and look in the cache first.

mod client;
mod environment;
mod load;
mod message;
mod object_code;
mod service;
mod signals;
mod store;
mod ternary_logic;

pub use client::{in_background, service, start_service, use_service};
pub use environment::{Compiling, EnvironmentError, check_environment};
pub use load::{Code, LoadError};
pub use object_code::{CompileError, InProcess};
pub use service::{Service, ServiceAddress, serve_if_requested};
pub use signals::spawn_with_signals_blocked;

/// The x86-64 extensions that code is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extensions {
    /// AVX2, FMA and the other extensions of x86-64-v3.
    Avx2,
    /// All extensions of this host, including AVX-512.
    Avx512,
}

/// A compiler of IR to object code.
pub trait Compiler {
    /// Compiles a module.
    ///
    /// # Errors
    /// [`CompileError`] if the IR is invalid, cannot be compiled, or no compiler is available.
    fn compile(&mut self, ir: &str, extensions: Extensions) -> Result<Vec<u8>, CompileError>;
}
