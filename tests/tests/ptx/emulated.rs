//! Emulated instructions in PTX: proxies with operands of all kinds, in code whose other instructions do not change.

use super::ptxas;
use flipwave_campaigns::{Campaign, Emulation, emulate, prepare, profile};
use flipwave_emulator::PtxScan;
use flipwave_ptx::Ptx;
use flipwave_ptx_hooks::{Instrumentation, PtxHookCompiler};
use flipwave_ptx_sim::PtxGpu;
use flipwave_tests::{Finished, emulated_folder, flipwave, kernels, rows, to_values, yaml_files};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

const THREADS: u32 = 96;

/// A folder with a kernel in PTX, whose threads read `in` and write `out`, and hooks.
struct Bench {
    folder: TempDir,
}

impl Bench {
    /// `body` may use `%x`, the thread's word of `in`, and stores `%y`.
    fn new(body: &str, hook: &str, instruction: &str) -> Bench {
        let bench = Bench { folder: tempfile::tempdir().expect("a folder") };
        let kernel = format!(
            ".version 8.3\n.target sm_80\n.address_size 64\n\
             .visible .entry k(.param .u64 in, .param .u64 out)\n{{\n.reg .b64 %in, %out, %rd<9>; .reg .b32 %x, %y, %t, \
             %r<9>; .reg .f32 %f<9>; .reg .b16 %h<9>; .reg .pred %p<9>;\n\
             ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %in, %t, 4, %in; \
             mad.wide.u32 %out, %t, 4, %out; ld.global.u32 %x, [%in]; mov.u32 %y, 0;\n{body}\n\
             st.global.u32 [%out], %y; ret;\n}}\n"
        );
        bench.write("k.ptx", &kernel);
        bench.write("hook.c", hook);
        bench.write(
            "k.yaml",
            &format!(
                "name: k\nseed: 3\ntarget: sm_80\nworkload:\n  kernel:\n    code_object: k.ptx\n    name: k\n    \
                 grid: {THREADS}\n    workgroup: {THREADS}\n    args:\n      - {{buffer: in, type: u32, count: \
                 {THREADS}, init: {{range: {{start: 1, step: 1}}}}}}\n      - {{buffer: out, type: u32, count: \
                 {THREADS}, output: true}}\n{instruction}\nfaults: {{model: flip_one_bit, count: 150}}\n"
            ),
        );
        bench
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).expect(name);
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("k.yaml")
    }

    fn emulate(&self) -> Emulation {
        let campaign = Campaign::read(&self.path()).unwrap_or_else(|error| panic!("{error}"));
        emulate(&campaign).unwrap_or_else(|error| panic!("{error}"))
    }

    fn flipwave(&self, arguments: &[&str]) -> Finished {
        flipwave(self.folder.path(), arguments, &[])
    }
}

/// An instruction of the campaign file.
fn instruction(proxy: &str, operands: &str, rest: &str) -> String {
    format!(
        "instructions:\n  - name: new\n    proxy: \"{proxy}\"\n    operands: {{{operands}}}\n    hook: {{source: hook.c, \
         function: new}}\n    {rest}"
    )
}

const MARK: &str = ".pragma \"flipwave.proxy new\";";

/// Checks the output of an emulated program for each input from 1 on.
#[track_caller]
fn computes(bench: &Bench, expected: impl Fn(u32) -> u32) {
    let found: Vec<u32> = to_values(&bench.emulate().outputs[0]);
    let expected: Vec<u32> = (1..=THREADS).map(expected).collect();
    assert_eq!(found, expected);
}

