//! Rates by the position of the workgroup in the grid.

use crate::{PrunedSites, Row, SampleDesign, ScopeSummary, Tallies};

/// Most cells. The positions of a larger grid are grouped into boxes.
const MAX_CELLS: usize = 1024;
/// Most cells along each dimension.
const MAX_EXTENT: [u32; 3] = [64, 64, 8];

/// Counts by position in the grid.
#[derive(Debug)]
pub(super) struct Workgroups {
    /// Counts by cell; `None` is the scope of all injections.
    tallies: Tallies<Option<[u32; 3]>>,
    /// Binary logarithms of the positions per cell along each dimension.
    shifts: [u32; 3],
    /// Largest position along each dimension.
    last: [u32; 3],
}

/// Rates by cell of the grid.
#[derive(Debug)]
pub(super) struct Grid {
    /// Positions per cell along each dimension.
    pub step: [u64; 3],
    /// Number of cells along each dimension, up to the last cell with injections.
    pub extent: [u64; 3],
    /// Cells with injections, identified by their indices along each dimension.
    pub cells: Vec<ScopeSummary<[u32; 3]>>,
}

impl Workgroups {
    pub fn new(design: SampleDesign) -> Workgroups {
        Workgroups { tallies: Tallies::with_keys(design, None), shifts: [0; 3], last: [0; 3] }
    }

    /// Counts a row, and merges cells if there are too many.
    pub fn add(&mut self, row: &Row) {
        let Some(workgroup) = row.workgroup else { return self.tallies.add_to([], row) };
        let position = workgroup.0;
        for (last, coordinate) in self.last.iter_mut().zip(position) {
            *last = (*last).max(coordinate);
        }
        self.tallies.add_to([Some(shifted(position, self.shifts))], row);
        while let Some(axis) = (0..3).find(|axis| self.last_cell()[*axis] >= MAX_EXTENT[*axis]) {
            self.halve(axis);
        }
        // One of the scopes is that of all injections.
        while self.tallies.scope_count() > MAX_CELLS + 1 {
            let last = self.last_cell();
            self.halve((0..3).max_by_key(|axis| (last[*axis], 3 - axis)).unwrap_or(0));
        }
    }

    fn last_cell(&self) -> [u32; 3] {
        shifted(self.last, self.shifts)
    }

    /// Merges neighbouring cells along a dimension.
    fn halve(&mut self, axis: usize) {
        let mut shifts = [0; 3];
        shifts[axis] = 1;
        self.shifts[axis] += 1;
        self.tallies.merge_scopes(|cell| cell.map(|cell| shifted(cell, shifts)));
    }

    /// Rates by cell.
    pub fn grid(&self) -> Grid {
        let cell = |rates: ScopeSummary<Option<[u32; 3]>>| {
            let ScopeSummary { scope, total, weight, outcomes, causes } = rates;
            scope.map(|scope| ScopeSummary { scope, total, weight, outcomes, causes })
        };
        Grid {
            step: self.shifts.map(|shift| 1 << shift),
            extent: self.last_cell().map(|last| u64::from(last) + 1),
            cells: self.tallies.summaries(|_| PrunedSites::default()).filter_map(cell).collect(),
        }
    }
}

/// Shifts each coordinate to the right.
fn shifted(position: [u32; 3], shifts: [u32; 3]) -> [u32; 3] {
    [0, 1, 2].map(|axis| position[axis].checked_shr(shifts[axis]).unwrap_or(0))
}

impl Grid {
    /// Positions of a cell along one dimension: `12`, `12-15`.
    pub fn range(&self, cell: [u32; 3], axis: usize) -> String {
        let (step, first) = (self.step[axis], u64::from(cell[axis]) * self.step[axis]);
        match step {
            1 => first.to_string(),
            _ => format!("{first}-{}", first + step - 1),
        }
    }

    /// Positions of a cell along all dimensions: `12,3,0`, `12-15,0-3,0`.
    pub fn position(&self, cell: [u32; 3]) -> String {
        [0, 1, 2].map(|axis| self.range(cell, axis)).join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::row;
    use crate::{Confidence, Outcome, Workgroup};

    fn grid(positions: impl Iterator<Item = [u32; 3]>) -> Grid {
        let mut workgroups = Workgroups::new(SampleDesign::simple(Confidence::P95));
        for position in positions {
            let workgroup = Some(Workgroup(position));
            workgroups.add(&Row { workgroup, ..row("valu", Outcome::Sdc, None) });
        }
        workgroups.grid()
    }

    #[test]
    fn small_grid_has_a_cell_for_each_position() {
        let grid = grid((0..64).map(|number| [number % 8, number / 8, 0]));
        assert_eq!((grid.step, grid.extent, grid.cells.len()), ([1, 1, 1], [8, 8, 1], 64));
        assert_eq!(grid.position([3, 1, 0]), "3,1,0");
    }

    #[test]
    fn large_grid_is_grouped_into_cells_without_losing_rows() {
        let count = 100_000;
        let large = grid((0..count).map(|number| [number % 1000, number / 1000, 0]));
        assert!(large.cells.len() <= MAX_CELLS, "{}", large.cells.len());
        assert_eq!(large.cells.iter().map(|cell| cell.total).sum::<u64>(), u64::from(count));
        assert_eq!((large.step, large.extent), ([32, 4, 1], [32, 25, 1]));
        assert_eq!(large.position([1, 2, 0]), "32-63,8-11,0");
        let far = grid([[u32::MAX; 3], [0; 3]].into_iter());
        assert_eq!((far.extent, far.cells.len()), ([64, 64, 8], 2));
        let line = grid((0..4096).map(|number| [number, 0, 0]));
        assert_eq!((line.step, line.extent), ([64, 1, 1], [64, 1, 1]));
    }
}
