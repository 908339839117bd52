//! Messages about faults: operands, faulting lanes, and the call chain. LLVM's symbolizer says which
//! functions and lines belong to an address; the values follow from the arguments of the kernels.

use flipwave_device::{
    Address, ArgumentValue, CallFrame, ChainEnd, Completion, Device, DeviceFault, FaultContext,
    FrameEntry, RegisterValue,
};
use flipwave_injector::GoldenError;
use flipwave_sim::{Compiling, Policy};
use flipwave_tests::{
    GFX90A, TestProgram, assemble, compile, compile_for, flipwave_within, gpu, gpu_mut, machines,
    scalar,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// An address that is never allocated.
const WILD: u64 = 0x10;

/// Address and bits of the lanes 3 to 7 and 20.
const BAD: u64 = 0xf8 | 1 << 20;

const PATIENCE: Duration = Duration::from_secs(120);

/// The program of `fault_chain.cl` in which the lanes in `bad` fault.
fn chain(code_object: &[u8], bad: u64) -> TestProgram {
    let mut program = TestProgram::new(code_object);
    let out = program.output(&[0u32; 64]);
    let arguments = [out, scalar(WILD), scalar(bad), scalar(42u32)];
    program.launch("chain", [32, 1, 1], [32, 1, 1], &arguments);
    program
}

/// The fault of the golden run, and the whole message.
fn fault(program: &TestProgram) -> (DeviceFault, String) {
    let error = program.workload().golden().expect_err("a fault");
    let text = error.to_string();
    let GoldenError::Faulted { fault, .. } = error else { panic!("{text}") };
    (*fault, text)
}

fn context(fault: &DeviceFault) -> &FaultContext {
    fault.context.as_deref().expect("a context")
}

/// A code object in a file of its own.
struct ObjectFile {
    folder: tempfile::TempDir,
}

impl ObjectFile {
    fn new(code_object: &[u8]) -> ObjectFile {
        let file = ObjectFile { folder: tempfile::tempdir().expect("a folder") };
        std::fs::write(file.path(), code_object).expect("the file written");
        file
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("code.co")
    }

    /// Functions at an address, innermost first, with file name and line, according to LLVM.
    fn symbolized(&self, address: u64) -> Vec<(String, String)> {
        let output = Command::new("llvm-symbolizer-22")
            .args(["--inlines", "--demangle", "--basenames", &format!("{address:#x}"), "--obj"])
            .arg(self.path())
            .output()
            .expect("llvm-symbolizer-22 (Debian's package llvm-22) is needed by this test");
        let text = String::from_utf8(output.stdout).expect("text");
        let lines: Vec<&str> = text.trim().lines().collect();
        let frame = |pair: &[&str]| {
            // A file, a line and a column.
            let (line, _) = pair[1].rsplit_once(':').expect("a column");
            (pair[0].to_owned(), line.to_owned())
        };
        lines.chunks_exact(2).map(frame).collect()
    }

    /// Runs an LLVM tool that changes the file.
    fn changed(&self, tool: &str, arguments: &[&str]) -> Vec<u8> {
        let status = Command::new(tool).args(arguments).arg(self.path()).status();
        assert!(status.expect("LLVM's tools (Debian's package llvm-22)").success(), "{tool}");
        std::fs::read(self.path()).expect("the file")
    }
}

/// Function, file name and line of a frame.
fn described(frame: &CallFrame) -> (String, String) {
    let line = frame.line.as_ref().expect("a line");
    let file = Path::new(&*line.file).file_name().expect("a name").to_string_lossy().into_owned();
    let function = frame.function.as_deref().expect("a function").to_owned();
    (function, format!("{file}:{}", line.line))
}

/// The chain that LLVM's symbolizer sees at the addresses of the frames that are not inlined. Callers are
/// looked up at their call, not at the instruction to return to.
fn expected_chain(object: &ObjectFile, frames: &[CallFrame]) -> Vec<(String, String)> {
    let called = frames.iter().filter(|frame| frame.entry == FrameEntry::Called);
    let at = |(index, frame): (usize, &CallFrame)| {
        object.symbolized(if index == 0 { frame.pc.0 } else { frame.pc.0 - 1 })
    };
    let mut expected: Vec<(String, String)> = called.enumerate().flat_map(at).collect();
    // The body of an OpenCL kernel is shown as the kernel, without the kernel that only calls it. LLVM
    // names it like the kernel if there are only line tables.
    for (name, _) in &mut expected {
        *name = name.replace("__clang_ocl_kern_imp_", "");
    }
    if let [.., (body, _), (kernel, _)] = &expected[..]
        && body == kernel
    {
        expected.pop();
    }
    expected
}

#[test]
fn call_chain_agrees_with_the_symbolizer() {
    for machine in machines() {
        for (level, debug) in [("-O0", "-g"), ("-O2", "-g"), ("-O2", "-gline-tables-only")] {
            let code = compile_for(machine, "fault_chain.cl", &[level, debug]);
            let (object, (fault, text)) = (ObjectFile::new(&code), fault(&chain(&code, BAD)));
            let FaultContext { frames, chain_end, .. } = context(&fault);
            let found: Vec<(String, String)> = frames.iter().map(described).collect();
            let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["store_one", "store_both", "walk", "chain"], "{machine} {level}");
            assert_eq!(found, expected_chain(&object, frames), "{machine} {level} {debug}: {text}");
            assert_eq!(frames[1].entry, FrameEntry::Inlined, "{text}");
            assert_eq!(*chain_end, ChainEnd::Kernel, "{text}");
            for (name, line) in &found {
                assert!(text.contains(&format!("in {name} at ")), "{text}");
                assert!(text.contains(line.as_str()), "{text}");
            }
            // Negative control: the symbolizer says something else about another call.
            let elsewhere = object.symbolized(frames[0].pc.0);
            assert_ne!(described(&frames[2]), elsewhere[0]);
        }
    }
}