#[test]
fn operands_of_all_kinds_reach_the_hook_and_results_their_registers() {
    // Two destinations and a source of 64 bits.
    let body =
        format!("cvt.u64.u32 %rd1, %x; {MARK} mov.b64 {{%y, %r1}}, %rd1; add.u32 %y, %y, %r1;");
    let hook = "struct two { uint32_t low, high; };
        struct two new(uint64_t wide) { return (struct two){(uint32_t)wide * 3, 7}; }";
    let operands = "low: b32, high: b32, wide: b64";
    let bench = Bench::new(&body, hook, &instruction("mov.b64 {low, high}, wide", operands, ""));
    computes(&bench, |x| 3 * x + 7);
    // Predicates, and a number.
    let body = format!(
        "setp.eq.u32 %p3, %x, 9; {MARK} setp.lt.and.u32 %p1|%p2, %x, 40, %p3; selp.u32 %y, 2, 1, %p1; \
         @%p2 add.u32 %y, %y, 8;"
    );
    let hook = "struct two { bool less, other; };
        struct two new(uint32_t a, uint32_t limit, bool c)
        {
            return (struct two){a < limit, c};
        }";
    let operands = "p: pred, q: pred, a: b32, limit: imm, c: pred";
    let bench =
        Bench::new(&body, hook, &instruction("setp.lt.and.u32 p|q, a, limit, c", operands, ""));
    computes(&bench, |x| if x < 40 { 2 } else { 1 } + if x == 9 { 8 } else { 0 });
    // 128 bits, as a number and as a structure.
    let body = format!(
        "{{ .reg .b128 %q<3>; cvt.u64.u32 %rd1, %x; mov.b64 %rd2, 0x1234567800000005; mov.b128 %q1, {{%rd1, %rd2}}; \
         {MARK} mov.b128 %q2, %q1; mov.b128 {{%rd3, %rd4}}, %q2; cvt.u32.u64 %y, %rd3; cvt.u32.u64 %r1, %rd4; \
         add.u32 %y, %y, %r1; shr.u64 %rd4, %rd4, 32; cvt.u32.u64 %r1, %rd4; xor.b32 %y, %y, %r1; }}"
    );
    let (proxy, operands) = ("mov.b128 d, a", "d: b128, a: b128");
    for hook in [
        "unsigned __int128 new(unsigned __int128 a) { return a * 3 + 1; }",
        "struct parts { uint64_t low, high; };
         unsigned __int128 new(struct parts a)
         {
             return ((unsigned __int128)a.high << 64 | a.low) * 3 + 1;
         }",
    ] {
        let bench = Bench::new(&body, hook, &instruction(proxy, operands, ""));
        computes(&bench, |x| {
            let value = (0x1234_5678_0000_0005_u128 << 64 | u128::from(x)) * 3 + 1;
            (value as u32).wrapping_add((value >> 64) as u32) ^ (value >> 96) as u32
        });
    }
    // 16 bits, and floating point.
    let body =
        format!("cvt.u16.u32 %h1, %x; {MARK} cvt.rn.f32.u16 %f1, %h1; cvt.rzi.u32.f32 %y, %f1;");
    let hook = "float new(uint16_t a) { return a * 1.5f; }";
    let bench = Bench::new(&body, hook, &instruction("cvt.rn.f32.u16 d, a", "d: b32, a: b16", ""));
    computes(&bench, |x| x * 3 / 2);
    // A destination that is read, and no destination at all.
    let body = format!("mov.u32 %y, 100; {MARK} mad.lo.u32 %y, %x, 11, %y;");
    let hook = "uint32_t new(uint32_t acc, uint32_t a) { return acc + a * a; }";
    let operands = "acc: b32, a: b32";
    let bench = Bench::new(&body, hook, &instruction("mad.lo.u32 acc, a, 11, acc", operands, ""));
    computes(&bench, |x| 100 + x * x);
    let body = format!("{MARK} st.global.s32 [%out+0], %x; ld.global.u32 %y, [%out];");
    let hook = "void new(uint64_t to, uint32_t value) { *(uint32_t *)to = value + 1; }";
    let operands = "to: b64, value: b32";
    let bench = Bench::new(&body, hook, &instruction("st.global.s32 [to], value", operands, ""));
    computes(&bench, |x| x + 1);
}

#[test]
fn guards_decide_which_lanes_receive_results() {
    let body =
        format!("and.b32 %r1, %x, 3; setp.eq.u32 %p1, %r1, 0; {MARK} @%p1 shl.b32 %y, %x, 30;");
    let hook = "uint32_t new(uint32_t a) { return flipwave_ballot(true); }";
    let operands = "d: b32, a: b32";
    let bench = Bench::new(&body, hook, &instruction("shl.b32 d, a, 30", operands, ""));
    computes(&bench, |x| if x % 4 == 0 { 0x8888_8888 } else { 0 });
    // In all lanes, the hook learns which of them execute the instruction.
    let hook = "uint32_t new(uint32_t a, uint64_t exec)
        {
            return flipwave_shuffle(a, flipwave_lane() ^ 1) + (exec == 0x88888888 ? 1000 : 0);
        }";
    let bench = Bench::new(&body, hook, &instruction("shl.b32 d, a, 30", operands, "lanes: all"));
    computes(&bench, |x| if x % 4 == 0 { x - 1 + 1000 } else { 0 });
}

