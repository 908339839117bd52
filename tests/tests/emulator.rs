//! Emulated instructions: replaced proxies compute the defined results, and nothing else of the program
//! changes. Errors are reported once, with what to do.

use flipwave_campaigns::{Campaign, Code, InjectionPath, emulate, prepare, profile, replay};
use flipwave_device::Device;
use flipwave_emulator::Scan;
use flipwave_hooks::rewrite::{Instrumentation, Rewritten};
use flipwave_injector::Workload;
use flipwave_isa::Pc;
use flipwave_machine::Simulator;
use flipwave_tests::{
    Finished, Twins, clean, emulated_examples, emulated_folder, flipwave, gpu, hook_compiler,
    kernels, kernels_mut, rows, site,
};
use std::collections::BTreeSet;
use std::path::Path;
use tempfile::TempDir;

/// An example, compiled at `level`.
fn campaign(file: &Path, level: &str) -> Campaign {
    let mut campaign = Campaign::read(file).unwrap_or_else(|error| panic!("{error}"));
    let kernels = kernels_mut(&mut campaign);
    for launch in kernels.launches.iter_mut().chain(&mut kernels.software) {
        if let Code::Source { options, .. } = &mut launch.code {
            *options = vec![level.to_owned()];
        }
    }
    campaign
}

/// Replaces the proxies of a workload's only module. Returns the rewritten code and the proxies.
fn emulated(
    campaign: &Campaign,
    workload: &Workload,
) -> (Rewritten, BTreeSet<flipwave_hooks::flow::InstIndex>) {
    let object =
        gpu(&workload.device).code_object(workload.program.dispatches[0].module).expect("loaded");
    let mut instrumentation = Instrumentation::new(object).unwrap_or_else(|e| panic!("{e}"));
    let program = instrumentation.program().clone();
    let scan = Scan::new(object, &program, &kernels(campaign).instructions, hook_compiler());
    let scan = scan.unwrap_or_else(|error| panic!("{error}"));
    scan.replace(&mut instrumentation);
    let rewritten = instrumentation.rewrite(hook_compiler()).unwrap_or_else(|e| panic!("{e}"));
    scan.check_replaced(&program, &rewritten.report).unwrap_or_else(|error| panic!("{error}"));
    (rewritten, scan.proxies().map(|proxy| proxy.at).collect())
}

#[test]
fn emulation_changes_only_results_of_emulated_instructions() {
    for file in emulated_examples() {
        for level in ["-O0", "-O3"] {
            println!("{} {level}", file.display());
            let campaign = campaign(&file, level);
            let workload = prepare(&campaign).unwrap_or_else(|error| panic!("{error}")).workload;
            let (rewritten, substituted) = emulated(&campaign, &workload);
            assert!(rewritten.report.proof.is_some(), "not checked");
            let mut device = gpu(&workload.device).clone();
            let module = device.load(&rewritten.object).unwrap_or_else(|error| panic!("{error}"));
            let mut emulated =
                Workload { device: Simulator::new(device.clone()), ..workload.clone() };
            emulated.program.dispatches.iter_mut().for_each(|dispatch| dispatch.module = module);
            clean(&emulated);
            // In this example, the proxies are the emulated instructions themselves.
            let is_itself = file.ends_with("fp8.yaml");
            for (original, instrumented) in
                workload.program.dispatches.iter().zip(&emulated.program.dispatches)
            {
                let (rewritten, substituted) = (&rewritten, substituted.clone());
                let twins = Twins { original, instrumented, rewritten, substituted };
                let report = twins.side_by_side(&device, true);
                assert!(report.is_clean(), "{:?} {:?}", report.difference, report.violations);
                assert!(report.instructions > 0);
                // Negative control: the proxies themselves compute something else.
                let alone = Twins { substituted: BTreeSet::new(), ..twins };
                let report = alone.side_by_side(&device, false);
                let difference = &report.difference;
                assert_eq!(difference.is_none(), is_itself, "{}: {difference:?}", file.display());
                device.dispatch(instrumented).unwrap_or_else(|error| panic!("{error}"));
            }
        }
    }
}

