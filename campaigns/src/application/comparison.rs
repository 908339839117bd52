//! How the outputs of an application are compared with those of a run without a fault.

use super::command::CommandLine;
use super::text::{Pattern, compare_text, is_all_ignored};
use crate::file::element::ElementType;
use crate::outputs::compare::{Difference, Tolerance, compare_in, first_wrong};
use crate::outputs::extents::Extents;
use std::fmt;
use std::path::PathBuf;

/// One thing that decides whether a run is right.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// An output is like that of the run without a fault.
    Output {
        /// The output.
        output: Output,
        /// What it holds, and how far it may be off.
        format: Format,
    },
    /// A program of the user says so with exit code 0, and that it is not with 1.
    Check(CommandLine),
}

/// What an application puts out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// What it writes to standard output.
    Stdout,
    /// What it writes to standard error.
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

/// What an output holds, and how far it may be off.
#[derive(Clone, Debug, PartialEq)]
pub enum Format {
    /// The same bytes.
    Exact,
    /// Text in UTF-8.
    Text {
        /// Lines that are left out.
        ignore: Vec<Pattern>,
        /// How far the numbers in it may be off.
        tolerance: Tolerance,
    },
    /// Numbers one after the other, little-endian.
    Elements {
        /// Their type.
        element: ElementType,
        /// Their dimensions, where they are declared.
        extents: Option<Extents>,
        /// How far they may be off.
        tolerance: Tolerance,
    },
}

/// How like two outputs are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Similarity {
    /// The same, but for what is ignored.
    #[default]
    Exact,
    /// Within the tolerance, or right by a check.
    Within,
    /// Different; what differs first, and where.
    Different(String),
}

/// What a comparison found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compared {
    /// How like the outputs are.
    pub similarity: Similarity,
    /// How many elements are wrong, and by how much: numbers, lines of text, or bytes. What is no
    /// number is wrong with infinite error.
    pub difference: Difference,
}

impl Compared {
    /// What two outputs that are not the same come to; `first` describes the first difference.
    pub(super) fn new(difference: Difference, first: impl FnOnce() -> String) -> Compared {
        let similarity = match difference.elements_wrong {
            0 => Similarity::Within,
            _ => Similarity::Different(first()),
        };
        Compared { similarity, difference }
    }

    /// One element with infinite error.
    pub(super) fn unlike(first: String) -> Compared {
        Compared::new(infinite(1), || first)
    }

    /// This and another comparison, taken together: the first difference is this one's.
    pub(super) fn and(self, other: Compared) -> Compared {
        let similarity = match (self.similarity, other.similarity) {
            (Similarity::Different(first), _) | (_, Similarity::Different(first)) => {
                Similarity::Different(first)
            }
            (Similarity::Exact, Similarity::Exact) => Similarity::Exact,
            _ => Similarity::Within,
        };
        Compared { similarity, difference: self.difference.and(other.difference) }
    }

