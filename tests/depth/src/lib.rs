//! Number of cases that tests run.
//!
//! Many tests run the same check on every target, at every optimisation level, or with every instruction.
//! All cases must pass before a change lands. During development, a sample finds most mistakes in two
//! thirds of the CPU time.

mod files;

pub use files::files_in;

/// Value of the environment variable `FLIPWAVE_TESTS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// A sample of each test's cases, the default of `make test`.
    Sample,
    /// `full`: all cases, as in `.ci/run`.
    Full,
    /// `long`: more cases than can be run for each change, as in `make test-long`.
    Long,
}

impl Depth {
    /// Reads the environment variable.
    ///
    /// # Panics
    ///
    /// If the variable has an unknown value.
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

/// Cases that a test runs: all, or in a sample the first of every `one_in`. If cases are a product of
/// several lists, `one_in` must be coprime with the lengths of the inner lists, so that the sample
/// contains every item of each list.
pub fn cases<T>(all: impl IntoIterator<Item = T>, one_in: usize) -> impl Iterator<Item = T> {
    all.into_iter().step_by(if Depth::asked() == Depth::Sample { one_in } else { 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_accepts_known_words_only() {
        assert_eq!(Depth::of("full"), Some(Depth::Full));
        assert_eq!(Depth::of("long"), Some(Depth::Long));
        assert_eq!(Depth::of("1"), None);
        assert!(Depth::Sample < Depth::Full && Depth::Full < Depth::Long);
    }
}