/// A hook that computes what its instruction computes changes no count and no row: faults strike the emulated
/// instruction as they strike the real one.
#[test]
fn identical_hook_changes_no_row() {
    let body = "mov.u32 %r1, 0;
        L: min.s32 %r2, %x, 50; add.u32 %y, %y, %r2; setp.gt.u32 %p1, %x, 30; @%p1 min.s32 %y, %y, 9999;
        add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 5; @%p2 bra L;";
    let all = "match: all";
    let hook = "int32_t new(int32_t a, int32_t b) { return a < b ? a : b; }";
    let emulated = instruction("min.s32 d, a, b", "d: b32, a: b32, b: imm", all);
    let [plain, emulated] = ["", &emulated].map(|text| Bench::new(body, hook, text));
    for bench in [&plain, &emulated] {
        bench.flipwave(&["run", "k.yaml", "--out", "results"]).expect_success();
    }
    let [expected, found] =
        [&plain, &emulated].map(|bench| rows(&bench.folder.path().join("results")));
    let struck = found.iter().filter(|row| row.opcode == "new").count();
    assert!(struck > 10, "{struck}");
    for (expected, found) in expected.iter().zip(found) {
        let is_new = expected.opcode == "min.s32";
        assert_eq!(is_new, found.opcode == "new");
        assert_eq!(*expected, flipwave_analysis::Row { opcode: expected.opcode.clone(), ..found });
    }
    let profiles = [&plain, &emulated].map(|bench| {
        let campaign = Campaign::read(&bench.path()).unwrap_or_else(|error| panic!("{error}"));
        let all = profile(&campaign).unwrap_or_else(|error| panic!("{error}")).instructions;
        all.iter().map(|inst| (inst.pc, inst.executions, inst.sites)).collect::<Vec<_>>()
    });
    assert_eq!(profiles[0], profiles[1]);
    let executed: u64 = profiles[1].iter().map(|(_, executions, _)| executions).sum();
    let emulation = emulated.emulate();
    assert_eq!(emulation.executed[0].instructions, executed);
    let executions: Vec<u64> = emulation.instructions.iter().map(|one| one.executions).collect();
    assert_eq!(executions, [15, 15]);
    // A site of the emulated instruction is replayed to the same values.
    let row = expected.iter().find(|row| row.opcode == "min.s32").expect("a row");
    let [expected, found] = [&plain, &emulated]
        .map(|bench| bench.flipwave(&["replay", "k.yaml", "--site", &row.site]).stdout);
    assert_eq!(expected.replace("min.s32 %r2, %x, 50", "new %r2, %x, 0x32"), found);
}

/// Negative control: a hook that differs in one result.
#[test]
fn different_hook_changes_rows() {
    let body = "min.s32 %y, %x, 50;";
    let hook =
        |limit: u32| format!("int32_t new(int32_t a, int32_t b) {{ return a < {limit} ? a : b; }}");
    let emulated = instruction("min.s32 d, a, b", "d: b32, a: b32, b: imm", "match: all");
    let outputs: [Vec<u32>; 2] = [50, 49]
        .map(|limit| to_values(&Bench::new(body, &hook(limit), &emulated).emulate().outputs[0]));
    let changed = outputs[0].iter().zip(&outputs[1]).filter(|(a, b)| a != b).count();
    assert_eq!(changed, 1);
}

#[test]
fn tools_see_emulated_instructions_as_one() {
    let folder = emulated_folder().join("ptx");
    let counts = |file: &str| {
        let file = folder.join(file);
        let arguments = ["tool", "opcode-histogram", file.to_str().expect("a path")];
        flipwave(&folder, &arguments, &[]).expect_success().stdout
    };
    let table = counts("packed_i4.yaml");
    assert!(table.contains("0,emulated,add_sat_i4x8,32\n"), "{table}");
    assert!(!table.contains("lop3"), "{table}");
}

