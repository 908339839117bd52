//! Tests of error messages.

use super::bench;
use super::bench::{range, register};
use crate::hook::{Argument, HookError};
use flipwave_isa::RegisterRange;

/// The error of a call of the last function of `text` at the instruction `site`.
fn message(text: &str, arguments: &[Argument], results: &[RegisterRange], site: &str) -> String {
    match bench(("gfx90a", 64)).call(text, arguments, results, site) {
        Ok(_) => panic!("no error: {text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn unsupported_features_are_refused_with_a_reason() {
    let v7 = &[register("v7", 1)];
    let v9 = &[range("v9", 1)];
    for (text, expected) in [
        (
            "uint32_t h(uint32_t a) { return a & 1 ? h(a - 1) * 2 + h(a - 2) : 3; }\n\
             uint32_t f(uint32_t a) { return h(a); }",
            "hook `f` uses `h`, which is neither a variable of its source nor an inlined function: \
             hooks cannot call functions, and are not linked",
        ),
        (
            "extern uint32_t missing; uint32_t f(uint32_t a) { return missing + a; }",
            "hook `f` uses `missing`, which is neither a variable of its source nor an inlined \
             function: hooks cannot call functions, and are not linked",
        ),
        (
            "uint32_t f(uint32_t a) {\n\
                 uint32_t x[64]; volatile uint32_t *p = x;\n\
                 for (int i = 0; i < 64; i++) p[i] = a * i;\n\
                 return p[a & 63];\n}",
            "hook `f` needs a stack, which hooks do not have: it calls a function that is not \
             inlined, indexes an array at run time, or needs more than 30 SGPRs or the caller-saved \
             VGPRs (`",
        ),
        (
            "static __attribute__((address_space(3))) uint32_t shared[4];\n\
             uint32_t f(uint32_t a) { return shared[a & 3]; }",
            "hook `shared` is in LDS, which belongs to the kernel: hooks have no LDS",
        ),
        (
            "uint32_t f(uint32_t a) { __builtin_amdgcn_s_barrier(); return a; }",
            "hook `f` waits at a barrier, which not all waves of the workgroup reach (`s_barrier`)",
        ),
        (
            "uint32_t f(uint32_t a) { if (a == 7) __builtin_trap(); return a; }",
            "hook `f` traps: hooks must not end the kernel (`s_trap 2`)",
        ),
        (
            "uint32_t f(uint32_t a) { for (;;) asm volatile(\"s_nop 0\"); }",
            "hook `f` never returns",
        ),
        (
            "uint32_t f(uint32_t a) { asm volatile(\"s_endpgm\"); return a; }",
            "hook `f` ends the wave: hooks must not end the kernel (`s_endpgm`)",
        ),
    ] {
        let message = message(text, v7, v9, "s_nop 0");
        assert!(message.starts_with(expected), "{text}\n{message}");
    }
}

#[test]
fn compile_errors_show_file_and_line() {
    let message = message("\nuint32_t f(uint32_t a) { return b; }", &[], &[], "s_nop 0");
    let expected = "hook.c does not compile for gfx90a:\nhook.c:2:33: error: ";
    assert!(message.starts_with(expected), "{message}");
    assert!(message.contains("undeclared identifier 'b'"), "{message}");
}

#[test]
fn work_item_builtins_are_poisoned() {
    let text = "uint32_t f(void) { return __builtin_amdgcn_workgroup_id_x(); }";
    let message = message(text, &[], &[range("v9", 1)], "s_nop 0");
    assert!(message.contains("hook.c:1:27: error: attempt to use a poisoned"), "{message}");
}

#[test]
fn mismatched_arguments_are_refused() {
    let text = "struct three { uint32_t a, b, c; };\n\
        void f(uint32_t a, const uint64_t *b, struct three c) {}";
    let good = [register("v7", 1), register("s8", 2), register("v4", 3)];
    let with = |at: usize, argument| {
        let mut arguments = good.to_vec();
        arguments[at] = argument;
        arguments
    };
    assert!(bench(("gfx90a", 64)).call(text, &good, &[], "s_nop 0").is_ok());
    let load = "global_load_dword v0, v[2:3], off";
    for (arguments, site, expected) in [
        (
            good[..2].to_vec(),
            load,
            "hook `void f(uint32_t a, const uint64_t * b, struct three c)` has 3 parameters, but the \
             call passes 2 arguments",
        ),
        (
            with(0, register("v2", 2)),
            load,
            "hook `f`, parameter `uint32_t a`: takes 4 bytes, v[2:3] has 8",
        ),
        (
            with(1, register("s8", 1)),
            load,
            "hook `f`, parameter `const uint64_t * b`: takes 8 bytes, s8 has 4",
        ),
        (
            with(2, register("v4", 4)),
            load,
            "hook `f`, parameter `struct three c`: takes 3 registers, 4 are given",
        ),
        (
            with(2, Argument::Constant(3)),
            load,
            "hook `f`, parameter `struct three c`: takes neither an integer nor a pointer, but a \
             number is given",
        ),
        (
            with(0, Argument::Constant(1 << 32)),
            load,
            "hook `f`, parameter `uint32_t a`: takes 4 bytes, 0x100000000 has more",
        ),
        (
            with(0, Argument::Operand(3)),
            load,
            "hook `f`, parameter `uint32_t a`: `global_load_dword v0, v[2:3], off` has no operand \
             3: it has 3 operands, counted from 0",
        ),
        (
            with(0, Argument::Operand(2)),
            load,
            "hook `f`, parameter `uint32_t a`: operand 2 of `global_load_dword v0, v[2:3], off` \
             has no value",
        ),
        (
            with(1, Argument::MemoryAddress),
            "s_nop 0",
            "hook `f`, parameter `const uint64_t * b`: `s_nop 0` accesses no memory",
        ),
        (
            with(0, Argument::Exec),
            load,
            "hook `f`, parameter `uint32_t a`: takes 4 bytes, but the number has 8; expected uint64_t",
        ),
        (
            with(0, Argument::MemoryAddress),
            load,
            "hook `f`, parameter `uint32_t a`: takes 4 bytes, but the number has 8; expected uint64_t",
        ),
        (
            with(0, Argument::WorkgroupId(3)),
            load,
            "hook `f`, parameter `uint32_t a`: workgroups have dimensions 0 to 2, not 3",
        ),
    ] {
        assert_eq!(message(text, &arguments, &[], site), expected);
    }
}

#[test]
fn mismatched_results_are_refused() {
    let text = "uint64_t f(void) { return 1; }";
    assert_eq!(
        message(text, &[], &[range("v9", 1)], "s_nop 0"),
        "hook `f`: returns uint64_t in 2 registers, but the call provides 1"
    );
    assert_eq!(
        message("void f(void) {}", &[], &[range("v9", 1)], "s_nop 0"),
        "hook `f`: returns nothing, but the call expects a result"
    );
}

#[test]
fn missing_function_is_reported_by_name() {
    let bench = bench(("gfx90a", 64));
    let source = bench.read("void count(void) {}\nvoid trace(void) {}").expect("compiles");
    let error = source.function("trance").expect_err("not there");
    assert!(matches!(error, HookError::NoFunction { .. }));
    assert_eq!(error.to_string(), "hook.c has no function `trance`; it has count, trace");
}

#[test]
fn too_many_inputs_are_refused() {
    let parameters: Vec<String> = (0..14).map(|at| format!("uint64_t a{at}")).collect();
    let text = format!("void f({}) {{}}", parameters.join(", "));
    let arguments: Vec<Argument> = (0..14).map(|at| register(&format!("s{}", 2 * at), 2)).collect();
    assert_eq!(
        message(&text, &arguments, &[], "s_nop 0"),
        "hook `f` has more inputs than fit into 26 SGPRs and 40 VGPRs"
    );
}

#[test]
fn source_may_include_the_header_and_files_in_its_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("three.h"), "#define THREE 3\n").expect("written");
    let file = folder.path().join("hook.c");
    let text = "#include \"flipwave.h\"\n#include \"three.h\"\n\
        uint32_t f(uint32_t a) { return a * THREE + FOUR; }\n";
    std::fs::write(&file, text).expect("written");
    let mut source = crate::hook::Source::read(&file).expect("read");
    source.defines.push(("FOUR".into(), "4".into()));
    let bench = bench(("gfx90a", 64));
    let read = bench.compiler.read(&source, &bench.target, 64).expect("compiles");
    assert_eq!(
        read.functions().map(ToString::to_string).collect::<Vec<_>>(),
        ["uint32_t f(uint32_t a)"]
    );
    let error = crate::hook::Source::read(&folder.path().join("none.c")).expect_err("not there");
    assert!(error.to_string().contains("none.c"), "{error}");
}
