//! Names in the tree of a module.

use flipwave_ptx::{
    Block, Declaration, Expression, Initializer, Instruction, ItemKind, Module, Name, Operand,
    StatementKind,
};
use std::collections::HashSet;

/// Visits the names in an instruction: registers, variables, functions and labels.
pub(crate) fn of_instruction(inst: &mut Instruction, visit: &mut dyn FnMut(&mut Name)) {
    if let Some(guard) = &mut inst.guard {
        visit(&mut guard.register);
    }
    inst.operands.iter_mut().for_each(|operand| of_operand(operand, visit));
}

/// Visits the names in an operand: registers, variables, functions and labels.
pub fn of_operand(operand: &mut Operand, visit: &mut dyn FnMut(&mut Name)) {
    match operand {
        Operand::Value(value) => of_expression(value, visit),
        Operand::Member { register, .. } => visit(register),
        Operand::Vector(parts) | Operand::Address(parts) | Operand::List(parts) => {
            parts.iter_mut().for_each(|part| of_operand(part, visit));
        }
        Operand::Element { array, index } => {
            visit(array);
            of_expression(index, visit);
        }
        Operand::Pair(pair) => pair.iter_mut().for_each(|part| of_operand(part, visit)),
    }
}

fn of_expression(value: &mut Expression, visit: &mut dyn FnMut(&mut Name)) {
    match value {
        Expression::Number(_) => {}
        Expression::Symbol(name) => visit(name),
        Expression::Unary(_, inner) | Expression::Cast(_, inner) | Expression::Mask(_, inner) => {
            of_expression(inner, visit);
        }
        Expression::Binary(_, parts) => {
            parts.iter_mut().for_each(|part| of_expression(part, visit));
        }
        Expression::Select(parts) => parts.iter_mut().for_each(|part| of_expression(part, visit)),
        Expression::Call(_, arguments) => {
            arguments.iter_mut().for_each(|argument| of_expression(argument, visit));
        }
    }
}

/// Visits the names in the initial values of a declaration.
pub(crate) fn of_initializers(declaration: &mut Declaration, visit: &mut dyn FnMut(&mut Name)) {
    fn of(initializer: &mut Initializer, visit: &mut dyn FnMut(&mut Name)) {
        match initializer {
            Initializer::Value(value) => of_expression(value, visit),
            Initializer::List(all) => all.iter_mut().for_each(|one| of(one, visit)),
        }
    }
    let initializers = declaration.declarators.iter_mut();
    initializers
        .filter_map(|declarator| declarator.initializer.as_mut())
        .for_each(|initializer| of(initializer, visit));
}

/// Visits the names that the statements of a block use.
pub(crate) fn of_block(block: &mut Block, visit: &mut dyn FnMut(&mut Name)) {
    for statement in &mut block.statements {
        match &mut statement.kind {
            StatementKind::Instruction(inst) => of_instruction(inst, visit),
            StatementKind::Block(inner) => of_block(inner, visit),
            StatementKind::CallTargets { functions, .. } => {
                functions.iter_mut().for_each(&mut *visit)
            }
            StatementKind::Declaration(declaration) => of_initializers(declaration, visit),
            _ => {}
        }
    }
}

/// Names that a module declares anywhere, without registers that a declaration numbers.
pub(crate) fn declared(module: &Module) -> HashSet<Name> {
    fn of_block(block: &Block, names: &mut HashSet<Name>) {
        for statement in &block.statements {
            match &statement.kind {
                StatementKind::Declaration(declaration) => {
                    names.extend(declaration.declarators.iter().map(|found| found.name.clone()));
                }
                StatementKind::Label(name) => drop(names.insert(name.clone())),
                StatementKind::Block(inner) => of_block(inner, names),
                _ => {}
            }
        }
    }
    let mut names = HashSet::new();
    for item in &module.items {
        match &item.kind {
            ItemKind::Variable(declaration) => {
                names.extend(declaration.declarators.iter().map(|found| found.name.clone()));
            }
            ItemKind::Function(function) => {
                names.insert(function.name.clone());
                let parameters = function.parameters.iter().flatten().chain(&function.results);
                names.extend(parameters.map(|parameter| parameter.name.clone()));
                if let Some(body) = &function.body {
                    of_block(body, &mut names);
                }
            }
            ItemKind::Alias(alias) => drop(names.insert(alias.name.clone())),
            _ => {}
        }
    }
    names
}

/// A prefix that begins no name of a module.
pub(crate) fn unused_prefix(module: &Module) -> String {
    let names = declared(module);
    let is_used = |prefix: &str| {
        names.iter().any(|name| name.trim_start_matches(['%', '$', '_']).starts_with(prefix))
    };
    let mut prefix = "flipwave".to_owned();
    while is_used(&prefix) {
        prefix.push('_');
    }
    prefix
}
