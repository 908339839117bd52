//! What the environment asks of the embedded GPU: how the host executes it. No result depends on that.

use crate::dispatch::policy::Compiling;
use crate::wave::Level;

/// A variable of the environment with a word that asks for nothing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is `{word}`, expected {expected}; without it, the fastest way is taken")]
pub struct EnvironmentError {
    /// The variable.
    pub variable: &'static str,
    /// What it has.
    pub word: String,
    /// What it may have.
    pub expected: String,
}

/// Checks `FLIPWAVE_TIER` and `FLIPWAVE_SIMD`. Who does not call this has a word without a meaning
/// ignored.
///
/// # Errors
/// The first of them with such a word.
pub fn check_environment() -> Result<(), EnvironmentError> {
    Compiling::asked()?;
    Level::asked()?;
    Ok(())
}

/// What a variable asks for by one of these words; nothing if it is empty or not there.
pub(crate) fn asked<T: Copy>(
    variable: &'static str,
    words: &[(&str, T)],
) -> Result<Option<T>, EnvironmentError> {
    let Some(asked) = std::env::var_os(variable).filter(|asked| !asked.is_empty()) else {
        return Ok(None);
    };
    meaning(variable, &asked.to_string_lossy(), words).map(Some)
}

fn meaning<T: Copy>(
    variable: &'static str,
    asked: &str,
    words: &[(&str, T)],
) -> Result<T, EnvironmentError> {
    let known = words.iter().find(|(word, _)| *word == asked);
    known.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let expected: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        EnvironmentError { variable, word: asked.to_owned(), expected: expected.join(" or ") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_asks_for_nothing_is_refused_with_those_that_do() {
        let words = [("one", 1), ("two", 2)];
        assert_eq!(meaning("NUMBER", "two", &words), Ok(2));
        for wrong in ["tow", "One", "two "] {
            let error = meaning("NUMBER", wrong, &words).expect_err("another word");
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("NUMBER is `{wrong}`, expected `one` or `two`;"))
            );
        }
    }
}
