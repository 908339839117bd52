//! Code and variables of any instruction set, from which tables are built.

use super::{ToolError, ToolScope};
use flipwave_hooks::flow::InstIndex;
use flipwave_hooks::hook::Variables;
use std::fmt::Debug;

/// The code that a dispatched kernel reaches.
pub trait CodeScope: Debug {
    /// Returns `true` if an instruction, by number, is in the scope.
    fn contains(&self, at: InstIndex) -> bool;
}

impl CodeScope for ToolScope<'_> {
    fn contains(&self, at: InstIndex) -> bool {
        ToolScope::contains(self, at)
    }
}

/// The variables of hooks after a dispatch.
pub trait HookVariables: Debug {
    /// The content of a variable.
    ///
    /// # Errors
    /// [`ToolError::Variable`] if the hooks have no such variable.
    fn bytes(&self, name: &str) -> Result<&[u8], ToolError>;
}

impl HookVariables for Variables<'_> {
    fn bytes(&self, name: &str) -> Result<&[u8], ToolError> {
        Ok(Variables::bytes(self, name)?)
    }
}
