//! Unmodified HIP programs under AMD's runtime, on the embedded GPU. The programs of the folder
//! `applications` check their own results and are built by each compiler.

use flipwave_tests::{
    Compiler, Finished, RunningProgram, Straggler, application, application_for,
    application_module, applications, cases, failing_applications, flipwave, flipwave_within,
    program,
};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

/// Time limit, far above the duration of any program.
const PATIENCE: Duration = Duration::from_secs(300);

/// Runs a program under `flipwave exec`. Returns `None` if it takes longer than `patience`.
fn run(
    name: &str,
    compiler: Compiler,
    gpu: &str,
    options: &[&str],
    patience: Duration,
) -> Option<Finished> {
    let program = application(name, compiler, gpu);
    let mut arguments = ["exec", "--gpu", gpu].map(Into::into).to_vec();
    arguments.extend(options.iter().map(Into::into));
    arguments.push("--".into());
    arguments.push(program.into_os_string());
    if name == "module" {
        arguments.push(application_module(name, compiler, gpu).into_os_string());
    }
    let folder = tempfile::tempdir().expect("a folder");
    flipwave_within(patience, folder.path(), &arguments)
}

#[track_caller]
fn passes(name: &str, compiler: Compiler, gpu: &str, options: &[&str]) {
    let finished = run(name, compiler, gpu, options, PATIENCE).expect("an end");
    assert_eq!(finished.code, Some(0), "{name} on {gpu}: {finished:#?}");
    assert!(finished.stdout.ends_with("passed\n"), "{name} on {gpu}: {finished:#?}");
    // On a slow machine, long kernels are reported.
    let said = finished.stderr.lines().filter(|line| !line.contains(" has been running for "));
    assert_eq!(said.collect::<Vec<_>>(), [""; 0], "{name} on {gpu}: {finished:#?}");
}

/// Programs that take minutes on the strict level: thousands of waves poll.
const TOO_LONG_TO_CHECK: [&str; 1] = ["grid_barrier"];

/// Asserts that a program passes, normally and on the strict level, when built by each compiler. In a
/// sample of the tests, each program is built by one compiler, alternating between programs.
#[track_caller]
fn passes_twice(name: &str) {
    let index = TESTED.iter().position(|tested| *tested == name).expect("a program of the list");
    let mut compilers = Compiler::ALL;
    compilers.rotate_left(index % Compiler::ALL.len());
    for compiler in cases(compilers, Compiler::ALL.len()) {
        println!("{compiler:?}");
        passes(name, compiler, "gfx90a", &[]);
        if !TOO_LONG_TO_CHECK.contains(&name) {
            passes(name, compiler, "gfx90a", &["--strict"]);
        }
    }
}

/// A test for each program, named after the property that it checks.
macro_rules! programs {
    ($($name:ident: $claim:ident,)*) => {
        const TESTED: &[&str] = &[$(stringify!($name)),*];

        $(#[test]
        fn $claim() {
            passes_twice(stringify!($name));
        })*
    };
}

