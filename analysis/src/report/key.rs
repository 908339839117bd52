//! The dimensions and keys by which a report groups injections.

use super::names::Name;
use crate::shape::NonFinite;
use crate::{ErrorShape, Row};

/// A group of injections: a dimension with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// All injections.
    All,
    /// Kernel.
    Kernel(Name),
    /// Label of the dispatch.
    Label(Name),
    /// Source line.
    Line(Name),
    /// Opcode.
    Opcode(Name),
    /// Primary instruction group.
    Group(Name),
    /// Stratum that the site was drawn from.
    Stratum(Name),
    /// Class of the faulty storage, such as `VGPR` or `lds`.
    Class(Name),
    /// Register.
    Register(Name),
    /// Position of the only changed bit.
    Bit(u8),
    /// Lane.
    Lane(u8),
    /// Number of earlier executions of the instruction by the wave.
    Occurrence(Bin),
    /// Static instruction by its number; `None` for those without room in [`Interner`](super::names::Interner).
    Instruction(Option<u32>),
    /// Largest relative error of an output element.
    RelativeError(Magnitude),
    /// Number of wrong output elements.
    WrongElements(Bin),
    /// Spatial pattern of the wrong output elements.
    Shape(ErrorShape),
    /// Kinds of non-finite output elements introduced by the fault.
    NonFinite(NonFinite),
}

/// A property of injections by which a report has a table.
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
    RelativeError,
    WrongElements,
    Shape,
    NonFinite,
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
            Key::RelativeError(_) => Dimension::RelativeError,
            Key::WrongElements(_) => Dimension::WrongElements,
            Key::Shape(_) => Dimension::Shape,
            Key::NonFinite(_) => Dimension::NonFinite,
        }
    }
}

impl Dimension {
    /// Name in result tables.
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
            Dimension::RelativeError => "max_rel_error",
            Dimension::WrongElements => "elements_wrong",
            Dimension::Shape => "shape",
            Dimension::NonFinite => "nan_inf",
        }
    }
}

/// A bin of numbers: one bin for each number up to 15, then one for each power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bin(u8);

impl Bin {
    const SINGLE: u64 = 16;

    pub fn of(number: u64) -> Bin {
        // Bin numbers fit: they are at most 16 + 63 - 4.
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

/// A bin of relative errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Magnitude {
    /// The error 0.
    Zero,
    /// Errors from 10 to this power up to ten times as much. The first decade includes all smaller errors,
    /// the last all larger ones.
    Decade(i8),
    /// Infinite errors: NaN or infinity instead of a number, or any number instead of 0.
    Infinite,
    /// NaN.
    Nan,
}

impl Magnitude {
    /// First decade.
    pub const FIRST: i8 = -10;
    /// Last decade.
    pub const LAST: i8 = 9;

    pub fn of(error: f64) -> Magnitude {
        if error.is_nan() {
            Magnitude::Nan
        } else if error.is_infinite() {
            Magnitude::Infinite
        } else if error == 0.0 {
            Magnitude::Zero
        } else {
            // Compares with exact powers of ten, as a logarithm can round across them.
            let reaches = |decade: &i8| error.abs() >= POWERS[(decade - Magnitude::FIRST) as usize];
            let decade = (Magnitude::FIRST..=Magnitude::LAST).rev().find(reaches);
            Magnitude::Decade(decade.unwrap_or(Magnitude::FIRST))
        }
    }

    /// All bins, in ascending order.
    pub fn all() -> impl Iterator<Item = Magnitude> {
        let decades = (Magnitude::FIRST..=Magnitude::LAST).map(Magnitude::Decade);
        [Magnitude::Zero].into_iter().chain(decades).chain([Magnitude::Infinite, Magnitude::Nan])
    }
}

/// Lower ends of the decades.
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
            Magnitude::Nan => f.write_str("NaN"),
        }
    }
}

/// Position of the bit that a row changed, if it is the only one.
pub(super) fn only_bit(row: &Row) -> Option<u8> {
    row.flip_mask.is_power_of_two().then(|| row.flip_mask.trailing_zeros() as u8)
}

/// Returns `true` if the `place` of a row is a register, not memory or code.
pub(super) fn is_register(place: &str) -> bool {
    !place.contains('=')
}

/// Storage class of the `place` of a row: `VGPR`, `SGPR`, `VCC`, `lds`.
pub(super) fn class(place: &str) -> String {
    if let Some((kind, _)) = place.split_once('=') {
        return kind.replace('_', " ");
    }
    let numbered = [("v", "VGPR"), ("s", "SGPR"), ("a", "AccVGPR"), ("ttmp", "TTMP")];
    let is_number =
        |text: &str| text.starts_with(|first: char| first.is_ascii_digit() || first == '[');
    let class =
        numbered.into_iter().find(|(prefix, _)| place.strip_prefix(prefix).is_some_and(is_number));
    match class {
        Some((_, class)) => class.to_owned(),
        None => place.trim_end_matches("_lo").trim_end_matches("_hi").to_ascii_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_cover_all_numbers() {
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
    fn decades_include_their_lower_end() {
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
    fn classes_of_places() {
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
