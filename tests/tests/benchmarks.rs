//! Benchmarks that are complete programs, at small sizes. Their results on the embedded GPU equal those on
//! the host, for any number of threads.

use flipwave_tests::{benchmark, benchmarks, flipwave_within};
use std::ffi::OsString;
use std::time::Duration;

/// Time limit, far above the duration of any program.
const PATIENCE: Duration = Duration::from_secs(300);

/// Digest of a program's results.
#[track_caller]
fn digest(name: &str, options: &[&str]) -> String {
    let mut arguments: Vec<OsString> = vec!["exec".into()];
    arguments.extend(options.iter().map(Into::into));
    arguments.extend(["--".into(), benchmark(name, "gfx90a").into(), "small".into()]);
    let folder = tempfile::tempdir().expect("a folder");
    let finished = flipwave_within(PATIENCE, folder.path(), &arguments).expect("an end");
    assert_eq!(finished.code, Some(0), "{name} {options:?}: {finished:#?}");
    assert!(finished.stdout.ends_with("passed\n"), "{name} {options:?}: {finished:#?}");
    let line = finished.stdout.lines().find_map(|line| line.strip_prefix("digest "));
    line.expect("a digest").to_string()
}

macro_rules! programs {
    ($($name:ident: $claim:ident,)*) => {
        const TESTED: &[&str] = &[$(stringify!($name)),*];

        $(#[test]
        fn $claim() {
            let name = stringify!($name);
            assert_eq!(digest(name, &["--threads", "1"]), digest(name, &[]), "{name}");
        })*
    };
}

programs! {
    advection: advection_agrees_with_the_host,
    alignment: alignment_agrees_with_the_host,
    breadth_first: breadth_first_agrees_with_the_host,
    convolution: convolution_agrees_with_the_host,
    elimination: elimination_agrees_with_the_host,
    fft: fft_agrees_with_the_host,
    histogram: histogram_agrees_with_the_host,
    k_means: k_means_agrees_with_the_host,
    life: life_agrees_with_the_host,
    mandelbrot: mandelbrot_agrees_with_the_host,
    matmul: matmul_agrees_with_the_host,
    matmul_tiled: matmul_tiled_agrees_with_the_host,
    molecular_forces: molecular_forces_agree_with_the_host,
    options: options_agree_with_the_host,
    prefix_scan: prefix_scan_agrees_with_the_host,
    radix_sort: radix_sort_agrees_with_the_host,
    reduction: reduction_agrees_with_the_host,
    sha256: sha256_agrees_with_the_host,
    spmv: spmv_agrees_with_the_host,
    stencil_3d: stencil_3d_agrees_with_the_host,
}

#[test]
fn every_benchmark_has_a_test() {
    assert_eq!(benchmarks(), TESTED);
}
