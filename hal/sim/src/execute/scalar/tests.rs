use super::*;
use crate::instruction::Run;
use crate::tests::bench;
use flipwave_isa::LaneMask;

/// Executes one operation on 64-bit source values with the given SCC; returns the destination and
/// the wave.
fn run(name: &str, sources: &[u64], scc: bool, immediate: i64) -> (u64, Wave) {
    let operation = find(name).unwrap_or_else(|| panic!("{name} is missing"));
    let mut op = bench::op(Run::Scalar(operation.run));
    for (slot, value) in op.sources.iter_mut().zip(sources) {
        let words = [Word::Constant(*value as u32), Word::Constant((*value >> 32) as u32)];
        *slot = Source { words };
    }
    op.scalar_destination = ScalarIndex(10);
    op.immediate = immediate;
    let mut wave = Wave::new(crate::wave::Level::Plain);
    wave.scc = scc;
    wave.set_exec(LaneMask(0xff00));
    (operation.run)(&mut wave, &op);
    (wave.scalar_pair(ScalarIndex(10)), wave)
}

#[test]
fn carries_and_borrows_go_through_scc() {
    let (sum, wave) = run("s_add_u32", &[0xffff_ffff, 1], false, 0);
    assert_eq!((sum, wave.scc), (0, true));
    let (sum, wave) = run("s_addc_u32", &[0xffff_ffff, 0], true, 0);
    assert_eq!((sum, wave.scc), (0, true));
    let (difference, wave) = run("s_subb_u32", &[0, 0], true, 0);
    assert_eq!((difference, wave.scc), (0xffff_ffff, true));
    let (_, wave) = run("s_add_i32", &[0x7fff_ffff, 1], false, 0);
    assert!(wave.scc, "signed overflow");
}

#[test]
fn bit_fields_are_truncated_at_the_register_end() {
    assert_eq!(run("s_bfe_u32", &[0xdead_beef, 8 | 8 << 16], false, 0).0, 0xbe);
    assert_eq!(run("s_bfe_u32", &[0xdead_beef, 28 | 8 << 16], false, 0).0, 0xd);
    assert_eq!(run("s_bfe_i32", &[0xdead_beef, 8 | 8 << 16], false, 0).0, 0xffff_ffbe);
    assert_eq!(run("s_bfe_u32", &[0xdead_beef, 0], false, 0).0, 0);
    assert_eq!(run("s_bfe_u64", &[u64::MAX, 64 << 16], false, 0).0, u64::MAX);
    assert_eq!(run("s_bfe_i64", &[0x80, 7 | 1 << 16], false, 0).0, u64::MAX);
}

#[test]
fn save_exec_saves_the_old_exec() {
    let (saved, wave) = run("s_and_saveexec_b64", &[0x0f00], false, 0);
    assert_eq!((saved, wave.exec().0, wave.scc), (0xff00, 0x0f00, true));
    assert_eq!(wave.exec_row().0[8], u32::MAX);
    assert_eq!(wave.exec_row().0[12], 0);
    let (saved, wave) = run("s_andn2_saveexec_b64", &[0x0f0f], false, 0);
    assert_eq!((saved, wave.exec().0), (0xff00, 0x000f));
}

#[test]
fn immediates_of_unsigned_comparisons_are_zero_extended() {
    assert!(run("s_cmpk_eq_u32", &[0x8000], false, -0x8000).1.scc);
    assert!(run("s_cmpk_eq_i32", &[0xffff_8000], false, -0x8000).1.scc);
    assert!(!run("s_cmpk_eq_i32", &[0x8000], false, -0x8000).1.scc);
}

#[test]
fn bit_searches_return_minus_one_without_a_match() {
    assert_eq!(run("s_ff1_i32_b64", &[0], false, 0).0, 0xffff_ffff);
    assert_eq!(run("s_ff1_i32_b64", &[1 << 40], false, 0).0, 40);
    assert_eq!(run("s_ff0_i32_b32", &[0xffff_ffff], false, 0).0, 0xffff_ffff);
    assert_eq!(run("s_flbit_i32_b32", &[1], false, 0).0, 31);
    assert_eq!(run("s_flbit_i32", &[0xffff_fffe], false, 0).0, 31);
}

#[test]
fn wqm_sets_all_lanes_of_active_quads() {
    assert_eq!(run("s_wqm_b64", &[0x10_0000_0000_0008], false, 0).0, 0xf0_0000_0000_000f);
    assert_eq!(run("s_quadmask_b64", &[0x10_0000_0000_0008], false, 0).0, 1 | 1 << 13);
    assert_eq!(run("s_bitreplicate_b64_b32", &[0x8000_0001], false, 0).0, 0xc000_0000_0000_0003);
}
