//! Tests of the shipped hooks against results computed by the host.

use super::bench::{Bench, MACHINES, Numbers, bench, register, shuffle};
use crate::hook::{Argument, BodyInst, Channel, CompiledHooks, InputValue, Renaming, library};
use std::collections::BTreeSet;

impl Bench {
    fn library(
        &self,
        name: &str,
        function: &str,
        macros: &[(&str, u64)],
        arguments: &[Argument],
    ) -> (CompiledHooks, Vec<InputValue>) {
        let source = library::source(name, macros).expect("in the library");
        let source = self.compiler.read(&source, &self.target, self.wave_size);
        let source = source.unwrap_or_else(|error| panic!("{name}: {error}"));
        let function = source.function(function).expect("there");
        let call = function.call(arguments, &[], &self.inst("s_nop 0"), self.wave_size);
        let call = call.expect("fits");
        let compiled = self.compiler.compile(&source, &[call.entry]);
        (compiled.unwrap_or_else(|error| panic!("{name}: {error}")), call.inputs)
    }
}

/// 64-bit numbers as the two rows of an input.
fn rows(values: &[u64]) -> [Vec<u32>; 2] {
    [0, 32].map(|shift| values.iter().map(|value| (value >> shift) as u32).collect())
}

fn counter(compiled: &CompiledHooks, data: &[u8], name: &str, index: u64) -> u64 {
    let at = (compiled.data.symbols[name].offset + 8 * index) as usize;
    u64::from_le_bytes(data[at..at + 8].try_into().expect("eight bytes"))
}

fn names(compiled: &CompiledHooks) -> Renaming {
    shuffle(&compiled.bodies[0], &mut Numbers(9))
}

/// An argument with an address of the hooks' data, which the kernel of the test computes.
fn data(symbol: &str, offset: u64) -> Argument {
    Argument::Data { symbol: symbol.into(), offset }
}

#[test]
fn count_is_two_instructions_and_changes_no_flags() {
    for machine in MACHINES {
        let bench = bench(machine);
        let arguments = [data("counters", 0), Argument::LaneConstant(16)];
        let (compiled, inputs) = bench.library("count", "count", &[("COUNTERS", 4)], &arguments);
        assert_eq!(inputs[1], InputValue::Constant(16));
        let body = &compiled.bodies[0];
        let names: Vec<&str> = body
            .instructions
            .iter()
            .map(|inst| match inst {
                BodyInst::Inst { inst, .. } => inst.operation.name(),
                inst => panic!("{inst:?}"),
            })
            .collect();
        assert_eq!(names, ["v_mov_b32", "global_atomic_inc_x2"], "{machine:?}");
        assert_eq!(body.writes.len(), 1, "{machine:?}: {}", body.writes);
        assert!(!body.widens_exec);
    }
}

#[test]
fn count_increments_the_counter() {
    for machine in MACHINES {
        let bench = bench(machine);
        let arguments = [data("counters", 0), Argument::LaneConstant(16)];
        let (compiled, inputs) = bench.library("count", "count", &[("COUNTERS", 4)], &arguments);
        // Five active lanes.
        let outcome = bench.run_at(&compiled, &names(&compiled), &inputs, &[vec![16]], 5);
        let counts: Vec<u64> =
            (0..4).map(|at| counter(&compiled, &outcome.data, "counters", at)).collect();
        assert_eq!(counts, [0, 0, 5, 0], "{machine:?}");
    }
}

#[test]
fn memory_trace_records_each_lane() {
    let arguments = [
        register("v2", 2),
        Argument::Constant(77),
        Argument::WorkgroupId(0),
        Argument::WorkgroupId(1),
        Argument::WorkgroupId(2),
        Argument::WaveInWorkgroup,
    ];
    for machine in MACHINES {
        let bench = bench(machine);
        let (compiled, inputs) =
            bench.library("memory_trace", "trace", &[("RECORDS", 10)], &arguments);
        let addresses: Vec<u64> = (0..64).map(|lane| 0x1_0000_0000 + 12 * lane).collect();
        let [low, high] = rows(&addresses);
        let values = [low, high, vec![77], vec![1], vec![2], vec![3], vec![4]];
        let outcome = bench.run_at(&compiled, &names(&compiled), &inputs, &values, 12);
        let symbol = compiled.data.symbols["accesses"];
        let bytes = &outcome.data[symbol.offset as usize..][..symbol.size as usize];
        let channel = Channel::new(bytes, 32).expect("a channel");
        assert_eq!((channel.records().count(), channel.lost()), (10, 2));
        for (lane, record) in channel.records().enumerate() {
            let words: Vec<u32> =
                record.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
            let address = addresses[lane];
            let expected = [address as u32, (address >> 32) as u32, 77, lane as u32, 1, 2, 3, 4];
            assert_eq!(words, expected, "{machine:?}");
        }
    }
}