#[test]
fn faulting_lanes_and_operands_have_the_values_of_the_kernel() {
    for machine in machines() {
        for (level, bad) in [("-O0", BAD), ("-O2", BAD), ("-O2", 1 << 31), ("-O2", 0xffff_ffff)] {
            let code = compile_for(machine, "fault_chain.cl", &[level]);
            let (fault, text) = fault(&chain(&code, bad));
            let context = context(&fault);
            let expected: Vec<(u8, u64)> = (0..32u8)
                .filter(|lane| bad >> lane & 1 != 0)
                .map(|lane| (lane, WILD + 4 * u64::from(lane)))
                .collect();
            let lanes: Vec<(u8, u64)> =
                context.lanes.iter().map(|lane| (lane.lane.0, lane.address.0)).collect();
            assert_eq!(lanes, expected, "{machine} {level}: {text}");
            assert!(context.instruction.contains("_store_"), "{text}");
            // The address in a pair of registers, and the stored value, 42.
            let values: Vec<Vec<(u8, u64)>> =
                context.operands.iter().filter_map(|operand| per_lane(&operand.value)).collect();
            let stored: Vec<(u8, u64)> = expected.iter().map(|(lane, _)| (*lane, 42)).collect();
            assert_eq!(values, [expected, stored], "{machine} {level}: {text}");
            assert!(text.contains("0x0000002a"), "{text}");
        }
    }
}

/// The values of a per-lane register or pair of registers.
fn per_lane(value: &RegisterValue) -> Option<Vec<(u8, u64)>> {
    let RegisterValue::PerLane(values) = value else { return None };
    let number =
        |words: &[u32]| words.iter().rev().fold(0, |all, word| all << 32 | u64::from(*word));
    Some(values.iter().map(|(lane, bits)| (lane.0, number(&bits.words))).collect())
}

#[test]
fn program_without_faults_completes() {
    for machine in machines() {
        let code = compile_for(machine, "fault_chain.cl", &["-O2"]);
        chain(&code, 0).outputs();
    }
}

/// The lanes behind the first faulting one are executed again to find out whether they fault.
#[test]
fn explaining_a_fault_changes_no_memory() {
    let code = compile("fault_chain.cl", &["-O2"]);
    let mut program = TestProgram::new(&code);
    let out = program.output(&[0u32; 64]);
    let ArgumentValue::Buffer(address) = out else { panic!("a buffer") };
    program.launch("add", [64, 1, 1], [64, 1, 1], &[out, scalar(WILD), scalar(5u32)]);
    let mut workload = program.workload();
    let device = gpu_mut(&mut workload.device);
    let end = device.dispatch(&workload.program.dispatches[0]).expect("a dispatch");
    let Completion::Faulted(fault) = end else { panic!("it completed") };
    let lanes: Vec<u8> = context(&fault).lanes.iter().map(|lane| lane.lane.0).collect();
    assert_eq!(lanes, (5..64).collect::<Vec<u8>>());
    let mut word = [0; 4];
    device.read(address, &mut word).expect("the buffer");
    assert_eq!(u32::from_le_bytes(word), 5, "the lanes before the first faulting one have added");
}

