//! By what the injections of a report are put together.

use super::names::Name;
use crate::shape::Introduced;
use crate::{ErrorShape, Row};

/// A set of injections that have something in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// All of them.
    All,
    /// Those that struck a kernel.
    Kernel(Name),
    /// Those that struck a dispatch with a label.
    Label(Name),
    /// A source line.
    Line(Name),
    /// An operation.
    Opcode(Name),
    /// A primary group of instructions.
    Group(Name),
    /// Those that were drawn from a stratum.
    Stratum(Name),
    /// Those that struck a kind of register or other place.
    Class(Name),
    /// A register.
    Register(Name),
    /// Those that changed one bit alone, by its position.
    Bit(u8),
    /// A lane.
    Lane(u8),
    /// How often the wave had executed the instruction before.
    Occurrence(Bin),
    /// A static instruction, by number; those for which there was no room.
    Instruction(Option<u32>),
    /// The largest relative error of an output element.
    Error(Magnitude),
    /// How many output elements were wrong.
    Wrong(Bin),
    /// Where they were.
    Shape(ErrorShape),
    /// Whether outputs had NaN or infinities that the fault-free run's have not.
    Introduced(Introduced),
}

/// What the keys of a report have in common: what a table of it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dimension {
    All,
    Kernel,
    Label,
    Line,
    Opcode,
    Group,
    Stratum,
    Class,
    Register,
    Bit,
    Lane,
    Occurrence,
    Instruction,
    Error,
    Wrong,
    Shape,
    Introduced,
}

impl Key {
    pub fn dimension(self) -> Dimension {
        match self {
            Key::All => Dimension::All,
            Key::Kernel(_) => Dimension::Kernel,
            Key::Label(_) => Dimension::Label,
            Key::Line(_) => Dimension::Line,
            Key::Opcode(_) => Dimension::Opcode,
            Key::Group(_) => Dimension::Group,
            Key::Stratum(_) => Dimension::Stratum,
            Key::Class(_) => Dimension::Class,
            Key::Register(_) => Dimension::Register,
            Key::Bit(_) => Dimension::Bit,
            Key::Lane(_) => Dimension::Lane,
            Key::Occurrence(_) => Dimension::Occurrence,
            Key::Instruction(_) => Dimension::Instruction,
            Key::Error(_) => Dimension::Error,
            Key::Wrong(_) => Dimension::Wrong,
            Key::Shape(_) => Dimension::Shape,
            Key::Introduced(_) => Dimension::Introduced,
        }
    }
}

impl Dimension {
    /// Its name in tables for programs.
    pub fn name(self) -> &'static str {
        match self {
            Dimension::All => "all",
            Dimension::Kernel => "kernel",
            Dimension::Label => "label",
            Dimension::Line => "line",
            Dimension::Opcode => "opcode",
            Dimension::Group => "group",
            Dimension::Stratum => "stratum",
            Dimension::Class => "class",
            Dimension::Register => "register",
            Dimension::Bit => "bit",
            Dimension::Lane => "lane",
            Dimension::Occurrence => "occurrence",
            Dimension::Instruction => "instruction",
            Dimension::Error => "max_rel_error",
            Dimension::Wrong => "elements_wrong",
            Dimension::Shape => "shape",
            Dimension::Introduced => "nan_inf",
        }
    }
}

/// Numbers: each up to 15 by itself, then as far as the next power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bin(u8);

impl Bin {
    const SINGLE: u64 = 16;

    pub fn of(number: u64) -> Bin {
        // Both parts are below 256: 15 at most, and 16 + 63 - 4.
        Bin(match number {
            0..Bin::SINGLE => number as u8,
            _ => (Bin::SINGLE as u32 + number.ilog2() - Bin::SINGLE.ilog2()) as u8,
        })
    }
}

impl std::fmt::Display for Bin {
    /// `7`, `16-31`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = u64::from(self.0);
        if number < Bin::SINGLE {
            return write!(f, "{number}");
        }
        let low = 1_u64 << (number - Bin::SINGLE + u64::from(Bin::SINGLE.ilog2()));
        write!(f, "{low}-{}", low + (low - 1))
    }
}

/// A size of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Magnitude {
    /// None: 0.
    Zero,
    /// From 10 to the power of this up to ten times as much; the first has all that is smaller, the
    /// last all that is greater.
    Decade(i8),
    /// Infinite: a NaN or an infinity in the place of a number, or anything in that of 0.
    Infinite,
    /// No number.
    Undefined,
}

