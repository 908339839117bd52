//! Forms of instructions: opcode, modifiers and what follows from them.

use crate::{Class, OpcodeFacts, ScalarType, Space};

/// An opcode with its modifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    name: Box<str>,
    /// Facts about the opcode; `None` for an unknown one.
    pub facts: Option<&'static OpcodeFacts>,
    /// Types among the modifiers, in order: the result's first.
    pub types: Vec<ScalarType>,
    /// Elements of the vector that a load or store transfers, at least 1.
    pub elements: u8,
    /// The first state space among the modifiers; `None` for generic addresses.
    pub space: Option<Space>,
}

impl Form {
    /// The form with a name, such as `ld.global.v4.f32`.
    pub fn of(name: &str) -> Form {
        let modifiers = || name.split('.').skip(1);
        let elements = modifiers().find_map(|modifier| match modifier {
            "v2" => Some(2),
            "v4" => Some(4),
            "v8" => Some(8),
            _ => None,
        });
        Form {
            name: name.into(),
            facts: OpcodeFacts::of(name),
            types: modifiers().filter_map(ScalarType::parse).collect(),
            elements: elements.unwrap_or(1),
            space: modifiers().find_map(Space::parse),
        }
    }

    /// The whole name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name up to the first dot.
    pub fn opcode(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }

    /// The modifiers, without dots.
    pub fn modifiers(&self) -> impl Iterator<Item = &str> {
        self.name.split('.').skip(1)
    }

    /// Returns `true` if a modifier is present.
    pub fn has(&self, modifier: &str) -> bool {
        self.modifiers().any(|present| present == modifier)
    }

    /// The class; `None` for an unknown opcode.
    pub fn class(&self) -> Option<Class> {
        self.facts.map(|facts| facts.class)
    }

    /// Type of the result, or of the data of a store.
    pub fn result(&self) -> Option<ScalarType> {
        self.types.first().copied()
    }

    /// Type of the sources of conversions and comparisons.
    pub fn source(&self) -> Option<ScalarType> {
        self.types.last().copied()
    }

    /// Number of bytes of memory that a lane accesses; `None` for other instructions, and for forms whose
    /// operands decide.
    pub fn access_bytes(&self) -> Option<u64> {
        let has_memory = matches!(
            self.class(),
            Some(Class::Load | Class::Store | Class::Atomic | Class::Reduction)
        );
        let element = self.source().filter(|_| has_memory)?.bytes();
        Some(element * u64::from(self.elements))
    }

    /// State space that the instruction accesses: of parameters and generic addresses, too.
    pub fn accesses(&self, space: Space) -> bool {
        self.space == Some(space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_follow_from_modifiers() {
        let load = Form::of("ld.global.nc.L1::no_allocate.v4.f32");
        assert_eq!((load.class(), load.space), (Some(Class::Load), Some(Space::Global)));
        assert_eq!((load.elements, load.access_bytes()), (4, Some(16)));
        assert!(load.has("nc") && load.has("L1::no_allocate") && !load.has("L1"));
        let convert = Form::of("cvt.rzi.s32.f64");
        assert_eq!(
            convert.result().zip(convert.source()),
            Some((ScalarType::S32, ScalarType::F64))
        );
        assert_eq!(convert.access_bytes(), None);
        let unknown = Form::of("frobnicate.b32");
        assert_eq!((unknown.facts, unknown.result()), (None, Some(ScalarType::B32)));
        assert_eq!(Form::of("atom.shared::cta.cas.b128").access_bytes(), Some(16));
    }
}
