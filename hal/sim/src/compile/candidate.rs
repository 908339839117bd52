//! Blocks together with the variants compiled of them.

use super::block::Block;
use super::compiled::Compiled;
use super::emit;
use super::value::Shape;
use super::variant::Variant;
use crate::wave::{Level, Machine};
use flipwave_jit::{Code, Compiler, Extensions};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A block, and its compiled code in each variant.
pub struct Candidate {
    pub block: Arc<Block>,
    variants: [VariantSlot; Variant::COUNT],
}

/// The compiled code of one variant.
#[derive(Default)]
struct VariantSlot {
    /// `true` if the variant is compiled or being compiled.
    is_requested: AtomicBool,
    /// The code; `None` if the compilation failed.
    compiled: OnceLock<Option<Compiled>>,
}

impl Candidate {
    pub fn new(block: Block) -> Candidate {
        Candidate { block: Arc::new(block), variants: Default::default() }
    }

    /// Returns `true` if the variant is compiled or being compiled. Only reads memory that other threads
    /// read, unlike [`Candidate::request`].
    pub fn is_requested(&self, variant: Variant) -> bool {
        self.variants[variant.index()].is_requested.load(Ordering::Relaxed)
    }

    /// Marks the variant as requested, and returns `true` if it was not before.
    pub fn request(&self, variant: Variant) -> bool {
        !self.variants[variant.index()].is_requested.swap(true, Ordering::Relaxed)
    }

    /// Compiles a variant.
    pub fn compile(
        &self,
        machine: Machine,
        level: Level,
        variant: Variant,
        compiler: &mut dyn Compiler,
    ) {
        let (shape, extensions) = match level {
            Level::Avx512 => (Shape::Sixteen, Extensions::Avx512),
            _ => (Shape::Eight, Extensions::Avx2),
        };
        let non_global =
            if variant.flat_private { self.block.non_global_accesses() } else { Vec::new() };
        let module = emit::module(&self.block.source, non_global, machine, shape, variant);
        let object = compiler.compile(&module.text, extensions).map_err(|error| error.to_string());
        let code = object
            .and_then(|object| Code::load(&object, emit::NAME).map_err(|error| error.to_string()));
        // The interpreter executes blocks that fail to compile; tests fail with the reason.
        #[cfg(test)]
        if let Err(error) = &code {
            panic!("{error}\n{}", module.text);
        }
        let compiled =
            code.ok().map(|code| Compiled::new(Arc::clone(&self.block), module.contents, code));
        let _ = self.variants[variant.index()].compiled.set(compiled);
    }

    /// The compiled code of a variant; `None` if it is not compiled yet or failed to compile.
    #[inline(always)]
    pub fn compiled(&self, variant: Variant) -> Option<&Compiled> {
        self.variants[variant.index()].compiled.get()?.as_ref()
    }
}