impl Magnitude {
    /// The decades that are told apart.
    pub const FIRST: i8 = -10;
    pub const LAST: i8 = 9;

    pub fn of(error: f64) -> Magnitude {
        if error.is_nan() {
            Magnitude::Undefined
        } else if error.is_infinite() {
            Magnitude::Infinite
        } else if error == 0.0 {
            Magnitude::Zero
        } else {
            // Powers of ten as they are written, as a logarithm may round across them.
            let reaches = |decade: &i8| error.abs() >= POWERS[(decade - Magnitude::FIRST) as usize];
            let decade = (Magnitude::FIRST..=Magnitude::LAST).rev().find(reaches);
            Magnitude::Decade(decade.unwrap_or(Magnitude::FIRST))
        }
    }

    /// All of them, in order.
    pub fn all() -> impl Iterator<Item = Magnitude> {
        let decades = (Magnitude::FIRST..=Magnitude::LAST).map(Magnitude::Decade);
        [Magnitude::Zero]
            .into_iter()
            .chain(decades)
            .chain([Magnitude::Infinite, Magnitude::Undefined])
    }
}

/// 10 to the power of each decade.
const POWERS: [f64; (Magnitude::LAST - Magnitude::FIRST + 1) as usize] = [
    1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6,
    1e7, 1e8, 1e9,
];

impl std::fmt::Display for Magnitude {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Magnitude::Zero => f.write_str("0"),
            Magnitude::Decade(Magnitude::FIRST) => write!(f, "<1e{}", Magnitude::FIRST + 1),
            Magnitude::Decade(decade) => write!(f, "1e{decade}"),
            Magnitude::Infinite => f.write_str("inf"),
            Magnitude::Undefined => f.write_str("NaN"),
        }
    }
}

/// The bit that a row changed, if it is one alone.
pub(super) fn bit(row: &Row) -> Option<u8> {
    row.mask.is_power_of_two().then(|| row.mask.trailing_zeros() as u8)
}

/// Whether what was struck is a register, and not memory or code.
pub(super) fn is_register(place: &str) -> bool {
    !place.contains('=')
}

/// The kind of what was struck: `VGPR`, `SGPR`, `VCC`, `lds`.
pub(super) fn class(place: &str) -> String {
    if let Some((kind, _)) = place.split_once('=') {
        return kind.replace('_', " ");
    }
    let numbered = [("v", "VGPR"), ("s", "SGPR"), ("a", "AccVGPR"), ("ttmp", "TTMP")];
    let is_number =
        |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit() || first == '[');
    let kind = numbered
        .into_iter()
        .find(|(letters, _)| place.strip_prefix(letters).is_some_and(is_number));
    match kind {
        Some((_, kind)) => kind.to_owned(),
        None => place.trim_end_matches("_lo").trim_end_matches("_hi").to_ascii_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_cover_all_numbers_and_say_which() {
        let text = |number| Bin::of(number).to_string();
        for (number, expected) in [
            (0, "0"),
            (15, "15"),
            (16, "16-31"),
            (31, "16-31"),
            (32, "32-63"),
            (u64::MAX, "9223372036854775808-18446744073709551615"),
        ] {
            assert_eq!(text(number), expected);
        }
    }

    #[test]
    fn magnitudes_are_decades_from_their_lower_end_on() {
        for (error, expected) in [
            (0.0, "0"),
            (5e-324, "<1e-9"),
            (9.99e-10, "<1e-9"),
            (1e-9, "1e-9"),
            (1e-5, "1e-5"),
            (9.999e-5, "1e-5"),
            (1.0, "1e0"),
            (f64::MAX, "1e9"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(Magnitude::of(error).to_string(), expected, "{error}");
        }
        assert!(Magnitude::all().is_sorted());
    }

    #[test]
    fn places_have_a_class() {
        for (place, expected) in [
            ("v12", "VGPR"),
            ("s[0:3]", "SGPR"),
            ("a7", "AccVGPR"),
            ("vcc_lo", "VCC"),
            ("exec_hi", "EXEC"),
            ("scc", "SCC"),
            ("m0", "M0"),
            ("lds=0x40", "lds"),
            ("program_counter=0", "program counter"),
            ("partial_sum=3,7 step=5", "partial sum"),
            ("", ""),
        ] {
            assert_eq!(class(place), expected, "{place}");
        }
    }
}
