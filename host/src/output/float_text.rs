//! Floating-point numbers as text in files.

/// Returns the shortest decimal that reads back as `number`: `1.0`, `0.25`, `1e-5`, `inf`.
///
/// There is always a point or an exponent, which tells the number from an integer. Numbers below
/// 0.0001 and from 10¹⁶ on have an exponent. Files and digests depend on this text. It is spelled
/// out here because the text of Rust's `{:?}` may change with the compiler.
pub fn float_text(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) && number.is_finite() {
        return format!("{number:e}");
    }
    let text = number.to_string();
    let is_integer = number.is_finite() && !text.contains('.');
    if is_integer { text + ".0" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_fixed_text() {
        for (number, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-0.25, "-0.25"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e-4, "0.0001"),
            (1e-5, "1e-5"),
            (-2.5e-7, "-2.5e-7"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (1e16, "1e16"),
            (f64::MAX, "1.7976931348623157e308"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(float_text(number), text);
            assert_eq!(float_text(number), format!("{number:?}"), "as earlier versions wrote it");
            let read: f64 = text.parse().expect(text);
            assert_eq!((read.to_bits(), read.is_nan()), (number.to_bits(), number.is_nan()));
        }
    }
}
