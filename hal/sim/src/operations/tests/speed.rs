//! How long common operations take.

use super::{DEFAULT_MODE, instruction, levels, operation};
use crate::op::Run;
use crate::wave::Wave;
use flipwave_isa::LaneMask;
use std::hint::black_box;
use std::time::Instant;

/// `cargo test --release -p flipwave-sim -- --ignored --nocapture nanoseconds`
#[test]
#[ignore = "a measurement"]
fn nanoseconds_per_operation() {
    const ROUNDS: u32 = 3_000_000;
    let names = [
        "v_fmac_f32",
        "v_add_u32",
        "v_cmp_lt_f32",
        "v_cndmask_b32",
        "v_add_co_u32",
        "v_lshlrev_b64",
        "v_fma_f64",
        "v_pk_fma_f32",
        "v_pk_fma_f16",
        "v_fma_f16",
        "v_rcp_f32",
        "v_exp_f32",
        "v_sin_f32",
    ];
    for name in names {
        for (lanes, mask) in [("full", u64::MAX), ("partial", 0x0f0f_3333_5555_0001)] {
            for level in levels() {
                let mut wave = Wave::new(level);
                wave.mode = DEFAULT_MODE;
                wave.set_exec(LaneMask(mask));
                for (index, row) in wave.rows[..8].iter_mut().enumerate() {
                    let value = 1.0 + index as f32;
                    row.0 = [value.to_bits(); 64];
                }
                let op = instruction(operation(name), level);
                let Run::Vector(function) = op.run else { panic!("not a vector operation") };
                let start = Instant::now();
                let rounds =
                    if name.contains("exp") || name.contains("sin") { 30_000 } else { ROUNDS };
                for _ in 0..rounds {
                    // SAFETY: `levels` gives what the host has.
                    unsafe { function(black_box(&mut wave), black_box(&op)) };
                }
                let each = start.elapsed().as_nanos() as f64 / f64::from(rounds);
                println!("{name:16} {lanes:8} {level:?}: {each:.1} ns");
            }
        }
    }
}
