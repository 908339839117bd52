//! Products of warpgroups. They are complete before the next instruction: that is one of the orders that the
//! manual allows.

use super::Reach;
use super::access::Location;
use crate::compute::{LANES, Operands, Row, low, value};
use crate::program::{Descriptor, MemorySpace, SharedMatrix, WarpgroupLeft, WarpgroupProduct};
use flipwave_device::{AccessKind, FaultCause};
use flipwave_ptx::MatrixType;

/// Rows of A that a wave multiplies.
const ROWS: usize = 16;

/// Columns of B that are multiplied together.
const COLUMNS: usize = 8;

impl Reach<'_> {
    /// Computes the rows of this wave.
    pub fn warpgroup(&mut self, product: &WarpgroupProduct, lanes: u32) -> Result<(), FaultCause> {
        let form = product.form.part;
        let [_, a, b, _] = form.types;
        let products = form.products;
        let mut left = match &product.left {
            WarpgroupLeft::Registers { sources, .. } => {
                let rows: Vec<Row> = sources.iter().map(|source| self.row(*source)).collect();
                Operands::new(form, &rows).left().to_vec()
            }
            WarpgroupLeft::Shared(matrix) => {
                let first = ROWS * (self.wave.id.wave % 4) as usize;
                self.shared_matrix(*matrix, a, first..first + ROWS, products)?
            }
        };
        if matches!(product.left, WarpgroupLeft::Registers { is_negated: true, .. }) {
            left.iter_mut().for_each(|element| *element = -*element);
        }
        let columns = self.shared_matrix(product.right, b, 0..product.form.columns, products)?;
        let accumulates = self.row(product.accumulates)[0] != 0;
        let per_part = product.destinations.len() * COLUMNS / product.form.columns;
        let mut operands = Operands::of_left(form, left);
        let parts = columns.chunks_exact(COLUMNS * products);
        for (columns, destinations) in parts.zip(product.destinations.chunks_exact(per_part)) {
            let mut right = vec![0.0; products * COLUMNS];
            for (column, factors) in columns.chunks_exact(products).enumerate() {
                for (row, factor) in factors.iter().enumerate() {
                    right[row * COLUMNS + column] = *factor;
                }
            }
            let accumulator = |destination: &crate::program::Destination| match destination.source()
            {
                Some(source) if accumulates => self.row(source),
                _ => [0; LANES],
            };
            let accumulators = destinations.iter().map(accumulator).collect();
            operands.set_columns(right, accumulators);
            let mut results = vec![[0; LANES]; per_part];
            operands.compute(&mut results);
            for (destination, row) in destinations.iter().zip(&results) {
                self.wave.registers.write(*destination, lanes, row);
            }
        }
        Ok(())
    }

    /// Elements of rows of A or of columns of B, each with its factors.
    fn shared_matrix(
        &mut self,
        matrix: SharedMatrix,
        kind: MatrixType,
        outer: std::ops::Range<usize>,
        products: usize,
    ) -> Result<Vec<f64>, FaultCause> {
        let descriptor = Descriptor::of(self.row(matrix.descriptor)[0]);
        let bytes = u64::from(kind.bits() / 8);
        let mut all = Vec::with_capacity(outer.len() * products);
        for outer in outer {
            for inner in 0..products {
                let (outer, inner) = (outer as u64, inner as u64);
                let address = descriptor.address(outer, inner, bytes, matrix.is_transposed);
                let location = Location { space: MemorySpace::Shared, address };
                let bits = self.read_at(location, bytes, 0, AccessKind::Read)?;
                let element = value(kind, bits & low(kind.bits()));
                all.push(if matrix.is_negated { -element } else { element });
            }
        }
        Ok(all)
    }
}
