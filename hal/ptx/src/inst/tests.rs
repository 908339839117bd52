//! Registers and groups of instructions.

use super::Inst;
use crate::{parse, resolve};
use flipwave_arch::{FloatFormat, Group, Instruction, RegisterRole};

/// The instruction with this text. Words: `%r0` to `%r7` are 0 to 7, `%d0` to `%d3` are pairs from 8 on.
fn inst(text: &str) -> Inst {
    let text = format!(
        ".version 8.0\n.shared .u32 s;\n.func f(.reg .b32 a) {{ ret; }}\n.entry k()\n{{\n.reg .b32 %r<8>; \
         .reg .b64 %d<4>; .reg .pred %p<4>;\n{text};\n}}"
    );
    let module = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let code = resolve(&module).unwrap_or_else(|error| panic!("{error}"));
    code.instructions.last().expect("an instruction").clone()
}

fn names(inst: &Inst, role: RegisterRole) -> String {
    let names: Vec<String> = inst.registers(role).iter().map(ToString::to_string).collect();
    names.join(" ")
}

#[test]
fn registers_have_their_roles() {
    use RegisterRole::{Destination, LoadAddress, Source, StoreAddress, StoreValue};
    let cases = [
        ("add.s32 %r0, %r1, %r2", [Destination, Source], ["%w0", "%w1 %w2"]),
        ("@!%p3 mul.wide.u32 %d0, %r1, 5", [Destination, Source], ["%w8 %w9", "%w1 %p3"]),
        (
            "setp.lt.and.s32 %p0|%p1, %r1, %r2, !%p2",
            [Destination, Source],
            ["%p0 %p1", "%w1 %w2 %p2"],
        ),
        ("ld.global.v2.b32 {%r0, _}, [%d1+8]", [Destination, LoadAddress], ["%w0", "%w10 %w11"]),
        ("st.shared.b32 [%r1], %r2", [StoreAddress, StoreValue], ["%w1", "%w2"]),
        (
            "atom.global.cas.b32 %r0, [%d0], %r1, %r2",
            [StoreAddress, StoreValue],
            ["%w8 %w9", "%w1 %w2"],
        ),
        ("ld.shared.b32 %r0, [s]", [Destination, LoadAddress], ["%w0", ""]),
        ("mov.b64 {%r1, %r2}, %d1", [Destination, Source], ["%w1 %w2", "%w10 %w11"]),
        ("addc.cc.u32 %r0, %r1, %r2", [Destination, Source], ["%w0 %cc", "%w1 %w2 %cc"]),
        ("shfl.sync.up.b32 %r0|%p1, %r1, 1, 0, -1", [Destination, Source], ["%w0 %p1", "%w1"]),
        ("call (%r0), f, (%r1)", [Destination, Source], ["%w0", "%w1"]),
        ("bar.sync %r1", [Destination, Source], ["", "%w1"]),
        ("barrier.cta.red.popc.u32 %r1, %r2, %p1", [Destination, Source], ["%w1", "%w2 %p1"]),
        ("mov.u32 %r1, %tid.x", [Destination, Source], ["%w1", ""]),
        ("frob.b32 %r1, %r2", [Destination, Source], ["%w1 %w2", "%w1 %w2"]),
    ];
    for (text, roles, expected) in cases {
        let inst = inst(text);
        assert_eq!(roles.map(|role| names(&inst, role)), expected, "{text}");
    }
}

#[test]
fn groups_follow_from_class_and_types() {
    let groups = |text: &str| {
        let inst = inst(text);
        let names: Vec<&str> = Group::ALL
            .iter()
            .filter(|group| inst.is_in(**group))
            .map(|group| group.name())
            .collect();
        format!("{}: {}", inst.primary_group(), names[1..].join(" "))
    };
    assert_eq!(groups("fma.rn.f64 %d0, %d1, %d2, %d3"), "valu: valu fp64 vector_register");
    assert_eq!(groups("add.s32 %r0, %r1, %r2"), "valu: valu integer vector_register");
    assert_eq!(groups("setp.eq.f32 %p0, %r1, %r2"), "valu: valu fp32 compare");
    assert_eq!(groups("ld.shared.f32 %r0, [s]"), "lds: lds load vector_register");
    assert_eq!(groups("atom.global.add.f32 %r0, [%d0], %r1"), "vmem: vmem atomic vector_register");
    assert_eq!(groups("bra.uni L; L: ret"), "all: ");
    let matrix =
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0, %d1}, {%d2}, {%d3}, {%d0, %d1}";
    assert_eq!(groups(matrix), "matrix: matrix fp64 vector_register");
}

#[test]
fn numbers_begin_in_their_first_word() {
    let formats = |text: &str, name: &str, role| {
        let inst = inst(text);
        let register = inst.registers(role).into_iter().find(|found| found.to_string() == name);
        inst.float_formats(register.expect("a register"), role)
    };
    let (destination, source) = (RegisterRole::Destination, RegisterRole::Source);
    assert_eq!(formats("neg.f64 %d0, %d1", "%w8", destination), [FloatFormat::F64]);
    assert_eq!(formats("neg.f64 %d0, %d1", "%w9", destination), []);
    assert_eq!(
        formats("neg.f16x2 %r0, %r1", "%w1", source),
        [FloatFormat::F16, FloatFormat::F16High]
    );
    assert_eq!(formats("cvt.rzi.s32.f32 %r0, %r1", "%w1", source), []);
    assert_eq!(formats("ld.global.f32 %r0, [%d1]", "%w10", source), []);
}

#[test]
fn device_functions_have_other_words_than_kernels() {
    let text = ".version 8.0\n.func f() { .reg .b32 %r<2>; mov.b32 %r1, 0; ret; }\n.entry k() { .reg \
                .b64 %d<2>; mov.b64 %d1, 0; ret; }";
    let module = parse(text).expect("a module");
    let code = resolve(&module).expect("code");
    assert_eq!(names(&code.instructions[0], RegisterRole::Destination), "%w5");
    assert_eq!(names(&code.instructions[2], RegisterRole::Destination), "%w2 %w3");
    assert_eq!(code.registers.words, 6);
    let [word, ..] = code.instructions[2].accesses().destinations[..] else { panic!() };
    assert_eq!(code.functions[1].register_name(word), Some(("%d1", 0)));
}

#[test]
fn unresolved_names_are_reported_with_their_position() {
    let error = |body: &str| {
        let text = format!(".version 8.0\n.entry k()\n{{\n  .reg .b32 %r<2>;\n  {body}\n}}");
        resolve(&parse(&text).expect("a module")).expect_err("an error").to_string()
    };
    assert!(error("mov.b32 %r1, %r2;").starts_with("line 5, column 3: unknown name `%r2`"));
    assert!(error("@%r1 ret;").contains("expected a predicate register"));
    assert!(error(".reg .f32 %r1;").contains("`%r1` is declared twice"));
    assert!(error("A: A: ret;").contains("`A` is declared twice"));
    assert!(error(".reg .b32 %w<70000>;").contains("more than 65535"));
    assert!(error(".shared .align 3 .b8 x[4];").contains("invalid alignment 3"));
}
