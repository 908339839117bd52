//! Dimensions of outputs, and the shape of wrong elements in them.

use flipwave_analysis::ErrorShape;
use std::fmt;

/// One to three dimensions of an output in row-major order: the last index is contiguous in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
    /// Elements in each dimension, preceded by 1 for missing dimensions.
    all: [u64; 3],
    /// Number of dimensions.
    rank: usize,
}

impl Extents {
    /// Checks the dimensions in a campaign file.
    ///
    /// # Errors
    /// A message with the expected values.
    pub(crate) fn new(dimensions: &[u64]) -> Result<Extents, String> {
        let rank = dimensions.len();
        if !(1..=3).contains(&rank) {
            return Err(format!("{rank} dimensions; expected 1 to 3"));
        }
        if dimensions.contains(&0) {
            return Err("a dimension is 0; expected at least 1 element".to_owned());
        }
        let mut all = [1; 3];
        all[3 - rank..].copy_from_slice(dimensions);
        Ok(Extents { all, rank })
    }

    /// Elements in each dimension.
    pub fn dimensions(&self) -> &[u64] {
        &self.all[3 - self.rank..]
    }

    /// Checks that the dimensions have `count` elements.
    ///
    /// # Errors
    /// A message with their number of elements.
    pub(crate) fn check(&self, count: u64) -> Result<(), String> {
        let product =
            self.all.iter().fold(1_u64, |product, extent| product.saturating_mul(*extent));
        if product == count {
            Ok(())
        } else {
            Err(format!("{self} is {product} elements, but the output has {count}"))
        }
    }

    /// Indices of an element in the dimensions.
    fn indices(&self, element: u64) -> [u64; 3] {
        let [_, rows, columns] = self.all;
        let row = element / columns;
        [row / rows, row % rows, element % columns]
    }
}

impl fmt::Display for Extents {
    /// `64 x 128`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.dimensions().iter().map(u64::to_string).collect();
        f.write_str(&words.join(" x "))
    }
}

/// Number of wrong elements of an output, and their bounding box.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrongBox {
    extents: Extents,
    count: u64,
    least: [u64; 3],
    most: [u64; 3],
}

impl WrongBox {
    /// Creates an empty set of elements.
    pub fn new(extents: Extents) -> WrongBox {
        WrongBox { extents, count: 0, least: [u64::MAX; 3], most: [0; 3] }
    }

    /// Adds an element.
    pub fn add(&mut self, element: u64) {
        self.count += 1;
        for (axis, index) in self.extents.indices(element).into_iter().enumerate() {
            self.least[axis] = self.least[axis].min(index);
            self.most[axis] = self.most[axis].max(index);
        }
    }