programs! {
    allocations: allocations_never_overlap,
    arguments: arguments_of_every_size_and_alignment_arrive,
    atomics: atomics_of_all_workgroups_add_up,
    callbacks: host_functions_run_between_kernels,
    conversation: a_running_kernel_and_the_host_see_each_other,
    cooperative_groups: cooperative_groups_synchronise,
    copies: copies_and_fills_of_every_shape_arrive,
    default_stream: the_null_stream_waits_for_the_others,
    devices: every_device_computes,
    divergence: divergent_lanes_reconverge,
    double_precision: doubles_are_rounded_as_on_the_host,
    empty: the_runtime_starts,
    errors: invalid_calls_are_refused_without_lasting_effect,
    events: events_complete_and_measure_time,
    exchange: devices_exchange_numbers_while_kernels_run,
    fences: workgroups_hand_work_to_each_other,
    forked: forked_process_does_not_use_the_parents_gpu,
    functions: functions_are_called_and_recurse,
    graph: graphs_are_captured_and_launched,
    grid: every_thread_has_its_position,
    grid_barrier: resident_workgroups_meet_at_a_barrier,
    half_precision: halves_are_rounded_as_on_the_host,
    integers: integer_arithmetic_agrees_with_the_host,
    jacobi: an_iteration_converges_step_by_step,
    managed_memory: managed_memory_is_shared,
    math: mathematical_functions_agree_with_the_host,
    matrix_cores: matrix_cores_multiply,
    module: code_objects_are_loaded_by_programs,
    pinned_memory: pinned_memory_is_accessed_in_place,
    pools: pools_allocate_in_stream_order,
    printf: kernels_print,
    processes: processes_share_memory,
    properties: device_properties_agree_with_kernels,
    ranges: named_ranges_change_no_result,
    reduction: repeated_reductions_are_correct,
    runtime_compilation: programs_compile_kernels_themselves,
    saxpy: kernels_are_launched_in_every_notation,
    scan: prefix_sums_cross_workgroups,
    shared_atomics: atomics_in_shared_memory_add_up,
    shared_handles: memory_handles_work_in_other_processes,
    shared_memory: shared_memory_and_barriers_work,
    sort: pipelines_of_launches_sort,
    streams: streams_and_events_order_kernels,
    submission_order: kernels_run_in_submission_order,
    symbols: device_variables_are_accessed_by_name,
    system_atomics: host_and_device_share_atomics,
    templates: templates_and_lambdas_are_launched,
    threads: host_threads_launch_concurrently,
    vector_types: vector_types_are_loaded_and_computed,
    virtual_memory: virtual_memory_mapped_by_programs_is_accessible,
    warp: lanes_exchange_values,
    workgroups: workgroups_share_counters_and_order,
}

#[test]
fn every_program_has_a_test() {
    assert_eq!(applications(), TESTED);
    assert_eq!(
        failing_applications(),
        [
            "crowded",
            "damaged_packet",
            "device_abort",
            "device_assert",
            "endless",
            "escape",
            "given_back",
            "host_abort",
            "impatient",
            "texture",
            "wild_workgroups",
            "wild_write",
        ]
        .map(|name| format!("failing/{name}"))
    );
}

/// Programs that use the features in which processors differ most: wave size, atomics, calls, and
/// matrix cores.
#[test]
fn programs_run_on_the_other_gpus() {
    let names =
        ["atomics", "functions", "matrix_cores", "printf", "saxpy", "shared_memory", "warp"];
    let all = ["gfx906", "gfx908", "gfx1030"].map(|gpu| names.map(|name| (gpu, name)));
    for (gpu, name) in cases(all.into_iter().flatten(), 5) {
        passes(name, Compiler::Hipcc, gpu, &[]);
    }
}

#[test]
fn gpus_option_sets_the_number_of_devices() {
    let program = application("devices", Compiler::Hipcc, "gfx90a").into_os_string();
    let arguments = ["exec".into(), "--gpus".into(), "3".into(), "--".into(), program];
    let folder = tempfile::tempdir().expect("a folder");
    let finished = flipwave_within(PATIENCE, folder.path(), &arguments).expect("an end");
    assert_eq!(finished.expect_success().stdout, "passed\n");
}

/// Kernels of two GPUs wait for each other.
#[test]
fn kernels_of_several_devices_run_at_the_same_time() {
    let program = application("exchange", Compiler::Hipcc, "gfx90a").into_os_string();
    for options in [&[][..], &["--threads", "1"], &["--strict"]] {
        let arguments = [&["exec", "--gpus", "2"], options, &["--"]].concat();
        let mut arguments: Vec<_> = arguments.into_iter().map(Into::into).collect();
        arguments.push(program.clone());
        let folder = tempfile::tempdir().expect("a folder");
        let finished = flipwave_within(PATIENCE, folder.path(), &arguments).expect("an end");
        assert_eq!(finished.expect_success().stdout, "two devices exchanged\npassed\n");
    }
}

