//! Loaded code objects.

use flipwave_codeobj::{CodeObject, InlinedFunctions, Kernel, LineTable};
use flipwave_isa::Pc;
use std::ops::Range;
use std::sync::OnceLock;

/// A loaded code object.
#[derive(Debug)]
pub struct Module {
    /// The code object; `None` for bare code.
    pub code_object: Option<CodeObject>,
    /// Offset that is added to ELF virtual addresses.
    pub bias: u64,
    /// Range of its ELF virtual addresses.
    pub image: Range<u64>,
    pub lines: LineTable,
    /// Functions in its debug information; read at the first fault.
    inlined: OnceLock<Option<InlinedFunctions>>,
}

impl Module {
    /// Creates a module for a code object that was loaded with `bias` added to the ELF virtual
    /// addresses `image`.
    pub fn of(code_object: &CodeObject, bias: u64, image: Range<u64>) -> Module {
        // Code can execute even if its line table is unreadable.
        let lines = code_object.lines().unwrap_or_default();
        Module {
            code_object: Some(code_object.clone()),
            bias,
            image,
            lines,
            inlined: OnceLock::new(),
        }
    }

    /// The functions in the debug information; `None` if there is none, or if it is unreadable.
    pub fn inlined(&self) -> Option<&InlinedFunctions> {
        let read = || self.code_object.as_ref()?.inlined_functions().ok().flatten();
        self.inlined.get_or_init(read).as_ref()
    }

    /// Returns the kernel with a name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        let kernels = self.code_object.as_ref()?.kernels();
        kernels.iter().find(|kernel| *kernel.name == *name)
    }

    /// ELF virtual addresses of kernel entries.
    pub fn starts(&self) -> Vec<Pc> {
        let kernels = self.code_object.iter().flat_map(CodeObject::kernels);
        kernels.map(|kernel| kernel.descriptor.entry).collect()
    }

    /// Creates a module for code without a code object, at these addresses.
    pub fn bare(image: Range<u64>) -> Module {
        Module {
            code_object: None,
            bias: 0,
            image,
            lines: LineTable::default(),
            inlined: OnceLock::new(),
        }
    }
}
