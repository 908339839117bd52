//! How much of their cases tests run.
//!
//! Many tests run the same check on every target, at every level of optimisation, with every
//! instruction. All of these cases must hold before a change lands; while one is made, a sample of each
//! shows most mistakes, in two thirds of the processors' time.

/// What the variable `FLIPWAVE_TESTS` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// A sample of each test's cases: what `make test` runs, without the variable.
    Sample,
    /// All cases, `full`: what `.ci/run` runs.
    Full,
    /// More cases than can be run for each change, `long`: what `make test-long` runs.
    Long,
}

impl Depth {
    /// What is asked for.
    ///
    /// # Panics
    ///
    /// If the variable is something else.
    pub fn asked() -> Depth {
        match std::env::var("FLIPWAVE_TESTS") {
            Err(std::env::VarError::NotPresent) => Depth::Sample,
            Ok(word) => Depth::of(&word)
                .unwrap_or_else(|| panic!("FLIPWAVE_TESTS is `{word}`; it can be full or long")),
            Err(error) => panic!("FLIPWAVE_TESTS: {error}"),
        }
    }

    fn of(word: &str) -> Option<Depth> {
        match word {
            "full" => Some(Depth::Full),
            "long" => Some(Depth::Long),
            _ => None,
        }
    }
}

/// The cases that a test runs: all, or in a sample the first of every `one_in`. Where cases are made of
/// several lists, `one_in` must have no common divisor with the length of the inner ones; then all of
/// each list's items are among them.
pub fn cases<T>(all: impl IntoIterator<Item = T>, one_in: usize) -> impl Iterator<Item = T> {
    all.into_iter().step_by(if Depth::asked() == Depth::Sample { one_in } else { 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_for_depths_are_told_from_mistakes() {
        assert_eq!(Depth::of("full"), Some(Depth::Full));
        assert_eq!(Depth::of("long"), Some(Depth::Long));
        assert_eq!(Depth::of("1"), None);
        assert!(Depth::Sample < Depth::Full && Depth::Full < Depth::Long);
    }
}
