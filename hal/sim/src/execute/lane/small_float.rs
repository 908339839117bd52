//! Floating-point formats of 16 bits and less: decoding, and rounding to them (CDNA 4 ISA, "Small
//! Float Data Formats"; CDNA 3 ISA, "BF8 / FP8").

use flipwave_isa::Float8;

/// A format: a sign, an exponent and a mantissa.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallFloat {
    /// Total bits.
    pub bits: u32,
    /// Bits of the mantissa without the hidden bit.
    pub mantissa: u32,
    bias: i32,
    specials: Specials,
}

/// Encodings of NaNs and infinities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Specials {
    /// All codes are finite numbers: overflow gives the greatest number.
    None,
    /// NaNs and infinities as in IEEE 754.
    Ieee,
    /// The code of the greatest magnitude is a NaN; there is no infinity.
    LastIsNan,
    /// The code of minus zero is a NaN; there is no infinity.
    MinusZeroIsNan,
}

/// Rounding to a format with fewer bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Round to nearest even.
    Nearest,
    /// Stochastic: the highest of these bits are added below the last place, and the remainder is
    /// truncated, as the manual states. If the result is denormal, the bits below the last place of
    /// a normal number are truncated first; this was measured on gfx1201 (rocjitsu,
    /// `shared/conversion.h`) and is not known for gfx942 and gfx950.
    Stochastic(u32),
}

const fn format(bits: u32, mantissa: u32, bias: i32, specials: Specials) -> SmallFloat {
    SmallFloat { bits, mantissa, bias, specials }
}

impl SmallFloat {
    /// Half precision.
    pub const F16: SmallFloat = format(16, 10, 15, Specials::Ieee);
    /// Bfloat16.
    pub const BF16: SmallFloat = format(16, 7, 127, Specials::Ieee);
    /// E2M3.
    pub const FP6: SmallFloat = format(6, 3, 1, Specials::None);
    /// E3M2.
    pub const BF6: SmallFloat = format(6, 2, 3, Specials::None);
    /// E2M1.
    pub const FP4: SmallFloat = format(4, 1, 1, Specials::None);

    /// E4M3.
    pub const fn fp8(kind: Float8) -> SmallFloat {
        match kind {
            Float8::Ocp => format(8, 3, 7, Specials::LastIsNan),
            Float8::Fnuz => format(8, 3, 8, Specials::MinusZeroIsNan),
        }
    }

    /// E5M2.
    pub const fn bf8(kind: Float8) -> SmallFloat {
        match kind {
            Float8::Ocp => format(8, 2, 15, Specials::Ieee),
            Float8::Fnuz => format(8, 2, 16, Specials::MinusZeroIsNan),
        }
    }

    const fn sign(self) -> u32 {
        1 << (self.bits - 1)
    }

    /// Bits of infinity, or the code after the greatest number.
    const fn infinity(self) -> u32 {
        match self.specials {
            Specials::Ieee => (self.sign() - 1) >> self.mantissa << self.mantissa,
            Specials::LastIsNan => self.sign() - 1,
            Specials::None | Specials::MinusZeroIsNan => self.sign(),
        }
    }

    /// Exponent of the smallest normal number.
    pub const fn least_exponent(self) -> i32 {
        1 - self.bias
    }

    /// Decodes to single precision, which represents all numbers. A NaN keeps its sign and has only
    /// the highest mantissa bit set (gfx1201 returns 0xffc00000 for all; the manuals do not say),
    /// but a NaN of half precision or bfloat16 keeps its payload.
    #[inline(always)]
    pub fn decode(self, bits: u32) -> f32 {
        let sign = (bits & self.sign()) << (32 - self.bits);
        let magnitude = bits & (self.sign() - 1);
        if self.is_nan(bits) {
            let payload =
                if self.bits == 16 { magnitude << (23 - self.mantissa) & 0x7f_ffff } else { 0 };
            return f32::from_bits(sign | 0x7fc0_0000 | payload);
        }
        if self.specials == Specials::Ieee && magnitude == self.infinity() {
            return f32::from_bits(sign | 0x7f80_0000);
        }
        let field = (magnitude >> self.mantissa) as i32;
        let fraction = magnitude & ((1 << self.mantissa) - 1);
        let digits = if field == 0 { fraction } else { fraction | 1 << self.mantissa };
        let exponent = field.max(1) - self.bias - self.mantissa as i32;
        let value = f64::from(digits) * power(exponent);
        f32::from_bits((value as f32).to_bits() | sign)
    }

    /// Signed significand, with the mantissa's bits after the point, and the exponent; denormals
    /// have the exponent of the smallest normal number.
    #[inline(always)]
    pub fn digits(self, bits: u32) -> (i32, i32) {
        let magnitude = bits & (self.sign() - 1);
        let field = (magnitude >> self.mantissa) as i32;
        let fraction = (magnitude & ((1 << self.mantissa) - 1)) as i32;
        let digits = fraction | field.min(1) << self.mantissa;
        let sign = -(((bits & self.sign()) >> (self.bits - 1)) as i32);
        ((digits ^ sign) - sign, field.max(1) - self.bias)
    }

    /// Encodings of NaNs and infinities: the smallest magnitude that is not finite, and one further
    /// encoding that is not finite. Each is `u32::MAX` if there is none.
    #[inline(always)]
    pub fn not_finite(self) -> (u32, u32) {
        match self.specials {
            Specials::None => (u32::MAX, u32::MAX),
            Specials::Ieee | Specials::LastIsNan => (self.infinity(), u32::MAX),
            Specials::MinusZeroIsNan => (u32::MAX, self.sign()),
        }
    }

    /// Returns `true` for a finite number.
    #[inline(always)]
    pub fn is_finite(self, bits: u32) -> bool {
        let (least, one) = self.not_finite();
        (bits & (self.sign() - 1) < least) & (bits != one)
    }

