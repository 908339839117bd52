//! Compiled code and the interpreter give the same: registers, memory, LDS and counts at any
//! instruction, and the end.

use flipwave_device::{Address, Device};
use flipwave_injector::Workload;
use flipwave_isa::{LaneMask, Pc};
use flipwave_sim::{
    Compiling, EmbeddedGpu, Execution, Fidelity, FidelityCheck, Footprints, Policy, Progress,
    Unobserved, WaveCounts,
};
use flipwave_tests::{Machine, example, examples_folder, flipwave, workload};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// All that the device has in memory.
fn memory(device: &EmbeddedGpu) -> Vec<(Address, Vec<u8>)> {
    let content = |(address, bytes): (Address, u64)| {
        // Private memory is large, and most of it is not there.
        let mut content = vec![0; bytes.min(1 << 20) as usize];
        device.read(address, &mut content).expect("an allocation");
        (address, content)
    };
    device.allocations().map(content).collect()
}

/// A device that compiles so, and what executes on it.
fn device(workload: &Workload, compiling: Compiling) -> EmbeddedGpu {
    let mut device = workload.device.clone();
    // As in applications: turns that end at branches, and ones that end anywhere.
    device.set_policy(Policy { compiling, first_turn: Some(1), ..device.policy() });
    device
}

/// Executes dispatches on both, with pauses at random, and compares them there.
fn keep_step(workload: &Workload, name: &str, random: &mut ChaCha8Rng) {
    let mut devices = [Compiling::Never, Compiling::AtOnce].map(|how| device(workload, how));
    for dispatch in &workload.program.dispatches {
        let begin = |device: &mut EmbeddedGpu| device.begin(dispatch).expect("a dispatch");
        let mut executions: Vec<Execution> = devices.iter_mut().map(begin).collect();
        let (mut until, mut pauses) = (0, 0);
        loop {
            // Few pauses at first, so that there is something to compile.
            until += 1 + random.next_u64() % if pauses < 20 { 700 } else { 20_000 };
            pauses += 1;
            let ends: Vec<Progress> = devices
                .iter_mut()
                .zip(&mut executions)
                .map(|(device, own)| device.advance(own, &mut Unobserved, until).expect("advance"))
                .collect();
            assert_eq!(ends[0], ends[1], "{name} until {until}");
            let [one, other] = &executions[..] else { panic!("two executions") };
            assert!(one.is_in_state_of(other), "{name}: states differ at {until}");
            if pauses % 16 == 0 || ends[0] != Progress::Paused {
                assert!(memory(&devices[0]) == memory(&devices[1]), "{name}: memory at {until}");
            }
            if ends[0] != Progress::Paused {
                break;
            }
        }
    }
}

/// Examples that between them have arithmetic of all widths, LDS, scattered accesses, atomics, private
/// memory and divergence.
const EXAMPLES: [&str; 5] = ["quickstart", "matmul", "reduction", "jacobi", "scan"];

#[test]
fn compiled_code_leaves_what_the_interpreter_leaves_at_any_instruction() {
    let mut random = ChaCha8Rng::seed_from_u64(18);
    for name in EXAMPLES {
        let file = examples_folder().join(format!("{name}.yaml"));
        // Waves of 64 lanes, and of 32.
        for machine in [Machine::new("gfx90a", 64), Machine::new("gfx1100", 32)] {
            for options in [&["-O0"][..], &["-O3"]] {
                let workload = workload(machine, &file, options);
                keep_step(&workload, &format!("{name} {machine:?} {options:?}"), &mut random);
            }
        }
    }
}

/// What fault-free runs find out, by compiled code and by the interpreter.
#[test]
fn compiled_code_is_counted_and_its_footprints_and_fidelity_are_those_of_the_interpreter() {
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
        let [one, other] =
            [Compiling::Never, Compiling::AtOnce].map(|how| found_out(&workload, how));
        assert!(one == other, "{name} {machine:?} {options}:\n{one:?}\n{other:?}");
    }
}

