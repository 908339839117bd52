//! Element formats, from their definitions: IEEE 754 for half, single and double precision; OCP's "8-bit
//! Floating Point Specification" and "Microscaling Formats" for 8, 6 and 4 bits; CDNA 3 ISA, "FP8 and BF8",
//! for formats without minus zero; CDNA 3 ISA, "XF32", and the measurements of MMA-Sim (arXiv:2511.10909)
//! for the truncation in XF32.

/// Format of an element of A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    F64,
    F32,
    Xf32,
    F16,
    Bf16,
    /// OCP's E4M3 and E5M2.
    Fp8,
    Bf8,
    /// E4M3 and E5M2 with another bias and without minus zero.
    Fp8Fnuz,
    Bf8Fnuz,
    /// E2M3 and E3M2.
    Fp6,
    Bf6,
    /// E2M1.
    Fp4,
    I8,
    U8,
    I4,
    U4,
}

/// Meaning of codes with the highest exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Specials {
    /// Infinities and NaNs.
    Ieee,
    /// NaN if all mantissa bits are set; otherwise numbers.
    OneNan,
    /// Numbers; minus zero is NaN.
    MinusZero,
    /// Numbers.
    None,
}

/// Layout of a floating-point format.
struct Layout {
    exponent: u32,
    mantissa: u32,
    bias: i32,
    specials: Specials,
}

impl Layout {
    /// The highest stored exponent of numbers.
    fn greatest_field(&self) -> i32 {
        let all = (1 << self.exponent) - 1;
        if self.specials == Specials::Ieee { all - 1 } else { all }
    }
}

impl Format {
    pub fn bits(self) -> u32 {
        match self {
            Format::F64 => 64,
            Format::F32 | Format::Xf32 => 32,
            Format::F16 | Format::Bf16 => 16,
            Format::Fp6 | Format::Bf6 => 6,
            Format::Fp4 | Format::I4 | Format::U4 => 4,
            _ => 8,
        }
    }

    pub fn is_integer(self) -> bool {
        matches!(self, Format::I8 | Format::U8 | Format::I4 | Format::U4)
    }

    pub fn is_signed(self) -> bool {
        !matches!(self, Format::U8 | Format::U4)
    }

    /// Encoding of a scaled format in instructions (CDNA 4 ISA, "Rules for the F8F6F4 MFMA instructions").
    pub fn number(self) -> u32 {
        match self {
            Format::Fp8 => 0,
            Format::Bf8 => 1,
            Format::Fp6 => 2,
            Format::Bf6 => 3,
            Format::Fp4 => 4,
            format => panic!("{format:?} has no scales"),
        }
    }

    fn layout(self) -> Layout {
        let (exponent, mantissa, bias, specials) = match self {
            Format::F64 => (11, 52, 1023, Specials::Ieee),
            Format::F32 | Format::Xf32 => (8, 23, 127, Specials::Ieee),
            Format::F16 => (5, 10, 15, Specials::Ieee),
            Format::Bf16 => (8, 7, 127, Specials::Ieee),
            Format::Fp8 => (4, 3, 7, Specials::OneNan),
            Format::Bf8 => (5, 2, 15, Specials::Ieee),
            Format::Fp8Fnuz => (4, 3, 8, Specials::MinusZero),
            Format::Bf8Fnuz => (5, 2, 16, Specials::MinusZero),
            Format::Fp6 => (2, 3, 1, Specials::None),
            Format::Bf6 => (3, 2, 3, Specials::None),
            Format::Fp4 => (2, 1, 1, Specials::None),
            integer => panic!("{integer:?} has no exponent"),
        };
        Layout { exponent, mantissa, bias, specials }
    }

    /// The code of a small integer.
    pub fn code_of_integer(self, value: i64) -> u64 {
        if self.is_integer() {
            return value as u64 & ((1 << self.bits()) - 1);
        }
        let Layout { mantissa, bias, .. } = self.layout();
        let magnitude = value.unsigned_abs();
        let Some(log) = magnitude.checked_ilog2() else {
            return 0;
        };
        assert!(
            log <= mantissa || magnitude.is_multiple_of(1 << (log - mantissa)),
            "{self:?}: {value}"
        );
        let fraction = ((magnitude << mantissa) >> log) - (1 << mantissa);
        let sign = u64::from(value < 0) << (self.bits() - 1);
        sign | ((i64::from(log) + i64::from(bias)) as u64) << mantissa | fraction
    }

    /// The code of a number with the nearest available exponent, and random other bits.
    pub fn with_exponent(self, exponent: i32, random: u64) -> u64 {
        let layout = self.layout();
        let field = (exponent + layout.bias).clamp(1, layout.greatest_field());
        self.of_field(field as u64, random, layout.mantissa)
    }