/// A folder with a valid example.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().expect("a folder");
        for file in ["packed_i4.yaml", "kernels/packed_i4.cl", "hooks/packed_i4.c"] {
            let to = folder.path().join(file);
            std::fs::create_dir_all(to.parent().expect("a parent")).expect("a folder");
            std::fs::copy(emulated_folder().join(file), to).expect(file);
        }
        Bench { folder }
    }

    /// Runs the example with `from` replaced by `to` in a file.
    fn run_with(&self, file: &str, from: &str, to: &str) -> Finished {
        let path = self.folder.path().join(file);
        let text = std::fs::read_to_string(&path).expect(file);
        assert!(text.contains(from), "`{from}` is not in {file}:\n{text}");
        std::fs::write(&path, text.replace(from, to)).expect(file);
        flipwave(self.folder.path(), &["emulate", "packed_i4.yaml"], &[])
    }
}

/// Asserts that the example with `from` replaced by `to` is refused with exit code 2 and a message that
/// contains all `words`.
#[track_caller]
fn assert_refused(file: &str, from: &str, to: &str, words: &[&str]) {
    let finished = Bench::new().run_with(file, from, to);
    finished.expect_refused(words);
    assert_eq!(finished.stdout, "", "{finished:?}");
    assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
}

const YAML: &str = "packed_i4.yaml";
const KERNEL: &str = "kernels/packed_i4.cl";
const HOOK: &str = "hooks/packed_i4.c";

#[test]
fn unmatched_proxy_is_reported_with_the_closest_instruction() {
    let plain = "#define pk_add_sat_i4(a, b) (__builtin_amdgcn_ubfe(a, b, 3))\n#define old(a, b) ";
    let words = ["v_pk_add_sat_i4", "no instruction in the program matches", "v_and_or_b32"];
    assert_refused(KERNEL, "#define pk_add_sat_i4(a, b) ", plain, &words);
    let near = [
        "no instruction in the program",
        "closest match is `v_and_or_b32",
        "operand 3 is 58, not 57",
    ];
    let unmarked = "#define pk_add_sat_i4(a, b) __extension__({ uint x; __asm__ volatile(\
        \"v_and_or_b32 %0, %1, %2, 58\" : \"=v\"(x) : \"v\"(a), \"v\"(b)); x; })\n#define old(a, b) ";
    assert_refused(KERNEL, "#define pk_add_sat_i4(a, b) ", unmarked, &near);
}

#[test]
fn missing_keys_for_a_command_are_refused() {
    let bench = Bench::new();
    let text = std::fs::read_to_string(bench.folder.path().join(YAML)).expect(YAML);
    let faults = text.lines().find(|line| line.starts_with("faults:")).expect("faults");
    let mut plain = text.replace(faults, "");
    std::fs::write(bench.folder.path().join("no_faults.yaml"), &plain).expect("a file");
    let refused = flipwave(bench.folder.path(), &["run", "no_faults.yaml"], &[]);
    refused.expect_refused(&["has no `faults`"]);
    plain.truncate(plain.find("instructions:").expect("instructions"));
    std::fs::write(bench.folder.path().join("plain.yaml"), &plain).expect("a file");
    let refused = flipwave(bench.folder.path(), &["emulate", "plain.yaml"], &[]);
    refused.expect_refused(&["has no `instructions`"]);
}

#[test]
fn different_software_version_is_reported_with_exit_code_1() {
    let wrong = Bench::new().run_with(HOOK, "sum > 7 ? 7", "sum > 6 ? 6");
    assert_eq!(wrong.code, Some(1), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("computes different outputs"), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("elements of `sum`"), "{}", wrong.stderr);
    assert!(wrong.stdout.contains("v_pk_add_sat_i4"), "{}", wrong.stdout);
}

#[test]
fn a_native_instruction_that_looks_like_a_proxy_is_a_collision() {
    let native = "sum[i] = pk_add_sat_i4(a[i], b[i]) ^ ((a[i] & b[i]) | 57);\n        sum[i + 1] = (b[i] & sum[i]) | 57;";
    let words = [
        "unmarked instructions match the proxy `v_and_or_b32 dst, a, b, 57`",
        "packed_i4.cl:18), `v_and_or_b32",
        "packed_i4.cl:19)",
        "match: all",
    ];
    assert_refused(KERNEL, "sum[i] = pk_add_sat_i4(a[i], b[i]);", native, &words);
}

#[test]
fn a_marked_proxy_that_does_not_fit_is_reported() {
    let words = ["is marked as its proxy but does not match", "operand 3 is 57, not 58"];
    assert_refused(YAML, "a, b, 57", "a, b, 58", &words);
    let words = ["unknown instruction `v_other`", "marked as its proxy", "v_pk_add_sat_i4"];
    assert_refused(KERNEL, "FLIPWAVE_PROXY(v_pk_add_sat_i4", "FLIPWAVE_PROXY(v_other", &words);
}