/// Blocks that are to be seen one by one are not executed in a row with others.
#[test]
fn what_must_be_seen_is_seen_between_compiled_blocks() {
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
    let [one, other] = [Compiling::Never, Compiling::AtOnce].map(|how| found_out(&workload, how));
    assert!(!one.1.decisions.is_empty(), "{:?}", one.1);
    assert!(one == other, "{one:?}\n{other:?}");
}

/// Instructions in the order in which they were first executed, how often waves have executed them,
/// and what workgroups have touched, of each dispatch; the fidelity of all.
type FoundOut = (Vec<(Vec<Pc>, Vec<WaveCounts>, Footprints)>, Fidelity);

fn found_out(workload: &Workload, how: Compiling) -> FoundOut {
    let (mut surveyed, mut followed) = (device(workload, how), device(workload, how));
    let mut check = FidelityCheck::new();
    let dispatches = workload.program.dispatches.iter().map(|dispatch| {
        // Of a run that nobody looks at, compiled code has it that blocks go on to each other.
        for device in [&surveyed, &followed] {
            device.clone().dispatch(dispatch).expect("a dispatch");
        }
        let mut execution = surveyed.begin(dispatch).expect("a dispatch");
        // Lanes that are not counted are seen.
        let mut survey = surveyed.begin_survey(&execution, Some(LaneMask(0x0f0f_ffff_00ff_3fff)));
        let mut footprints = Footprints::default();
        // Pauses, so that waves are under way at the end of what is counted at once.
        for until in (5_000..).step_by(5_000) {
            let (observer, notes) = (&mut Unobserved, Some(&mut footprints));
            let progress =
                surveyed.advance_surveyed(&mut execution, observer, &mut survey, notes, until);
            if progress.expect("advance") != Progress::Paused {
                break;
            }
        }
        let mut execution = followed.begin(dispatch).expect("a dispatch");
        followed.begin_fidelity(&dispatch.kernel, &execution, &mut check);
        let end =
            followed.advance_with_fidelity(&mut execution, &mut Unobserved, &mut check, u64::MAX);
        assert!(matches!(end, Ok(Progress::Ended(_))), "{end:?}");
        let counter = survey.counter.as_mut().expect("what is counted");
        let instructions = counter.instructions().iter().map(|inst| inst.pc).collect();
        (instructions, counter.take_ended(), footprints)
    });
    let dispatches = dispatches.collect();
    (dispatches, followed.fidelity(&mut check))
}

/// What a campaign writes to `results.csv` whose kernels and blocks are kept in a folder of its own.
fn results(file: &Path, cache: &Path, tier: &str) -> Vec<u8> {
    let out = cache.join("results");
    let arguments = ["run".as_ref(), file.as_os_str(), "--out".as_ref(), out.as_os_str()];
    let cache = cache.to_str().expect("a path in UTF-8");
    flipwave(Path::new(cache), &arguments, &[("FLIPWAVE_CACHE", cache), ("FLIPWAVE_TIER", tier)])
        .expect_success();
    std::fs::read(out.join("results.csv")).expect("results.csv")
}

#[test]
fn what_waves_reach_often_is_compiled_unless_that_is_not_wanted() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = example("matmul", "{model: flip_one_bit, count: 300}", folder.path());
    let [compiled, interpreted] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let [one, other] = [(&compiled, ""), (&interpreted, "interpreter")]
        .map(|(cache, tier)| results(&file, cache.path(), tier));
    assert!(one == other, "another results.csv");
    let blocks = |cache: &tempfile::TempDir| cache.path().join("blocks").exists();
    assert_eq!([blocks(&compiled), blocks(&interpreted)], [true, false]);
}

/// Processes that compile for programs with this cache.
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
fn a_campaign_goes_on_where_what_compiles_for_it_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = example("matmul", "{model: flip_one_bit, count: 300}", folder.path());
    let interpreted = tempfile::tempdir().expect("a folder");
    let expected = results(&file, interpreted.path(), "interpreter");
    let cache = tempfile::tempdir().expect("a folder");
    let is_over = AtomicBool::new(false);
    let (found, killed) = std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let mut killed = 0;
            while !is_over.load(Ordering::Relaxed) {
                for process in compilers(cache.path()) {
                    // SAFETY: processes that were started for this test's campaign.
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
