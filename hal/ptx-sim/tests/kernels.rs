//! Kernels that clang compiles.

use crate::common::{Bench, arguments, compile, source, to_words, words};
use flipwave_depth::cases;
use flipwave_device::{AccessKind, FaultCause};
use flipwave_machine::Machine;

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

/// Calls `check` with the kernels at each level.
fn each_level(check: impl Fn(&mut Bench)) {
    for level in cases(LEVELS, 3) {
        check(&mut Bench::new(&compile(&source("kernels.cu"), "sm_80", &[level])));
    }
}

#[test]
fn vectors_are_added() {
    each_level(|bench| {
        let [a, b] =
            [1.5f32, -0.25].map(|step| (0..256).map(|i| i as f32 * step).collect::<Vec<_>>());
        let bits = |values: &[f32]| words(&values.iter().map(|v| v.to_bits()).collect::<Vec<_>>());
        let (first, second) = (bench.buffer(&bits(&a)), bench.buffer(&bits(&b)));
        let sum = bench.buffer(&[0; 1024]);
        let dispatch = bench.dispatch("add", 256, 64, &arguments(&[sum.0, first.0, second.0]));
        let statistics = bench.run(&dispatch);
        assert_eq!(statistics.waves, 8);
        assert_eq!(statistics.lane_operations, 32 * statistics.wave_instructions);
        let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        assert_eq!(bench.read(sum, 1024), bits(&expected));
    });
}

#[test]
fn lanes_leave_loops_at_different_times() {
    each_level(|bench| {
        let starts: Vec<u32> = (1..=96).collect();
        let (input, output) = (bench.buffer(&words(&starts)), bench.buffer(&[0; 96 * 4]));
        let dispatch = bench.dispatch("collatz", 96, 96, &arguments(&[output.0, input.0]));
        bench.run(&dispatch);
        let steps = |start: u32| {
            let next = |value: &u32| if value % 2 == 1 { 3 * value + 1 } else { value / 2 };
            std::iter::successors(Some(start), |value| Some(next(value)))
                .position(|value| value == 1)
                .expect("1") as u32
        };
        let expected: Vec<u32> = starts.into_iter().map(steps).collect();
        assert_eq!(to_words(&bench.read(output, 96 * 4)), expected);
    });
}

#[test]
fn workgroups_share_memory_between_barriers() {
    each_level(|bench| {
        let values: Vec<u32> = (0..512).map(|i| i * i % 1001).collect();
        let (input, output) = (bench.buffer(&words(&values)), bench.buffer(&[0; 16]));
        let dispatch = bench.dispatch("sums", 512, 128, &arguments(&[output.0, input.0]));
        bench.run(&dispatch);
        let expected: Vec<u32> = values.chunks(128).map(|part| part.iter().sum()).collect();
        assert_eq!(to_words(&bench.read(output, 16)), expected);
    });
}

#[test]
fn calls_pass_values_structures_and_functions() {
    each_level(|bench| {
        let output = bench.buffer(&[0; 64 * 4]);
        let values = [10, 20, 30, 40, 50];
        let mut arguments = arguments(&[output.0, 2.5f64.to_bits()]);
        arguments.extend(words(&values));
        arguments.extend([0; 4]);
        let dispatch = bench.dispatch("calls", 64, 64, &arguments);
        bench.run(&dispatch);
        let fibonacci = |n: i32| (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0;
        let expected = (0..64i32).map(|n| {
            let table = [1, -2, 30, 400];
            let mut local = [0; 4];
            for (i, value) in table.iter().enumerate() {
                local[(i + n as usize) & 3] = value * n;
            }
            let operation = if n & 1 == 0 { n + 7 } else { n * 7 };
            let value = values[n as usize % 5] as i32;
            let sum =
                operation + fibonacci(n % 11) + local[(n as usize / 2) & 3] + 5 + 2 * value + n;
            sum as u32
        });
        assert_eq!(to_words(&bench.read(output, 64 * 4)), expected.collect::<Vec<_>>());
    });
}

#[test]
fn faults_have_their_causes() {
    each_level(|bench| {
        let output = bench.buffer(&[0; 256]);
        let mut fault = |kernel: &str| {
            bench.gpu.write(output, &[0; 256]).expect("memory");
            let dispatch = bench.dispatch(kernel, 64, 64, &arguments(&[output.0]));
            bench.fault(&dispatch)
        };
        let FaultCause::MemoryViolation { address, access: AccessKind::Write, lane: Some(lane) } =
            fault("wild")
        else {
            panic!()
        };
        assert_eq!((address.0 - output.0, lane.0), (4_000_000, 1));
        assert!(matches!(fault("misaligned"), FaultCause::Misaligned { alignment: 4, .. }));
        assert_eq!(fault("abort_in_lane"), FaultCause::Trap { id: 2 });
        assert_eq!(fault("endless"), FaultCause::Watchdog { executed: 200_000 });
    });
}
