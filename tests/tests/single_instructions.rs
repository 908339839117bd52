//! Single instructions, decoded and executed. Random programs once found bugs in them.

use flipwave_tests::{TestProgram, assemble, to_values};

/// Runs `body` in a wave and returns `v2` of each lane.
fn run(body: &str) -> Vec<u32> {
    let kernel = assemble(&format!("{body}\n global_store_dword v1, v2, s[2:3]"));
    let mut program = TestProgram::new(&kernel.code_object);
    let arguments = [program.output(&[0u32; 64])];
    program.launch("planted", [64, 1, 1], [64, 1, 1], &arguments);
    to_values(&program.outputs()[0])
}

#[test]
fn v_swap_exchanges_registers() {
    let exchanged = run("v_mov_b32 v2, 7\n v_mov_b32 v3, v0\n v_swap_b32 v2, v3");
    assert_eq!(exchanged, (0..64).collect::<Vec<u32>>());
    let reversed = run("v_mov_b32 v2, 7\n v_mov_b32 v3, v0\n v_swap_b32 v3, v2");
    assert_eq!(reversed, exchanged);
}

#[test]
fn sdwa_comparison_writes_any_sgpr_pair() {
    let body = "v_add_u32 v3, 0x1f0, v0\n v_cmp_gt_i32_sdwa s[24:25], v3, v0 src0_sel:BYTE_0 src1_sel:DWORD\n \
                v_cndmask_b32 v2, 0, 1, s[24:25]";
    let expected: Vec<u32> = (0..64).map(|lane| u32::from((0x1f0 + lane) & 0xff > lane)).collect();
    assert_eq!(run(body), expected);
}
