//! Parts of a campaign: shard 3 of 200, or a range of injections.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;
use std::str::FromStr;

/// A part of a campaign, as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// One of equal parts.
    Shard {
        /// Which, from 1.
        number: NonZeroU64,
        /// How many there are.
        of: NonZeroU64,
    },
    /// The injections with these indices.
    Indices(Range<u64>),
}

impl Part {
    /// The indices of the part in a campaign of `count` injections; none beyond its end.
    pub fn indices(&self, count: u64) -> Range<u64> {
        match self {
            Part::Shard { number, of } => {
                let wide = |number: u64| u128::from(count) * u128::from(number);
                // At most `count`, as the number is at most how many there are.
                let start = |number: u64| (wide(number) / u128::from(of.get())) as u64;
                start(number.get() - 1)..start(number.get())
            }
            Part::Indices(range) => range.start.min(count)..range.end.min(count),
        }
    }

    /// The indices of the part in a campaign whose stages end at these numbers of injections, stage by
    /// stage. A shard has its part of each stage, so that all work on the first one together, then on
    /// the second.
    pub fn of_stages(&self, ends: &[u64]) -> Vec<Range<u64>> {
        let starts = [0].into_iter().chain(ends.iter().copied());
        let stages = starts.zip(ends);
        let own = |(start, end): (u64, &u64)| match self {
            Part::Shard { .. } => {
                let Range { start: first, end: last } = self.indices(end - start);
                start + first..start + last
            }
            Part::Indices(range) => range.start.max(start)..range.end.min(*end),
        };
        stages.map(own).filter(|range| range.start < range.end).collect()
    }

    /// The part as it can be in a file's name.
    pub(super) fn label(&self) -> String {
        match self {
            Part::Shard { number, of } => format!("{number}-of-{of}"),
            Part::Indices(range) => format!("{}-to-{}", range.start, range.end),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Shard { number, of } => write!(f, "{number}/{of}"),
            Part::Indices(range) => write!(f, "{}..{}", range.start, range.end),
        }
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Part, String> {
        let wrong = || {
            format!(
                "`{text}` is no part of a campaign; expected a shard, `3/200` for the third of 200, \
                 or a range of injections, `1000..2000` without the last"
            )
        };
        if let Some((number, of)) = text.split_once('/') {
            let parsed = number.parse::<NonZeroU64>().ok().zip(of.parse::<NonZeroU64>().ok());
            let (number, of) = parsed.filter(|(number, of)| number <= of).ok_or_else(wrong)?;
            return Ok(Part::Shard { number, of });
        }
        let ends = text
            .split_once("..")
            .and_then(|(start, end)| Some((start.parse::<u64>().ok()?, end.parse::<u64>().ok()?)));
        let (start, end) = ends.filter(|(start, end)| start < end).ok_or_else(wrong)?;
        Ok(Part::Indices(start..end))
    }
}

/// What of `part` is in none of `ranges`, in ascending order.
pub(super) fn gaps(
    part: Range<u64>,
    ranges: impl IntoIterator<Item = Range<u64>>,
) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = ranges.into_iter().collect();
    ranges.sort_unstable_by_key(|range| range.start);
    let (mut gaps, mut next) = (Vec::new(), part.start);
    for range in ranges {
        if range.start.min(part.end) > next {
            gaps.push(next..range.start.min(part.end));
        }
        next = next.max(range.end);
    }
    if next < part.end {
        gaps.push(next..part.end);
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> Part {
        text.parse().expect(text)
    }

    #[test]
    fn shards_are_the_whole_campaign_however_many_there_are() {
        for count in [0, 1, 7, 1000, u64::MAX] {
            for of in [1, 3, 7, 200] {
                let mut end = 0;
                for number in 1..=of {
                    let own = part(&format!("{number}/{of}")).indices(count);
                    assert_eq!(own.start, end, "{number}/{of} of {count}");
                    let length = own.end - own.start;
                    assert!(length.abs_diff(count / of) <= 1, "{number}/{of} of {count}");
                    end = own.end;
                }
                assert_eq!(end, count, "{of}");
            }
        }
    }

    #[test]
    fn shards_of_stages_are_the_whole_campaign_too() {
        let ends = [10, 15, 16, 1000];
        for of in [1, 3, 7, 200] {
            let all = (1..=of).flat_map(|number| part(&format!("{number}/{of}")).of_stages(&ends));
            let all: Vec<Range<u64>> = all.collect();
            let length: u64 = all.iter().map(|own| own.end - own.start).sum();
            assert_eq!((length, gaps(0..1000, all.clone())), (1000, Vec::new()), "{of}");
            let is_cut =
                |own: &Range<u64>| ends.iter().any(|end| own.contains(end) && own.start != *end);
            assert!(!all.iter().any(is_cut), "{all:?}");
        }
        assert_eq!(part("5..20").of_stages(&ends), [5..10, 10..15, 15..16, 16..20]);
        assert_eq!(part("15..17").of_stages(&ends), [15..16, 16..17]);
        assert_eq!(part("2000..3000").of_stages(&ends), []);
    }

    #[test]
    fn ranges_end_where_the_campaign_does() {
        assert_eq!(part("10..20").indices(15), 10..15);
        assert_eq!(part("10..20").indices(5), 5..5);
        for text in ["3/200", "10..20"] {
            assert_eq!(part(text).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_part_is_refused() {
        for text in ["", "0/3", "4/3", "3/0", "a/3", "3", "5..5", "6..5", "1..=2", "-1..3"] {
            let error = text.parse::<Part>().expect_err(text);
            assert!(error.contains(text) && error.contains("3/200"), "{error}");
        }
    }

    #[test]
    fn gaps_are_what_nothing_covers() {
        let found = |(start, end), ranges: &[(u64, u64)]| -> Vec<(u64, u64)> {
            let ranges = ranges.iter().map(|(start, end)| *start..*end);
            gaps(start..end, ranges).into_iter().map(|gap| (gap.start, gap.end)).collect()
        };
        assert_eq!(found((0, 10), &[]), [(0, 10)]);
        assert_eq!(found((0, 10), &[(0, 10)]), []);
        assert_eq!(found((2, 10), &[(8, 20), (0, 3), (4, 6), (5, 7)]), [(3, 4), (7, 8)]);
        assert_eq!(found((2, 10), &[(20, 30)]), [(2, 10)]);
        assert_eq!(found((5, 5), &[]), []);
    }
}
