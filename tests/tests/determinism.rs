//! The table of a campaign depends only on the campaign and its seed.

use flipwave_analysis::read_rows;
use flipwave_tests::{cases, example, flipwave, rows};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Campaigns that together strike scalar and vector arithmetic, LDS, global memory, atomics and double
/// precision.
const CAMPAIGNS: [(&str, &str); 3] = [
    ("quickstart", "{model: flip_one_bit, count: 90}"),
    ("reduction", "{model: random_value, count: 120}"),
    ("jacobi", "{model: flip_two_adjacent_bits, groups: [fp64, load], count: 60}"),
];

/// Campaigns with different settings that affect profiling: scopes, strata, lanes, draws, faults that
/// strike more than once, and restricted occurrences.
const COUNTED: [(&str, &str); 6] = [
    ("scan", "{model: flip_one_bit, scope: active_lanes, stratify: opcode, count: 90}"),
    ("matmul", "{model: flip_one_bit, target: source_operand, lanes: [1, 5, 40], count: 90}"),
    ("stencil", "{model: random_value, draw: instructions, stratify: group, count: 90}"),
    (
        "reduction",
        "{model: flip_one_bit, duration: {intermittent: {window: 9, rate: 0.5}}, count: 90}",
    ),
    ("jacobi", "{model: flip_one_bit, scope: workgroup, count: 60}"),
    ("saxpy", "{model: flip_one_bit, occurrences: [0, 3], count: 60}"),
];

/// Writes a campaign on a kernel with a loop of one block, which compiled code executes many times per
/// entry.
fn naive(folder: &Path) -> PathBuf {
    let workloads =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/throughput/workloads").canonicalize();
    let workloads = workloads.expect("the workloads of benchmarks");
    let text = std::fs::read_to_string(workloads.join("matmul_naive.yaml")).expect("a campaign");
    let text = text.replace("source: ", &format!("source: {}/", workloads.display()));
    let file = folder.join("naive.yaml");
    std::fs::write(&file, text.replace("count: 1}", "count: 90}")).expect("a campaign written");
    file
}

/// Runs a campaign and returns the bytes of `results.csv`.
fn results(file: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let mut all = vec!["run".as_ref(), file.as_os_str(), "--out".as_ref(), out.as_os_str()];
    all.extend(arguments.iter().map(|argument| std::ffi::OsStr::new(*argument)));
    flipwave(folder.path(), &all, environment).expect_success();
    assert!(rows(&out).len() >= 60);
    std::fs::read(out.join("results.csv")).expect("results.csv")
}

#[test]
fn results_do_not_depend_on_workers_or_repetition() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, faults) in CAMPAIGNS {
        let file = example(name, faults, folder.path());
        let one = results(&file, &["--workers", "1"], &[]);
        let two = results(&file, &["--workers", "2"], &[]);
        assert!(one == two, "{name}: another results.csv on 2 workers");
        let again = results(&file, &["--workers", "2"], &[]);
        assert!(two == again, "{name}: another results.csv on the second run");
    }
}

#[test]
fn results_do_not_depend_on_the_host_s_vector_extensions() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, faults) in CAMPAIGNS {
        let file = example(name, faults, folder.path());
        let best = results(&file, &[], &[]);
        for level in ["plain", "avx2"] {
            let found = results(&file, &[], &[("FLIPWAVE_SIMD", level)]);
            assert!(best == found, "{name}: another results.csv with FLIPWAVE_SIMD={level}");
        }
    }
}

#[test]
fn results_do_not_depend_on_the_tier() {
    let folder = tempfile::tempdir().expect("a folder");
    let examples = CAMPAIGNS.into_iter().chain(COUNTED);
    let examples = examples.map(|(name, faults)| (name, example(name, faults, folder.path())));
    for (name, file) in cases(examples.chain([("naive", naive(folder.path()))]), 3) {
        let interpreted = results(&file, &[], &[("FLIPWAVE_TIER", "interpreter")]);
        for environment in [
            &[("FLIPWAVE_TIER", "compiled-at-once")][..],
            &[("FLIPWAVE_TIER", "compiled-at-once"), ("FLIPWAVE_SIMD", "avx2")],
            &[],
        ] {
            let compiled = results(&file, &[], environment);
            assert!(interpreted == compiled, "{name}: another results.csv with {environment:?}");
        }
    }
}

/// Negative control: the seed changes the sites. (The values change anyway, because the seed also fills
/// the buffers.)
#[test]
fn another_seed_draws_other_sites() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = example("vector_add", "{model: flip_one_bit, count: 60}", folder.path());
    let default_seed = results(&file, &[], &[]);
    assert!(default_seed == results(&file, &["--seed", "42"], &[]), "the seed of the file");
    let other_seed = results(&file, &["--seed", "43"], &[]);
    let sites = |results: &[u8]| -> HashSet<String> {
        read_rows(results).expect("rows").into_iter().map(|row| row.site).collect()
    };
    assert!(sites(&default_seed).is_disjoint(&sites(&other_seed)));
}
