//! Parses times and sizes in campaign files: a number and a unit.

use std::time::Duration;

/// Units of time in seconds.
const TIMES: [(&str, f64); 4] = [("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0)];

/// Units of memory in bytes.
const SIZES: [(&str, f64); 3] = [("KiB", 1024.0), ("MiB", 1048576.0), ("GiB", 1073741824.0)];

/// Largest time in seconds: a year.
const MAX_TIME: f64 = 31_536_000.0;

/// Parses a time such as `60 s`.
///
/// # Errors
/// A message with the expected form.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    match quantity(text, &TIMES) {
        Some(seconds) if seconds > 0.0 && seconds <= MAX_TIME => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err(format!(
            "invalid time `{text}`; expected a number and a unit (ms, s, min or h), such as `60 s`"
        )),
    }
}

/// Parses a size such as `8 GiB` and returns it in bytes.
///
/// # Errors
/// A message with the expected form.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    match quantity(text, &SIZES) {
        Some(bytes) if bytes >= 1.0 && bytes.is_finite() => Ok(bytes as u64),
        _ => Err(format!(
            "invalid size `{text}`; expected a number and a unit (KiB, MiB or GiB), such as `8 GiB`"
        )),
    }
}

fn quantity(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|letter: char| letter.is_ascii_alphabetic())?);
    let &(_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    Some(number.trim_end().parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_a_number_and_a_unit() {
        assert_eq!(time("60 s"), Ok(Duration::from_secs(60)));
        assert_eq!(time("1.5min"), Ok(Duration::from_secs(90)));
        assert_eq!(time("250 ms"), Ok(Duration::from_millis(250)));
        assert_eq!(size("8 GiB"), Ok(8 << 30));
        assert_eq!(size("0.5 KiB"), Ok(512));
        for text in ["60", "s", "", "60 m", "-1 s", "0 s", "1e300 h", "inf s", "1 GiB", "1 2 s"] {
            assert!(time(text).is_err(), "{text}");
        }
        for text in ["8", "8 GB", "8 gib", "-1 GiB", "0 KiB", "nan GiB", "60 s"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
