//! Fault masks with frequencies measured by a study, for instance in RTL simulation.

use crate::resolve::stream::Stream;
use std::num::NonZeroU64;

/// Masks of bits that faults invert together, with their frequencies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskDistribution {
    /// Name in messages: the file's name.
    name: String,
    /// Masks with cumulative counts, including the mask's own count.
    masks: Vec<(u32, u64)>,
    total: NonZeroU64,
}

/// Errors returned for invalid mask tables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MasksError {
    /// No mask has a count above zero.
    #[error("no mask has a count above 0")]
    Empty,
    /// A mask is zero.
    #[error("mask number {number} is 0; expected at least one bit")]
    NoBit {
        /// Number of the mask, from 1.
        number: usize,
    },
    /// The sum of the counts overflows.
    #[error("the counts add up to more than {}", u64::MAX)]
    TooMany,
}

impl MaskDistribution {
    /// Builds the distribution of masks with these counts.
    ///
    /// # Errors
    /// [`MasksError`].
    pub fn new(
        name: &str,
        counts: impl IntoIterator<Item = (u32, u64)>,
    ) -> Result<MaskDistribution, MasksError> {
        let mut masks = Vec::new();
        let mut total = 0u64;
        for (number, (mask, count)) in (1..).zip(counts) {
            if mask == 0 {
                return Err(MasksError::NoBit { number });
            }
            total = total.checked_add(count).ok_or(MasksError::TooMany)?;
            masks.push((mask, total));
        }
        let total = NonZeroU64::new(total).ok_or(MasksError::Empty)?;
        Ok(MaskDistribution { name: name.to_owned(), masks, total })
    }

    /// Name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Draws a mask with a probability proportional to its count.
    pub(crate) fn draw(&self, stream: &mut Stream) -> u32 {
        let number = stream.below(self.total);
        let at = self.masks.partition_point(|(_, up_to)| *up_to <= number);
        self.masks[at.min(self.masks.len() - 1)].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_drawn_in_proportion_to_their_counts() {
        let masks = [(0x1, 10), (0x3, 0), (0xff, 30)];
        let distribution = MaskDistribution::new("rtl.csv", masks).unwrap();
        let drawn: Vec<u32> =
            (0..4000).map(|index| distribution.draw(&mut Stream::new(1, index))).collect();
        let count = |mask| drawn.iter().filter(|drawn| **drawn == mask).count();
        assert_eq!(count(0x3), 0);
        assert_eq!(count(0x1) + count(0xff), 4000);
        assert!((900..1100).contains(&count(0x1)), "{}", count(0x1));
    }

    #[test]
    fn invalid_mask_tables_are_rejected() {
        let refused =
            |masks: &[(u32, u64)]| MaskDistribution::new("x", masks.iter().copied()).unwrap_err();
        assert_eq!(refused(&[]), MasksError::Empty);
        assert_eq!(refused(&[(1, 0)]), MasksError::Empty);
        assert_eq!(refused(&[(1, 1), (0, 1)]), MasksError::NoBit { number: 2 });
        assert_eq!(refused(&[(1, u64::MAX), (2, 1)]), MasksError::TooMany);
    }
}