/// The two GPUs have waves of 64 and of 32 lanes.
#[test]
fn mixed_devices_appear_in_the_requested_order() {
    let program = application_for("devices", Compiler::Hipcc, &["gfx90a", "gfx1030"]);
    let program = program.display().to_string();
    let run = |gpus: &[&str], names: &[&str]| {
        let arguments = [&["exec"], gpus, &["--", &program], names].concat();
        let folder = tempfile::tempdir().expect("a folder");
        flipwave_within(PATIENCE, folder.path(), &arguments).expect("an end")
    };
    let mixed = run(&["--gpu", "gfx1030,2xgfx90a"], &["gfx1030", "gfx90a", "gfx90a"]);
    assert_eq!(mixed.expect_success().stdout, "passed\n");
    let twice = run(&["--gpu", "gfx90a,gfx1030", "--gpus", "2"], &["gfx90a", "gfx1030"]);
    assert_eq!(twice.code, Some(1));
    assert_eq!(twice.stdout, "4 devices, not 2\n");
}

/// Runs a program and asserts that it aborts. Returns its standard error.
#[track_caller]
fn aborts(name: &str, compiler: Compiler) -> String {
    let finished = run(name, compiler, "gfx90a", &[], PATIENCE).expect("an end");
    assert_eq!(finished.signal, Some(libc::SIGABRT), "{name} by {compiler:?}: {finished:#?}");
    assert_eq!(finished.stdout, "", "{name} by {compiler:?}");
    finished.stderr
}

#[test]
fn a_wild_write_ends_a_program_with_its_address() {
    for compiler in Compiler::ALL {
        let stderr = aborts("failing/wild_write", compiler);
        assert!(stderr.contains("Memory access fault by GPU"), "{stderr}");
        assert!(stderr.contains("on address 0x123450000000."), "{stderr}");
        let named = "flipwave: dispatch 0, kernel write(int*): memory violation: write to \
                     0x123450000000, lane 0, at pc 0x";
        assert_eq!(stderr.matches(named).count(), 1, "{stderr}");
    }
}

/// The engine must not access memory that the process has unmapped, which would end it with SIGSEGV.
#[test]
fn unmapped_host_memory_is_a_device_fault() {
    let stderr = aborts("failing/given_back", Compiler::Hipcc);
    assert!(stderr.contains("Memory access fault by GPU"), "{stderr}");
    let named = "flipwave: dispatch 2, kernel write(int*): memory violation: write to 0x";
    assert_eq!(stderr.matches(named).count(), 1, "{stderr}");
}

/// The runtime reports only that an instruction is illegal.
#[test]
fn illegal_instruction_is_reported_with_its_kernel() {
    let finished = run("failing/texture", Compiler::Hipcc, "gfx90a", &[], PATIENCE);
    let stderr = finished.expect("an end").stderr;
    assert!(stderr.contains("HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION"), "{stderr}");
    let named =
        "dispatch 0, kernel sample(float*): no instruction of this processor: `image_sample";
    assert!(stderr.contains(named), "{stderr}");
    assert!(stderr.contains("at pc 0x") && stderr.contains("workgroup 0,0,0 wave 0"), "{stderr}");
}

/// A program compiled with source lines.
#[test]
fn a_fault_is_reported_with_its_source_line() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/applications/failing/wild_write.hip");
    let folder = tempfile::tempdir().expect("a folder");
    let mut compiler = std::process::Command::new("hipcc");
    compiler.args(["--offload-arch=gfx90a", "-O2", "-gline-tables-only", source, "-o", "wild"]);
    assert!(compiler.current_dir(folder.path()).status().expect("hipcc").success());
    let finished = flipwave_within(PATIENCE, folder.path(), &["exec", "--", "./wild"]);
    let stderr = finished.expect("an end").stderr;
    assert!(stderr.contains("wild_write.hip:4"), "{stderr}");
}