    /// Returns `true` for a NaN.
    #[inline(always)]
    pub fn is_nan(self, bits: u32) -> bool {
        let magnitude = bits & (self.sign() - 1);
        match self.specials {
            Specials::None => false,
            Specials::Ieee => magnitude > self.infinity(),
            Specials::LastIsNan => magnitude == self.infinity(),
            Specials::MinusZeroIsNan => bits & (2 * self.sign() - 1) == self.sign(),
        }
    }

    /// Encodes a single-precision number, or one times a power of two between 2^-300 and 2^300.
    /// Overflow and infinities become infinity, or a NaN in formats without infinity, or the
    /// greatest number in formats with neither or if `clamps` is set (`FP16_OVFL`). The manual does
    /// not settle NaNs for formats without one; here they become the greatest number.
    #[inline(always)]
    pub fn encode(self, value: f64, rounding: Rounding, clamps: bool) -> u32 {
        let sign = if value.is_sign_negative() { self.sign() } else { 0 };
        if value.is_nan() {
            return self.nan(value, sign);
        }
        let greatest = self.greatest();
        let too_great = match self.specials {
            _ if clamps => greatest | sign,
            Specials::None => greatest | sign,
            Specials::MinusZeroIsNan => self.sign(),
            Specials::Ieee | Specials::LastIsNan => self.infinity() | sign,
        };
        if value.is_infinite() {
            return too_great;
        }
        let bits = value.to_bits();
        let (field, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
        if field == 0 {
            return self.signed(0, sign);
        }
        // 53 bits, of which only those of single precision can be set, and the result's exponent.
        let exponent = (field - 1023).max(self.least_exponent());
        let shift = (52 - self.mantissa as i32 + exponent - (field - 1023)) as u32;
        let digits = fraction | 1 << 52;
        let units = match rounding {
            Rounding::Nearest => nearest(digits, shift),
            Rounding::Stochastic(random) => {
                let normal = 52 - self.mantissa;
                let kept = digits.checked_shr(shift - normal).unwrap_or(0);
                (kept + (u64::from(random) << (normal - 32))) >> normal
            }
        };
        // A carry into the next exponent gives the correct bits.
        let code = (((exponent - self.least_exponent()) as u64) << self.mantissa) + units;
        if code >= u64::from(self.infinity()) { too_great } else { self.signed(code as u32, sign) }
    }

    /// Encodes the number nearest to `value`, ties to even; `value` is zero or at least 2^-1022.
    /// Overflow is treated as in [`SmallFloat::encode`].
    pub fn nearest(self, value: f64) -> u32 {
        self.encode(value, Rounding::Nearest, false)
    }

    /// Code of the greatest number.
    pub const fn greatest(self) -> u32 {
        self.infinity() - 1
    }

    fn signed(self, magnitude: u32, sign: u32) -> u32 {
        let has_no_sign = self.specials == Specials::MinusZeroIsNan && magnitude == 0;
        if has_no_sign { 0 } else { magnitude | sign }
    }

    /// Converts a NaN. The E5M2 result is that of gfx1201, except for its sign.
    #[cold]
    fn nan(self, value: f64, sign: u32) -> u32 {
        let payload = (value.to_bits() >> (52 - self.mantissa)) as u32 & ((1 << self.mantissa) - 1);
        match self.specials {
            Specials::None => (self.infinity() - 1) | sign,
            Specials::Ieee if self.bits == 16 => {
                self.infinity() | sign | 1 << (self.mantissa - 1) | payload
            }
            Specials::Ieee => self.infinity() | sign | 1 << (self.mantissa - 1),
            Specials::LastIsNan => self.infinity() | sign,
            Specials::MinusZeroIsNan => self.sign(),
        }
    }
}

/// Converts a bfloat16, which is the upper half of a single-precision number. NaNs stay unchanged.
#[inline(always)]
pub fn brain_to_single(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Rounds to the nearest bfloat16; a NaN becomes quiet and keeps the high bits of its payload.
#[inline(always)]
pub fn single_to_brain(value: f32) -> u16 {
    SmallFloat::BF16.encode(widened(value), Rounding::Nearest, false) as u16
}

/// Converts to double precision. A NaN keeps its sign and payload on every host.
#[inline(always)]
pub fn widened(value: f32) -> f64 {
    let bits = u64::from(value.to_bits());
    if value.is_nan() {
        f64::from_bits((bits >> 31) << 63 | 0x7ff << 52 | (bits & 0x7f_ffff) << 29)
    } else {
        value.into()
    }
}

/// Drops the lowest `shift` digits, rounding to nearest even.
#[inline(always)]
fn nearest(digits: u64, shift: u32) -> u64 {
    if shift > 54 {
        return 0;
    }
    let kept = digits >> shift;
    let rest = digits & ((1 << shift) - 1);
    let half = 1 << (shift - 1);
    kept + u64::from(rest > half || rest == half && kept & 1 != 0)
}

/// A power of two in double precision; the exponent must be that of a normal number.
#[inline(always)]
pub fn power(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// Decodes E5M3: five bits of exponent with bias 15 and three of mantissa, without sign; all ones are a NaN
/// (ROCm's hipBLASLt, `DataTypes_E5M3.hpp`; AMD's rocjitsu).
#[inline(always)]
pub fn e5m3(bits: u32) -> f32 {
    let (exponent, mantissa) = ((bits >> 3 & 31) as i32, (bits & 7) as f32);
    match exponent {
        31 if bits & 7 == 7 => f32::from_bits(0x7fc0_0000),
        0 => mantissa * power(-17) as f32,
        _ => (1.0 + mantissa / 8.0) * power(exponent - 15) as f32,
    }
}
