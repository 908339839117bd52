//! What a hook is given and what becomes of its result.

use crate::pattern::Pattern;
use crate::{EmulateError, Instruction, Lanes};
use flipwave_hooks::hook::{Argument, HookSource};
use flipwave_isa::Role;

/// How a hook is called, whatever the registers of a proxy are.
#[derive(Clone, Debug)]
pub struct Calling {
    /// An argument for each parameter.
    pub arguments: Vec<Argument>,
    /// The numbers of the operands that the result goes to.
    pub results: Vec<usize>,
}

impl Calling {
    /// Binds a hook's parameters to operands by their names.
    ///
    /// # Errors
    /// [`EmulateError::Hook`] where there is no such function, [`EmulateError::Signature`] where a
    /// parameter is called like no operand that the proxy reads, a source is read by no parameter,
    /// or there is no result for an operand that is written.
    pub fn new(
        instruction: &Instruction,
        pattern: &Pattern,
        source: &HookSource,
    ) -> Result<Calling, EmulateError> {
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
        // What a destination held is there for the hook only if the proxy itself reads it.
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
                        "has a parameter `{parameter}`, and nothing that `{}` reads is called so; \
                         it reads: {}",
                        pattern.text(),
                        names.join(", ")
                    )));
                }
            });
        }
        let is_read = |name: &str| signature.parameters.iter().any(|own| own.name == name);
        if let Some((_, unread)) = sources.iter().find(|(_, name)| !is_read(name)) {
            return Err(wrong(format!("has no parameter for the source `{unread}`")));
        }
        match (results.is_empty(), signature.result.as_str()) {
            (false, "void") => {
                let (_, name) = destinations.first().copied().unwrap_or_default();
                Err(wrong(format!("returns nothing for `{name}`")))
            }
            (true, result) if result != "void" => {
                Err(wrong(format!("returns something, and `{}` writes nothing", pattern.text())))
            }
            _ => Ok(Calling { arguments, results }),
        }
    }
}
