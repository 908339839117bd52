//! Line programs: the rows of each instruction, where it is now.

use super::Slice;
use crate::write::moved::{CodeMap, Run};
use gimli::write::{
    Address, ConvertLineProgram, ConvertLineSequence, ConvertLineSequenceEnd, ConvertResult,
    LineRow,
};

/// Makes the new program's rows. Every run of new code has the line of its instruction; old code
/// that has not moved keeps its own.
pub(super) fn convert(
    program: &mut ConvertLineProgram<'_, Slice<'_>>,
    map: &CodeMap,
) -> ConvertResult<()> {
    while let Some(sequence) = program.read_sequence()? {
        Sequence::new(sequence).convert(program, map);
    }
    Ok(())
}

/// Old rows of consecutive addresses.
struct Sequence {
    start: u64,
    end: u64,
    rows: Vec<LineRow>,
}

impl Sequence {
    fn new(sequence: ConvertLineSequence) -> Sequence {
        let start = sequence.start.unwrap_or(0);
        let end = match sequence.end {
            ConvertLineSequenceEnd::Length(length) => start.saturating_add(length),
            ConvertLineSequenceEnd::Address(address) => address,
        };
        let mut rows = sequence.rows;
        // Addresses must ascend, and a damaged program may say otherwise.
        rows.sort_by_key(|row| row.address_offset);
        Sequence { start, end, rows }
    }

    /// Number of rows up to and including an old address.
    fn rows_to(&self, old: u64) -> usize {
        self.rows.partition_point(|row| self.start.saturating_add(row.address_offset) <= old)
    }

    fn convert(&self, program: &mut ConvertLineProgram<'_, Slice<'_>>, map: &CodeMap) {
        let runs = map.within(self.start..self.end);
        if !map.is_gone(self.start..self.end) {
            self.keep(program);
        }
        // Each run with the rows that begin at its instruction, or inside the one before.
        let mut next = 0;
        let mut parts: Vec<(&Run, &[LineRow])> = Vec::with_capacity(runs.len());
        for run in runs {
            let first = next;
            next = self.rows_to(run.old);
            parts.push((run, self.rows.get(first..next).unwrap_or_default()));
        }
        parts.sort_by_key(|(run, _)| (run.new.start, run.new.end));
        let mut open: Option<Open> = None;
        for (run, rows) in parts {
            // The row in effect at the instruction.
            let Some(line) = self.rows_to(run.old).checked_sub(1) else { continue };
            if open.as_ref().is_none_or(|open| open.end != run.new.start) {
                if let Some(open) = open.take() {
                    open.close(program);
                }
                open = Some(Open::new(program, run.new.start));
            }
            let Some(open) = &mut open else { continue };
            if rows.is_empty() && open.line != Some(line) {
                // It goes on after other code.
                let row = self.rows.get(line).copied();
                let row =
                    row.map(|row| LineRow { prologue_end: false, epilogue_begin: false, ..row });
                row.into_iter().for_each(|row| open.row(program, row, run.new.start));
            }
            rows.iter().for_each(|row| open.row(program, *row, run.new.start));
            open.line = Some(line);
            open.end = run.new.end;
        }
        if let Some(open) = open {
            open.close(program);
        }
    }

    /// Rows of addresses that are still there.
    fn keep(&self, program: &mut ConvertLineProgram<'_, Slice<'_>>) {
        let mut open = Open::new(program, self.start);
        open.end = self.end.max(self.start);
        for row in &self.rows {
            let address = self.start.saturating_add(row.address_offset);
            open.row(program, *row, address);
            open.end = open.end.max(address);
        }
        open.close(program);
    }
}

/// A sequence being written.
struct Open {
    start: u64,
    end: u64,
    /// The row in effect at its end.
    line: Option<usize>,
}

impl Open {
    fn new(program: &mut ConvertLineProgram<'_, Slice<'_>>, start: u64) -> Open {
        program.begin_sequence(Some(Address::Constant(start)));
        Open { start, end: start, line: None }
    }

    fn row(&self, program: &mut ConvertLineProgram<'_, Slice<'_>>, row: LineRow, address: u64) {
        program.generate_row(LineRow { address_offset: address - self.start, op_index: 0, ..row });
    }

    fn close(self, program: &mut ConvertLineProgram<'_, Slice<'_>>) {
        program.end_sequence(self.end - self.start);
    }
}
