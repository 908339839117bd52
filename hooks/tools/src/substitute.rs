//! Instructions that stand for others.

use super::ToolError;
use flipwave_codeobj::CodeObject;
use flipwave_hooks::flow::{Disassembly, InstIndex};
use flipwave_hooks::rewrite::{Instrumentation, Report};
use std::collections::BTreeMap;

/// What an instruction stands for, where hooks take its place: tools show it under this name, as
/// one instruction that is none of the target's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Substitute {
    /// The operation.
    pub operation: String,
    /// The instruction.
    pub text: String,
}

/// Instructions of a code object that stand for others.
pub type Substitutes = BTreeMap<InstIndex, Substitute>;

/// What is put into code beside a tool.
pub trait Beside {
    /// Finds out what it does to a code object, which `program` was read from.
    ///
    /// # Errors
    /// [`ToolError::Beside`].
    fn read(
        &self,
        object: &CodeObject,
        program: &Disassembly,
    ) -> Result<Box<dyn Replacement + '_>, ToolError>;
}

/// What is put into one code object.
pub trait Replacement {
    /// The instructions that stand for others then.
    fn substitutes(&self) -> Substitutes;

    /// Asks for it.
    fn ask(&self, instrumentation: &mut Instrumentation<'_>);

    /// Looks at what the engine made of it.
    ///
    /// # Errors
    /// [`ToolError::Beside`].
    fn look_at(&self, program: &Disassembly, report: &Report) -> Result<(), ToolError>;
}