#[test]
fn all_tiers_report_the_same() {
    for level in ["-O0", "-O2"] {
        let program = chain(&compile("fault_chain.cl", &[level, "-g"]), BAD);
        let report = |compiling| {
            let mut workload = program.workload();
            let policy = Policy { compiling, ..gpu(&workload.device).policy() };
            let device = gpu_mut(&mut workload.device);
            device.set_policy(policy);
            // The second dispatch finds the code that the first one has compiled.
            let ends = [0, 1].map(|_| device.dispatch(&workload.program.dispatches[0]));
            ends.map(|end| match end.expect("a dispatch") {
                Completion::Faulted(fault) => fault.report(None).to_string(),
                Completion::Completed(_) => panic!("it completed"),
            })
        };
        let [first, second] = report(Compiling::Never);
        assert_eq!(first, second);
        assert_eq!(report(Compiling::AtOnce), [first.clone(), first]);
    }
}

#[test]
fn recursion_and_saved_registers_are_unwound() {
    for level in ["-O0", "-O2"] {
        let code = compile("fault_names.hip", &[level, "-g"]);
        let object = ObjectFile::new(&code);
        let mut program = TestProgram::new(&code);
        let out = program.output(&[0i32; 64]);
        // Two nodes; the second one has no successor.
        let second = program.input(&[0u64; 2]);
        let ArgumentValue::Buffer(second) = second else { panic!("a buffer") };
        let list = program.input(&[7, second.0]);
        program.launch(TOTAL, [64, 1, 1], [64, 1, 1], &[list, out, scalar(5i32)]);
        let (fault, text) = fault(&program);
        let frames = &context(&fault).frames;
        let found: Vec<(String, String)> = frames.iter().map(described).collect();
        assert_eq!(found, expected_chain(&object, frames), "{level}: {text}");
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        let kernel = "void total<int>(Node const*, int*, int)";
        let sum = "sum(Node const*, int)";
        assert_eq!(names.last(), Some(&kernel), "{level}: {text}");
        assert!(names[..names.len() - 1].iter().all(|name| *name == sum), "{level}: {text}");
        assert_eq!(names.len(), 1 + 3, "{level}: {text}");
        assert_eq!(context(&fault).chain_end, ChainEnd::Kernel);
    }
}

const TOTAL: &str = "_Z5totalIiEvPK4NodePT_i";
const STUCK: &str = "_Z5stuckIfEvPT_i";
const CALL: &str = "_Z4callPiPFvS_E";

#[test]
fn stall_names_the_demangled_kernel_and_the_lines_of_the_user() {
    for level in ["-O0", "-O2"] {
        let code = compile("fault_names.hip", &[level, "-g"]);
        let object = ObjectFile::new(&code);
        let stuck = |waves: i32| {
            let mut program = TestProgram::new(&code);
            let out = program.output(&[0f32; 2]);
            program.launch(STUCK, [128, 1, 1], [128, 1, 1], &[out, scalar(waves)]);
            program
        };
        let (fault, text) = fault(&stuck(1));
        assert!(text.contains("(kernel `void stuck<float>(float*, int)`): watchdog"), "{text}");
        assert!(!text.contains("_Z"), "{text}");
        // The barrier is in a header of the runtime, in a function that is called in line 26.
        let frames = &context(&fault).frames;
        let found: Vec<(String, String)> = frames.iter().map(described).collect();
        assert_eq!(found, expected_chain(&object, frames), "{level}: {text}");
        assert!(found.iter().any(|(_, line)| line == "fault_names.hip:26"), "{text}");
        let barrier = text.lines().find(|line| line.contains("`s_barrier`")).expect("a barrier");
        if frames.iter().any(|frame| frame.entry == FrameEntry::Inlined) {
            assert!(barrier.ends_with("fault_names.hip:26)"), "{level}: {text}");
        }
        // Negative control: both waves arrive.
        stuck(2).outputs();
    }
}