    /// The same with `place` before the description of the first difference.
    fn at(self, place: &Output) -> Compared {
        let similarity = match self.similarity {
            Similarity::Different(first) => Similarity::Different(format!("{place}, {first}")),
            other => other,
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
    /// Whether an output has nothing that could be compared.
    pub(super) fn is_empty(&self, output: &[u8]) -> bool {
        match (self, std::str::from_utf8(output)) {
            (Format::Text { ignore, .. }, Ok(text)) => is_all_ignored(text, ignore),
            _ => output.is_empty(),
        }
    }

    /// Whether an output of the run without a fault can be compared so.
    ///
    /// # Errors
    /// Says why not, and what to do.
    pub(super) fn check(&self, golden: &[u8]) -> Result<(), String> {
        match self {
            Format::Text { .. } if std::str::from_utf8(golden).is_err() => {
                Err("is no text in UTF-8; leave out `ignore` and `tolerance`, or give the `type` \
                     of its numbers"
                    .to_owned())
            }
            Format::Elements { element, .. }
                if element.elements_in(golden.len() as u64).is_none() =>
            {
                Err(format!("holds {} bytes, no whole number of {element}", golden.len()))
            }
            Format::Elements { element, extents: Some(extents), .. } => {
                let count = element.elements_in(golden.len() as u64).unwrap_or_default();
                let checked = extents.check(count);
                checked.map_err(|message| format!("does not have its `shape`: {message}"))
            }
            _ => Ok(()),
        }
    }

    /// Compares an output with that of the run without a fault, which [`Format::check`] accepts.
    /// An output that is missing is different.
    pub(super) fn compare(
        &self,
        output: &Output,
        golden: &[u8],
        faulty: Option<&[u8]>,
    ) -> Compared {
        let compared = match faulty {
            None => Compared::unlike("is missing".to_owned()),
            Some(faulty) if golden == faulty => Compared::default(),
            Some(faulty) => self.compare_unequal(golden, faulty),
        };
        compared.at(output)
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
            (Format::Text { .. }, None) => Compared::unlike("is no text in UTF-8".to_owned()),
            (Format::Elements { element, extents, tolerance }, _) => {
                compare_elements(*extents, (*element, tolerance), golden, faulty)
            }
        }
    }
}

/// Compares bytes that are not the same.
fn compare_bytes(golden: &[u8], faulty: &[u8]) -> Compared {
    let pairs = || golden.iter().zip(faulty);
    let wrong = pairs().filter(|(golden, faulty)| golden != faulty).count();
    let wrong = wrong + golden.len().abs_diff(faulty.len());
    Compared::new(infinite(wrong as u64), || {
        match pairs().position(|(golden, faulty)| golden != faulty) {
            Some(place) => {
                let (golden, faulty) = (golden[place], faulty[place]);
                format!("byte {place}: {faulty:#04x} in place of {golden:#04x}")
            }
            None => other_length(golden, faulty),
        }
    })
}

fn compare_elements(
    extents: Option<Extents>,
    (element, tolerance): (ElementType, &Tolerance),
    golden: &[u8],
    faulty: &[u8],
) -> Compared {
    if golden.len() != faulty.len() {
        return Compared::unlike(other_length(golden, faulty));
    }
    Compared::new(compare_in(extents, (element, tolerance), golden, faulty), || {
        let first = first_wrong((element, tolerance), golden, faulty);
        format!("element {}", first.unwrap_or_default())
    })
}

fn other_length(golden: &[u8], faulty: &[u8]) -> String {
    format!("{} bytes in place of {}", faulty.len(), golden.len())
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
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn exact_files_are_bytes_or_lines() {
        let compared = compare_file(&Format::Exact, b"\xff\x01\x02", Some(b"\xff\x03\x02\x04"));
        assert_eq!(first(&compared), "out, byte 1: 0x03 in place of 0x01");
        assert_eq!(compared.difference.elements_wrong, 2);
        let compared = compare_file(&Format::Exact, b"\xff\x01", Some(b"\xff"));
        assert_eq!(first(&compared), "out, 1 bytes in place of 2");
        let compared = compare_file(&Format::Exact, b"1\n2\n", Some(b"1\n4\n"));
        assert_eq!(first(&compared), "out, line 2: 4 in place of 2");
        assert_eq!(compared.difference.max_abs_error, 2.0);
        assert_eq!(compare_file(&Format::Exact, b"\xff", Some(b"\xff")), Compared::default());
    }

    #[test]
    fn a_missing_file_is_different_even_where_it_would_be_empty() {
        for golden in [&b"1\n"[..], b""] {
            let compared = compare_file(&Format::Exact, golden, None);
            assert_eq!(first(&compared), "out, is missing");
        }
    }

    #[test]
    fn numbers_in_binary_files_keep_the_tolerance() {
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
        assert_eq!(first(&short), "out, 4 bytes in place of 8");
        assert!(format.check(&golden[..5]).is_err());
        assert!(format.check(&golden).is_ok());
        let error = format.check(&golden[..4]).expect_err("another shape");
        assert!(error.contains("2 is 2 elements, and there are 1"), "{error}");
    }

    #[test]
    fn what_is_no_text_differs_from_text() {
        let format = Format::Text { ignore: Vec::new(), tolerance: LOOSE };
        assert!(format.check(b"\xff").is_err());
        assert_eq!(first(&compare_file(&format, b"1", Some(b"\xff"))), "out, is no text in UTF-8");
    }

    #[test]
    fn of_several_the_worst_counts_and_the_first_difference_is_reported() {
        let within = || Compared { similarity: Similarity::Within, ..Compared::default() };
        assert_eq!(Compared::default().and(within()).similarity, Similarity::Within);
        let both = within().and(Compared::unlike("a".into())).and(Compared::unlike("b".into()));
        assert_eq!(first(&both), "a");
        assert_eq!(both.difference.elements_wrong, 2);
    }
}
