//! Tests of the hooks of shipped tools against results computed by the host.

use super::bench::{Bench, MACHINES, Numbers, bench, register, shuffle};
use crate::hook::{Argument, BodyInst, CompiledHooks, InputValue, Renaming, Source};
use std::collections::BTreeSet;
use std::path::Path;

/// The files of the shipped tools.
const TOOLS: [&str; 12] = [
    "address_divergence",
    "bank_conflicts",
    "branch_divergence",
    "instruction_count",
    "kernel_clock",
    "line_accesses",
    "memory_efficiency",
    "memory_trace",
    "opcode_histogram",
    "register_trace",
    "sampled_histogram",
    "thread_count",
];

/// The hooks of a shipped tool, with values of macros.
fn tool(name: &str, macros: &[(&str, &str)]) -> Source {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = root.join("../../examples/tools").join(name).with_extension("c");
    let mut source = Source::read(&file).unwrap_or_else(|error| panic!("{error}"));
    source.include = vec![root.join("../tools/include"), root.join("../tools/include/device")];
    let defines = [("FLIPWAVE_TOOL", "1")].iter().chain(macros);
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    source.defines = defines.map(own).collect();
    source
}

impl Bench {
    fn library(
        &self,
        name: &str,
        function: &str,
        macros: &[(&str, &str)],
        arguments: &[Argument],
    ) -> (CompiledHooks, Vec<InputValue>) {
        let source = self.compiler.read(&tool(name, macros), &self.target, self.wave_size);
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
        let arguments = [data("counts", 0), Argument::LaneConstant(16)];
        let macros = [("FLIPWAVE_ROWS_counts", "~,4")];
        let (compiled, inputs) = bench.library("instruction_count", "count", &macros, &arguments);
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
        let arguments = [data("counts", 0), Argument::LaneConstant(16)];
        let macros = [("FLIPWAVE_ROWS_counts", "~,4")];
        let (compiled, inputs) = bench.library("instruction_count", "count", &macros, &arguments);
        // Five active lanes.
        let outcome = bench.run_at(&compiled, &names(&compiled), &inputs, &[vec![16]], 5);
        let counts: Vec<u64> =
            (0..4).map(|at| counter(&compiled, &outcome.data, "counts", at)).collect();
        assert_eq!(counts, [0, 0, 5, 0], "{machine:?}");
    }
}

#[test]
fn memory_trace_records_each_lane() {
    let arguments = [
        register("v2", 2),
        Argument::Constant(4),
        Argument::Constant(8),
        Argument::Constant(0),
        Argument::Constant(77),
        Argument::WorkgroupId(0),
        Argument::WorkgroupId(1),
        Argument::WorkgroupId(2),
        Argument::WaveInWorkgroup,
    ];
    for machine in MACHINES {
        let bench = bench(machine);
        let (compiled, inputs) =
            bench.library("memory_trace", "trace", &[("FLIPWAVE_RECORDS", "10")], &arguments);
        let addresses: Vec<u64> = (0..64).map(|lane| 0x1_0000_0000 + 12 * lane).collect();
        let [low, high] = rows(&addresses);
        let numbers = [4, 0, 8, 0, 77, 1, 2, 3, 4].map(|number| vec![number]);
        let values = [vec![low, high], numbers.to_vec()].concat();
        let outcome = bench.run_at(&compiled, &names(&compiled), &inputs, &values, 12);
        let symbol = compiled.data.symbols["accesses"];
        let bytes = &outcome.data[symbol.offset as usize..][..symbol.size as usize];
        let (head, records) = bytes.split_at(32);
        assert_eq!(head[..8], 12u64.to_le_bytes(), "{machine:?}: reserved records");
        // Each record has a mark of four bytes behind all of them.
        assert_eq!(records.len(), 10 * (40 + 4));
        for (lane, record) in records.chunks(40).take(10).enumerate() {
            let word =
                |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("4 bytes"));
            let position = [0, 4, 8, 12, 16].map(word);
            assert_eq!(position, [77, 1, 2, 3, 4], "{machine:?}");
            let address = u64::from_le_bytes(record[24..32].try_into().expect("eight bytes"));
            assert_eq!(address, addresses[lane] + 4, "{machine:?}");
            assert_eq!((usize::from(record[20]), record[32]), (lane, 8), "{machine:?}");
        }
    }
}

