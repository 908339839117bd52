//! Paths of programs in the process tree.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// Path of a program in the process tree of an application. It is the same in each run.
///
/// The text form `0` is the first process, `0.2` its third child. Processes of MPI ranks are counted
/// from the process that got the rank: `rank3`, and `rank3.0` for its first child. A process that
/// replaced its program by exec after it had started children has their number: `0@2`, as a shell
/// that becomes the last of its commands. `0+1` is the second program in a process that opened a
/// GPU.
///
/// Paths are ordered as programs start, if each child starts as soon as it is created. Ranks come
/// after all other processes, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProcessPath {
    /// The MPI rank of the process.
    pub rank: Option<u32>,
    /// Numbers among siblings, from the first process, or from the process with the rank, to this
    /// one.
    pub path: Vec<u32>,
    /// Number of children that the process had started when it became the program.
    pub children: u32,
    /// Number of programs in the process that opened a GPU before this one.
    pub program: u32,
}

impl ProcessPath {
    /// Numbers by which paths are ordered. A child is between the program that started it and the
    /// next program of its parent.
    fn order(&self) -> impl Iterator<Item = u64> {
        let path = self.path.iter().map(|number| 2 * u64::from(*number) + 1);
        path.chain([2 * u64::from(self.children), self.program.into()])
    }
}

impl Ord for ProcessPath {
    fn cmp(&self, other: &ProcessPath) -> Ordering {
        self.rank.cmp(&other.rank).then_with(|| self.order().cmp(other.order()))
    }
}

impl PartialOrd for ProcessPath {
    fn partial_cmp(&self, other: &ProcessPath) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for ProcessPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.rank.map(|rank| format!("rank{rank}"));
        let path = self.path.iter().map(u32::to_string);
        f.write_str(&rank.into_iter().chain(path).collect::<Vec<_>>().join("."))?;
        for (mark, number) in [('@', self.children), ('+', self.program)] {
            if number > 0 {
                write!(f, "{mark}{number}")?;
            }
        }
        Ok(())
    }
}

/// Error returned when parsing a [`ProcessPath`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseProcessPathError {
    /// The invalid text.
    pub text: String,
}

impl fmt::Display for ParseProcessPathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "invalid process `{}`: expected numbers such as `0.2` or a rank such as `rank3`",
            self.text
        )
    }
}

impl std::error::Error for ParseProcessPathError {}

impl FromStr for ProcessPath {
    type Err = ParseProcessPathError;

    fn from_str(text: &str) -> Result<ProcessPath, ParseProcessPathError> {
        parse(text).ok_or_else(|| ParseProcessPathError { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<ProcessPath> {
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().ok())?
    };
    // Splits off the number after a mark, which is never written if it is 0.
    let split_number = |text: &'_ str, mark: char| match text.split_once(mark) {
        Some((before, after)) => Some((before.len(), number(after).filter(|count| *count > 0)?)),
        None => Some((text.len(), 0)),
    };
    let (end, program) = split_number(text, '+')?;
    let text = &text[..end];
    let (end, children) = split_number(text, '@')?;
    let path = &text[..end];
    let mut parts = path.split('.').peekable();
    let rank = parts.peek().and_then(|first| first.strip_prefix("rank")).map(number);
    if rank.is_some() {
        parts.next();
    }
    let path = parts.map(number).collect::<Option<Vec<u32>>>()?;
    let rank = rank.map_or(Some(None), |rank| rank.map(Some))?;
    Some(ProcessPath { rank, path, children, program })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_inverts_display_and_refuses_invalid_texts() {
        for text in ["0", "0.2", "0.2+1", "rank3", "rank3.0.1", "rank0+2", "0@3+1", "0.2@1"] {
            let path: ProcessPath = text.parse().expect(text);
            assert_eq!(path.to_string(), text);
        }
        for text in [
            "", "0.", ".0", "rank", "rank-1", "0+0", "0+", "+1", "0.rank1", "0+1@1", "0@0", "a",
            "0 ",
        ] {
            let error = text.parse::<ProcessPath>().expect_err(text);
            assert!(error.to_string().contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn paths_are_ordered_as_programs_start() {
        let ordered = [
            "0", "0+1", "0.0", "0.0.5", "0@1", "0@1+1", "0.2", "0.10", "rank0", "rank0.1", "rank2",
            "rank10",
        ];
        let mut paths: Vec<ProcessPath> =
            ordered.iter().rev().map(|text| text.parse().expect(text)).collect();
        paths.sort();
        assert_eq!(paths.iter().map(ProcessPath::to_string).collect::<Vec<_>>(), ordered);
    }
}
