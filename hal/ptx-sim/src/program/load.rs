//! Loading of modules: addresses of variables, and their initial values.

use super::lower::lower;
use super::operand::Addresses;
use super::{Op, Program, Step};
use crate::Gap;
use crate::address::{FUNCTIONS, WINDOW, Windows};
use crate::memory::Memory;
use flipwave_device::{Address, DeviceError};
use flipwave_ptx::{CallGraph, Code, ControlFlow, Space, Symbol};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Addresses of the variables of a module, in their state spaces.
struct Layout<'a> {
    code: &'a Code,
    variables: Vec<u64>,
}

impl Addresses for Layout<'_> {
    fn address(&self, symbol: &Symbol) -> Result<u64, Gap> {
        match symbol {
            Symbol::Variable(number) => Ok(self.variables[*number]),
            Symbol::Function(number) => Ok(FUNCTIONS + self.code.functions[*number].entry().0),
            Symbol::External(name) => {
                Err(Gap::because(&format!("function `{name}` has no code in the module")))
            }
        }
    }
}

impl Program {
    /// Allocates the variables of a module, except those in `placed`, and prepares its code.
    ///
    /// # Errors
    /// [`DeviceError::Load`] for variables of other modules, and for textures;
    /// [`DeviceError::OutOfMemory`].
    pub(crate) fn load(
        code: Code,
        memory: &mut Memory,
        placed: &BTreeMap<String, Address>,
    ) -> Result<Program, DeviceError> {
        let mut variables = Vec::new();
        let mut shared = 0u64;
        for variable in code.variables.iter().filter(|found| !is_dynamic(found)) {
            if variable.space == Space::Shared {
                let start = shared.next_multiple_of(variable.alignment);
                shared = start.saturating_add(variable.bytes);
            }
        }
        if shared > WINDOW {
            let reason = format!("{shared} bytes of shared memory; at most {WINDOW} are supported");
            return Err(DeviceError::Load(reason));
        }
        let dynamic = shared.next_multiple_of(16);
        shared = 0;
        for variable in &code.variables {
            let unsupported = |reason: &str| {
                let (position, name) = (variable.position, &variable.name);
                DeviceError::Load(format!("{position}: variable `{name}`: {reason}"))
            };
            variables.push(match variable.space {
                Space::Shared if is_dynamic(variable) => dynamic,
                Space::Shared => {
                    let start = shared.next_multiple_of(variable.alignment);
                    shared = start + variable.bytes;
                    start
                }
                Space::Global | Space::Const if variable.is_external => {
                    return Err(unsupported("no module defines it"));
                }
                Space::Global | Space::Const if placed.contains_key(&*variable.name) => {
                    placed[&*variable.name].0
                }
                Space::Global | Space::Const if variable.alignment <= 1 << 16 => {
                    memory.allocate(variable.bytes.max(1))?.0
                }
                _ => return Err(unsupported("its state space or alignment is not supported")),
            });
        }
        let layout = Layout { code: &code, variables };
        layout.initialize(memory)?;
        let flows: Vec<ControlFlow> =
            code.functions.iter().map(|function| ControlFlow::of(&code, function)).collect();
        let steps = code.instructions.iter().enumerate().map(|(number, inst)| {
            let op = lower(inst, number, &code, &flows[inst.function], &layout);
            Step { inst: inst.clone(), op: op.unwrap_or_else(Op::Gap) }
        });
        let steps = steps.collect();
        let recursive = CallGraph::of(&code).recursive;
        let addresses = layout.variables.into_iter().map(Address).collect();
        Ok(Program { code: Arc::new(code), steps, addresses, shared_bytes: shared, recursive })
    }
}

/// Returns `true` for shared memory whose size the launch decides.
fn is_dynamic(variable: &flipwave_ptx::Variable) -> bool {
    variable.space == Space::Shared && variable.is_external && variable.bytes == 0
}

impl Layout<'_> {
    fn initialize(&self, memory: &mut Memory) -> Result<(), DeviceError> {
        for (variable, address) in self.code.variables.iter().zip(&self.variables) {
            if variable.space == Space::Shared {
                continue;
            }
            let mut content = variable.content.clone();
            for relocation in &variable.relocations {
                let place = (variable.position, &variable.name);
                let failed = |reason: &str| {
                    DeviceError::Load(format!("{}: variable `{}`: {reason}", place.0, place.1))
                };
                let value = self.address(&relocation.symbol).map_err(|gap| failed(gap.reason()))?;
                let value = value.wrapping_add(relocation.addend as u64);
                let value = match &relocation.symbol {
                    Symbol::Variable(number) if relocation.is_generic => {
                        value.wrapping_add(Windows::base(self.code.variables[*number].space))
                    }
                    _ => value,
                };
                let value = value.checked_shr(relocation.shift).unwrap_or(0).to_le_bytes();
                let start = relocation.offset as usize;
                let bytes = (relocation.bytes as usize).min(value.len());
                let end = start + bytes;
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[start..end].copy_from_slice(&value[..bytes]);
            }
            memory.write(Address(*address), &content);
        }
        Ok(())
    }
}
