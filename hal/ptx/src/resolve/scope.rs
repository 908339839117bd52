//! Names that are visible in a part of a module.

use crate::{Name, Register, Signature, Symbol};
use std::collections::HashMap;
use std::sync::Arc;

/// Meaning of a name.
#[derive(Clone, Debug)]
pub(super) enum Entity {
    /// A register, or the elements of a vector.
    Registers(Vec<Register>),
    /// A variable that all lanes share, or a function.
    Symbol(Symbol),
    /// A variable in the frame of the function, by offset.
    Frame(u64),
    /// A kernel parameter, by offset.
    Parameter(u64),
    /// Targets of an indexed branch, as labels.
    Targets(Vec<Name>),
    /// Functions that an indirect call may reach.
    Functions(Vec<Name>),
    /// A prototype.
    Prototype(Arc<Signature>),
}

/// Names declared in one block.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope(HashMap<Name, Entity>);

impl Scope {
    pub fn get(&self, name: &str) -> Option<&Entity> {
        self.0.get(name)
    }

    /// Declares a name; returns `false` if it is declared already.
    pub fn declare(&mut self, name: Name, entity: Entity) -> bool {
        self.0.insert(name, entity).is_none()
    }

    /// Declares a name, or declares it again.
    pub fn replace(&mut self, name: Name, entity: Entity) {
        self.0.insert(name, entity);
    }
}
