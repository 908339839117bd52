//! Parts of a campaign: shard 3 of 200, or a range of indices.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;
use std::str::FromStr;

/// A part of a campaign, as given by the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// One of several equal parts.
    Shard {
        /// Number of the shard, from 1.
        number: NonZeroU64,
        /// Number of shards.
        shards: NonZeroU64,
    },
    /// The injections with these indices.
    Indices(Range<u64>),
}

impl Part {
    /// Indices of the part in a campaign of `count` injections.
    pub fn indices(&self, count: u64) -> Range<u64> {
        match self {
            Part::Shard { number, shards } => {
                let wide = |number: u64| u128::from(count) * u128::from(number);
                // At most `count`, because `number` is at most `shards`.
                let start = |number: u64| (wide(number) / u128::from(shards.get())) as u64;
                start(number.get() - 1)..start(number.get())
            }
            Part::Indices(range) => range.start.min(count)..range.end.min(count),
        }
    }

    /// Indices of the part in each stage of a campaign whose stages end at these injection counts.
    /// A shard has a part of each stage, so that all shards work on the same stage.
    pub fn indices_by_stage(&self, ends: &[u64]) -> Vec<Range<u64>> {
        let starts = [0].into_iter().chain(ends.iter().copied());
        let stages = starts.zip(ends);
        let indices = |(start, end): (u64, &u64)| match self {
            Part::Shard { .. } => {
                let Range { start: first, end: last } = self.indices(end - start);
                start + first..start + last
            }
            Part::Indices(range) => range.start.max(start)..range.end.min(*end),
        };
        stages.map(indices).filter(|range| range.start < range.end).collect()
    }

    /// The part as a component of a file name.
    pub(super) fn label(&self) -> String {
        match self {
            Part::Shard { number, shards } => format!("{number}-of-{shards}"),
            Part::Indices(range) => format!("{}-to-{}", range.start, range.end),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Shard { number, shards } => write!(f, "{number}/{shards}"),
            Part::Indices(range) => write!(f, "{}..{}", range.start, range.end),
        }
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Part, String> {
        let invalid = || {
            format!(
                "invalid part of a campaign `{text}`; expected a shard such as `3/200` (the third of \
                 200), or a range of indices such as `1000..2000` (without the last)"
            )
        };
        if let Some((number, shards)) = text.split_once('/') {
            let parsed = number.parse::<NonZeroU64>().ok().zip(shards.parse::<NonZeroU64>().ok());
            let is_valid = |(number, shards): &(NonZeroU64, NonZeroU64)| number <= shards;
            let (number, shards) = parsed.filter(is_valid).ok_or_else(invalid)?;
            return Ok(Part::Shard { number, shards });
        }
        let ends = text
            .split_once("..")
            .and_then(|(start, end)| Some((start.parse::<u64>().ok()?, end.parse::<u64>().ok()?)));
        let (start, end) = ends.filter(|(start, end)| start < end).ok_or_else(invalid)?;
        Ok(Part::Indices(start..end))
    }
}

/// Parts of `part` that are in none of `ranges`, ascending.
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
    fn shards_cover_the_campaign_with_equal_parts() {
        for count in [0, 1, 7, 1000, u64::MAX] {
            for shards in [1, 3, 7, 200] {
                let mut end = 0;
                for number in 1..=shards {
                    let indices = part(&format!("{number}/{shards}")).indices(count);
                    assert_eq!(indices.start, end, "{number}/{shards} of {count}");
                    let length = indices.end - indices.start;
                    assert!(length.abs_diff(count / shards) <= 1, "{number}/{shards} of {count}");
                    end = indices.end;
                }
                assert_eq!(end, count, "{shards}");
            }
        }
    }

    #[test]
    fn shards_cover_each_stage() {
        let ends = [10, 15, 16, 1000];
        for shards in [1, 3, 7, 200] {
            let parts = (1..=shards).map(|number| part(&format!("{number}/{shards}")));
            let ranges: Vec<Range<u64>> =
                parts.flat_map(|part| part.indices_by_stage(&ends)).collect();
            let length: u64 = ranges.iter().map(|range| range.end - range.start).sum();
            assert_eq!((length, gaps(0..1000, ranges.clone())), (1000, Vec::new()), "{shards}");
            let spans_stages = |range: &Range<u64>| {
                ends.iter().any(|end| range.contains(end) && range.start != *end)
            };
            assert!(!ranges.iter().any(spans_stages), "{ranges:?}");
        }
        assert_eq!(part("5..20").indices_by_stage(&ends), [5..10, 10..15, 15..16, 16..20]);
        assert_eq!(part("15..17").indices_by_stage(&ends), [15..16, 16..17]);
        assert_eq!(part("2000..3000").indices_by_stage(&ends), []);
    }

    #[test]
    fn ranges_are_limited_to_the_campaign() {
        assert_eq!(part("10..20").indices(15), 10..15);
        assert_eq!(part("10..20").indices(5), 5..5);
        for text in ["3/200", "10..20"] {
            assert_eq!(part(text).to_string(), text);
        }
    }

    #[test]
    fn invalid_parts_are_rejected() {
        for text in ["", "0/3", "4/3", "3/0", "a/3", "3", "5..5", "6..5", "1..=2", "-1..3"] {
            let error = text.parse::<Part>().expect_err(text);
            assert!(error.contains(text) && error.contains("3/200"), "{error}");
        }
    }

    #[test]
    fn gaps_are_the_uncovered_ranges() {
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
