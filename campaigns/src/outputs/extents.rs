//! Dimensions of outputs, and where in them the wrong elements lie.

use flipwave_analysis::ErrorShape;
use std::fmt;

/// Dimensions of an output, one to three: row-major, the last index of neighbours in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
    /// Elements in each dimension; 1 in those before the first.
    all: [u64; 3],
    /// How many dimensions there are.
    rank: usize,
}

impl Extents {
    /// Dimensions as a campaign file writes them.
    ///
    /// # Errors
    /// Says what is expected in their place.
    pub(crate) fn new(dimensions: &[u64]) -> Result<Extents, String> {
        let rank = dimensions.len();
        if !(1..=3).contains(&rank) {
            return Err(format!("{rank} dimensions; expected 1 to 3"));
        }
        if dimensions.contains(&0) {
            return Err("is 0 in a dimension; expected at least 1 element".to_owned());
        }
        let mut all = [1; 3];
        all[3 - rank..].copy_from_slice(dimensions);
        Ok(Extents { all, rank })
    }

    /// Elements in each dimension.
    pub fn dimensions(&self) -> &[u64] {
        &self.all[3 - self.rank..]
    }

    /// Whether they are those of so many elements.
    ///
    /// # Errors
    /// Says how many they are of.
    pub(crate) fn check(&self, count: u64) -> Result<(), String> {
        let product = self.all.iter().fold(1_u64, |product, own| product.saturating_mul(*own));
        match product == count {
            true => Ok(()),
            false => Err(format!("{self} is {product} elements, and there are {count}")),
        }
    }

    /// The indices of an element.
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

/// The wrong elements of an output: how many, and the box around them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrongBox {
    extents: Extents,
    count: u64,
    least: [u64; 3],
    most: [u64; 3],
}

impl WrongBox {
    /// No element yet.
    pub fn new(extents: Extents) -> WrongBox {
        WrongBox { extents, count: 0, least: [u64::MAX; 3], most: [0; 3] }
    }

    /// One more.
    pub fn add(&mut self, element: u64) {
        self.count += 1;
        for (axis, index) in self.extents.indices(element).into_iter().enumerate() {
            self.least[axis] = self.least[axis].min(index);
            self.most[axis] = self.most[axis].max(index);
        }
    }

    /// The shape that they have; nothing without elements. Which one depends on how many indices differ
    /// and on how much of the box is wrong, so that every set of elements has exactly one.
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
            let element =
                indices.iter().zip(dimensions).fold(0, |sum, (index, own)| sum * own + index);
            wrong.add(element);
        }
        wrong.shape()
    }

    /// No two edges are the same, so that exchanged indices give another shape.
    #[test]
    fn planted_patterns_of_two_dimensions_have_their_shape() {
        let flat = |elements: &[&[u64]]| shape(&[3, 5], elements);
        assert_eq!(flat(&[]), None);
        assert_eq!(flat(&[&[2, 4]]), Some(ErrorShape::Single));
        assert_eq!(flat(&[&[1, 0], &[1, 4]]), Some(ErrorShape::Row));
        assert_eq!(flat(&[&[0, 3], &[1, 3], &[2, 3]]), Some(ErrorShape::Column));
        assert_eq!(flat(&[&[0, 3], &[0, 4], &[1, 3], &[1, 4]]), Some(ErrorShape::Block));
        // Neighbours in memory, at the end of one row and the beginning of the next.
        assert_eq!(flat(&[&[0, 4], &[1, 0]]), Some(ErrorShape::Random));
    }

    #[test]
    fn planted_patterns_of_three_dimensions_have_their_shape() {
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
            // Two corners of a plane are half of it.
            let corners = block.each_ref().map(|own| own.as_slice());
            assert_eq!(deep(&corners), Some(ErrorShape::Block), "{axes}");
        }
        let corners: Vec<[u64; 3]> =
            (0..8).map(|corner| [corner / 4, corner / 2 % 2, corner % 2]).collect();
        let some = |count: usize| {
            let own: Vec<&[u64]> = corners.iter().rev().take(count).map(|own| &own[..]).collect();
            deep(&own)
        };
        assert_eq!(some(8), Some(ErrorShape::Cubic));
        assert_eq!(some(5), Some(ErrorShape::Cubic));
        assert_eq!(deep(&[&[0, 0, 0], &[1, 1, 1]]), Some(ErrorShape::Random));
    }

    #[test]
    fn half_of_the_box_is_the_line_between_block_and_random() {
        let three = [&[0, 0][..], &[1, 1], &[0, 2]];
        assert_eq!(shape(&[4, 8], &three), Some(ErrorShape::Block), "3 of 6");
        let wider = [&[0, 0][..], &[1, 1], &[0, 3]];
        assert_eq!(shape(&[4, 8], &wider), Some(ErrorShape::Random), "3 of 8");
    }

    #[test]
    fn what_has_one_dimension_is_a_row() {
        assert_eq!(shape(&[9], &[&[0], &[8]]), Some(ErrorShape::Row));
    }

    #[test]
    fn dimensions_that_cannot_be_are_refused() {
        for (dimensions, said) in
            [(&[][..], "0 dimensions"), (&[2, 2, 2, 2], "4 dimensions"), (&[4, 0], "is 0")]
        {
            let error = Extents::new(dimensions).expect_err("not possible");
            assert!(error.contains(said), "{error}");
        }
        let extents = Extents::new(&[4, 5]).expect("dimensions");
        assert_eq!(extents.check(20), Ok(()));
        assert_eq!(extents.check(21), Err("4 x 5 is 20 elements, and there are 21".to_owned()));
        let huge = Extents::new(&[u64::MAX, 2]).expect("dimensions");
        assert!(huge.check(u64::MAX - 1).is_err());
    }
}
