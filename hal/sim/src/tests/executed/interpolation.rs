//! Interpolation with parameters in registers, from gfx11.

use crate::tests::bench::Bench;
use crate::tests::operations::DEFAULT_MODE;
use crate::wave::Mode;
use flipwave_device::FaultCause;
use flipwave_isa::LaneMask;
use half::f16;

/// Returns a small single-precision number that depends on the lane.
fn number(lane: u32) -> f32 {
    lane as f32 * 0.75 - 11.0
}

/// Returns a bench with parameters in v1, coordinates in v2 and the addend in v3.
fn bench(processor: &str) -> Bench {
    let mut bench = Bench::with_lanes(processor, 32);
    bench.set_lanes(1, |lane| number(lane).to_bits());
    bench.set_lanes(2, |lane| (lane as f32 * 0.125).to_bits());
    bench.set_lanes(3, |lane| number(lane + 40).to_bits());
    bench
}

#[test]
fn parameters_come_from_lanes_of_the_group() {
    for processor in ["gfx1100", "gfx1151", "gfx1201"] {
        let mut bench = bench(processor);
        // Inactive lanes provide parameters, too.
        bench.wave.set_exec(LaneMask(0xffff_fff8));
        bench.set_lanes(4, |_| 7);
        bench.run("v_interp_p10_f32 v4, v1, v2, v3").expect("it executes");
        bench.run("v_interp_p2_f32 v5, v1, v2, -v3").expect("it executes");
        bench.run("v_interp_p2_f32 v6, v1, v2, v3 clamp").expect("it executes");
        for lane in 0..32u32 {
            let (group, coordinate) = (lane & !3, lane as f32 * 0.125);
            let first = number(group + 1).mul_add(coordinate, number(group + 40));
            let second = number(group + 2).mul_add(coordinate, -number(lane + 40));
            let clamped = number(group + 2).mul_add(coordinate, number(lane + 40)).clamp(0.0, 1.0);
            let expected = match lane {
                0..3 => [7, 0, 0],
                _ => [first, second, clamped].map(f32::to_bits),
            };
            let found = [4, 5, 6].map(|register| bench.lanes(register)[lane as usize]);
            assert_eq!(found, expected, "{processor}: lane {lane}");
        }
    }
}

#[test]
fn register_names_select_halves() {
    let pair = |lane: u32| {
        let [low, high] =
            [number(lane), number(lane + 9)].map(|value| f16::from_f32(value).to_bits());
        u32::from(low) | u32::from(high) << 16
    };
    let mut bench = bench("gfx1100");
    bench.set_lanes(1, pair);
    bench.set_lanes(7, |lane| pair(lane + 50));
    bench.set_lanes(4, |_| 0xabcd_ef01);
    bench.set_lanes(5, |_| 0xabcd_ef01);
    bench.run("v_interp_p10_f16_f32 v6, v1.h, v2, v7.l").expect("it executes");
    bench.run("v_interp_p2_f16_f32 v4.l, v1.l, v2, v3").expect("it executes");
    bench.run("v_interp_p2_f16_f32 v5.h, v1.h, v2, v3").expect("it executes");
    for lane in 0..32u32 {
        let (group, coordinate) = (lane & !3, lane as f32 * 0.125);
        let first = number(group + 1 + 9).mul_add(coordinate, number(group + 50));
        assert_eq!(bench.lanes(6)[lane as usize], first.to_bits(), "lane {lane}");
        let low = number(group + 2).mul_add(coordinate, number(lane + 40));
        let high = number(group + 2 + 9).mul_add(coordinate, number(lane + 40));
        let [low, high] = [low, high].map(|value| u32::from(f16::from_f32(value).to_bits()));
        assert_eq!(bench.lanes(4)[lane as usize], 0xabcd_0000 | low, "lane {lane}");
        assert_eq!(bench.lanes(5)[lane as usize], high << 16 | 0xef01, "lane {lane}");
    }
}

#[test]
fn rtz_in_the_name_rounds_toward_zero() {
    let mut bench = Bench::with_lanes("gfx1100", 32);
    let third = f16::from_f32(1.0 / 3.0);
    bench.set_lanes(1, |_| third.to_bits().into());
    bench.set_lanes(2, |_| (-1.0f32 / 3.0).to_bits());
    bench.set_lanes(3, |_| 0);
    for mode in [DEFAULT_MODE, Mode(DEFAULT_MODE.0 | 0b1010)] {
        bench.wave.mode = mode;
        bench.run("v_interp_p2_rtz_f16_f32 v4.l, v1.l, v2, v3").expect("it executes");
        bench.run("v_interp_p10_rtz_f16_f32 v5, v1.l, v2, v3.l").expect("it executes");
        let exact = third.to_f64() * f64::from(-1.0f32 / 3.0);
        let half = f16::from_bits(bench.lanes(4)[3] as u16).to_f64();
        let next = f16::from_bits(bench.lanes(4)[3] as u16 + 1).to_f64();
        assert!(half > exact && next < exact, "{next} {exact} {half}");
        let single = f32::from_bits(bench.lanes(5)[3]);
        let next = f32::from_bits(bench.lanes(5)[3] + 1);
        assert!(f64::from(single) >= exact && f64::from(next) < exact, "{next} {exact} {single}");
    }
}

/// gfx9 supports interpolation only in graphics shaders and reports it as such.
#[test]
fn gfx9_interpolation_is_refused_as_graphics() {
    let fault = Bench::with_processor("gfx906").run("v_interp_p1_f32 v0, v1, attr0.x").unwrap_err();
    assert!(matches!(fault, FaultCause::NotCompute { .. }));
    assert!(fault.to_string().starts_with("no compute instruction: "), "{fault}");
}
