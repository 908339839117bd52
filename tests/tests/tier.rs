//! Compiled code and the interpreter agree in registers, memory, LDS and counts at any instruction and at
//! the end.

use flipwave_injector::Workload;
use flipwave_sim::Policy;
use flipwave_tests::{Machine, Tiers, cases, example, examples_folder, flipwave, gpu, workload};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Both tiers of a workload's device.
fn tiers(workload: &Workload) -> Tiers {
    let device = gpu(&workload.device);
    // As in applications: turns that end at branches, and turns that end anywhere.
    Tiers::new(device, Policy { first_turn: Some(1), ..device.policy() })
}

/// Examples that together use arithmetic of all widths, LDS, scattered accesses, atomics, private
/// memory and divergence.
const EXAMPLES: [&str; 5] = ["quickstart", "matmul", "reduction", "jacobi", "scan"];

#[test]
fn compiled_code_agrees_with_the_interpreter_at_any_instruction() {
    let mut random = ChaCha8Rng::seed_from_u64(18);
    // Waves of 64 lanes, and of 32.
    let machines = [Machine::new("gfx90a", 64), Machine::new("gfx1100", 32)];
    let variants = machines.map(|machine| ["-O0", "-O3"].map(|level| (machine, level)));
    let all = EXAMPLES
        .into_iter()
        .flat_map(|name| variants.into_iter().flatten().map(move |variant| (name, variant)));
    for (name, (machine, level)) in cases(all, 3) {
        let file = examples_folder().join(format!("{name}.yaml"));
        let workload = workload(machine, &file, &[level]);
        let mut tiers = tiers(&workload);
        for dispatch in &workload.program.dispatches {
            let mut pauses = 0;
            // Pause often at first.
            let pause = || {
                pauses += 1;
                1 + random.next_u64() % if pauses < 20 { 700 } else { 20_000 }
            };
            let end = tiers.run_in_lockstep(dispatch, 16, pause);
            assert!(end.is_ok(), "{name} {machine:?} {level}: {end:?}");
        }
    }
}

/// Writes a campaign on a kernel with generic pointers, most of which are to private memory.
fn pointers(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/pointers.cl");
    let text = format!(
        "name: pointers\nseed: 1\ntarget: gfx90a\nworkload:\n  kernel:\n    source: {}\n    \
         name: sorted\n    grid: 128\n    workgroup: 64\n    args:\n      \
         - {{buffer: values, type: i32, count: 1536, init: {{uniform: [-9999, 9999]}}}}\n      \
         - {{buffer: results, type: i32, count: 1536, init: {{uniform: [-99, 99]}}, output: true}}\n      \
         - {{buffer: sums, type: i64, count: 128, output: true}}\n\
         faults: {{model: flip_one_bit, count: 60}}\n",
        source.display()
    );
    let file = folder.join("pointers.yaml");
    std::fs::write(&file, text).expect("a campaign");
    file
}

#[test]
fn generic_pointers_agree_with_the_interpreter() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = pointers(folder.path());
    let mut random = ChaCha8Rng::seed_from_u64(19);
    let machines = [("gfx90a", 64), ("gfx942", 64), ("gfx1100", 32), ("gfx1030", 64)];
    let all = machines.map(|machine| ["-O0", "-O3"].map(|level| (machine, level)));
    for ((processor, lanes), level) in cases(all.into_iter().flatten(), 3) {
        let machine = Machine::new(processor, lanes);
        let mut options = vec![level];
        options.extend(machine.options());
        let workload = workload(machine, &file, &options);
        let mut tiers = tiers(&workload);
        for dispatch in &workload.program.dispatches {
            let end = tiers.run_in_lockstep(dispatch, 16, || 1 + random.next_u64() % 9000);
            assert!(end.is_ok(), "{machine} {level}: {end:?}");
        }
        let [interpreted, compiled] = tiers.observe(&workload.program.dispatches);
        assert!(interpreted == compiled, "{machine} {level}:\n{interpreted:?}\n{compiled:?}");
    }
    let [interpreted, compiled] = ["interpreter", "compiled-at-once"].map(|tier| {
        let cache = folder.path().join(tier);
        std::fs::create_dir(&cache).expect("a folder");
        results(&file, &cache, tier)
    });
    assert!(interpreted == compiled, "another results.csv");
}

