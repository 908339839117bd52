//! Compares texts line by line, and the numbers in them numerically.

use super::comparison::Compared;
use crate::file::element::ElementType;
use crate::outputs::compare::{Difference, Tolerance, compare};
use regex_lite::Regex;
use std::sync::LazyLock;

/// Characters of a line that a message shows.
const SHOWN: usize = 60;

/// Characters before a difference that a message shows.
const CONTEXT: usize = 20;

/// Decimal numbers as printed by programs. Also matches hexadecimal numbers, so that they are not
/// split into a decimal number and a rest; these are compared as text.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    let number =
        r"(?i)0x[0-9a-f]+|[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?|\b(?:inf(?:inity)?|nan)\b)";
    Regex::new(number).expect("a regular expression")
});

/// A regular expression from a campaign file.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// Parses a regular expression.
    ///
    /// # Errors
    /// A message with the syntax error.
    pub(crate) fn new(text: &str) -> Result<Pattern, String> {
        let regex = Regex::new(text);
        regex.map(Pattern).map_err(|error| format!("invalid regular expression `{text}`: {error}"))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

/// Compares two texts line by line, without the lines of both that match one of `ignore`. Decimal
/// numbers in a line are compared as doubles with the tolerance, if it has a limit; the text
/// between them is compared exactly. A line with a difference in this text, or in only one of the
/// texts, counts as one wrong element with infinite error.
pub(super) fn compare_text(
    ignore: &[Pattern],
    tolerance: &Tolerance,
    golden: &str,
    faulty: &str,
) -> Compared {
    let mut golden_lines = kept_lines(golden, ignore);
    let mut faulty_lines = kept_lines(faulty, ignore);
    let mut compared = Compared::default();
    loop {
        let line = match (golden_lines.next(), faulty_lines.next()) {
            (None, None) => return compared,
            (Some((_, golden)), Some((_, faulty))) if golden == faulty => continue,
            (Some((_, golden)), Some((line, faulty))) => {
                compare_lines(tolerance, golden, faulty, line)
            }
            (Some((line, golden)), None) => {
                Compared::different(format!("line {line}, {}, is missing", excerpt(golden, 0)))
            }
            (None, Some((line, faulty))) => {
                Compared::different(format!("line {line}, {}, is extra", excerpt(faulty, 0)))
            }
        };
        compared = compared.and(line);
    }
}

/// Returns `true` if every line of a text matches one of `ignore`.
pub(super) fn is_all_ignored(text: &str, ignore: &[Pattern]) -> bool {
    kept_lines(text, ignore).next().is_none()
}

/// Lines that match no pattern, including line ends, with their numbers from 1.
fn kept_lines<'a>(
    text: &'a str,
    ignore: &'a [Pattern],
) -> impl Iterator<Item = (usize, &'a str)> + 'a {
    let lines = text.split_inclusive('\n').enumerate().map(|(index, line)| (index + 1, line));
    lines.filter(|(_, line)| {
        let line = line.trim_end_matches(['\n', '\r']);
        !ignore.iter().any(|pattern| pattern.0.is_match(line))
    })
}

/// Compares two different lines.
fn compare_lines(tolerance: &Tolerance, golden: &str, faulty: &str, line: usize) -> Compared {
    let different = || {
        let start = first_difference(golden, faulty);
        let (golden, faulty) = (excerpt(golden, start), excerpt(faulty, start));
        Compared::different(format!("line {line}: {faulty} instead of {golden}"))
    };
    if !NUMBER.split(golden).eq(NUMBER.split(faulty)) {
        return different();
    }
    let is_exact = *tolerance == Tolerance::default();
    let mut compared = Compared::default();
    for (golden, faulty) in NUMBER.find_iter(golden).zip(NUMBER.find_iter(faulty)) {
        let (golden, faulty) = (golden.as_str(), faulty.as_str());
        if golden == faulty {
            continue;
        }
        let (Ok(golden_value), Ok(value)) = (golden.parse::<f64>(), faulty.parse::<f64>()) else {
            return different();
        };
        let (golden_bytes, bytes) = (golden_value.to_le_bytes(), value.to_le_bytes());
        let difference = compare(ElementType::F64, tolerance, &golden_bytes, &bytes);
        let elements_wrong = if is_exact { 1 } else { difference.elements_wrong };
        let first = || format!("line {line}: {faulty} instead of {golden}");
        compared = compared.and(Compared::new(Difference { elements_wrong, ..difference }, first));
    }
    compared
}

/// Byte offset of the first difference between two texts.
fn first_difference(golden: &str, faulty: &str) -> usize {
    let mut pairs = golden.char_indices().zip(faulty.chars());
    let unequal = pairs.find(|((_, golden), faulty)| golden != faulty);
    unequal.map_or(golden.len().min(faulty.len()), |((offset, _), _)| offset)
}

/// Excerpt of a line for a message, around the character that begins at byte `offset`.
fn excerpt(line: &str, offset: usize) -> String {
    let start = line[..offset].char_indices().rev().nth(CONTEXT).map_or(0, |(start, _)| start);
    let shown: String = line[start..].chars().take(SHOWN).collect();
    let before = if start > 0 { "..." } else { "" };
    let after = if shown.len() < line[start..].len() { "..." } else { "" };
    format!("{before}{shown:?}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::comparison::Similarity;

    const EXACT: Tolerance = Tolerance { absolute: None, relative: None, ulp: None };

    fn relative(limit: f64) -> Tolerance {
        Tolerance { relative: Some(limit), ..EXACT }
    }

    fn similarity(tolerance: Tolerance, golden: &str, faulty: &str) -> Similarity {
        compare_text(&[], &tolerance, golden, faulty).similarity
    }

    fn difference(tolerance: Tolerance, golden: &str, faulty: &str) -> String {
        match similarity(tolerance, golden, faulty) {
            Similarity::Different(first) => first,
            similarity => panic!("{similarity:?}"),
        }
    }

    #[test]
    fn exact_comparison_accepts_only_the_same_bytes() {
        assert_eq!(similarity(EXACT, "a 1\nb\n", "a 1\nb\n"), Similarity::Exact);
        for faulty in ["a 1\nb", "a 1\nb\n\n", "a 1\r\nb\n", "a 1.0\nb\n", "a  1\nb\n", "", "a 1\n"]
        {
            difference(EXACT, "a 1\nb\n", faulty);
        }
        assert_eq!(difference(EXACT, "x\na 1\n", "x\na 2\n"), "line 2: 2 instead of 1");
        assert_eq!(difference(EXACT, "on\n", "off\n"), r#"line 1: "off\n" instead of "on\n""#);
        assert_eq!(difference(EXACT, "a\nb\n", "a\n"), r#"line 2, "b\n", is missing"#);
        assert_eq!(difference(EXACT, "a\n", "a\nb\n"), r#"line 2, "b\n", is extra"#);
    }

    #[test]
    fn tolerances_apply_only_to_numbers() {
        let near = relative(1e-3);
        assert_eq!(similarity(near, "x = 1000, y\n", "x = 1000.5, y\n"), Similarity::Within);
        assert_eq!(similarity(near, "-1.5e3\n", "-1500.0\n"), Similarity::Within);
        for faulty in ["x = 1002, y\n", "x = 1000, z\n", "x = 1000 , y\n", "x = nan, y\n"] {
            difference(near, "x = 1000, y\n", faulty);
        }
        difference(near, "1000 1000\n", "1000\n");
        difference(near, "at 0x1000\n", "at 0x1001\n");
        difference(near, "1000\n", "-1000\n");
    }

    #[test]
    fn nan_and_infinities_are_compared_as_in_buffers() {
        let loose = Tolerance { absolute: Some(1e300), relative: Some(1e300), ulp: None };
        assert_eq!(similarity(loose, "nan\n", "-nan\n"), Similarity::Within);
        difference(loose, "inf\n", "-inf\n");
        difference(loose, "inf\n", "1e308\n");
        difference(loose, "1\n", "nan\n");
        // Words that begin with `inf`.
        difference(loose, "info\n", "into\n");
    }

    #[test]
    fn errors_accumulate_over_numbers_and_lines() {
        let compared = compare_text(&[], &relative(0.1), "1 2\n4\n8\n", "1 3\n4.2\n8\n");
        assert_eq!(compared.difference.elements_wrong, 1);
        assert_eq!(compared.difference.max_abs_error, 1.0);
        assert_eq!(compared.difference.max_rel_error, 0.5);
        let compared = compare_text(&[], &relative(0.1), "1\nok\n", "1\nno\n");
        assert_eq!(compared.difference.elements_wrong, 1);
        assert_eq!(compared.difference.max_abs_error, f64::INFINITY);
    }

    #[test]
    fn ignored_lines_are_removed_from_both_texts() {
        let ignore = [Pattern::new("^time: .*$").expect("a pattern")];
        let compared = |faulty| compare_text(&ignore, &EXACT, "a\ntime: 1 s\nb\n", faulty);
        for same in ["a\ntime: 2 s\nb\n", "a\nb\n", "time: 3\na\ntime: 4\nb\ntime: 5\n"] {
            assert_eq!(compared(same).similarity, Similarity::Exact, "{same}");
        }
        assert!(matches!(compared("a\ntime 1 s\nb\n").similarity, Similarity::Different(_)));
        assert!(matches!(compared("a\ntime: 1 s\nc\n").similarity, Similarity::Different(_)));
        assert!(Pattern::new("(").expect_err("invalid pattern").contains("`(`"));
    }

    #[test]
    fn messages_show_long_lines_around_the_difference() {
        let line = |end: &str| format!("{}{end}{}\n", "ü".repeat(500), "b".repeat(500));
        let shown = difference(EXACT, &line("is"), &line("was"));
        assert!(shown.contains("üwasb") && shown.contains("üisb"), "{shown}");
        assert!(shown.chars().count() < 200, "{shown}");
    }
}