    /// Shape of the elements; `None` without elements. It depends on the number of indices that
    /// differ and on the wrong fraction of the bounding box, so every set of elements has exactly
    /// one shape.
    pub fn shape(&self) -> Option<ErrorShape> {
        if self.count == 0 {
            return None;
        }
        let edges: [u64; 3] = std::array::from_fn(|axis| self.most[axis] - self.least[axis] + 1);
        let volume: u128 = edges.iter().map(|edge| u128::from(*edge)).product();
        let is_dense = 2 * u128::from(self.count) >= volume;
        Some(match edges.map(|edge| edge > 1) {
            [false, false, false] => ErrorShape::Single,
            [false, false, true] => ErrorShape::Row,
            [false, true, false] => ErrorShape::Column,
            [true, false, false] => ErrorShape::Pillar,
            _ if !is_dense => ErrorShape::Random,
            [true, true, true] => ErrorShape::Cubic,
            _ => ErrorShape::Block,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dimensions: &[u64], elements: &[&[u64]]) -> Option<ErrorShape> {
        let extents = Extents::new(dimensions).expect("dimensions");
        let mut wrong = WrongBox::new(extents);
        for indices in elements {
            let pairs = indices.iter().zip(dimensions);
            wrong.add(pairs.fold(0, |sum, (index, extent)| sum * extent + index));
        }
        wrong.shape()
    }

    /// The extents differ, so exchanged indices would give another shape.
    #[test]
    fn shapes_in_two_dimensions() {
        let flat = |elements: &[&[u64]]| shape(&[3, 5], elements);
        assert_eq!(flat(&[]), None);
        assert_eq!(flat(&[&[2, 4]]), Some(ErrorShape::Single));
        assert_eq!(flat(&[&[1, 0], &[1, 4]]), Some(ErrorShape::Row));
        assert_eq!(flat(&[&[0, 3], &[1, 3], &[2, 3]]), Some(ErrorShape::Column));
        assert_eq!(flat(&[&[0, 3], &[0, 4], &[1, 3], &[1, 4]]), Some(ErrorShape::Block));
        // Adjacent in memory: the end of one row and the beginning of the next.
        assert_eq!(flat(&[&[0, 4], &[1, 0]]), Some(ErrorShape::Random));
    }

    #[test]
    fn shapes_in_three_dimensions() {
        let deep = |elements: &[&[u64]]| shape(&[2, 3, 5], elements);
        assert_eq!(deep(&[&[1, 2, 4]]), Some(ErrorShape::Single));
        assert_eq!(deep(&[&[1, 2, 0], &[1, 2, 4]]), Some(ErrorShape::Row));
        assert_eq!(deep(&[&[1, 0, 4], &[1, 2, 4]]), Some(ErrorShape::Column));
        assert_eq!(deep(&[&[0, 2, 3], &[1, 2, 3]]), Some(ErrorShape::Pillar));
        for (axes, block) in [
            ("last two", [[1, 1, 1], [1, 2, 2]]),
            ("first and last", [[0, 1, 1], [1, 1, 2]]),
            ("first two", [[0, 1, 1], [1, 2, 1]]),
        ] {
            // Two corners are half of a plane of four elements.
            let corners = block.each_ref().map(|corner| corner.as_slice());
            assert_eq!(deep(&corners), Some(ErrorShape::Block), "{axes}");
        }
        let corners: Vec<[u64; 3]> =
            (0..8).map(|corner| [corner / 4, corner / 2 % 2, corner % 2]).collect();
        let last_corners = |count: usize| {
            let last = corners.iter().rev().take(count);
            deep(&last.map(|corner| &corner[..]).collect::<Vec<_>>())
        };
        assert_eq!(last_corners(8), Some(ErrorShape::Cubic));
        assert_eq!(last_corners(5), Some(ErrorShape::Cubic));
        assert_eq!(deep(&[&[0, 0, 0], &[1, 1, 1]]), Some(ErrorShape::Random));
    }

    #[test]
    fn blocks_fill_at_least_half_of_the_box() {
        let three = [&[0, 0][..], &[1, 1], &[0, 2]];
        assert_eq!(shape(&[4, 8], &three), Some(ErrorShape::Block), "3 of 6");
        let wider = [&[0, 0][..], &[1, 1], &[0, 3]];
        assert_eq!(shape(&[4, 8], &wider), Some(ErrorShape::Random), "3 of 8");
    }

    #[test]
    fn elements_in_one_dimension_are_a_row() {
        assert_eq!(shape(&[9], &[&[0], &[8]]), Some(ErrorShape::Row));
    }

    #[test]
    fn invalid_dimensions_are_rejected() {
        for (dimensions, message) in
            [(&[][..], "0 dimensions"), (&[2, 2, 2, 2], "4 dimensions"), (&[4, 0], "is 0")]
        {
            let error = Extents::new(dimensions).expect_err("invalid dimensions");
            assert!(error.contains(message), "{error}");
        }
        let extents = Extents::new(&[4, 5]).expect("dimensions");
        assert_eq!(extents.check(20), Ok(()));
        assert_eq!(
            extents.check(21),
            Err("4 x 5 is 20 elements, but the output has 21".to_owned())
        );
        let huge = Extents::new(&[u64::MAX, 2]).expect("dimensions");
        assert!(huge.check(u64::MAX - 1).is_err());
    }
}