#[test]
fn count_option_counts_instructions() {
    let finished = run("saxpy", Compiler::Hipcc, "gfx90a", &["--count"], PATIENCE);
    let finished = finished.expect("an end").expect_success();
    assert!(finished.stdout.ends_with("passed\n"), "{finished:#?}");
    let mut lines = finished.stderr.lines();
    let head: Vec<&str> = lines.next().expect("a table").split_whitespace().collect();
    assert_eq!(head, ["kernel", "dispatches", "instructions"], "{finished:#?}");
    let counts = lines.filter_map(|line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let [.., dispatches, instructions] = cells[..] else { return None };
        Some((dispatches.parse::<u64>().ok()?, instructions.parse::<u64>().ok()?))
    });
    let counts: Vec<(u64, u64)> = counts.collect();
    let is_plausible = |range: &(u64, u64)| range.0 > 0 && range.1 > range.0;
    assert!(!counts.is_empty() && counts.iter().all(is_plausible), "{finished:#?}");
}

/// A slow kernel reports its progress, and a signal to `flipwave exec` ends the program.
#[test]
fn long_kernel_is_reported_while_it_runs() {
    let endless = application("failing/endless", Compiler::Hipcc, "gfx90a");
    let mut child = std::process::Command::new(program())
        .args(["exec".as_ref(), "--".as_ref(), endless.as_os_str()])
        .stderr(Stdio::piped())
        .spawn()
        .expect("flipwave starts");
    let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let line = stderr.lines().next().expect("a line").expect("text");
    let begin = "flipwave: dispatch 0, kernel wait(int volatile*) has been running for ";
    let is_counted = line.contains(" wave instructions so far, ") && line.ends_with(" per second");
    assert!(line.starts_with(begin) && is_counted, "{line}");
    // SAFETY: the child has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGTERM) }, 0);
    let status = child.wait().expect("an end");
    assert_eq!(status.signal(), Some(libc::SIGTERM), "{status}");
}

#[test]
fn child_processes_end_with_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let straggler = Straggler::new(folder.path());
    let script = format!("{}; exit 3", straggler.command());
    for command in [
        &["exec", "--"][..],
        &["capture", "--out", "none.capture", "--"],
        &["tool", "instruction-count", "--"],
    ] {
        let arguments = [command, &["sh", "-c", &script]].concat();
        let finished = flipwave_within(PATIENCE, folder.path(), &arguments).expect("an end");
        assert_eq!(finished.code, Some(3), "{command:?}: {finished:#?}");
        straggler.expect_gone();
    }
}

#[test]
fn application_with_a_tool_receives_signals_and_table_state_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "trap 'touch asked; trap - TERM; kill -TERM $$' TERM; touch started; \
                  while :; do sleep 0.01; done";
    for (options, table) in [(&[][..], "there is no table"), (&["--out", "a.csv"], "a.csv")] {
        let tool = [&["tool", "instruction-count"], options, &["--", "sh", "-c", script]].concat();
        let mut run = RunningProgram::start(folder.path(), &tool, "stderr");
        run.wait_until(|| folder.path().join("started").exists());
        run.send(libc::SIGTERM);
        assert_eq!(run.end(), Err(libc::SIGTERM));
        let said = run.stderr();
        assert!(said.contains("was terminated by SIGTERM: ") && said.contains(table), "{said}");
        for file in ["started", "asked"] {
            std::fs::remove_file(folder.path().join(file)).expect(file);
        }
    }
}

/// Waves wait for space in a small ring, while the host takes its records.
#[test]
fn no_record_of_an_application_is_lost() {
    let path = application("divergence", Compiler::Hipcc, "gfx90a");
    let path = path.to_str().expect("text");
    let folder = tempfile::tempdir().expect("a folder");
    let trace = |records: &str| {
        let tool = ["tool", "memory-trace", "--out", "t.csv", "--records", records, "--", path];
        let finished = flipwave(folder.path(), &tool, &[]).expect_success();
        let table = std::fs::read_to_string(folder.path().join("t.csv")).expect("the table");
        let mut lines: Vec<String> = table.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        (lines, finished.stderr)
    };
    let (all, said) = trace("1000000");
    assert!(!said.contains("lost") && all.len() > 5000, "{} {said}", all.len());
    let (few, said) = trace("500");
    assert!(!said.contains("lost") && few == all, "{} {} {said}", few.len(), all.len());
    // Negative control: rings that waves cannot wait for.
    let (lost, said) = trace("60");
    assert!(said.contains("records lost") && lost.len() < all.len(), "{} {said}", lost.len());
}