/// Compares observations of golden runs between compiled code and the interpreter.
#[test]
fn counts_footprints_and_fidelity_agree_with_the_interpreter() {
    let gfx90a = Machine::new("gfx90a", 64);
    let runs = [
        ("matmul", gfx90a, "-O3"),
        ("reduction", Machine::new("gfx1100", 32), "-O3"),
        ("jacobi", gfx90a, "-O1"),
        ("scan", gfx90a, "-O0"),
    ];
    for (name, machine, options) in runs {
        let file = examples_folder().join(format!("{name}.yaml"));
        let workload = workload(machine, &file, &[options]);
        let [interpreted, compiled] = tiers(&workload).observe(&workload.program.dispatches);
        assert!(
            interpreted == compiled,
            "{name} {machine:?} {options}:\n{interpreted:?}\n{compiled:?}"
        );
    }
}

/// Blocks that must be observed separately are not chained with others.
#[test]
fn observed_blocks_are_not_chained() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("unseen.yaml");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/unseen.cl");
    let text = format!(
        "name: unseen\nseed: 1\ntarget: gfx950\nworkload:\n  dispatches:\n    \
         - source: {}\n      name: rounds\n      grid: 512\n      workgroup: 64\n      args:\n        \
         - {{buffer: data, type: u32, count: 512, init: {{uniform: [0, 9999]}}, output: true}}\n        \
         - {{buffer: table, type: u32, count: 64, init: {{uniform: [0, 9999]}}}}\n        \
         - {{scalar: 200, type: u32}}\nfaults: {{model: flip_one_bit, count: 9}}\n",
        source.display()
    );
    std::fs::write(&file, text).expect("a campaign");
    let workload = workload(Machine::new("gfx950", 64), &file, &["-O3"]);
    let [interpreted, compiled] = tiers(&workload).observe(&workload.program.dispatches);
    assert!(!interpreted.fidelity.decisions.is_empty(), "{:?}", interpreted.fidelity);
    assert!(interpreted == compiled, "{interpreted:?}\n{compiled:?}");
}

/// Runs a campaign with a separate cache folder. Returns the bytes of `results.csv`.
fn results(file: &Path, cache: &Path, tier: &str) -> Vec<u8> {
    let out = cache.join("results");
    let arguments = ["run".as_ref(), file.as_os_str(), "--out".as_ref(), out.as_os_str()];
    let cache = cache.to_str().expect("a path in UTF-8");
    flipwave(Path::new(cache), &arguments, &[("FLIPWAVE_CACHE", cache), ("FLIPWAVE_TIER", tier)])
        .expect_success();
    std::fs::read(out.join("results.csv")).expect("results.csv")
}

#[test]
fn hot_code_is_compiled_unless_disabled() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = example("matmul", "{model: flip_one_bit, count: 3000}", folder.path());
    let [compiled, interpreted] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let [default_results, interpreted_results] = [(&compiled, ""), (&interpreted, "interpreter")]
        .map(|(cache, tier)| results(&file, cache.path(), tier));
    assert!(default_results == interpreted_results, "another results.csv");
    let blocks = |cache: &tempfile::TempDir| cache.path().join("blocks").exists();
    assert_eq!([blocks(&compiled), blocks(&interpreted)], [true, false]);
}

/// IDs of the compiler processes of programs with this cache.
fn compilers(cache: &Path) -> Vec<i32> {
    let wanted = format!("FLIPWAVE_JIT_SERVICE={}", cache.join("blocks").display());
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let is_one = |entry: &std::fs::DirEntry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    processes.filter(is_one).filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[test]
fn campaign_continues_if_its_compiler_process_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = example("matmul", "{model: flip_one_bit, count: 3000}", folder.path());
    let interpreted = tempfile::tempdir().expect("a folder");
    let expected = results(&file, interpreted.path(), "interpreter");
    let cache = tempfile::tempdir().expect("a folder");
    let is_over = AtomicBool::new(false);
    let (found, killed) = std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let mut killed = 0;
            while !is_over.load(Ordering::Relaxed) {
                for process in compilers(cache.path()) {
                    // SAFETY: the processes were started by this test's campaign.
                    unsafe { libc::kill(process, libc::SIGKILL) };
                    killed += 1;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            killed
        });
        let found = results(&file, cache.path(), "");
        is_over.store(true, Ordering::Relaxed);
        (found, killer.join().expect("it ends"))
    });
    assert!(killed > 0, "nothing was compiled");
    assert!(found == expected, "another results.csv");
    assert!(compilers(cache.path()).is_empty(), "they end with the campaign");
}
