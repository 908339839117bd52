//! Where a process is in its tree.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// The place of a program in the process tree of an application, which is the same in each run.
///
/// As text: `0` is the first process, `0.2` its third child. Processes of MPI ranks are counted from
/// the process that got the rank: `rank3`, and `rank3.0` for its first child. What a process became
/// by exec after it had started children says how many: `0@2`, as a shell becomes the last of its
/// commands. `0+1` is the second program in a process that opened a GPU.
///
/// Places are in the order in which programs start, if each child starts when it is born: ranks come
/// after all others, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// The MPI rank, if the process has one.
    pub rank: Option<u32>,
    /// Numbers among siblings, from the first process or from that of the rank to this one.
    pub path: Vec<u32>,
    /// Children that the process had started when it became the program.
    pub children: u32,
    /// Programs in the process that have opened a GPU before this one.
    pub program: u32,
}

impl Place {
    /// Numbers by which programs are ordered: a child is between the programs that its parent was
    /// before and after its birth.
    fn order(&self) -> impl Iterator<Item = u64> {
        let births = self.path.iter().map(|number| 2 * u64::from(*number) + 1);
        births.chain([2 * u64::from(self.children), self.program.into()])
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Place) -> Ordering {
        self.rank.cmp(&other.rank).then_with(|| self.order().cmp(other.order()))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Place) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Place {
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

/// A text that is no [`Place`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsePlaceError {
    /// The text.
    pub text: String,
}

impl fmt::Display for ParsePlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "invalid process `{}`: expected numbers such as `0.2` or a rank such as `rank3`",
            self.text
        )
    }
}

impl std::error::Error for ParsePlaceError {}

impl FromStr for Place {
    type Err = ParsePlaceError;

    fn from_str(text: &str) -> Result<Place, ParsePlaceError> {
        read(text).ok_or_else(|| ParsePlaceError { text: text.to_owned() })
    }
}

fn read(text: &str) -> Option<Place> {
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().ok())?
    };
    // A number behind a mark is never 0.
    let after = |text: &'_ str, mark: char| match text.split_once(mark) {
        Some((before, behind)) => Some((before.len(), number(behind).filter(|own| *own > 0)?)),
        None => Some((text.len(), 0)),
    };
    let (end, program) = after(text, '+')?;
    let text = &text[..end];
    let (end, children) = after(text, '@')?;
    let path = &text[..end];
    let mut parts = path.split('.').peekable();
    let rank = parts.peek().and_then(|first| first.strip_prefix("rank")).map(number);
    if rank.is_some() {
        parts.next();
    }
    let path = parts.map(number).collect::<Option<Vec<u32>>>()?;
    Some(Place { rank: rank.map_or(Some(None), |rank| rank.map(Some))?, path, children, program })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        for text in ["0", "0.2", "0.2+1", "rank3", "rank3.0.1", "rank0+2", "0@3+1", "0.2@1"] {
            let place: Place = text.parse().expect(text);
            assert_eq!(place.to_string(), text);
        }
        for text in [
            "", "0.", ".0", "rank", "rank-1", "0+0", "0+", "+1", "0.rank1", "0+1@1", "0@0", "a",
            "0 ",
        ] {
            let error = text.parse::<Place>().expect_err(text);
            assert!(error.to_string().contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn places_are_in_the_order_in_which_programs_start() {
        let ordered = [
            "0", "0+1", "0.0", "0.0.5", "0@1", "0@1+1", "0.2", "0.10", "rank0", "rank0.1", "rank2",
            "rank10",
        ];
        let mut places: Vec<Place> =
            ordered.iter().rev().map(|text| text.parse().expect(text)).collect();
        places.sort();
        assert_eq!(places.iter().map(Place::to_string).collect::<Vec<_>>(), ordered);
    }
}