/// Runs a bench whose file is invalid.
#[track_caller]
fn refused(bench: &Bench, words: &[&str]) {
    let finished = bench.flipwave(&["emulate", "k.yaml"]);
    finished.expect_refused(words);
    assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
}

#[test]
fn proxies_that_do_not_fit_are_refused() {
    let hook = "uint32_t new(uint32_t a) { return a; }";
    let body = format!("{MARK} shl.b32 %y, %x, 30;");
    let bench = |body: &str, hook: &str, proxy: &str, operands: &str| {
        Bench::new(body, hook, &instruction(proxy, operands, ""))
    };
    let operands = "d: b32, a: b32";
    let fitting = bench(&body, hook, "shl.b32 d, a, 30", operands);
    assert_eq!(fitting.flipwave(&["emulate", "k.yaml"]).code, Some(0));
    let proxy = "shl.b32 d, a, 31";
    refused(
        &bench(&body, hook, proxy, operands),
        &["is marked as its proxy", "operand 2 is 0x1e, not 0x1f"],
    );
    let twice = format!("{body} shl.b32 %y, %y, 30;");
    refused(
        &bench(&twice, hook, "shl.b32 d, a, 30", operands),
        &["unmarked instructions match", "`shl.b32 %y, %y, 30` at 0x", "match: all"],
    );
    let unmarked = "shl.b32 %y, %x, 29;";
    refused(
        &bench(unmarked, hook, "shl.b32 d, a, 30", operands),
        &["no instruction in the program matches", "closest match is `shl.b32 %y, %x, 29`"],
    );
    let other = body.replace("proxy new", "proxy other");
    refused(
        &bench(&other, hook, "shl.b32 d, a, 30", operands),
        &["unknown instruction `other`", "new"],
    );
    let proxy = "shl.b32 d, a, 30";
    refused(&bench(&body, hook, proxy, "d: vgpr, a: b32"), &["PTX has no operands of kind `vgpr`"]);
    refused(
        &bench(&body, hook, proxy, "d: b32, a: b64"),
        &["operand 1 is not `b64`, as `a` must be"],
    );
    refused(&bench(&body, hook, "nothing.b32 d, a", operands), &["unknown opcode"]);
    refused(
        &bench(&body, "void new(uint32_t a) {}", proxy, operands),
        &["returns no result for `d`"],
    );
    refused(
        &bench(&body, "uint32_t new(uint32_t b) { return b; }", proxy, operands),
        &["expected one of a"],
    );
    refused(
        &bench(&body, "uint32_t new(void) { return 1; }", proxy, operands),
        &["no parameter for the source `a`"],
    );
    refused(
        &bench(&body, "uint32_t old(uint32_t a) { return a; }", proxy, operands),
        &["no function `new`", "old"],
    );
    refused(
        &bench(&body, "uint64_t new(uint32_t a) { return a; }", proxy, operands),
        &["has more than 4 bytes"],
    );
    refused(
        &bench(&body, "uint32_t new(uint64_t a) { return a; }", proxy, operands),
        &["parameter for operand `a`"],
    );
}

/// NVIDIA's assembler accepts code with proxies, and code with hooks in their place.
#[test]
fn ptxas_accepts_proxies_and_their_hooks() {
    let Some(programs) = ptxas::programs() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for file in yaml_files(&emulated_folder().join("ptx")) {
        let campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
        let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{error}"));
        let gpu: &PtxGpu = prepared.workload.device.downcast().expect("a GPU");
        let module = prepared.workload.program.dispatches[0].module;
        let module = &gpu.program(module).expect("a program").module;
        let mut instrumentation = Instrumentation::new(module).expect("a module");
        let code = instrumentation.code().clone();
        let (target, compiler) = (Ptx::new("sm_80").expect("a target"), PtxHookCompiler::default());
        let instructions = &kernels(&campaign).instructions;
        let scan = PtxScan::new(module, &code, &target, instructions, &compiler);
        let scan = scan.unwrap_or_else(|error| panic!("{error}"));
        scan.replace(&mut instrumentation).unwrap_or_else(|error| panic!("{error}"));
        let rewritten = instrumentation.rewrite().unwrap_or_else(|error| panic!("{error}"));
        for text in [module.to_string(), rewritten.module.to_string()] {
            let object = folder.path().join("object.cubin");
            ptxas::assemble(&programs, &text, "sm_80", &object)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        }
    }
}