#[test]
fn address_divergence_counts_cache_lines_once_per_wave() {
    let arguments = [register("v2", 2), Argument::Constant(8), data("counters", 16)];
    let macros = [("COUNTERS", 2), ("LINE", 128)];
    let mut numbers = Numbers(4);
    for machine in MACHINES {
        let bench = bench(machine);
        let (compiled, inputs) = bench.library("address_divergence", "access", &macros, &arguments);
        for (spread, lanes) in [(1, 64), (64, 64), (1 << 12, 40), (1 << 40, 64)] {
            let lanes = u64::min(lanes, machine.1.into());
            let addresses: Vec<u64> =
                (0..64).map(|_| (1 << 33) + numbers.next() % spread * 4).collect();
            let lines: BTreeSet<u64> = addresses[..lanes as usize]
                .iter()
                .flat_map(|address| [address / 128, (address + 7) / 128])
                .collect();
            let [low, high] = rows(&addresses);
            let values = [low, high, vec![8]];
            let outcome =
                bench.run_at(&compiled, &names(&compiled), &inputs, &values, lanes as u32);
            let count = |at| counter(&compiled, &outcome.data, "counters", at);
            assert_eq!(
                [count(0), count(1), count(2), count(3)],
                [0, 0, 1, lines.len() as u64],
                "{machine:?}"
            );
        }
    }
}

#[test]
fn branch_divergence_counts_branches_taken_by_some_lanes() {
    let arguments = [register("s8", 2), register("s10", 2), data("counters", 0)];
    for machine in MACHINES {
        let bench = bench(machine);
        let (compiled, inputs) =
            bench.library("branch_divergence", "branch", &[("COUNTERS", 1)], &arguments);
        for (before, after, divergent) in [(0xffu64, 0xffu64, 0), (0xff, 0, 0), (0xff, 0x10, 1)] {
            let values: Vec<Vec<u32>> =
                [before, after].iter().flat_map(|mask| rows(&[*mask])).collect();
            let outcome = bench.run_at(&compiled, &names(&compiled), &inputs, &values, 1);
            let count = |at| counter(&compiled, &outcome.data, "counters", at);
            assert_eq!([count(0), count(1)], [1, divergent], "{machine:?} {before:#x} {after:#x}");
        }
    }
}

/// Number of conflicts as defined in `bank_conflicts.c`.
fn conflicts(addresses: &[u64], bytes: u64) -> u64 {
    let size = (128 / bytes.max(4)) as usize;
    let cycles = |group: &[u64]| {
        let dwords: BTreeSet<u64> = group
            .iter()
            .flat_map(|address| (0..bytes.div_ceil(4)).map(move |word| address / 4 + word))
            .collect();
        (0..32).map(|bank| dwords.iter().filter(|dword| *dword % 32 == bank).count()).max()
    };
    addresses.chunks(size).map(|group| cycles(group).unwrap_or(1) as u64 - 1).sum()
}

#[test]
fn bank_conflicts_counts_cycles_after_the_first() {
    let mut numbers = Numbers(6);
    for machine in MACHINES {
        let bench = bench(machine);
        let (compiled, inputs) = bench.library(
            "bank_conflicts",
            "lds_access",
            &[("COUNTERS", 1)],
            &[register("v2", 2), register("s8", 1), data("counters", 0)],
        );
        for (stride, bytes, lanes) in
            [(4, 4, 64), (128, 4, 64), (8, 8, 64), (0, 16, 20), (20, 1, 33)]
        {
            let lanes = usize::min(lanes, machine.1.into());
            let addresses: Vec<u64> = (0..64)
                .map(|lane| match stride {
                    0 => numbers.next() % 512 * 16,
                    _ => lane * stride,
                })
                .collect();
            let expected = conflicts(&addresses[..lanes], bytes);
            let [low, high] = rows(&addresses);
            let values = [low, high, vec![bytes as u32]];
            let outcome =
                bench.run_at(&compiled, &names(&compiled), &inputs, &values, lanes as u32);
            let count = |at| counter(&compiled, &outcome.data, "counters", at);
            assert_eq!([count(0), count(1)], [1, expected], "{machine:?} {stride} {bytes}");
        }
    }
}

#[test]
fn all_sources_compile_for_all_targets() {
    let macros = [("COUNTERS", 2), ("RECORDS", 2), ("LINE", 64)];
    for machine in MACHINES {
        let bench = bench(machine);
        for name in library::names() {
            let source = library::source(name, &macros).expect("in the library");
            let source = bench.compiler.read(&source, &bench.target, bench.wave_size);
            assert!(source.expect("compiles").functions().count() > 0);
        }
    }
}
