use super::{VARIABLE, candidates, harden};
use crate::{Candidates, Comparing, HardenError, Hardening, Reason};
use flipwave_ptx::{Module, parse, resolve};
use std::collections::BTreeSet;

/// A kernel with this body.
fn module(body: &str) -> Module {
    let text = format!(
        ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .f32 %f<8>; .reg .b64 %d<8>;\n\
         .reg .b128 %q; .reg .v2 .b32 %v;\n{body}\n}}\n"
    );
    parse(&text).unwrap_or_else(|error| panic!("{error}"))
}

fn found(module: &Module) -> Candidates {
    candidates(module).unwrap_or_else(|error| panic!("{error}"))
}

/// The instructions of the module with everything duplicated.
fn hardened(body: &str, comparing: Comparing) -> Vec<String> {
    let plain = module(body);
    let instructions: BTreeSet<_> = found(&plain).instructions.into_keys().collect();
    let hardening = Hardening { instructions: &instructions, comparing };
    let hardened = harden(&plain, hardening).unwrap_or_else(|error| panic!("{error}"));
    assert!(hardened.left_out.is_empty() && hardened.duplicated.len() == instructions.len());
    let text = hardened.rewritten.module.to_string();
    let parsed = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let code = resolve(&parsed).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(code.instructions.len(), hardened.rewritten.origins.len());
    code.instructions.iter().map(|inst| inst.text().to_owned()).collect()
}

#[test]
fn results_of_each_width_are_compared_in_their_lanes() {
    let body = "@%p1 add.u32 %r1, %r1, 1;\nmul.wide.u32 %d1, %r1, %r2;\n@!%p2 setp.lt.s32 %p3|%p4, %r1, 5;\n\
                cvt.rn.f16.f32 %h1, %f1;\nst.global.b16 [%d1], %h1;\n@!%p1 ret;\nret;";
    assert_eq!(
        hardened(body, Comparing::Each),
        [
            "mov.b32 %flipwave_added_b32_1, 0",
            "mov.b64 %flipwave_added_b64_1, 0",
            "mov.b16 %flipwave_added_b16_1, 0",
            "mov.pred %flipwave_added_pred_2, 0",
            "@%p1 add.u32 %flipwave_added_b32_0, %r1, 1",
            "@%p1 add.u32 %r1, %r1, 1",
            "@%p1 lop3.b32 %flipwave_added_b32_1, %r1, %flipwave_added_b32_0, %flipwave_added_b32_1, 0xBE",
            "mul.wide.u32 %flipwave_added_b64_0, %r1, %r2",
            "mul.wide.u32 %d1, %r1, %r2",
            "xor.b64 %flipwave_added_b64_2, %d1, %flipwave_added_b64_0",
            "or.b64 %flipwave_added_b64_1, %flipwave_added_b64_1, %flipwave_added_b64_2",
            "@!%p2 setp.lt.s32 %flipwave_added_pred_0|%flipwave_added_pred_1, %r1, 5",
            "@!%p2 setp.lt.s32 %p3|%p4, %r1, 5",
            "@!%p2 xor.pred %flipwave_added_pred_3, %p3, %flipwave_added_pred_0",
            "@!%p2 or.pred %flipwave_added_pred_2, %flipwave_added_pred_2, %flipwave_added_pred_3",
            "@!%p2 xor.pred %flipwave_added_pred_3, %p4, %flipwave_added_pred_1",
            "@!%p2 or.pred %flipwave_added_pred_2, %flipwave_added_pred_2, %flipwave_added_pred_3",
            "cvt.rn.f16.f32 %flipwave_added_b16_0, %f1",
            "cvt.rn.f16.f32 %h1, %f1",
            "xor.b16 %flipwave_added_b16_2, %h1, %flipwave_added_b16_0",
            "or.b16 %flipwave_added_b16_1, %flipwave_added_b16_1, %flipwave_added_b16_2",
            "st.global.b16 [%d1], %h1",
            "setp.ne.b32 %flipwave_added_pred_4, %flipwave_added_b32_1, 0",
            "setp.ne.or.b64 %flipwave_added_pred_4, %flipwave_added_b64_1, 0, %flipwave_added_pred_4",
            "setp.ne.or.b16 %flipwave_added_pred_4, %flipwave_added_b16_1, 0, %flipwave_added_pred_4",
            "or.pred %flipwave_added_pred_4, %flipwave_added_pred_4, %flipwave_added_pred_2",
            "not.pred %flipwave_added_pred_5, %p1",
            "and.pred %flipwave_added_pred_4, %flipwave_added_pred_4, %flipwave_added_pred_5",
            "@%flipwave_added_pred_4 red.global.add.u64 [flipwave_detected], 1",
            "@!%p1 ret",
            "setp.ne.b32 %flipwave_added_pred_4, %flipwave_added_b32_1, 0",
            "setp.ne.or.b64 %flipwave_added_pred_4, %flipwave_added_b64_1, 0, %flipwave_added_pred_4",
            "setp.ne.or.b16 %flipwave_added_pred_4, %flipwave_added_b16_1, 0, %flipwave_added_pred_4",
            "or.pred %flipwave_added_pred_4, %flipwave_added_pred_4, %flipwave_added_pred_2",
            "@%flipwave_added_pred_4 red.global.add.u64 [flipwave_detected], 1",
            "ret",
        ]
    );
}

