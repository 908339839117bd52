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
    advection: air_is_carried_along,
    alignment: sequences_are_aligned,
    breadth_first: nodes_are_reached_level_by_level,
    convolution: pictures_are_blurred,
    elimination: matrices_are_factored,
    fft: signals_are_transformed,
    histogram: bytes_are_counted,
    k_means: points_find_their_centres,
    life: cells_live_and_die,
    mandelbrot: points_of_the_plane_escape,
    matmul: matrices_are_multiplied,
    matmul_tiled: matrices_are_multiplied_by_tiles,
    molecular_forces: atoms_push_and_pull,
    options: options_have_a_price,
    prefix_scan: sums_go_up_to_each_number,
    radix_sort: keys_are_sorted_by_digits,
    reduction: numbers_are_summarised,
    sha256: messages_are_hashed,
    spmv: sparse_matrices_are_multiplied,
    stencil_3d: heat_spreads_in_a_block,
}

#[test]
fn every_benchmark_has_a_test() {
    assert_eq!(benchmarks(), TESTED);
}
