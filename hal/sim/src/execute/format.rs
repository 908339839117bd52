//! Typed buffers: the layout of an element's components in memory and the meaning of their bits
//! (ISA manual, "Buffer resource descriptor", data and number formats).
//!
//! No document defines the combinations without a meaning (floating point of eight bits, the
//! reserved formats): here such elements have no components, so that loads return zeros and stores
//! do nothing. Rounding and overflow in stores are not documented either: here fractions round to
//! nearest even, scaled integers round towards zero, both are clamped, and NaN becomes zero;
//! integers lose their upper bits.

use crate::execute::lane::binary16;
use flipwave_isa::BufferFormat;
use half::f16;

/// Widths of the components in bits, starting with the component in the lowest bits.
const WIDTHS: [&[u8]; 16] = [
    &[],
    &[8],
    &[16],
    &[8, 8],
    &[32],
    &[16, 16],
    &[11, 11, 10],
    &[10, 11, 11],
    &[2, 10, 10, 10],
    &[10, 10, 10, 2],
    &[8, 8, 8, 8],
    &[32, 32],
    &[16, 16, 16, 16],
    &[32, 32, 32],
    &[32, 32, 32, 32],
    &[],
];

/// Number format of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    /// Fraction between 0 and 1.
    Unorm,
    /// Fraction between -1 and 1.
    Snorm,
    /// Unsigned integer that registers hold as a floating-point number.
    Uscaled,
    Sscaled,
    Uint,
    Sint,
    Float,
}

/// A valid combination of data and number format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    widths: &'static [u8],
    number: Number,
}

/// A loaded component.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Component {
    Fraction(f64),
    Integer(u32),
    Half(u16),
    Single(u32),
}

impl Component {
    fn word(self) -> u32 {
        match self {
            Component::Fraction(value) => (value as f32).to_bits(),
            Component::Half(bits) => binary16::to_f32(f16::from_bits(bits)).to_bits(),
            Component::Integer(bits) | Component::Single(bits) => bits,
        }
    }

    /// Converts the component to 16 bits; integers lose their upper half.
    fn half(self) -> u16 {
        match self {
            Component::Fraction(value) => binary16::from_f64(value).to_bits(),
            Component::Half(bits) => bits,
            Component::Integer(bits) => bits as u16,
            Component::Single(bits) => {
                binary16::from_f64(f64::from(f32::from_bits(bits))).to_bits()
            }
        }
    }
}

/// Register value of a stored component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// Single precision, or an integer.
    Word(u32),
    /// Half precision, or an integer.
    Half(u16),
}

impl Register {
    fn number(self) -> f64 {
        match self {
            Register::Word(bits) => f32::from_bits(bits).into(),
            Register::Half(bits) => binary16::to_f64(f16::from_bits(bits)),
        }
    }

    fn half(self) -> u16 {
        match self {
            Register::Word(_) => binary16::from_f64(self.number()).to_bits(),
            Register::Half(bits) => bits,
        }
    }

    fn integer(self, signed: bool) -> u32 {
        match self {
            Register::Word(bits) => bits,
            Register::Half(bits) if signed => bits as i16 as u32,
            Register::Half(bits) => bits.into(),
        }
    }
}

impl Format {
    /// Creates the format with these numbers; `None` if the combination has no meaning.
    pub fn new(format: BufferFormat) -> Option<Format> {
        let widths = WIDTHS.get(usize::from(format.data)).copied().filter(|all| !all.is_empty())?;
        let number = match format.number {
            0 => Number::Unorm,
            1 => Number::Snorm,
            2 => Number::Uscaled,
            3 => Number::Sscaled,
            4 => Number::Uint,
            5 => Number::Sint,
            7 if widths.iter().all(|width| [10, 11, 16, 32].contains(width)) => Number::Float,
            _ => return None,
        };
        Some(Format { widths, number })
    }

    /// Bytes per element.
    pub fn bytes(self) -> usize {
        self.widths.iter().map(|width| usize::from(*width)).sum::<usize>() / 8
    }

    /// Lowest bit and width of each component.
    fn fields(self) -> impl Iterator<Item = (u32, u32)> {
        self.widths.iter().scan(0, |next, width| {
            let low = *next;
            *next += u32::from(*width);
            Some((low, (*width).into()))
        })
    }

    /// Component that the channel selection `channel` selects.
    fn component(self, element: [u8; 16], channel: u8) -> Component {
        let is_integer = matches!(self.number, Number::Uint | Number::Sint);
        let field = match channel {
            1 if is_integer => return Component::Integer(1),
            1 => return Component::Fraction(1.0),
            _ => usize::from(channel).checked_sub(4).and_then(|index| self.fields().nth(index)),
        };
        let Some((low, width)) = field else { return Component::Integer(0) };
        let bits = (u128::from_le_bytes(element) >> low & ((1 << width) - 1)) as u32;
        let signed = (bits << (32 - width)) as i32 >> (32 - width);
        let most = (1u64 << (width - 1)) - 1;
        match self.number {
            Number::Unorm => Component::Fraction(f64::from(bits) / (2 * most + 1) as f64),
            Number::Snorm => Component::Fraction((f64::from(signed) / most as f64).max(-1.0)),
            Number::Uscaled => Component::Fraction(bits.into()),
            Number::Sscaled => Component::Fraction(signed.into()),
            Number::Uint => Component::Integer(bits),
            Number::Sint => Component::Integer(signed as u32),
            Number::Float if width == 32 => Component::Single(bits),
            // The short formats are half precision without the sign and the lowest bits.
            Number::Float => Component::Half((bits as u16) << 15u32.saturating_sub(width)),
        }
    }

    /// Word of a register for a channel selection.
    pub fn word(self, element: [u8; 16], channel: u8) -> u32 {
        self.component(element, channel).word()
    }

    /// Half word of a register for a channel selection.
    pub fn half(self, element: [u8; 16], channel: u8) -> u16 {
        self.component(element, channel).half()
    }

    /// Builds an element from register values. Components without a register are zero.
    pub fn element(self, registers: impl Iterator<Item = Register>) -> [u8; 16] {
        let components = self
            .fields()
            .zip(registers)
            .map(|((low, width), register)| u128::from(self.bits(register, width)) << low);
        components.fold(0, |element, component| element | component).to_le_bytes()
    }

    /// Encodes a component of `width` bits.
    fn bits(self, register: Register, width: u32) -> u32 {
        let mask = ((1u64 << width) - 1) as u32;
        let most = ((1u64 << (width - 1)) - 1) as f64;
        let number = register.number();
        // A NaN becomes zero in the conversion.
        let bits = match self.number {
            Number::Unorm => (number.clamp(0.0, 1.0) * f64::from(mask)).round_ties_even() as u32,
            Number::Snorm => (number.clamp(-1.0, 1.0) * most).round_ties_even() as i32 as u32,
            Number::Uscaled => number.clamp(0.0, f64::from(mask)) as u32,
            Number::Sscaled => number.clamp(-most - 1.0, most) as i32 as u32,
            Number::Uint => register.integer(false),
            Number::Sint => register.integer(true),
            Number::Float => match (width, register) {
                (32, Register::Word(bits)) => bits,
                (32, Register::Half(bits)) => binary16::to_f32(f16::from_bits(bits)).to_bits(),
                (16, _) => register.half().into(),
                // Negative numbers become zero.
                _ if number < 0.0 => 0,
                _ => u32::from(register.half() & 0x7fff) >> (15 - width),
            },
        };
        bits & mask
    }
}
