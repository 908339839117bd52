use super::{Reached, reached};
use crate::translate::code::DecodedCode;
use crate::wave::Level;
use flipwave_codeobj::FileBytes;
use flipwave_isa::Isa;

/// Analyses assembly code that waves enter at the first line.
fn analyse(processor: &str, lines: &[&str]) -> Reached {
    let isa = Isa::new(&processor.parse().expect("a target")).expect("LLVM has it");
    let assemble =
        |line: &&str| isa.assemble(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let bytes = lines.iter().flat_map(assemble).collect();
    reached(&DecodedCode::new(isa, Level::Plain, 0x1000, 0, FileBytes::from_vec(bytes)), 0x1000)
}

/// Returns `true` if workgroups may execute the code in any order.
fn is_free(processor: &str, lines: &[&str]) -> bool {
    analyse(processor, lines).is_order_free
}

const END: &str = "s_endpgm";

#[test]
fn code_without_shared_state_is_order_free() {
    let lines = [
        "s_load_dwordx2 s[2:3], s[0:1], 0x0",
        "global_load_dword v1, v0, s[2:3]",
        "ds_add_u32 v0, v1",
        "s_barrier",
        "ds_add_rtn_u32 v2, v0, v1",
        "s_cbranch_scc0 65534",
        "global_store_dword v0, v1, s[2:3]",
        END,
    ];
    assert!(is_free("gfx90a", &lines));
}

#[test]
fn non_returning_atomics_of_one_kind_are_order_free() {
    let (add, sub) = ("global_atomic_add v0, v1, s[2:3]", "global_atomic_sub v0, v1, s[2:3]");
    assert!(is_free("gfx90a", &[add, sub, END]));
    for line in [
        "global_atomic_add v2, v0, v1, s[2:3] glc",
        "global_atomic_xor v0, v1, s[2:3]",
        "global_atomic_add_x2 v0, v[2:3], s[2:3]",
        "global_atomic_swap v0, v1, s[2:3]",
        "global_atomic_inc v0, v1, s[2:3]",
        "global_atomic_add_f32 v0, v1, s[2:3]",
        "global_load_dword v1, v0, s[2:3] glc",
    ] {
        assert!(!is_free("gfx90a", &[add, line, END]), "{line}");
    }
}

#[test]
fn only_reachable_operations_make_results_unsettled() {
    let round = "v_cvt_sr_fp8_f32 v0, v1, v2";
    let [reached, not_reached] =
        [[round, END], [END, round]].map(|lines| analyse("gfx942", &lines));
    assert_eq!(reached, Reached { is_order_free: true, is_settled: false });
    assert_eq!(not_reached, Reached { is_order_free: true, is_settled: true });
}

#[test]
fn unreachable_code_is_ignored() {
    let swap = "global_atomic_swap v2, v0, v1, s[2:3] glc";
    assert!(is_free("gfx90a", &["s_branch 2", swap, END]));
    assert!(is_free("gfx90a", &[END, swap]));
    assert!(!is_free("gfx90a", &["s_cbranch_scc1 1", END, swap, END]));
}

#[test]
fn indirect_jumps_and_global_sync_are_not_order_free() {
    for line in ["s_setpc_b64 s[2:3]", "s_swappc_b64 s[4:5], s[2:3]"] {
        assert!(!is_free("gfx90a", &[line, END]), "{line}");
    }
    assert!(!is_free("gfx90a", &["ds_gws_barrier v0 gds", END]));
    assert!(!is_free("gfx1100", &["buffer_gl1_inv", END]));
    assert!(is_free("gfx1100", &["buffer_gl0_inv", END]));
}
