//! Names resolved: from the tree of a module to code with addresses.

mod error;
mod function;
mod operand;
mod scope;
mod variable;

pub use error::{ResolveError, ResolveErrorKind};

use crate::{Code, FunctionKind, Module, Name, RegisterCounts, Symbol};
use error::error;
use scope::{Entity, Scope};
use std::collections::HashMap;

/// Resolves the names of a module, and assigns addresses to instructions and words to registers.
///
/// # Errors
/// Names that are unknown or declared twice, operands that no instruction can have, and more registers
/// than [`flipwave_arch::RegisterId`] can number.
pub fn resolve(module: &Module) -> Result<Code, ResolveError> {
    let mut code = Code::default();
    let mut globals = Scope::default();
    let with_code = || module.functions().filter(|function| function.body.is_some());
    let numbers: HashMap<&str, usize> =
        with_code().enumerate().map(|(number, function)| (&*function.name, number)).collect();
    for (number, function) in with_code().enumerate() {
        if numbers[&*function.name] != number {
            let kind = ResolveErrorKind::Duplicate(function.name.to_string());
            return Err(error(function.position, kind));
        }
    }
    for function in module.functions() {
        let symbol = match numbers.get(&*function.name) {
            Some(number) => Symbol::Function(*number),
            None => Symbol::External(function.name.clone()),
        };
        globals.replace(function.name.clone(), Entity::Symbol(symbol));
    }
    for item in &module.items {
        if let crate::ItemKind::Alias(alias) = &item.kind {
            let number = numbers.get(&*alias.function).ok_or_else(|| {
                error(item.position, ResolveErrorKind::Unknown(alias.function.to_string()))
            })?;
            globals.replace(alias.name.clone(), Entity::Symbol(Symbol::Function(*number)));
        }
    }
    for declaration in module.variables() {
        variable::declare_shared(declaration, &mut globals, &mut code.variables)?;
    }
    // Initial values may name variables that are declared later.
    for declaration in module.variables() {
        variable::initialize(declaration, &globals, &mut code.variables)?;
    }
    let files = files(module);
    for (number, function) in with_code().enumerate() {
        function::function(function, number, &globals, &files, &mut code)?;
    }
    number_registers(&mut code)?;
    Ok(code)
}

/// Paths of source files by number.
fn files(module: &Module) -> HashMap<u64, std::sync::Arc<str>> {
    let files = module.items.iter().filter_map(|item| match &item.kind {
        crate::ItemKind::File(file) => Some((file.number, (&*file.path).into())),
        _ => None,
    });
    files.collect()
}

/// Gives device functions other words than all kernels and other device functions.
fn number_registers(code: &mut Code) -> Result<(), ResolveError> {
    let most =
        |count: fn(&crate::FunctionCode) -> u16| code.kernels().map(count).max().unwrap_or(0);
    let kernels = RegisterCounts {
        words: most(|function| function.words.end),
        predicates: most(|function| function.predicates.end),
    };
    let mut counts = kernels;
    let mut first = Vec::new();
    for function in &code.functions {
        if function.kind == FunctionKind::Entry {
            first.push(RegisterCounts::default());
            continue;
        }
        first.push(counts);
        let too_many = || error(function.position, ResolveErrorKind::TooManyRegisters);
        let sum = |a: u16, b: u16| a.checked_add(b).ok_or_else(too_many);
        counts.words = sum(counts.words, function.words.end)?;
        counts.predicates = sum(counts.predicates, function.predicates.end)?;
    }
    for (function, first) in code.functions.iter_mut().zip(&first) {
        function.shift_registers(*first);
    }
    for inst in &mut code.instructions {
        inst.shift_registers(first[inst.function]);
    }
    code.registers = counts;
    Ok(())
}

/// Names of the labels of a function's instructions.
pub(crate) type Labels = HashMap<Name, flipwave_arch::Pc>;
