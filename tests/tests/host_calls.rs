//! Kernels that may call the host run until they make a call; the error then names the call.

use flipwave_injector::GoldenError;
use flipwave_tests::{TestProgram, compile, to_values};

/// A program that doubles the numbers up to `last`.
fn doubles(file: &str, kernel: &str, level: &str, last: i32) -> TestProgram {
    let mut program = TestProgram::new(&compile(file, &[level]));
    let values: Vec<i32> = (last - 63..=last).collect();
    let (values, doubled) = (program.input(&values), program.output(&[0i32; 64]));
    program.launch(kernel, [64, 1, 1], [64, 1, 1], &[values, doubled]);
    program
}

#[test]
fn host_call_is_reported_when_it_is_made() {
    for (file, kernel, wanted) in
        [("calls_host.hip", "checks", "`assert`"), ("prints.cl", "prints", "`printf`")]
    {
        for level in ["-O0", "-O2"] {
            let right = doubles(file, kernel, level, 36);
            let expected: Vec<i32> = (-27..=36).map(|value| 2 * value).collect();
            assert_eq!(to_values::<i32>(&right.outputs()[0]), expected, "{file} {level}");
            let wrong = doubles(file, kernel, level, 37).workload().golden();
            let Err(GoldenError::Faulted { fault, .. }) = wrong else { panic!("{wrong:?}") };
            let text = fault.to_string();
            assert_eq!(fault.cause.name(), "memory_violation", "{text}");
            assert!(text.contains("the kernel calls the host for"), "{file} {level}: {text}");
            assert!(text.contains(wanted) && text.contains("flipwave exec"), "{text}");
        }
    }
}