/// The number of comparisons of 32-bit results.
fn comparisons(body: &str, comparing: Comparing) -> usize {
    hardened(body, comparing).iter().filter(|text| text.contains("lop3.b32 %flipwave")).count()
}

#[test]
fn only_ends_of_chains_are_compared() {
    let chain = "add.u32 %r1, %r2, 1;\nshl.b32 %r1, %r1, 2;\nxor.b32 %r3, %r1, %r1;\n\
                 st.global.u32 [%d1], %r3;\nret;";
    assert_eq!(comparisons(chain, Comparing::Each), 3);
    assert_eq!(comparisons(chain, Comparing::Ends), 1);
    let copies = hardened(chain, Comparing::Ends);
    let shadow = "%flipwave_added_b32_0";
    for copy in [
        format!("add.u32 {shadow}, %r2, 1"),
        format!("shl.b32 {shadow}, {shadow}, 2"),
        format!("xor.b32 %flipwave_added_b32_1, {shadow}, {shadow}"),
    ] {
        assert!(copies.contains(&copy), "{copies:?}");
    }
}

#[test]
fn results_that_others_read_are_compared() {
    for (body, expected) in [
        // A store reads the first result, too.
        (
            "add.u32 %r1, %r2, 1; add.u32 %r3, %r1, 1; st.global.u32 [%d1], %r1; st.global.u32 [%d1], %r3; ret;",
            2,
        ),
        // It is read in another block.
        (
            "add.u32 %r1, %r2, 1; add.u32 %r3, %r1, 1; @%p1 bra L; st.global.u32 [%d1], %r1; L: ret;",
            2,
        ),
        // Some lanes do not write it, or not overwrite it.
        ("@%p1 add.u32 %r1, %r2, 1; add.u32 %r3, %r1, 1; ret;", 2),
        ("add.u32 %r1, %r2, 1; @%p1 add.u32 %r1, %r1, 1; add.u32 %r3, %r1, 1; ret;", 3),
        // Other lanes read it.
        ("add.u32 %r1, %r2, 1; shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1; ret;", 2),
        // It is overwritten by an instruction that is not duplicated.
        ("add.u32 %r1, %r2, 1; add.u32 %r3, %r1, 1; atom.global.add.u32 %r1, [%d1], %r3; ret;", 2),
        // A loop reads it again.
        ("L: add.u32 %r3, %r1, 1; add.u32 %r1, %r2, 1; add.u32 %r4, %r1, 1; @%p1 bra L; ret;", 3),
        // Nothing reads it.
        ("add.u32 %r1, %r2, 1; ret;", 1),
    ] {
        assert_eq!(comparisons(body, Comparing::Ends), expected, "{body}");
    }
}