#[test]
fn call_to_an_address_without_code_has_a_caller() {
    for (level, target) in [("-O0", 0u64), ("-O2", 0), ("-O2", 0x40)] {
        let code = compile("fault_names.hip", &[level, "-g"]);
        let mut program = TestProgram::new(&code);
        let out = program.output(&[0i32; 2]);
        program.launch(CALL, [1, 1, 1], [1, 1, 1], &[out, ArgumentValue::Buffer(Address(target))]);
        let (fault, text) = fault(&program);
        let frames = &context(&fault).frames;
        assert!(text.contains(&format!("instruction fetch from {target:#x}")), "{text}");
        assert_eq!((frames[0].pc.0, &frames[0].function), (target, &None), "{text}");
        let (function, line) = described(&frames[1]);
        assert_eq!(function, "call(int*, void (*)(int*))", "{text}");
        assert_eq!(line, "fault_names.hip:36", "{text}");
    }
}

#[test]
fn code_without_debug_information_has_names_and_offsets() {
    let code = compile_for(GFX90A, "fault_chain.cl", &["-O2", "-g0"]);
    let object = ObjectFile::new(&code);
    let (fault, text) = fault(&chain(&code, BAD));
    let frames = &context(&fault).frames;
    let functions: Vec<Option<&str>> =
        frames.iter().map(|frame| frame.function.as_deref()).collect();
    assert_eq!(functions, ["store_one", "walk", "chain"].map(Some), "{text}");
    for (index, frame) in frames.iter().enumerate() {
        assert_eq!(frame.line, None, "{text}");
        let address = if index == 0 { frame.pc.0 } else { frame.pc.0 - 1 };
        let [(name, _)] = &object.symbolized(address)[..] else { panic!("one function") };
        assert_eq!(Some(name.as_str()), frame.function.as_deref(), "{text}");
    }
    assert!(text.contains("in store_one+0x"), "{text}");
    assert!(!text.contains(".cl:"), "{text}");
}

/// Without symbols, only the kernel can be named: nothing is guessed.
#[test]
fn code_without_symbols_has_no_call_chain() {
    let code = compile_for(GFX90A, "fault_chain.cl", &["-O2", "-g0"]);
    let object = ObjectFile::new(&code);
    let stripped = object.changed("llvm-strip-22", &["--strip-all"]);
    assert_ne!(stripped, code);
    let (fault, text) = fault(&chain(&stripped, BAD));
    let FaultContext { frames, chain_end, .. } = context(&fault);
    let [frame] = &frames[..] else { panic!("{text}") };
    assert_eq!(frame.pc, fault.place.pc);
    assert!(matches!(chain_end, ChainEnd::UnknownCaller(_)), "{text}");
    assert!(text.contains("(kernel `chain`)"), "{text}");
    assert!(text.contains("called from an unknown function: "), "{text}");
}

/// Instructions in which `planted` calls `outer`, and `outer` calls `inner`, which stores to address 0.
/// `in_outer` is executed after `outer` has saved its return address, `in_inner` before the store, and
/// `enter` enters `outer`.
fn nested(in_outer: &str, in_inner: &str, enter: &str) -> String {
    format!(
        "
        {enter}
        s_endpgm
        .type outer,@function
    outer:
        v_writelane_b32 v40, s30, 0
        v_writelane_b32 v40, s31, 1
        {in_outer}
        s_call_b64 s[30:31], inner
        v_readlane_b32 s30, v40, 0
        v_readlane_b32 s31, v40, 1
        s_setpc_b64 s[30:31]
        .size outer, .-outer
        .type inner,@function
    inner:
        v_mov_b32 v4, 0
        v_mov_b32 v5, 0
        {in_inner}
        global_store_dword v[4:5], v1, off
        s_setpc_b64 s[30:31]
        .size inner, .-inner
        "
    )
}

