//! Bfloat16: the upper half of single precision.

/// The same number in single precision.
#[inline(always)]
pub fn to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Rounds to nearest even; a NaN becomes quiet and keeps the high bits of its payload.
#[inline(always)]
pub fn from_f32(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// Rounds to nearest even, once: to single precision rounded to odd first, where a later rounding to
/// fewer bits is correct. NaN becomes the default NaN.
pub fn from_f64(value: f64) -> u16 {
    if value.is_nan() {
        return 0x7fc0;
    }
    let nearest = value as f32;
    let (bits, exact) = (nearest.to_bits(), f64::from(nearest));
    if exact == value || nearest.is_infinite() {
        return from_f32(nearest);
    }
    let towards_zero = if exact.abs() > value.abs() { bits - 1 } else { bits };
    from_f32(f32::from_bits(towards_zero | 1))
}