#[test]
fn address_divergence_counts_cache_lines_once_per_wave() {
    let arguments = [register("v2", 2), Argument::Constant(8), data("divergence", 24)];
    let macros = [("FLIPWAVE_ROWS_divergence", "~,2")];
    let mut numbers = Numbers(4);
    for machine in MACHINES {
        let bench = bench(machine);
        let (compiled, inputs) = bench.library("address_divergence", "access", &macros, &arguments);
        for (spread, lanes) in [(1, 64), (64, 64), (1 << 12, 40), (1 << 40, 64)] {
            let lanes = u64::min(lanes, machine.1.into());
            let addresses: Vec<u64> =
                (0..64).map(|_| (1 << 33) + numbers.next() % spread * 4).collect();
            let lines_of = |size: u64| {
                let ends = addresses[..lanes as usize].iter().flat_map(|at| [*at, at + 7]);
                ends.map(|byte| byte / size).collect::<BTreeSet<u64>>().len() as u64
            };
            let [low, high] = rows(&addresses);
            let values = [low, high, vec![8]];
            let outcome =
                bench.run_at(&compiled, &names(&compiled), &inputs, &values, lanes as u32);
            let count = |at| counter(&compiled, &outcome.data, "divergence", at);
            assert_eq!(
                [count(0), count(1), count(2), count(3), count(4), count(5)],
                [0, 0, 0, 1, lines_of(64), lines_of(128)],
                "{machine:?}"
            );
        }
    }
}

#[test]
fn branch_divergence_counts_branches_taken_by_some_lanes() {
    for machine in MACHINES {
        let bench = bench(machine);
        let words = machine.1.div_ceil(32);
        let arguments = [
            register("s8", 2),
            register("s10", words),
            register("s12", words),
            data("branches", 0),
        ];
        let (compiled, inputs) = bench.library("branch_divergence", "branch_and", &[], &arguments);
        // The last one enables lanes.
        for (before, condition, divergent) in
            [(0xffu64, 0xffu64, 0), (0xff, 0, 0), (0xff, 0x10, 1), (0x0f, 0x18, 0)]
        {
            let all = u64::MAX;
            let mut values: Vec<Vec<u32>> = rows(&[before]).to_vec();
            for mask in [condition, all] {
                values.extend(rows(&[mask]).into_iter().take(usize::from(words)));
            }
            let outcome = bench.run_at(&compiled, &names(&compiled), &inputs, &values, 1);
            let count = |at| counter(&compiled, &outcome.data, "branches", at);
            assert_eq!([count(0), count(1)], [1, divergent], "{machine:?} {condition:#x}");
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
            &[],
            &[register("v2", 2), Argument::Constant(0), register("s8", 1), data("conflicts", 0)],
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
            let values = [low, high, vec![0], vec![bytes as u32]];
            let outcome =
                bench.run_at(&compiled, &names(&compiled), &inputs, &values, lanes as u32);
            let count = |at| counter(&compiled, &outcome.data, "conflicts", at);
            assert_eq!([count(0), count(1)], [1, expected], "{machine:?} {stride} {bytes}");
        }
    }
}

#[test]
fn all_sources_compile_for_all_targets() {
    for machine in MACHINES {
        let bench = bench(machine);
        for name in TOOLS {
            let source = bench.compiler.read(&tool(name, &[]), &bench.target, bench.wave_size);
            assert!(source.expect("compiles").functions().count() > 0);
        }
    }
}
