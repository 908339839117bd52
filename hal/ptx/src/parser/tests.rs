//! Forms of directives and operands, from the manual's descriptions of their syntax.

use super::parse;
use crate::{Expression, ItemKind, Operand, StatementKind};

/// Items of a module in the form in which they are printed.
const ITEMS: [&str; 21] = [
    ".target sm_90a, texmode_independent",
    ".address_size 64",
    ".file 1 \"a \\\"b\\\".cu\", 1305013231, 19",
    ".pragma \"nounroll\", \"used_bytes_mask 0xfff\";",
    ".visible .global .align 16 .v4 .f32 a[2][] = {{0f3F800000, 0d3FF0000000000000}, {1}};",
    ".extern .shared .align 4 .b8 dynamic[];",
    ".weak .const[2] .s32 b = -1;",
    ".common .global .u64 c;",
    ".global .attribute(.managed, .unified(19, 95)) .u64 d = generic(c)+8, e = c+4;",
    ".global .u8 f[2] = {0xFF(c), 0xFF00(generic(c)+4)};",
    ".global .u32 g = ((1+2)*3)-((~4) % 5), h = (1<2) ? (3&&4) : ((.s64)(-5));",
    ".global .texref t;",
    ".tex .u32 u;",
    ".alias a, b;",
    ".section .debug_str\n{\ninfo:\n.b8 1, -2\n.b32 .debug_abbrev, end-start, x+8\n}",
    ".func k",
    ".func (.reg .b32 r, .param .align 8 .b8 s[16]) k()",
    ".visible .entry k(\n    .param .u64 .ptr .global .align 4 a,\n    .param .v2 .f32 b\n)\n.maxntid 16, 16, 4\n.minnctapersm 4\n.reqnctapercluster 2\n.noreturn\n.pragma \"x\";",
    ".entry .attribute(.unified(1, 2)) k()",
    ".extern .func f",
    ".weak .func g()\n.abi_preserve 8",
];

/// Statements in the form in which they are printed.
const STATEMENTS: [&str; 34] = [
    ".reg .pred %p<10>, %q;",
    ".local .align 4 .b8 depot[40];",
    ".loc 1 2 3, function_name info+4, inlined_at 1 5 6",
    ".loc 1 2 0",
    ".pragma \"nounroll\";",
    "p: .callprototype (.param .b32 _) _ (.param .b64 _, .reg .u32 x) .noreturn;",
    "t: .calltargets f, g;",
    "b: .branchtargets L1, L2;",
    "@!%p bra.uni L1;",
    "add.s32 %r1, %r2, -5;",
    "mov.b64 %rd1, {%r1, _};",
    "mov.u32 %r1, %tid.x;",
    "mov.f32 %f1, 0f3F800000;",
    "setp.lt.and.f32 %p1|%p2, %f1, %f2, !%p3;",
    "ld.global.nc.L1::no_allocate.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+-16];",
    "ld.shared::cluster.u32 %r1, [a];",
    "st.global.u8 [1234], 0x7F;",
    "ld.param.b32 %r1, [p+4];",
    "ld.const.u32 %r1, table[3];",
    "tex.2d.v4.f32.s32 {%r1, %r2, %r3, %r4}, [t, s, {%r5, %r6}];",
    "cp.async.cg.shared.global [%r1], [%rd1], 16;",
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile [%r1], [%rd1, {%r2, %r3}], [%r4];",
    "call (%r1), f, (%r2, 5), p;",
    "call.uni f;",
    "call (r, s), %rd1, (), p;",
    "shfl.sync.bfly.b32 %r1|%p1, %r2, 0x1F, 31, -1;",
    "vadd.s32.u32.s32.sat %r1, %r2.b0, %r3.h1;",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2}, {%r1}, {%r2}, {%f3, %f4};",
    "brx.idx %r1, b;",
    "frobnicate.new.b32 %r1, [%r2], {{%r3}, _};",
    "atom.global.cas.b128 %b1, [%rd1], %b2, %b3;",
    "mov.u32 %r1, (1+2)*WARP_SZ;",
    "ret;",
    "barrier.cluster.arrive;",
];

fn round_trip(text: &str) -> String {
    parse(text).unwrap_or_else(|error| panic!("{error}:\n{text}")).to_string()
}

#[test]
fn items_print_as_they_were_read() {
    for item in ITEMS {
        let is_function = item.contains(".func") || item.contains(".entry");
        let end = if is_function { "\n;" } else { "" };
        let text = format!(".version 8.0\n{item}{end}\n");
        assert_eq!(round_trip(&text), text);
    }
}

#[test]
fn statements_print_as_they_were_read() {
    for statement in STATEMENTS {
        let text = format!(".version 8.0\n.entry k()\n{{\n    {statement}\n}}\n");
        assert_eq!(round_trip(&text), text);
    }
}

#[test]
fn spelling_does_not_change_the_tree() {
    let plain = ".version 7.8\n.entry k()\n{\n    {\nL:\n    add.s32 %r1, %r2, 1;\n    }\n}\n";
    let module = parse(plain).expect("a module");
    let spelled =
        "/* a */ .version 7.8 .entry k ( ) { ; { L : add . s32 %r1,%r2 , ( 1 ) ; } } // b";
    assert!(parse(spelled).is_err(), "a dot belongs to its modifier");
    let spelled = spelled.replace(". s32", ".s32");
    assert_eq!(parse(&spelled).expect("a module").to_string(), module.to_string());
}

#[test]
fn trees_have_the_parts_of_their_text() {
    let text = ".version 8.3\n.target sm_90\n.entry k()\n{\n  @!%p ld.u32 %r1, [%r2+4];\n}";
    let module = parse(text).expect("a module");
    assert_eq!(module.version(), Some((8, 3)));
    assert_eq!(module.targets().collect::<Vec<_>>(), ["sm_90"]);
    assert_eq!(module.address_bits(), 64);
    let ItemKind::Function(function) = &module.items[2].kind else { panic!("{module:?}") };
    let statement = &function.body.as_ref().expect("a body").statements[0];
    assert_eq!((statement.position.line, statement.position.column), (5, 3));
    let StatementKind::Instruction(inst) = &statement.kind else { panic!("{statement:?}") };
    assert_eq!((inst.opcode(), inst.modifiers().collect::<Vec<_>>()), ("ld", vec!["u32"]));
    assert!(inst.guard.as_ref().is_some_and(|guard| guard.is_negated && &*guard.register == "%p"));
    let Operand::Address(parts) = &inst.operands[1] else { panic!("{inst:?}") };
    assert!(matches!(parts[..], [Operand::Value(Expression::Binary(..))]));
}
