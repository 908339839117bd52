//! Environment variables that select how simulated GPUs execute code, without effect on results.

use crate::{Extensions, service};
use std::sync::OnceLock;

/// Error returned for an environment variable with an invalid value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid value of {variable}: `{word}`, expected {expected}; unset it for the fastest mode"
)]
pub struct EnvironmentError {
    /// The variable.
    pub variable: &'static str,
    /// The value.
    pub word: String,
    /// The valid values.
    pub expected: String,
}

/// Checks `FLIPWAVE_TIER` and `FLIPWAVE_SIMD`. Without this check, invalid values are ignored.
///
/// # Errors
/// The first of them with an invalid value.
pub fn check_environment() -> Result<(), EnvironmentError> {
    Compiling::from_environment()?;
    Simd::from_environment()?;
    Ok(())
}

/// Selection of the code that is compiled to host code, and the time of compilation. The results
/// are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiling {
    /// Interprets everything.
    Never,
    /// Compiles code that is executed often.
    WhenHot,
    /// Compiles code that is reached a second time; for tests.
    AtOnce,
}

impl Compiling {
    /// The default of the process: compiles hot code if the process has a compile service
    /// ([`use_service`](crate::use_service)). The environment variable `FLIPWAVE_TIER` overrides it:
    /// `interpreter`, or `compiled-at-once`, which compiles in the process itself.
    pub fn of_process() -> Compiling {
        static SELECTED: OnceLock<Option<Compiling>> = OnceLock::new();
        let selected = SELECTED.get_or_init(|| Compiling::from_environment().ok().flatten());
        let usual = match service() {
            Some(_) => Compiling::WhenHot,
            None => Compiling::Never,
        };
        selected.unwrap_or(usual)
    }

    /// Returns the choice of the environment variable `FLIPWAVE_TIER`.
    fn from_environment() -> Result<Option<Compiling>, EnvironmentError> {
        let words = [("interpreter", Compiling::Never), ("compiled-at-once", Compiling::AtOnce)];
        selected("FLIPWAVE_TIER", &words)
    }
}

/// Host vector instructions below the best ones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Simd {
    Plain,
    Avx2,
}

impl Simd {
    /// Returns the choice of the environment variable `FLIPWAVE_SIMD`.
    fn from_environment() -> Result<Option<Simd>, EnvironmentError> {
        selected("FLIPWAVE_SIMD", &[("plain", Simd::Plain), ("avx2", Simd::Avx2)])
    }
}

impl Extensions {
    /// The best extensions of this host; `None` without AVX2, FMA and BMI2. `FLIPWAVE_SIMD` (`plain`,
    /// `avx2`) selects lower ones.
    pub fn of_process() -> Option<Extensions> {
        let selected = Simd::from_environment().ok().flatten();
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi2");
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            if avx512 && selected.is_none() {
                return Some(Extensions::Avx512);
            }
            if avx2 && selected != Some(Simd::Plain) {
                return Some(Extensions::Avx2);
            }
        }
        None
    }
}

/// Returns the choice that a variable selects from `words`; `None` if it is empty or unset.
fn selected<T: Copy>(
    variable: &'static str,
    words: &[(&str, T)],
) -> Result<Option<T>, EnvironmentError> {
    let Some(value) = std::env::var_os(variable).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    parse(variable, &value.to_string_lossy(), words).map(Some)
}

fn parse<T: Copy>(
    variable: &'static str,
    value: &str,
    words: &[(&str, T)],
) -> Result<T, EnvironmentError> {
    let known = words.iter().find(|(word, _)| *word == value);
    known.map(|(_, choice)| *choice).ok_or_else(|| {
        let expected: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        EnvironmentError { variable, word: value.to_owned(), expected: expected.join(" or ") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_value_is_refused_with_the_valid_ones() {
        let words = [("one", 1), ("two", 2)];
        assert_eq!(parse("NUMBER", "two", &words), Ok(2));
        for wrong in ["tow", "One", "two "] {
            let error = parse("NUMBER", wrong, &words).expect_err("an invalid value");
            assert!(error.to_string().starts_with(&format!(
                "invalid value of NUMBER: `{wrong}`, expected `one` or `two`;"
            )));
        }
    }
}