#[test]
fn a_hook_that_does_not_fit_the_operands_is_refused() {
    let takes = "(uint32_t a, uint32_t b)";
    let words = ["no parameter for the source `b`"];
    assert_refused(
        HOOK,
        takes,
        "(uint32_t a) { uint32_t b = 0; (void)b; return a; }\nuint32_t g(uint32_t b, uint32_t a)",
        &words,
    );
    let words = ["has a parameter `uint32_t c`", "expected one of a, b"];
    assert_refused(HOOK, takes, "(uint32_t a, uint32_t b, uint32_t c)", &words);
    assert_refused(
        HOOK,
        "\nuint32_t pk_add",
        "\nuint64_t pk_add",
        &["returns uint64_t in 2 registers"],
    );
    assert_refused(HOOK, takes, "(uint64_t a, uint32_t b)", &["uint64_t a"]);
    assert_refused(
        HOOK,
        "\nuint32_t pk_add",
        "\nuint32_t no",
        &["no function", "it has no_sat_i4"],
    );
    assert_refused(HOOK, "packed = 0;", "packed = nothing;", &["does not compile", "nothing"]);
}

#[test]
fn invalid_operands_are_refused_with_their_position() {
    let operands = "{dst: vgpr, a: vgpr, b: vgpr}";
    let wide = "{dst: vgpr x2, a: vgpr, b: vgpr}";
    assert_refused(YAML, operands, wide, &["does not assemble for gfx90a", "v[40:41]"]);
    let odd = "{dst: vgpr, a: vgpr, b: register}";
    assert_refused(
        YAML,
        operands,
        odd,
        &["packed_i4.yaml:19:39:", "invalid kind of operand `register`"],
    );
    let more = "{dst: vgpr, a: vgpr, b: vgpr, c: imm}";
    assert_refused(YAML, operands, more, &["operand `c` (imm) is not in the proxy"]);
    let scalar = "{dst: vgpr, a: sgpr, b: vgpr}";
    assert_refused(YAML, operands, scalar, &["operand 1 is not `sgpr`, as `a` must be"]);
    assert_refused(
        YAML,
        "v_and_or_b32 dst, a, b, 57",
        "v_nothing dst, a, b",
        &["does not assemble"],
    );
    assert_refused(YAML, "v_and_or_b32 dst, a, b, 57", "s_branch dst", &["does not assemble"]);
}

#[test]
fn faults_strike_emulated_instructions_like_real_ones() {
    let file = emulated_folder().join("packed_i4.yaml");
    let campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
    let profile = profile(&campaign).unwrap_or_else(|error| panic!("{error}"));
    let emulation = emulate(&campaign).unwrap_or_else(|error| panic!("{error}"));
    // Instructions of a program with the emulated instruction, counted in two ways.
    let executed: u64 = profile.instructions.iter().map(|inst| inst.executions).sum();
    assert_eq!(executed, emulation.executed[0].instructions);
    let inst = profile.instructions.iter().find(|inst| inst.opcode == "v_pk_add_sat_i4");
    // The fault space of the instruction is 32 result bits of each work-item.
    assert_eq!(inst.expect("the instruction").sites, 32 * 1000);

    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["run", file.to_str().expect("a path"), "--out", "results"];
    let finished = flipwave(folder.path(), &arguments, &[]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let rows = rows(&folder.path().join("results"));
    let struck: Vec<_> = rows.iter().filter(|row| row.opcode == "v_pk_add_sat_i4").collect();
    assert!(struck.len() > 5, "{}", struck.len());
    for row in &struck {
        // The result is stored unchanged, so one element is wrong.
        assert_eq!((row.outcome.to_string().as_str(), row.elements_wrong), ("sdc", Some(1)));
        let replayed = replay(&campaign, &site(&row.site), InjectionPath::Embedded);
        let replayed = replayed.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(replayed.struck.mask(), row.flip_mask, "{}", row.site);
        assert_eq!(replayed.struck.after, row.after);
    }
    // Reported addresses refer to the original code.
    let pcs: BTreeSet<Pc> = profile.instructions.iter().map(|inst| inst.pc).collect();
    let row = rows.iter().find(|row| row.outcome.to_string() == "due").expect("a DUE");
    let replayed = replay(&campaign, &site(&row.site), InjectionPath::Embedded);
    let (_, fault) = replayed.unwrap_or_else(|error| panic!("{error}")).fault.expect("a fault");
    assert!(pcs.contains(&fault.place.pc), "{fault}");
}
