//! Source lines as people read them.

use std::borrow::Cow;

/// Returns the label of a source line, `FILE:LINE` in the tables. Line 0 means that the code has no source
/// line, although it is part of a file, as the compiler generated it.
pub(crate) fn line_label(line: &str) -> Cow<'_, str> {
    match line.strip_suffix(":0") {
        Some(file) if !file.is_empty() => Cow::Owned(format!("{file} (no line)")),
        _ => Cow::Borrowed(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_0_is_no_line() {
        assert_eq!(line_label("src/a.cl:0"), "src/a.cl (no line)");
        for line in ["a.cl:10", "a.cl:7", "", ":0"] {
            assert_eq!(line_label(line), line);
        }
    }
}
