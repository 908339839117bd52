//! Moves declarations of registers to the beginning of functions, so that hooks reach every register at every
//! instruction. Registers keep their order, and with it the numbers of their words.

use crate::names;
use flipwave_ptx::{
    Block, Declaration, Declarator, Function, ItemKind, Module, Name, Space, Statement,
    StatementKind,
};
use std::collections::{HashMap, HashSet};

/// Moves the registers of all functions of a module.
pub(crate) fn hoist(module: &mut Module) {
    for item in &mut module.items {
        if let ItemKind::Function(function) = &mut item.kind {
            hoist_function(function);
        }
    }
}

fn hoist_function(function: &mut Function) {
    let parameters = function.parameters.iter().flatten().chain(&function.results);
    let taken = parameters.map(|parameter| parameter.name.clone()).collect();
    let Some(body) = &mut function.body else { return };
    let mut hoisting = Hoisting { taken, scopes: Vec::new(), hoisted: Vec::new() };
    hoisting.block(body);
    body.statements.splice(0..0, hoisting.hoisted);
}

struct Hoisting {
    /// Names of registers and parameters of the function.
    taken: HashSet<Name>,
    /// New names of registers by old ones, those of the innermost block last.
    scopes: Vec<HashMap<Name, Name>>,
    /// The declarations.
    hoisted: Vec<Statement>,
}

impl Hoisting {
    fn block(&mut self, block: &mut Block) {
        self.scopes.push(HashMap::new());
        for mut statement in std::mem::take(&mut block.statements) {
            match &mut statement.kind {
                StatementKind::Declaration(declaration) if declaration.space == Space::Reg => {
                    self.declare(declaration);
                    self.hoisted.push(statement);
                    continue;
                }
                StatementKind::Declaration(declaration) => {
                    // Hides registers of outer blocks.
                    let names = declaration.declarators.iter().map(|found| found.name.clone());
                    let hiding = names.map(|name| (name.clone(), name));
                    if let Some(scope) = self.scopes.last_mut() {
                        scope.extend(hiding);
                    }
                }
                StatementKind::Block(inner) => self.block(inner),
                StatementKind::Instruction(inst) => {
                    names::of_instruction(inst, &mut |name| {
                        let mut scopes = self.scopes.iter().rev();
                        if let Some(new) = scopes.find_map(|scope| scope.get(name)) {
                            *name = new.clone();
                        }
                    });
                }
                _ => {}
            }
            block.statements.push(statement);
        }
        self.scopes.pop();
    }

    /// Gives registers names that the function has not used.
    fn declare(&mut self, declaration: &mut Declaration) {
        for declarator in &mut declaration.declarators {
            let old = names_of(declarator);
            let name = declarator.name.clone();
            for number in 2.. {
                if !names_of(declarator).iter().any(|name| self.taken.contains(name)) {
                    break;
                }
                declarator.name = format!("{name}_{number}_").into();
            }
            let new = names_of(declarator);
            self.taken.extend(new.iter().cloned());
            if let Some(scope) = self.scopes.last_mut() {
                let is_renamed = old != new;
                let is_hidden = |name: &Name| scope.contains_key(name);
                if is_renamed || old.iter().any(is_hidden) {
                    scope.extend(old.into_iter().zip(new));
                }
            }
        }
    }
}

/// Names of the registers of a declarator.
fn names_of(declarator: &Declarator) -> Vec<Name> {
    match declarator.count {
        // More than any module has; resolving reports them.
        Some(count) => (0..count.min(1 << 16))
            .map(|number| format!("{}{number}", declarator.name).into())
            .collect(),
        None => vec![declarator.name.clone()],
    }
}