/// Packets written by GPU code are not trusted: completion signals must be in GPU memory.
#[test]
fn kernel_cannot_write_unmapped_host_memory() {
    for compiler in Compiler::ALL {
        let stderr = aborts("failing/escape", compiler);
        assert!(stderr.contains("Memory access fault by GPU"), "{stderr}");
    }
}

#[test]
fn damaged_packet_ends_the_program_with_a_memory_fault() {
    for compiler in Compiler::ALL {
        let stderr = aborts("failing/damaged_packet", compiler);
        assert!(stderr.contains("on address 0x123450000000."), "{stderr}");
    }
}

#[test]
fn device_abort_ends_the_program() {
    for compiler in Compiler::ALL {
        let stderr = aborts("failing/device_abort", compiler);
        assert!(stderr.contains("HSA_STATUS_ERROR_EXCEPTION"), "{stderr}");
    }
}

#[test]
fn device_assertion_reports_its_position() {
    for compiler in Compiler::ALL {
        let stderr = aborts("failing/device_assert", compiler);
        let claim = "device_assert.hip:8: void check(const int *): Device-side assertion \
                     `value != 37 && \"a value that must not be\"' failed.";
        assert_eq!(stderr.matches(claim).count(), 1, "{stderr}");
        assert!(stderr.contains("HSA_STATUS_ERROR_EXCEPTION"), "{stderr}");
    }
}

#[test]
fn host_abort_is_not_a_device_fault() {
    for compiler in Compiler::ALL {
        assert_eq!(aborts("failing/host_abort", compiler), "");
    }
}

#[test]
fn endless_kernel_does_not_end_the_program() {
    for compiler in Compiler::ALL {
        let finished = run("failing/endless", compiler, "gfx90a", &[], Duration::from_secs(5));
        assert!(finished.is_none(), "{finished:#?}");
    }
}

/// 104 compute units of gfx90a keep two workgroups of 1024 work-items each.
#[test]
fn waiting_for_a_workgroup_that_cannot_start_ends_the_program() {
    let stderr = aborts("failing/crowded", Compiler::Hipcc);
    let named = "flipwave: dispatch 0, kernel neighbours(int*, int*, int*): watchdog: ";
    assert!(stderr.contains(named), "{stderr}");
    let claim = "1 more cannot start, because the device keeps 208 of them resident";
    assert!(stderr.contains(claim), "{stderr}");
    assert!(
        stderr.contains(
            "208 waves, from workgroup 0,0,0 wave 0 to workgroup 207,0,0 wave 0, spin in a loop"
        ),
        "{stderr}"
    );
}

#[test]
fn violations_are_reported_at_the_end_of_the_program() {
    let program = application("failing/impatient", Compiler::Hipcc, "gfx90a");
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["exec".into(), "--strict".into(), "--".into(), program.into_os_string()];
    let finished = flipwave_within(PATIENCE, folder.path(), &arguments).expect("an end");
    assert_eq!(finished.code, Some(1), "{finished:#?}");
    assert!(finished.stderr.contains("kernel _Z9impatientPKiPi: "), "{finished:#?}");
    assert!(finished.stderr.contains("violates hardware rules (violations: 1)"), "{finished:#?}");
}

#[test]
fn programs_that_cannot_start_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    for (program, reason) in [("./missing", "No such file"), ("/", "Permission denied")] {
        let arguments = ["exec", "--", program];
        let finished = flipwave_within(PATIENCE, folder.path(), &arguments).expect("an end");
        finished.expect_refused(&[program, reason]);
    }
    // A program that does not use a GPU runs unchanged.
    let arguments = ["exec", "--", "sh", "-c", "exit 7"];
    let finished = flipwave_within(PATIENCE, folder.path(), &arguments).expect("an end");
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(7), ""));
}

