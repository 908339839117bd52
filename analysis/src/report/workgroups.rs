//! Rates by where in the grid a workgroup is.

use crate::{Known, Row, SampleDesign, ScopeSummary, Tallies};

/// Positions that are told apart: those of larger grids are put together in rectangles.
const MOST: usize = 1024;
/// Cells along each dimension.
const WIDEST: [u32; 3] = [64, 64, 8];

/// Counts by position in the grid.
#[derive(Debug)]
pub(super) struct Workgroups {
    /// By position; nothing is all of them.
    tallies: Tallies<Option<[u32; 3]>>,
    /// Powers of two: how many positions are one cell, along each dimension.
    shifts: [u32; 3],
    /// The greatest position.
    last: [u32; 3],
}

/// Rates by cell.
#[derive(Debug)]
pub(super) struct Grid {
    /// Positions that are one cell, along each dimension.
    pub step: [u64; 3],
    /// How many cells there are along each dimension, as far as any was struck.
    pub extent: [u64; 3],
    /// The cells in which there was an injection, by their index along each dimension.
    pub cells: Vec<ScopeSummary<[u32; 3]>>,
}

impl Workgroups {
    pub fn new(design: SampleDesign) -> Workgroups {
        Workgroups { tallies: Tallies::of_keys(design, None), shifts: [0; 3], last: [0; 3] }
    }

    pub fn count(&mut self, row: &Row) {
        let Some(workgroup) = row.workgroup else { return self.tallies.add_to([], row) };
        let position = workgroup.0;
        for (last, own) in self.last.iter_mut().zip(position) {
            *last = (*last).max(own);
        }
        self.tallies.add_to([Some(shifted(position, self.shifts))], row);
        let extents = |own: &Workgroups| shifted(own.last, own.shifts);
        while let Some(axis) = (0..3).find(|axis| extents(self)[*axis] >= WIDEST[*axis]) {
            self.halve(axis);
        }
        // One of the scopes is all of them.
        while self.tallies.scopes() > MOST + 1 {
            let extents = extents(self);
            self.halve((0..3).max_by_key(|axis| (extents[*axis], 3 - axis)).unwrap_or(0));
        }
    }

    /// Puts two cells together along a dimension.
    fn halve(&mut self, axis: usize) {
        let mut by = [0; 3];
        by[axis] = 1;
        self.shifts[axis] += 1;
        self.tallies.widen(|position| position.map(|position| shifted(position, by)));
    }

    pub fn grid(&self) -> Grid {
        let cell = |rates: ScopeSummary<Option<[u32; 3]>>| {
            let ScopeSummary { scope, total, weight, outcomes, causes } = rates;
            scope.map(|scope| ScopeSummary { scope, total, weight, outcomes, causes })
        };
        Grid {
            step: self.shifts.map(|shift| 1 << shift),
            extent: shifted(self.last, self.shifts).map(|last| u64::from(last) + 1),
            cells: self.tallies.summaries(|_| Known::default()).filter_map(cell).collect(),
        }
    }
}

fn shifted(position: [u32; 3], shifts: [u32; 3]) -> [u32; 3] {
    let axis = |axis: usize| position[axis].checked_shr(shifts[axis]).unwrap_or(0);
    [axis(0), axis(1), axis(2)]
}

impl Grid {
    /// The positions of a cell along a dimension: `12`, `12-15`.
    pub fn range(&self, cell: [u32; 3], axis: usize) -> String {
        let (step, first) = (self.step[axis], u64::from(cell[axis]) * self.step[axis]);
        match step {
            1 => first.to_string(),
            _ => format!("{first}-{}", first + step - 1),
        }
    }

    /// All of them: `12,3,0`, `12-15,0-3,0`.
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
            workgroups.count(&Row { workgroup, ..row("valu", Outcome::Sdc, None) });
        }
        workgroups.grid()
    }

    #[test]
    fn each_position_of_a_small_grid_is_a_cell() {
        let grid = grid((0..64).map(|number| [number % 8, number / 8, 0]));
        assert_eq!((grid.step, grid.extent, grid.cells.len()), ([1, 1, 1], [8, 8, 1], 64));
        assert_eq!(grid.position([3, 1, 0]), "3,1,0");
    }

    #[test]
    fn positions_of_a_large_grid_are_put_together_and_none_is_lost() {
        let count = 100_000;
        let large = grid((0..count).map(|number| [number % 1000, number / 1000, 0]));
        assert!(large.cells.len() <= MOST, "{}", large.cells.len());
        assert_eq!(large.cells.iter().map(|cell| cell.total).sum::<u64>(), u64::from(count));
        assert_eq!((large.step, large.extent), ([32, 4, 1], [32, 25, 1]));
        assert_eq!(large.position([1, 2, 0]), "32-63,8-11,0");
        let far = grid([[u32::MAX; 3], [0; 3]].into_iter());
        assert_eq!((far.extent, far.cells.len()), ([64, 64, 8], 2));
        let line = grid((0..4096).map(|number| [number, 0, 0]));
        assert_eq!((line.step, line.extent), ([64, 1, 1], [64, 1, 1]));
    }
}
