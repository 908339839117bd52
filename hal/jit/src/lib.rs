//! LLVM's IR becomes code of the host at run time.
//!
//! A compiler is large, and may crash, hang or take all memory there is; what asks for code must not
//! suffer from that, be it a campaign of days or somebody's application. So compiling is done by a
//! process of its own, the *service*, which keeps what it has made on disk: IR goes in as text, and
//! object code comes out, which is loaded without LLVM. Who asks does not wait, see [`in_background`], and
//! looks first whether what it needs is kept.

mod client;
mod load;
mod masked_logic;
mod message;
mod object_code;
mod service;
mod signals;
mod store;

pub use client::{in_background, service, use_service, wake_service};
pub use load::{Code, LoadError};
pub use object_code::{CompileError, Here};
pub use service::{Service, ServiceAddress, serve_if_asked};
pub use signals::spawn;

/// The extensions of x86-64 that code is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extensions {
    /// AVX2, FMA and what comes with them on every processor (x86-64-v3).
    Avx2,
    /// All that this host has, among it AVX-512.
    Avx512,
}

/// What makes object code of IR.
pub trait Compiler {
    /// Compiles a module.
    ///
    /// # Errors
    /// [`CompileError`] if it is no IR, cannot be compiled, or nobody is there to do it.
    fn compile(&mut self, ir: &str, extensions: Extensions) -> Result<Vec<u8>, CompileError>;
}
