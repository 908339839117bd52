//! Loading of modules: addresses of variables, and their initial values.

use super::lower::lower;
use super::operand::Addresses;
use super::{Blocks, Op, Original, Program, Step};
use crate::Gap;
use crate::address::{FUNCTIONS, INSERTED, WINDOW, Windows};
use crate::memory::Memory;
use crate::wave::RegisterRange;
use flipwave_device::{Address, DeviceError};
use flipwave_ptx::{CallGraph, Code, ControlFlow, FunctionCode, Module, Name, Space, Symbol};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// Addresses of the variables of a module, in their state spaces.
struct Layout<'a> {
    code: &'a Code,
    variables: Vec<u64>,
    functions: Vec<u64>,
    /// Numbers of variables that another program has initialized.
    shared: BTreeSet<usize>,
}

impl Addresses for Layout<'_> {
    fn address(&self, symbol: &Symbol) -> Result<u64, Gap> {
        match symbol {
            Symbol::Variable(number) => Ok(self.variables[*number]),
            Symbol::Function(number) => Ok(self.functions[*number]),
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
        module: &Module,
        code: Code,
        memory: &mut Memory,
        base: Option<Base<'_>>,
        placed: &BTreeMap<String, Address>,
    ) -> Result<Program, DeviceError> {
        let mut known = base.as_ref().map(|base| Known::new(base.program)).unwrap_or_default();
        let mut initialized = BTreeSet::new();
        let mut inserted = INSERTED;
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
                    if let Some(address) = known.take(&variable.name) {
                        initialized.insert(variables.len());
                        address
                    } else if base.is_some() {
                        // Memory of hooks is where faulty addresses do not lead.
                        while memory.allocate_at(Address(inserted), variable.bytes.max(1)).is_err()
                        {
                            inserted = inserted.saturating_add(1 << 16);
                            if inserted >= 2 * INSERTED {
                                return Err(unsupported("no memory is left for it"));
                            }
                        }
                        inserted
                    } else {
                        memory.allocate(variable.bytes.max(1))?.0
                    }
                }
                _ => return Err(unsupported("its state space or alignment is not supported")),
            });
        }
        let functions = functions(&code, base.as_ref().map(|base| base.program));
        let layout = Layout { code: &code, variables, functions, shared: initialized };
        layout.initialize(memory)?;
        let flows: Vec<ControlFlow> =
            code.functions.iter().map(|function| ControlFlow::of(&code, function)).collect();
        let steps = code.instructions.iter().enumerate().map(|(number, inst)| {
            let op = lower(inst, number, &code, &flows[inst.function], &layout);
            Step { inst: inst.clone(), op: op.unwrap_or_else(Op::Gap) }
        });
        let steps: Vec<Step> = steps.collect();
        let calls = CallGraph::of(&code);
        let reachable = |function| {
            let reachable = calls.reachable(function);
            RegisterRange::of(reachable.into_iter().map(|number| &code.functions[number]))
        };
        let ranges = (0..code.functions.len()).map(reachable).collect();
        let blocks = Blocks::of(&code, &flows, &steps);
        let Layout { variables, functions, .. } = layout;
        let (module, shared_bytes) = (Arc::new(module.clone()), shared);
        let original = base.map(|base| base.original);
        Ok(Program {
            module,
            code: Arc::new(code),
            steps,
            shared_bytes,
            calls,
            ranges,
            blocks,
            variables,
            functions,
            original,
        })
    }
}

/// A program that rewritten code replaces.
pub(crate) struct Base<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its code, as observers of the rewritten code see it.
    pub original: Original,
}

/// Variables of the original program by name, those of one name in the order of the code.
#[derive(Default)]
struct Known(HashMap<Name, VecDeque<u64>>);

impl Known {
    fn new(program: &Program) -> Known {
        let mut known = Known::default();
        for (variable, address) in program.code.variables.iter().zip(&program.variables) {
            if matches!(variable.space, Space::Global | Space::Const) {
                known.0.entry(variable.name.clone()).or_default().push_back(*address);
            }
        }
        known
    }

    fn take(&mut self, name: &str) -> Option<u64> {
        self.0.get_mut(name)?.pop_front()
    }
}

/// Addresses of functions: those of the original program, and others behind them.
fn functions(code: &Code, known: Option<&Program>) -> Vec<u64> {
    let address = |function: &FunctionCode| {
        let number = known.and_then(|known| {
            known.code.functions.iter().position(|found| found.name == function.name)
        });
        match (known, number) {
            (Some(known), Some(number)) => known.functions[number],
            (Some(_), None) => FUNCTIONS + WINDOW + function.entry().0,
            (None, _) => FUNCTIONS + function.entry().0,
        }
    };
    code.functions.iter().map(address).collect()
}

/// Returns `true` for shared memory whose size the launch decides.
fn is_dynamic(variable: &flipwave_ptx::Variable) -> bool {
    variable.space == Space::Shared && variable.is_external && variable.bytes == 0
}

impl Layout<'_> {
    fn initialize(&self, memory: &mut Memory) -> Result<(), DeviceError> {
        for (number, variable) in self.code.variables.iter().enumerate() {
            let address = &self.variables[number];
            if variable.space == Space::Shared || self.shared.contains(&number) {
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
