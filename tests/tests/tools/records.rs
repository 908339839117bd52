//! Records and counters across dispatches.

use super::compared::run;
use super::example;
use flipwave_tools::{Cell, InstructionCount, MemoryTrace, Options, Row};

/// Indices of the columns `lane` and `address` of a memory trace.
const LANE: usize = 7;
const ADDRESS: usize = 8;

#[test]
fn lost_records_are_counted_and_others_kept() {
    let workload = example("vector_add.yaml");
    let all = run::<MemoryTrace>(&workload, &Options::default(), |_| false);
    let options = Options { records: 1000, ..Options::default() };
    let some = run::<MemoryTrace>(&workload, &options, |_| false);
    for (all, some) in all.dispatches.iter().zip(&some.dispatches) {
        assert_eq!((all.lost, some.tool.len()), (0, 1000));
        assert_eq!(some.lost + 1000, all.tool.len() as u64);
        // The kernel arguments are behind the record buffer, so their address depends on its size.
        let moved = |row: &Row| {
            let mut row = row.clone();
            if row[LANE] == Cell::Empty {
                row[ADDRESS] = Cell::Empty;
            }
            row
        };
        let all: Vec<_> = all.tool.iter().map(moved).collect();
        assert!(some.tool.iter().all(|row| all.contains(&moved(row))));
        assert!(some.tool.iter().any(|row| row[LANE] != Cell::Empty));
    }
}

#[test]
fn every_dispatch_counts_from_zero() {
    let mut workload = example("vector_add.yaml");
    let again = workload.program.dispatches[0].clone();
    workload.program.dispatches.push(again);
    let run = run::<InstructionCount>(&workload, &Options::default(), |_| false);
    let [.., first, second] = run.dispatches.as_slice() else { panic!("two dispatches") };
    assert!(first.tool.iter().any(|row| row[3].number() > Some(0)));
    assert_eq!(first.tool, second.tool);
}
