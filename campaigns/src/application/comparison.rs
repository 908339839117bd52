//! Compares the outputs of an application with those of the golden run.

use super::command::CommandLine;
use super::text::{Pattern, compare_text, is_all_ignored};
use crate::file::element::ElementType;
use crate::outputs::compare::{Difference, Tolerance, compare_with_extents, first_wrong};
use crate::outputs::extents::Extents;
use std::fmt;
use std::path::PathBuf;

/// A condition of correct runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// An output equals that of the golden run, within the tolerance.
    Output {
        /// The output.
        output: Output,
        /// Format and tolerance of the output.
        format: Format,
    },
    /// A program of the user accepts the run with exit code 0, or rejects it with 1.
    Check(CommandLine),
}

/// An output of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, by its path in the folder of the run.
    File(PathBuf),
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Output::Stdout => f.write_str("stdout"),
            Output::Stderr => f.write_str("stderr"),
            Output::File(path) => path.display().fmt(f),
        }
    }
}

/// Format and tolerance of an output.
#[derive(Clone, Debug, PartialEq)]
pub enum Format {
    /// Bytes that are compared exactly.
    Exact,
    /// Text in UTF-8.
    Text {
        /// Patterns of ignored lines.
        ignore: Vec<Pattern>,
        /// Tolerance of the numbers in the text.
        tolerance: Tolerance,
    },
    /// A sequence of little-endian numbers.
    Elements {
        /// Type of the elements.
        element: ElementType,
        /// Dimensions of the output, if declared.
        extents: Option<Extents>,
        /// Tolerance of the elements.
        tolerance: Tolerance,
    },
}

/// Similarity of two outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Similarity {
    /// Equal except for ignored lines.
    #[default]
    Exact,
    /// Within the tolerance, or accepted by a check.
    Within,
    /// Different. Contains the first difference with its location.
    Different(String),
}

/// Result of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compared {
    /// Similarity of the outputs.
    pub similarity: Similarity,
    /// Number and errors of the wrong elements, which are numbers, lines of text, or bytes. The
    /// error of an element that is not a number is infinite.
    pub difference: Difference,
}

impl Compared {
    /// Result for two outputs that are not equal. `first` describes the first difference.
    pub(super) fn new(difference: Difference, first: impl FnOnce() -> String) -> Compared {
        let similarity = match difference.elements_wrong {
            0 => Similarity::Within,
            _ => Similarity::Different(first()),
        };
        Compared { similarity, difference }
    }

    /// Result for one wrong element with infinite error.
    pub(super) fn different(first: String) -> Compared {
        Compared::new(infinite(1), || first)
    }

    /// Combines two results. If both have a difference, the first one is that of `self`.
    pub(super) fn and(self, next: Compared) -> Compared {
        let similarity = match (self.similarity, next.similarity) {
            (Similarity::Different(first), _) | (_, Similarity::Different(first)) => {
                Similarity::Different(first)
            }
            (Similarity::Exact, Similarity::Exact) => Similarity::Exact,
            _ => Similarity::Within,
        };
        Compared { similarity, difference: self.difference.and(next.difference) }
    }

    /// Adds the name of the output to the description of the first difference.
    fn in_output(self, output: &Output) -> Compared {
        let similarity = match self.similarity {
            Similarity::Different(first) => Similarity::Different(format!("{output}, {first}")),
            similarity => similarity,
        };
        Compared { similarity, ..self }
    }
}

fn infinite(elements_wrong: u64) -> Difference {
    let infinity = f64::INFINITY;
    let (max_abs_error, max_rel_error) = (infinity, infinity);
    Difference { elements_wrong, max_abs_error, max_rel_error, ..Difference::default() }
}

impl Format {
    /// Returns `true` if an output has no content that is compared.
    pub(super) fn is_empty(&self, output: &[u8]) -> bool {
        match (self, std::str::from_utf8(output)) {
            (Format::Text { ignore, .. }, Ok(text)) => is_all_ignored(text, ignore),
            _ => output.is_empty(),
        }
    }

    /// Checks that an output of the golden run has this format.
    ///
    /// # Errors
    /// A message with the mismatch and advice.
    pub(super) fn check(&self, golden: &[u8]) -> Result<(), String> {
        match self {
            Format::Text { .. } if std::str::from_utf8(golden).is_err() => {
                Err("is not text in UTF-8; remove `ignore` and `tolerance`, or add the `type` of \
                     its numbers"
                    .to_owned())
            }
            Format::Elements { element, .. }
                if element.elements_in(golden.len() as u64).is_none() =>
            {
                Err(format!("has {} bytes, which is not a multiple of {element}", golden.len()))
            }
            Format::Elements { element, extents: Some(extents), .. } => {
                let count = element.elements_in(golden.len() as u64).unwrap_or_default();
                let checked = extents.check(count);
                checked.map_err(|message| format!("does not have its `shape`: {message}"))
            }
            _ => Ok(()),
        }
    }

    /// Compares an output with that of the golden run, which [`Format::check`] has accepted. A
    /// missing output is different.
    pub(super) fn compare(
        &self,
        output: &Output,
        golden: &[u8],
        faulty: Option<&[u8]>,
    ) -> Compared {
        let compared = match faulty {
            None => Compared::different("is missing".to_owned()),
            Some(faulty) if golden == faulty => Compared::default(),
            Some(faulty) => self.compare_unequal(golden, faulty),
        };
        compared.in_output(output)
    }