/// In some of these programs, workgroups count, wait and print together.
#[test]
fn workgroups_run_on_several_threads_in_any_order() {
    let options = ["--threads", "3", "--any-order"];
    for name in ["atomics", "fences", "jacobi", "printf", "reduction", "scan", "shared_memory"] {
        passes(name, Compiler::Hipcc, "gfx90a", &options);
    }
    let stderr = run("failing/wild_write", Compiler::Hipcc, "gfx90a", &options, PATIENCE)
        .expect("an end")
        .stderr;
    assert!(stderr.contains("on address 0x123450000000."), "{stderr}");
}

/// Workgroups whose order affects the results run on one thread, so the results do not depend on the
/// number of threads.
#[test]
fn only_independent_workgroups_share_threads() {
    let lines = |threads: &str| {
        let program = application("workgroups", Compiler::Hipcc, "gfx90a");
        let program = program.to_str().expect("a name");
        let folder = tempfile::tempdir().expect("a folder");
        let arguments = ["exec", "--threads", threads, "--", program, "1000"];
        let finished = flipwave_within(PATIENCE, folder.path(), &arguments).expect("an end");
        assert_eq!(finished.code, Some(0), "{finished:#?}");
        finished.stdout
    };
    let (one, three) = (lines("1"), lines("3"));
    assert!(!one.contains(": shared"), "{one}");
    let shared: Vec<_> = three.lines().filter(|line| line.contains(": shared")).collect();
    let names = ["alone", "counting"];
    assert!(shared.iter().zip(names).all(|(line, name)| line.starts_with(name)), "{three}");
    assert_eq!(shared.len(), names.len(), "{three}");
    assert_eq!(three.replace(": shared", ": not shared"), one);
}

#[test]
fn device_fault_is_that_of_the_first_workgroup_for_any_number_of_threads() {
    for threads in ["1", "2", "5"] {
        let options = ["--threads", threads];
        let name = "failing/wild_workgroups";
        let finished = run(name, Compiler::Hipcc, "gfx90a", &options, PATIENCE).expect("an end");
        assert!(finished.stderr.contains("on address 0x123453210000."), "{finished:#?}");
    }
}

/// The dynamic linker's message about a missing library reaches the user.
#[test]
fn missing_library_is_reported_by_the_dynamic_linker() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("part.c"), "int part(void) { return 0; }").expect("written");
    std::fs::write(path("main.c"), "int part(void); int main(void) { return part(); }")
        .expect("written");
    for arguments in
        [&["-shared", "-o", "libpart.so", "part.c"][..], &["-o", "main", "main.c", "-L.", "-lpart"]]
    {
        let mut compiler = std::process::Command::new("cc");
        let status = compiler.args(arguments).current_dir(folder.path()).status();
        assert!(status.expect("cc").success());
    }
    std::fs::remove_file(path("libpart.so")).expect("removed");
    let finished =
        flipwave_within(PATIENCE, folder.path(), &["exec", "--", "./main"]).expect("an end");
    assert_eq!(finished.code, Some(127), "{finished:#?}");
    assert!(finished.stderr.contains("libpart.so"), "{finished:#?}");
}

#[test]
fn applications_with_preloaded_arguments_pass() {
    for name in ["arguments", "functions", "reduction"] {
        passes(name, Compiler::Preloading, "gfx90a", &["--strict"]);
    }
}

#[test]
fn tools_agree_with_the_embedded_gpu_on_preloaded_arguments() {
    let path = application("reduction", Compiler::Preloading, "gfx90a");
    let path = path.to_str().expect("text");
    let folder = tempfile::tempdir().expect("a folder");
    let inspected = flipwave(folder.path(), &["inspect", path], &[]).expect_success();
    assert!(inspected.stdout.contains("arguments preloaded into s["), "{}", inspected.stdout);
    let table = |by: &str| {
        let tool = ["tool", "instruction-count", "--out", "table.csv", "--by", by, "--", path];
        let finished = flipwave(folder.path(), &tool, &[]).expect_success();
        assert!(finished.stdout.ends_with("passed\n"), "{finished:?}");
        std::fs::read_to_string(folder.path().join("table.csv")).expect("the table")
    };
    let hooked = table("hook");
    assert!(hooked.lines().count() > 10);
    assert_eq!(hooked, table("embedded"));
}