    /// The code of a denormal number.
    pub fn denormal(self, random: u64) -> u64 {
        self.of_field(0, random | 1, self.layout().mantissa)
    }

    /// The code of one of the smallest normal numbers, or of one of the largest.
    pub fn extreme(self, is_great: bool, random: u64) -> u64 {
        let layout = self.layout();
        let field = if is_great { layout.greatest_field() } else { 1 };
        self.of_field(field as u64, random, layout.mantissa)
    }

    fn of_field(self, field: u64, random: u64, mantissa: u32) -> u64 {
        let sign = random >> 63 << (self.bits() - 1);
        sign | field << mantissa | random & ((1 << mantissa) - 1)
    }

    /// Codes of infinities and NaNs, if the format has any.
    pub fn special_codes(self) -> Vec<u64> {
        if self.is_integer() {
            return Vec::new();
        }
        let Layout { exponent, mantissa, specials, .. } = self.layout();
        let sign = 1 << (self.bits() - 1);
        let infinity = ((1 << exponent) - 1) << mantissa;
        match specials {
            Specials::Ieee => vec![infinity, sign | infinity, infinity | 1 << (mantissa - 1)],
            Specials::OneNan => vec![infinity | ((1 << mantissa) - 1)],
            Specials::MinusZero => vec![sign],
            Specials::None => Vec::new(),
        }
    }

    /// The exact value of a code.
    pub fn value(self, code: u64) -> f64 {
        let bits = self.bits();
        match self {
            Format::U8 | Format::U4 => return code as f64,
            Format::I8 | Format::I4 => {
                return ((code << (64 - bits)) as i64 >> (64 - bits)) as f64;
            }
            Format::F64 => return f64::from_bits(code),
            Format::Xf32 => return f64::from(f32::from_bits(code as u32 & !0x1fff)),
            _ => {}
        }
        let Layout { exponent: width, mantissa, bias, specials } = self.layout();
        let sign = if code >> (bits - 1) & 1 == 1 { -1.0 } else { 1.0 };
        let field = (code >> mantissa & ((1 << width) - 1)) as i32;
        let fraction = code & ((1 << mantissa) - 1);
        let is_top = field == (1 << width) - 1;
        match specials {
            Specials::Ieee if is_top && fraction == 0 => return sign * f64::INFINITY,
            Specials::Ieee if is_top => return f64::NAN,
            Specials::OneNan if is_top && fraction == (1 << mantissa) - 1 => return f64::NAN,
            Specials::MinusZero if code == 1 << (bits - 1) => return f64::NAN,
            _ => {}
        }
        let hidden = if field == 0 { 0 } else { 1 << mantissa };
        let exponent = field.max(1) - bias - mantissa as i32;
        sign * (hidden + fraction) as f64 * 2f64.powi(exponent)
    }

    /// Returns `true` for denormal numbers.
    pub fn is_denormal(self, value: f64) -> bool {
        value != 0.0 && value.abs() < 2f64.powi(1 - self.layout().bias)
    }
}

/// Type of an element of C and D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    F64,
    F32,
    F16,
    Bf16,
    I32,
}

impl Sum {
    pub fn bytes(self) -> usize {
        match self {
            Sum::F64 => 8,
            Sum::F32 | Sum::I32 => 4,
            Sum::F16 | Sum::Bf16 => 2,
        }
    }

    /// Name of the type in OpenCL C, and in campaign files.
    pub fn types(self) -> [&'static str; 2] {
        match self {
            Sum::F64 => ["double", "f64"],
            Sum::F32 => ["float", "f32"],
            Sum::F16 => ["half", "f16"],
            Sum::Bf16 => ["short", "u16"],
            Sum::I32 => ["int", "i32"],
        }
    }

    /// The format, for floating-point types.
    pub fn format(self) -> Option<Format> {
        match self {
            Sum::F64 => Some(Format::F64),
            Sum::F32 => Some(Format::F32),
            Sum::F16 => Some(Format::F16),
            Sum::Bf16 => Some(Format::Bf16),
            Sum::I32 => None,
        }
    }

    /// Bits of the significand, the largest number, and the smallest positive number.
    pub fn precision(self) -> (i32, f64, f64) {
        match self {
            Sum::F64 => (53, f64::MAX, f64::from_bits(1)),
            Sum::F32 | Sum::I32 => (24, f64::from(f32::MAX), 2f64.powi(-149)),
            Sum::F16 => (11, 65504.0, 2f64.powi(-24)),
            Sum::Bf16 => (8, f64::from(f32::from_bits(0x7f7f_0000)), 2f64.powi(-133)),
        }
    }
}
