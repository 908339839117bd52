//! Types of single values, and state spaces.

use std::fmt;

/// A fundamental type, or an opaque type of textures (PTX ISA, "Types").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum ScalarType {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    F32,
    F32x2,
    F64,
    Tf32,
    U16x2,
    S16x2,
    TexRef,
    SamplerRef,
    SurfRef,
}

/// The types with their names and sizes in bits.
const TYPES: [(ScalarType, &str, u32); 27] = [
    (ScalarType::Pred, "pred", 1),
    (ScalarType::B8, "b8", 8),
    (ScalarType::B16, "b16", 16),
    (ScalarType::B32, "b32", 32),
    (ScalarType::B64, "b64", 64),
    (ScalarType::B128, "b128", 128),
    (ScalarType::U8, "u8", 8),
    (ScalarType::U16, "u16", 16),
    (ScalarType::U32, "u32", 32),
    (ScalarType::U64, "u64", 64),
    (ScalarType::S8, "s8", 8),
    (ScalarType::S16, "s16", 16),
    (ScalarType::S32, "s32", 32),
    (ScalarType::S64, "s64", 64),
    (ScalarType::F16, "f16", 16),
    (ScalarType::F16x2, "f16x2", 32),
    (ScalarType::Bf16, "bf16", 16),
    (ScalarType::Bf16x2, "bf16x2", 32),
    (ScalarType::F32, "f32", 32),
    (ScalarType::F32x2, "f32x2", 64),
    (ScalarType::F64, "f64", 64),
    (ScalarType::Tf32, "tf32", 32),
    (ScalarType::U16x2, "u16x2", 32),
    (ScalarType::S16x2, "s16x2", 32),
    (ScalarType::TexRef, "texref", 64),
    (ScalarType::SamplerRef, "samplerref", 64),
    (ScalarType::SurfRef, "surfref", 64),
];

impl ScalarType {
    /// The type with a name, without the dot.
    pub fn parse(name: &str) -> Option<ScalarType> {
        TYPES.iter().find(|(_, known, _)| *known == name).map(|(kind, _, _)| *kind)
    }

    /// The name, without the dot.
    pub fn name(self) -> &'static str {
        TYPES[self as usize].1
    }

    /// Size of a value in bits; 1 for predicates.
    pub fn bits(self) -> u32 {
        TYPES[self as usize].2
    }

    /// Size of a value in memory in bytes.
    pub fn bytes(self) -> u64 {
        u64::from(self.bits().div_ceil(8))
    }

    /// Returns `true` for signed integers.
    pub fn is_signed(self) -> bool {
        matches!(
            self,
            ScalarType::S8
                | ScalarType::S16
                | ScalarType::S32
                | ScalarType::S64
                | ScalarType::S16x2
        )
    }

    /// Returns `true` for floating-point types.
    pub fn is_float(self) -> bool {
        use ScalarType::{Bf16, Bf16x2, F16, F16x2, F32, F32x2, F64, Tf32};
        matches!(self, F16 | F16x2 | Bf16 | Bf16x2 | F32 | F32x2 | F64 | Tf32)
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.name())
    }
}

/// A state space (PTX ISA, "State Spaces").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Space {
    Reg,
    Sreg,
    Const,
    Global,
    Local,
    Param,
    Shared,
    Tex,
}

/// The state spaces and their names.
const SPACES: [(Space, &str); 8] = [
    (Space::Reg, "reg"),
    (Space::Sreg, "sreg"),
    (Space::Const, "const"),
    (Space::Global, "global"),
    (Space::Local, "local"),
    (Space::Param, "param"),
    (Space::Shared, "shared"),
    (Space::Tex, "tex"),
];

impl Space {
    /// The state space with a name, without the dot and a suffix like `::cta`.
    pub fn parse(name: &str) -> Option<Space> {
        let name = name.split("::").next().unwrap_or(name);
        SPACES.iter().find(|(_, known)| *known == name).map(|(space, _)| *space)
    }

    /// The name, without the dot.
    pub fn name(self) -> &'static str {
        SPACES[self as usize].1
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_the_order_of_their_enums() {
        for (index, (kind, name, _)) in TYPES.into_iter().enumerate() {
            assert_eq!((kind as usize, ScalarType::parse(name)), (index, Some(kind)));
            assert_eq!(kind.name(), name);
        }
        for (index, (space, name)) in SPACES.into_iter().enumerate() {
            assert_eq!((space as usize, Space::parse(name)), (index, Some(space)));
        }
        assert_eq!(Space::parse("shared::cluster"), Some(Space::Shared));
        assert_eq!((ScalarType::parse("u7"), Space::parse("lds")), (None, None));
    }
}
