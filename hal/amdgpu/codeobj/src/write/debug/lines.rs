//! Conversion of line programs.

use super::Slice;
use crate::write::moved::{CodeMap, Run};
use gimli::write::{
    Address, ConvertLineProgram, ConvertLineSequence, ConvertLineSequenceEnd, ConvertResult,
    LineRow,
};

/// Generates the rows of the new line program. Each run of new code has the line of its instruction;
/// old code that has not moved keeps its lines.
pub(super) fn convert(
    program: &mut ConvertLineProgram<'_, Slice<'_>>,
    map: &CodeMap,
) -> ConvertResult<()> {
    while let Some(sequence) = program.read_sequence()? {
        Sequence::new(sequence).convert(program, map);
    }
    Ok(())
}

/// A sequence of the old line program: rows of contiguous code.
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
        // Damaged programs may have descending addresses.
        rows.sort_by_key(|row| row.address_offset);
        Sequence { start, end, rows }
    }

    /// Number of rows at or before an old address.
    fn rows_up_to(&self, old: u64) -> usize {
        self.rows.partition_point(|row| self.start.saturating_add(row.address_offset) <= old)
    }

    fn convert(&self, program: &mut ConvertLineProgram<'_, Slice<'_>>, map: &CodeMap) {
        let runs = map.runs_of(self.start..self.end);
        if !map.is_replaced(self.start..self.end) {
            self.copy(program);
        }
        // Each run with the rows between the preceding instruction and its own, inclusive.
        let mut next = 0;
        let mut parts: Vec<(&Run, &[LineRow])> = Vec::with_capacity(runs.len());
        for run in runs {
            let first = next;
            next = self.rows_up_to(run.old);
            parts.push((run, self.rows.get(first..next).unwrap_or_default()));
        }
        parts.sort_by_key(|(run, _)| (run.new.start, run.new.end));
        let mut output: Option<OutputSequence> = None;
        for (run, rows) in parts {
            // The row in effect at the instruction.
            let Some(current_row) = self.rows_up_to(run.old).checked_sub(1) else { continue };
            if output.as_ref().is_none_or(|output| output.end != run.new.start) {
                if let Some(finished) = output.take() {
                    finished.finish(program);
                }
                output = Some(OutputSequence::new(program, run.new.start));
            }
            let Some(output) = &mut output else { continue };
            if rows.is_empty() && output.last_row != Some(current_row) {
                // The row continues after code of another row.
                let row = self.rows.get(current_row).copied();
                let row =
                    row.map(|row| LineRow { prologue_end: false, epilogue_begin: false, ..row });
                row.into_iter().for_each(|row| output.row(program, row, run.new.start));
            }
            rows.iter().for_each(|row| output.row(program, *row, run.new.start));
            output.last_row = Some(current_row);
            output.end = run.new.end;
        }
        if let Some(output) = output {
            output.finish(program);
        }
    }

    /// Copies the rows unchanged.
    fn copy(&self, program: &mut ConvertLineProgram<'_, Slice<'_>>) {
        let mut output = OutputSequence::new(program, self.start);
        output.end = self.end.max(self.start);
        for row in &self.rows {
            let address = self.start.saturating_add(row.address_offset);
            output.row(program, *row, address);
            output.end = output.end.max(address);
        }
        output.finish(program);
    }
}

/// A sequence of the new line program under construction.
struct OutputSequence {
    start: u64,
    end: u64,
    /// Index of the old row in effect at the end.
    last_row: Option<usize>,
}

impl OutputSequence {
    fn new(program: &mut ConvertLineProgram<'_, Slice<'_>>, start: u64) -> OutputSequence {
        program.begin_sequence(Some(Address::Constant(start)));
        OutputSequence { start, end: start, last_row: None }
    }

    fn row(&self, program: &mut ConvertLineProgram<'_, Slice<'_>>, row: LineRow, address: u64) {
        program.generate_row(LineRow { address_offset: address - self.start, op_index: 0, ..row });
    }

    fn finish(self, program: &mut ConvertLineProgram<'_, Slice<'_>>) {
        program.end_sequence(self.end - self.start);
    }
}
