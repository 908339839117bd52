//! Kernels without a free register can be instrumented at every site.

use super::everywhere::touched;
use flipwave_codeobj::CodeObject;
use flipwave_tests::{TestProgram, assemble};
use std::fmt::Write;

/// Runs a kernel of one wave that stores a dword per lane, and asserts that hooks everywhere do not change
/// the results.
fn assert_unchanged(body: &str) {
    let kernel = assemble(body).code_object;
    let outputs = |code_object: &[u8]| {
        let mut program = TestProgram::new(code_object).strictly();
        let out = program.output(&[0u32; 64]);
        program.launch("planted", [64, 1, 1], [64, 1, 1], &[out]);
        program.outputs()
    };
    let golden = outputs(&kernel);
    let new = touched(&CodeObject::parse(&kernel).expect("a code object"));
    assert_eq!(outputs(new.object.bytes()), golden);
    assert!(new.report.without_spills < new.report.placed, "no register was saved");
}

/// A kernel in which v2 to v255 are live until they are summed up at the end, after `setup`.
fn all_vgprs(setup: &str, accumulate: impl Fn(&mut String)) -> String {
    let mut body = setup.to_owned();
    for number in 2..256 {
        _ = writeln!(body, "v_mul_u32_u24 v{number}, {number}, v0");
    }
    accumulate(&mut body);
    for number in 3..256 {
        _ = writeln!(body, "v_xor_b32 v2, v2, v{number}");
    }
    body + "global_store_dword v1, v2, s[2:3]\n"
}

#[test]
fn hooks_preserve_a_kernel_that_uses_all_vgprs() {
    let setup = ".set vgprs, 256\n.set accum_offset, 256\n";
    assert_unchanged(&all_vgprs(setup, |_| {}));
}

/// The original kernel has no scratch memory.
#[test]
fn hooks_preserve_a_kernel_that_uses_all_vgprs_and_accvgprs() {
    let mut setup = ".set vgprs, 512\n.set accum_offset, 256\n".to_owned();
    for number in 0..256 {
        _ = writeln!(setup, "v_mul_u32_u24 v2, {}, v0", number + 300);
        _ = writeln!(setup, "v_accvgpr_write_b32 a{number}, v2");
    }
    assert_unchanged(&all_vgprs(&setup, |body| {
        for number in 3..256 {
            _ = writeln!(body, "v_xor_b32 v2, v2, v{number}");
        }
        for number in 0..256 {
            _ = writeln!(body, "v_accvgpr_read_b32 v3, a{number}\nv_xor_b32 v2, v2, v3");
        }
    }));
}

#[test]
fn hooks_preserve_a_kernel_that_uses_all_sgprs() {
    let mut body = ".set sgprs, 102\n".to_owned();
    let free = (0..102).filter(|number| ![2, 3].contains(number));
    for number in free.clone() {
        _ = writeln!(body, "s_mov_b32 s{number}, {}", 1000 + number * 7);
    }
    _ = writeln!(body, "s_mov_b64 vcc, exec\ns_mov_b32 m0, 77");
    for number in free {
        _ = writeln!(body, "s_xor_b32 m0, m0, s{number}");
    }
    body += "s_xor_b32 m0, m0, vcc_lo\nv_mov_b32 v2, m0\nglobal_store_dword v1, v2, s[2:3]\n";
    assert_unchanged(&body);
}
