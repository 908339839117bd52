//! Hooks in PTX: given a module and requests, a new module in which instructions call C functions.
//!
//! A hook is a C function that clang compiles for the module's target. Registers of PTX are virtual, so that
//! nothing is saved and every register can be read and changed: `ptxas` allocates registers, and inlines
//! small hooks.
//!
//! 1. [`PtxHookCompiler::compile`] compiles a source to a [`HookLibrary`].
//! 2. [`Instrumentation::new`] prepares a module. [`Instrumentation::sites`] lists its instructions with their
//!    facts; [`Instrumentation::call`] requests calls, [`Instrumentation::insert`] inserts instructions, and
//!    [`Instrumentation::remove`] removes instructions.
//! 3. [`Instrumentation::rewrite`] returns the module with hooks, and for each of its instructions the address
//!    in the original code.
//!
//! ```no_run
//! use flipwave_hooks::hook::Source;
//! use flipwave_ptx::{Ptx, parse};
//! use flipwave_ptx_hooks::{
//!     Argument, HookCall, Instrumentation, Lanes, Place, Point, PtxHookCompiler,
//! };
//!
//! // Counts executions by lanes, and doubles what the kernel loads from global memory.
//! let source = Source {
//!     name: "hooks.c".into(),
//!     text: "uint64_t loads;
//!            uint32_t twice(uint32_t value)
//!            {
//!                __atomic_fetch_add(&loads, 1, __ATOMIC_RELAXED);
//!                return 2 * value;
//!            }"
//!     .into(),
//!     ..Source::default()
//! };
//! let module = parse(&std::fs::read_to_string("kernel.ptx")?)?;
//! let target = Ptx::new("sm_80").ok_or("no target")?;
//! let mut instrumentation = Instrumentation::new(&module)?;
//! let library = instrumentation.add_library(PtxHookCompiler::default().compile(&source, &target)?);
//! let loads: Vec<_> = instrumentation
//!     .sites()
//!     .filter(|site| site.form().name() == "ld.global.b32")
//!     .map(|site| (site.number, site.inst.accesses().destinations[0]))
//!     .collect();
//! for (number, word) in loads {
//!     instrumentation.call(
//!         Point::After(number),
//!         HookCall {
//!             library,
//!             function: "twice".into(),
//!             arguments: vec![Argument::Word(word)],
//!             results: vec![Place::Word(word)],
//!             lanes: Lanes::Executing,
//!         },
//!     )?;
//! }
//! let rewritten = instrumentation.rewrite()?;
//! println!("{}", rewritten.module);
//! // The host reads the counter: its name in the module.
//! println!("{:?}", rewritten.symbol(library, "loads"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod call;
mod compiler;
mod emitter;
mod error;
mod hoist;
mod instrumentation;
mod library;
mod names;
mod request;
mod rewrite;

pub use compiler::{HEADER, PtxHookCompiler};
pub use error::PtxHookError;
pub use instrumentation::Instrumentation;
pub use library::{HookLibrary, Signature};
pub use names::of_operand as for_each_name;
pub use request::{Argument, HookCall, Lanes, LibraryIndex, Place, Point, Site};
pub use rewrite::Rewritten;
