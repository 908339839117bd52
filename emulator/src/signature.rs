//! Binds the parameters and the result of a hook to the operands of a proxy.

use crate::pattern::Pattern;
use crate::{EmulateError, Instruction, Lanes};
use flipwave_hooks::hook::{Argument, HookSource};
use flipwave_isa::Role;

/// The arguments and results of a hook in terms of a proxy's operands.
#[derive(Clone, Debug)]
pub struct OperandBinding {
    /// The argument for each parameter.
    pub arguments: Vec<Argument>,
    /// The numbers of the operands that receive the result.
    pub results: Vec<usize>,
}

impl OperandBinding {
    /// Binds a hook's parameters to operands by name.
    ///
    /// # Errors
    /// [`EmulateError::Hook`] if the function does not exist, [`EmulateError::Signature`] if a parameter is
    /// not named like an operand that the proxy reads, a source operand has no parameter, or the result
    /// does not correspond to the destination operands.
    pub fn new(
        instruction: &Instruction,
        pattern: &Pattern,
        source: &HookSource,
    ) -> Result<OperandBinding, EmulateError> {
        let name = || instruction.name.clone();
        let signature = source.function(&instruction.function).map_err(|reason| {
            EmulateError::Hook { instruction: name(), reason: Box::new(reason) }
        })?;
        let wrong = |reason: String| EmulateError::Signature {
            instruction: name(),
            prototype: signature.to_string(),
            reason,
        };
        let of_role = |wanted: Role| {
            let operands = pattern.operands().filter(move |(.., role)| *role == wanted);
            operands.map(|(index, name, ..)| (index, name))
        };
        let sources: Vec<(usize, &str)> = of_role(Role::Source).collect();
        let destinations: Vec<(usize, &str)> = of_role(Role::Destination).collect();
        let results: Vec<usize> = destinations.iter().map(|(index, _)| *index).collect();
        // The old value of a destination is available to the hook only if the proxy itself reads it.
        let kept = destinations.iter().filter(|(index, _)| pattern.reads(*index));
        let readable: Vec<(usize, &str)> = sources.iter().chain(kept).copied().collect();
        let mut arguments = Vec::new();
        for parameter in &signature.parameters {
            let operand = readable.iter().find(|(_, name)| *name == parameter.name);
            arguments.push(match (operand, parameter.name.as_str()) {
                (Some((index, _)), _) => Argument::Operand(*index),
                (None, "exec") if instruction.lanes == Lanes::All => Argument::Exec,
                (None, _) => {
                    let names: Vec<&str> = readable.iter().map(|(_, name)| *name).collect();
                    return Err(wrong(format!(
                        "has a parameter `{parameter}` that is not a source operand of `{}`; expected \
                         one of {}",
                        pattern.text(),
                        names.join(", ")
                    )));
                }
            });
        }
        let is_read =
            |name: &str| signature.parameters.iter().any(|parameter| parameter.name == name);
        if let Some((_, unread)) = sources.iter().find(|(_, name)| !is_read(name)) {
            return Err(wrong(format!("has no parameter for the source `{unread}`")));
        }
        match (results.is_empty(), signature.result.as_str()) {
            (false, "void") => {
                let (_, name) = destinations.first().copied().unwrap_or_default();
                Err(wrong(format!("returns no result for `{name}`")))
            }
            (true, result) if result != "void" => {
                let proxy = pattern.text();
                Err(wrong(format!("returns a result, but `{proxy}` has no destination operand")))
            }
            _ => Ok(OperandBinding { arguments, results }),
        }
    }
}