#[test]
fn other_instructions_are_left_alone_with_a_reason() {
    for (inst, reason) in [
        ("st.global.u32 [%d1], %r1", Reason::Kind),
        ("atom.global.add.u32 %r1, [%d1], 1", Reason::Kind),
        ("bar.sync 0", Reason::Kind),
        ("tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [out, {%r1}]", Reason::Kind),
        ("frobnicate.u32 %r1, %r2", Reason::Kind),
        ("setp.eq.u32 _, %r1, %r2", Reason::Kind),
        ("ld.volatile.global.u32 %r1, [%d1]", Reason::Coherent),
        ("ld.acquire.gpu.global.u32 %r1, [%d1]", Reason::Coherent),
        ("ld.global.cg.u32 %r1, [%d1]", Reason::Coherent),
        ("mov.u32 %r1, %clock", Reason::State),
        ("mov.u64 %d1, %globaltimer", Reason::State),
        ("activemask.b32 %r1", Reason::State),
        ("addc.cc.u32 %r1, %r2, %r3", Reason::Carry),
        ("@%p1 setp.eq.u32 %p1, %r1, %r2", Reason::Guard),
        ("ld.global.b128 %q, [%d1]", Reason::Type),
        ("mov.b32 %v.x, %r1", Reason::Type),
    ] {
        let others = found(&module(&format!("{inst}; ret;"))).others;
        assert_eq!(others.values().next(), Some(&reason), "{inst}");
    }
    for (inst, comparison) in [
        ("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%d1]", 4),
        ("ld.global.v2.u32 {%r1, _}, [%d1]", 1),
        ("mov.u32 %r1, %tid.x", 1),
        ("add.cc.u32 %r1, %r2, %r3", 1),
        ("addc.u32 %r1, %r2, %r3", 1),
        ("shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1", 3),
        ("mov.b64 {%r1, %r2}, %d1", 2),
        (
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r1, %r2}, {%r3}, \
             {%f0, %f1, %f2, %f3}",
            4,
        ),
    ] {
        let found = found(&module(&format!("{inst}; ret;")));
        let first = found.instructions.values().next();
        let cost = first.map(|candidate| (candidate.copy, candidate.comparison));
        assert_eq!(cost, Some((1, comparison)), "{inst}: {:?}", found.others);
    }
}

#[test]
fn hardened_modules_are_not_hardened_again() {
    let plain = module("add.u32 %r1, %r2, 1; ret;");
    let instructions: BTreeSet<_> = found(&plain).instructions.into_keys().collect();
    let hardening = Hardening { instructions: &instructions, comparing: Comparing::Ends };
    let once = harden(&plain, hardening).expect("hardened").rewritten.module;
    let twice = harden(&once, hardening);
    let Err(HardenError::Ptx(error)) = twice else { panic!("hardened again") };
    assert!(error.to_string().contains(VARIABLE), "{error}");
}

/// A device function may end lanes before its caller counts its differences.
#[test]
fn differences_are_counted_before_calls_that_end_lanes() {
    let text = |callee: &str| {
        format!(
            ".version 7.8\n.target sm_80\n.address_size 64\n.func f()\n{{\n{callee}\n}}\n.visible .entry k()\n\
             {{\n.reg .b32 %r<4>;\nadd.u32 %r1, %r2, 1;\ncall f;\nret;\n}}\n"
        )
    };
    let reports = |callee: &str| {
        let plain = parse(&text(callee)).unwrap_or_else(|error| panic!("{error}"));
        let instructions: BTreeSet<_> = found(&plain).instructions.into_keys().collect();
        let hardening = Hardening { instructions: &instructions, comparing: Comparing::Ends };
        let module = harden(&plain, hardening).expect("hardened").rewritten.module;
        module.to_string().matches("red.global").count()
    };
    assert_eq!((reports("ret;"), reports("exit;")), (1, 2));
}
