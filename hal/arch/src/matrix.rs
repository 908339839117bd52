//! Matrix products as sums whose parts can be observed.

use std::fmt;

/// A part of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SumPart {
    /// The element of C as it enters the sum, with its modifiers, in the type of the sum. There is
    /// one, at step 0.
    Accumulator,
    /// A product of an element of A and one of B, in the type of the sum. Step k is the k-th
    /// product of the sum, starting at 0; a sparse A has only products of its stored elements.
    Product,
    /// The partial sum that includes the products up to this step.
    PartialSum,
}

/// Data type of an operation's sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumType {
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// 32-bit integers.
    I32,
}

/// Position of an element of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MatrixElement {
    /// Number of the matrix among the independent blocks of an instruction, starting at 0.
    pub block: u8,
    /// Row in the matrix.
    pub row: u8,
    /// Column in the matrix.
    pub column: u8,
}

/// Dimensions of the product that a matrix instruction computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductShape {
    /// Number of independent matrices.
    pub blocks: u8,
    /// Rows of each matrix.
    pub rows: u8,
    /// Columns of each matrix.
    pub columns: u8,
    /// Products per sum.
    pub products: u8,
    /// Products that are added at a time: partial sums exist after each group, and after all
    /// products.
    pub group: u8,
    /// Data type of the sums.
    pub sum: SumType,
}

impl ProductShape {
    /// A square matrix of `size` rows and columns, with `products` products per sum.
    pub const fn square(size: usize, products: usize) -> ProductShape {
        let (size, products) = (size as u8, products as u8);
        let sum = SumType::F32;
        ProductShape { blocks: 1, rows: size, columns: size, products, group: 1, sum }
    }

    /// Returns `true` if the element lies in the result.
    pub fn has(&self, element: MatrixElement) -> bool {
        let MatrixElement { block, row, column } = element;
        block < self.blocks && row < self.rows && column < self.columns
    }

    /// Steps at which a sum has this part, in order.
    pub fn steps(&self, part: SumPart) -> impl Iterator<Item = u8> + use<> {
        let ProductShape { products, group, .. } = *self;
        let steps = if part == SumPart::Accumulator { 1 } else { products };
        (0..steps).filter(move |step| {
            part != SumPart::PartialSum || (step + 1) % group == 0 || step + 1 == products
        })
    }

    /// 32-bit words of a sum.
    pub fn words(&self) -> u8 {
        if self.sum == SumType::F64 { 2 } else { 1 }
    }
}

impl fmt::Display for ProductShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProductShape { blocks, rows, columns, products, group, .. } = self;
        write!(f, "{rows} rows, {columns} columns, {blocks} block(s), {products} products a sum")?;
        match group {
            1 => f.write_str(", each with a partial sum"),
            _ => write!(f, ", with a partial sum after each {group}"),
        }
    }
}
