//! Environment variables of the embedded GPU. They select how the host executes code, without effect
//! on results.

use crate::dispatch::policy::Compiling;
use crate::wave::Level;

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
    Level::from_environment()?;
    Ok(())
}

/// Returns the choice that a variable selects from `words`; `None` if it is empty or unset.
pub(crate) fn selected<T: Copy>(
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