#[test]
fn return_addresses_are_proven_and_not_guessed() {
    const CALL_OUTER: &str = "s_call_b64 s[30:31], outer";
    const NOT_PROVEN: &str = "the code does not prove where its return address is";
    const NO_CALL: &str = "its return address does not follow a call";
    let whole = (&["inner", "outer", "planted"][..], ChainEnd::Kernel);
    let unknown = |names: &'static [&'static str], reason: &'static str| {
        (names, ChainEnd::UnknownCaller(reason.into()))
    };
    let cases = [
        (nested("", "", CALL_OUTER), whole.clone()),
        // Another lane, and another register.
        (nested("v_writelane_b32 v40, s2, 2", "v_mov_b32 v41, 0", CALL_OUTER), whole),
        // The saved address is overwritten: wholly, or one half of it, in one function or the other.
        (nested("v_mov_b32 v40, 0", "", CALL_OUTER), unknown(&["inner", "outer"], NOT_PROVEN)),
        (
            nested("v_writelane_b32 v40, s2, 1", "", CALL_OUTER),
            unknown(&["inner", "outer"], NOT_PROVEN),
        ),
        (nested("", "v_mov_b32 v40, 0", CALL_OUTER), unknown(&["inner", "outer"], NOT_PROVEN)),
        // The address is lost, or replaced by one that no call has left.
        (nested("", "s_mov_b64 s[30:31], 0", CALL_OUTER), unknown(&["inner"], NOT_PROVEN)),
        (
            nested("", "", "s_getpc_b64 s[30:31]\n s_branch outer"),
            unknown(&["inner", "outer"], NO_CALL),
        ),
        // The number of the overwritten register is known only at run time.
        (
            nested("s_set_gpr_idx_on s2, 8\n v_mov_b32 v1, 0\n s_set_gpr_idx_off", "", CALL_OUTER),
            unknown(&["inner", "outer"], "the function's code cannot be analysed"),
        ),
    ];
    for (body, (names, end)) in cases {
        let mut program = TestProgram::new(&assemble(&body).code_object);
        let buffer = program.output(&[0u32; 64]);
        program.launch("planted", [64, 1, 1], [64, 1, 1], &[buffer]);
        let (fault, text) = fault(&program);
        let FaultContext { frames, chain_end, .. } = context(&fault);
        let found: Vec<&str> =
            frames.iter().filter_map(|frame| frame.function.as_deref()).collect();
        assert_eq!((&found[..], chain_end), (names, &end), "{body}{text}");
    }
}

/// A failed assertion traps in a function of the runtime, and calls the host in a campaign.
#[test]
fn assertion_is_reported_at_the_line_of_the_user() {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("applications/failing/device_assert.hip");
    for level in ["-O0", "-O2"] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut compiler = Command::new("hipcc");
        compiler.args(["--offload-arch=gfx90a", level, "-g"]).arg(&source).args(["-o", "check"]);
        assert!(compiler.current_dir(folder.path()).status().expect("hipcc").success());
        let finished = flipwave_within(PATIENCE, folder.path(), &["exec", "--", "./check"]);
        let stderr = finished.expect("an end").stderr;
        let mut lines = stderr.lines().skip_while(|line| !line.starts_with("flipwave: "));
        let first = lines.next().expect("a report");
        assert!(first.contains("kernel check(int const*): trap 2, at pc 0x"), "{stderr}");
        assert!(first.ends_with("/device_assert.hip:8)"), "{stderr}");
        let chain: Vec<&str> = lines.skip_while(|line| !line.contains("call chain:")).collect();
        assert!(chain[1].contains(" in __assert_fail at ") && chain[1].contains(".h:"), "{stderr}");
        let kernel = chain.last().expect("a kernel");
        assert!(kernel.contains(" in check(int const*) at "), "{stderr}");
        assert!(kernel.ends_with("/device_assert.hip:8"), "{stderr}");
    }
}

#[test]
fn assertion_in_a_campaign_is_reported_at_the_line_of_the_user() {
    for level in ["-O0", "-O2"] {
        let mut program = TestProgram::new(&compile("calls_host.hip", &[level, "-g"]));
        let (values, doubled) = (program.input(&[37i32]), program.output(&[0i32]));
        program.launch("checks", [1, 1, 1], [1, 1, 1], &[values, doubled]);
        let (fault, text) = fault(&program);
        let line = context(&fault).line().expect("a line");
        assert!(line.file.ends_with("calls_host.hip") && line.line == 8, "{level}: {text}");
        let first = text.lines().next().expect("a line");
        assert!(first.ends_with("calls_host.hip:8)"), "{text}");
        assert!(context(&fault).frames.len() > 1, "{text}");
    }
}