    fn compare_unequal(&self, golden: &[u8], faulty: &[u8]) -> Compared {
        let texts = std::str::from_utf8(golden).ok().zip(std::str::from_utf8(faulty).ok());
        match (self, texts) {
            (Format::Exact, Some((golden, faulty))) => {
                compare_text(&[], &Tolerance::default(), golden, faulty)
            }
            (Format::Exact, None) => compare_bytes(golden, faulty),
            (Format::Text { ignore, tolerance }, Some((golden, faulty))) => {
                compare_text(ignore, tolerance, golden, faulty)
            }
            (Format::Text { .. }, None) => Compared::different("is not text in UTF-8".to_owned()),
            (Format::Elements { element, extents, tolerance }, _) => {
                compare_elements(*element, tolerance, *extents, golden, faulty)
            }
        }
    }
}

/// Compares two unequal sequences of bytes.
fn compare_bytes(golden: &[u8], faulty: &[u8]) -> Compared {
    let pairs = || golden.iter().zip(faulty);
    let wrong = pairs().filter(|(golden, faulty)| golden != faulty).count();
    let wrong = wrong + golden.len().abs_diff(faulty.len());
    Compared::new(infinite(wrong as u64), || {
        match pairs().position(|(golden, faulty)| golden != faulty) {
            Some(offset) => {
                let (golden, faulty) = (golden[offset], faulty[offset]);
                format!("byte {offset}: {faulty:#04x} instead of {golden:#04x}")
            }
            None => length_difference(golden, faulty),
        }
    })
}

fn compare_elements(
    element: ElementType,
    tolerance: &Tolerance,
    extents: Option<Extents>,
    golden: &[u8],
    faulty: &[u8],
) -> Compared {
    if golden.len() != faulty.len() {
        return Compared::different(length_difference(golden, faulty));
    }
    Compared::new(compare_with_extents(element, tolerance, extents, golden, faulty), || {
        let first = first_wrong(element, tolerance, golden, faulty);
        format!("element {}", first.unwrap_or_default())
    })
}

fn length_difference(golden: &[u8], faulty: &[u8]) -> String {
    format!("{} bytes instead of {}", faulty.len(), golden.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flipwave_analysis::ErrorShape;

    const LOOSE: Tolerance = Tolerance { absolute: Some(0.5), relative: None, ulp: None };

    fn compare_file(format: &Format, golden: &[u8], faulty: Option<&[u8]>) -> Compared {
        format.compare(&Output::File("out".into()), golden, faulty)
    }

    fn first(compared: &Compared) -> &str {
        match &compared.similarity {
            Similarity::Different(first) => first,
            similarity => panic!("{similarity:?}"),
        }
    }

    #[test]
    fn exact_files_are_compared_by_byte_or_line() {
        let compared = compare_file(&Format::Exact, b"\xff\x01\x02", Some(b"\xff\x03\x02\x04"));
        assert_eq!(first(&compared), "out, byte 1: 0x03 instead of 0x01");
        assert_eq!(compared.difference.elements_wrong, 2);
        let compared = compare_file(&Format::Exact, b"\xff\x01", Some(b"\xff"));
        assert_eq!(first(&compared), "out, 1 bytes instead of 2");
        let compared = compare_file(&Format::Exact, b"1\n2\n", Some(b"1\n4\n"));
        assert_eq!(first(&compared), "out, line 2: 4 instead of 2");
        assert_eq!(compared.difference.max_abs_error, 2.0);
        assert_eq!(compare_file(&Format::Exact, b"\xff", Some(b"\xff")), Compared::default());
    }

    #[test]
    fn missing_files_differ_from_empty_ones() {
        for golden in [&b"1\n"[..], b""] {
            let compared = compare_file(&Format::Exact, golden, None);
            assert_eq!(first(&compared), "out, is missing");
        }
    }

    #[test]
    fn numbers_in_binary_files_are_compared_with_the_tolerance() {
        let f32s = |numbers: [f32; 2]| numbers.map(f32::to_le_bytes).concat();
        let extents = Some(Extents::new(&[2]).expect("dimensions"));
        let format = Format::Elements { element: ElementType::F32, extents, tolerance: LOOSE };
        let golden = f32s([1.0, 2.0]);
        let near = compare_file(&format, &golden, Some(&f32s([1.0, 2.25])));
        assert_eq!(near.similarity, Similarity::Within);
        assert_eq!(near.difference.max_abs_error, 0.25);
        let far = compare_file(&format, &golden, Some(&f32s([1.25, 4.0])));
        assert_eq!(first(&far), "out, element 1");
        assert_eq!(far.difference.shape, Some(ErrorShape::Single));
        let short = compare_file(&format, &golden, Some(&golden[..4]));
        assert_eq!(first(&short), "out, 4 bytes instead of 8");
        assert!(format.check(&golden[..5]).is_err());
        assert!(format.check(&golden).is_ok());
        let error = format.check(&golden[..4]).expect_err("another shape");
        assert!(error.contains("2 is 2 elements, but the output has 1"), "{error}");
    }

    #[test]
    fn invalid_utf8_differs_from_text() {
        let format = Format::Text { ignore: Vec::new(), tolerance: LOOSE };
        assert!(format.check(b"\xff").is_err());
        assert_eq!(first(&compare_file(&format, b"1", Some(b"\xff"))), "out, is not text in UTF-8");
    }

    #[test]
    fn combined_results_have_the_worst_similarity_and_the_first_difference() {
        let within = || Compared { similarity: Similarity::Within, ..Compared::default() };
        assert_eq!(Compared::default().and(within()).similarity, Similarity::Within);
        let both =
            within().and(Compared::different("a".into())).and(Compared::different("b".into()));
        assert_eq!(first(&both), "a");
        assert_eq!(both.difference.elements_wrong, 2);
    }
}
