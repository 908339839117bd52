//! Texts compared line by line, numbers in them as numbers.

use super::comparison::Compared;
use crate::file::element::ElementType;
use crate::outputs::compare::{Difference, Tolerance, compare};
use regex_lite::Regex;
use std::sync::LazyLock;

/// Characters of a line that an error shows.
const SHOWN: usize = 60;

/// Characters before a difference that an error shows.
const CONTEXT: usize = 20;

/// Decimal numbers as programs print them. Hexadecimal ones are found too, as they must not be
/// taken for a decimal number and a rest; they are compared as text.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    let number =
        r"(?i)0x[0-9a-f]+|[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?|\b(?:inf(?:inity)?|nan)\b)";
    Regex::new(number).expect("a regular expression")
});

/// A regular expression from a campaign file.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// The expression `text`.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub(crate) fn new(text: &str) -> Result<Pattern, String> {
        let regex = Regex::new(text);
        regex.map(Pattern).map_err(|error| format!("`{text}` is no regular expression: {error}"))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

/// Compares two texts line by line without the lines that match one of `ignore`, which are left
/// out of both. Within a line, decimal numbers are compared as doubles under the tolerance, where
/// it has a limit, and what stands between them exactly. A line counts as one wrong element with
/// infinite error where that differs, or where one text has it alone.
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
        let own = match (golden_lines.next(), faulty_lines.next()) {
            (None, None) => return compared,
            (Some((_, golden)), Some((_, faulty))) if golden == faulty => continue,
            (Some((_, golden)), Some((line, faulty))) => {
                compare_lines(tolerance, golden, faulty, line)
            }
            (Some((line, golden)), None) => {
                Compared::unlike(format!("line {line}, {}, is missing", around(golden, 0)))
            }
            (None, Some((line, faulty))) => {
                Compared::unlike(format!("line {line}, {}, is too much", around(faulty, 0)))
            }
        };
        compared = compared.and(own);
    }
}

/// Whether no line is left of a text without those that match one of `ignore`.
pub(super) fn is_all_ignored(text: &str, ignore: &[Pattern]) -> bool {
    kept_lines(text, ignore).next().is_none()
}

/// The lines that no pattern matches, with their numbers from 1 and their ends.
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

/// Compares two lines that are not the same.
fn compare_lines(tolerance: &Tolerance, golden: &str, faulty: &str, line: usize) -> Compared {
    let unlike = || {
        let start = first_difference(golden, faulty);
        let (golden, faulty) = (around(golden, start), around(faulty, start));
        Compared::unlike(format!("line {line}: {faulty} in place of {golden}"))
    };
    if !NUMBER.split(golden).eq(NUMBER.split(faulty)) {
        return unlike();
    }
    let is_exact = *tolerance == Tolerance::default();
    let mut compared = Compared::default();
    for (golden, faulty) in NUMBER.find_iter(golden).zip(NUMBER.find_iter(faulty)) {
        let (golden, faulty) = (golden.as_str(), faulty.as_str());
        if golden == faulty {
            continue;
        }
        let (Ok(golden_value), Ok(value)) = (golden.parse::<f64>(), faulty.parse::<f64>()) else {
            return unlike();
        };
        let (golden_bytes, bytes) = (golden_value.to_le_bytes(), value.to_le_bytes());
        let difference = compare(ElementType::F64, tolerance, &golden_bytes, &bytes);
        let elements_wrong = if is_exact { 1 } else { difference.elements_wrong };
        let first = || format!("line {line}: {faulty} in place of {golden}");
        compared = compared.and(Compared::new(Difference { elements_wrong, ..difference }, first));
    }
    compared
}

/// The byte at which two texts begin to differ.
fn first_difference(one: &str, other: &str) -> usize {
    let mut pairs = one.char_indices().zip(other.chars());
    let unequal = pairs.find(|((_, one), other)| one != other);
    unequal.map_or(one.len().min(other.len()), |((place, _), _)| place)
}

/// What of a line an error shows: that around the byte `place`, at which a character begins.
fn around(line: &str, place: usize) -> String {
    let start = line[..place].char_indices().rev().nth(CONTEXT).map_or(0, |(start, _)| start);
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
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_other_byte_differs_without_a_tolerance() {
        assert_eq!(similarity(EXACT, "a 1\nb\n", "a 1\nb\n"), Similarity::Exact);
        for faulty in ["a 1\nb", "a 1\nb\n\n", "a 1\r\nb\n", "a 1.0\nb\n", "a  1\nb\n", "", "a 1\n"]
        {
            difference(EXACT, "a 1\nb\n", faulty);
        }
        assert_eq!(difference(EXACT, "x\na 1\n", "x\na 2\n"), "line 2: 2 in place of 1");
        assert_eq!(difference(EXACT, "on\n", "off\n"), r#"line 1: "off\n" in place of "on\n""#);
        assert_eq!(difference(EXACT, "a\nb\n", "a\n"), r#"line 2, "b\n", is missing"#);
        assert_eq!(difference(EXACT, "a\n", "a\nb\n"), r#"line 2, "b\n", is too much"#);
    }

    #[test]
    fn a_tolerance_is_for_numbers_and_nothing_else() {
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
    fn numbers_that_are_none_are_like_those_of_buffers() {
        let loose = Tolerance { absolute: Some(1e300), relative: Some(1e300), ulp: None };
        assert_eq!(similarity(loose, "nan\n", "-nan\n"), Similarity::Within);
        difference(loose, "inf\n", "-inf\n");
        difference(loose, "inf\n", "1e308\n");
        difference(loose, "1\n", "nan\n");
        // Words that begin like them are words.
        difference(loose, "info\n", "into\n");
    }

    #[test]
    fn errors_are_over_all_numbers_and_lines() {
        let compared = compare_text(&[], &relative(0.1), "1 2\n4\n8\n", "1 3\n4.2\n8\n");
        assert_eq!(compared.difference.elements_wrong, 1);
        assert_eq!(compared.difference.max_abs_error, 1.0);
        assert_eq!(compared.difference.max_rel_error, 0.5);
        let compared = compare_text(&[], &relative(0.1), "1\nok\n", "1\nno\n");
        assert_eq!(compared.difference.elements_wrong, 1);
        assert_eq!(compared.difference.max_abs_error, f64::INFINITY);
    }

    #[test]
    fn ignored_lines_are_left_out_of_both() {
        let ignore = [Pattern::new("^time: .*$").expect("a pattern")];
        let compared = |faulty| compare_text(&ignore, &EXACT, "a\ntime: 1 s\nb\n", faulty);
        for same in ["a\ntime: 2 s\nb\n", "a\nb\n", "time: 3\na\ntime: 4\nb\ntime: 5\n"] {
            assert_eq!(compared(same).similarity, Similarity::Exact, "{same}");
        }
        assert!(matches!(compared("a\ntime 1 s\nb\n").similarity, Similarity::Different(_)));
        assert!(matches!(compared("a\ntime: 1 s\nc\n").similarity, Similarity::Different(_)));
        assert!(Pattern::new("(").expect_err("no pattern").contains("`(`"));
    }

    #[test]
    fn long_lines_are_shown_where_they_differ() {
        let line = |end: &str| format!("{}{end}{}\n", "ü".repeat(500), "b".repeat(500));
        let shown = difference(EXACT, &line("is"), &line("was"));
        assert!(shown.contains("üwasb") && shown.contains("üisb"), "{shown}");
        assert!(shown.chars().count() < 200, "{shown}");
    }
}
