//! Variants of an operation, which have rows of their own.

use crate::wave::Machine;
use flipwave_isa::{Float8, Generation};

/// A variant of an operation. The name of its row is the operation's name followed by a word for each
/// property, in the order of the fields, such as `v_dot4_i32_iu8 1 clamp`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Variant {
    /// Sources that are signed, one bit each (`neg_lo`).
    pub signed_sources: Option<u8>,
    /// Processors whose definition differs from that of the others.
    pub edition: Option<Edition>,
    /// Integer results saturate (`clamp`).
    pub saturates: bool,
}

/// Processors with a definition of their own for some operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Edition {
    /// gfx90a.
    Gfx90a,
    /// gfx940 to gfx942, with the 8-bit floats that have neither infinities nor negative zero.
    Fnuz,
    /// gfx940 and gfx950.
    Gfx940,
    /// gfx11.
    Gfx11,
    /// gfx12.
    Gfx12,
}

impl Edition {
    /// Editions that apply to a machine, in order of preference.
    pub fn of(machine: Machine) -> &'static [Edition] {
        match machine.generation {
            Generation::Gfx90a => &[Edition::Gfx90a],
            Generation::Gfx940 if machine.float8 == Float8::Fnuz => {
                &[Edition::Fnuz, Edition::Gfx940]
            }
            Generation::Gfx940 => &[Edition::Gfx940],
            Generation::Gfx11 => &[Edition::Gfx11],
            Generation::Gfx12 => &[Edition::Gfx12],
            _ => &[],
        }
    }
}

impl Variant {
    /// Splits the name of a row into the operation's name and the variant. Returns `None` for unknown words.
    pub fn of_row(name: &str) -> Option<(&str, Variant)> {
        let mut words = name.split(' ');
        let operation = words.next()?;
        let mut variant = Variant::default();
        for word in words {
            match word {
                "clamp" => variant.saturates = true,
                "gfx90a" => variant.edition = Some(Edition::Gfx90a),
                "fnuz" => variant.edition = Some(Edition::Fnuz),
                "gfx940" => variant.edition = Some(Edition::Gfx940),
                "gfx11" => variant.edition = Some(Edition::Gfx11),
                "gfx12" => variant.edition = Some(Edition::Gfx12),
                _ => variant.signed_sources = Some(word.parse().ok()?),
            }
        }
        Some((operation, variant))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::operations::TABLES;
    use std::collections::HashSet;

    #[test]
    fn every_row_is_a_different_variant_of_an_operation() {
        let mut seen = HashSet::new();
        for row in TABLES.iter().copied().flatten() {
            let key = Variant::of_row(row.name).unwrap_or_else(|| panic!("{}", row.name));
            assert!(seen.insert(key), "{} occurs twice", row.name);
        }
        assert!(seen.iter().any(|(_, variant)| variant.saturates));
        assert!(seen.iter().any(|(_, variant)| variant.signed_sources.is_some()));
        assert!(seen.iter().any(|(_, variant)| variant.edition.is_some()));
    }

    #[test]
    fn unknown_words_are_rejected() {
        assert_eq!(Variant::of_row("v_add_u32 clam"), None);
    }
}
