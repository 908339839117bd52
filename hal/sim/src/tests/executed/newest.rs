//! Tensor operations and named barriers of gfx1250.

use crate::dispatch::workgroup_barrier::WorkgroupBarrier;
use crate::execute::control::BarrierRequest;
use crate::instruction::control::SplitBarrier;
use crate::tests::bench::Bench;
use crate::wave::{Level, Machine, ScalarIndex, Wave};
use flipwave_isa::LaneMask;

/// Returns groups 0 and 1 of a tensor descriptor. The tile has four columns and three rows of
/// words. The tensor has three columns and two rows from the tile's origin, with rows ten words
/// apart. The tile is at LDS byte 16.
fn descriptor(address: u64) -> [u32; 12] {
    let word_sized = 2 << 16;
    let (columns, rows, apart) = (3, 2, 10);
    [
        1,
        16,
        address as u32,
        (address >> 32) as u32 | 2 << 30,
        word_sized,
        columns << 16,
        rows << 16,
        4 << 16,
        3,
        apart,
        0,
        0,
    ]
}

#[test]
fn tile_round_trips_through_lds() {
    let mut bench = Bench::with_lanes("gfx1250", 32);
    let words: Vec<u32> = (0..64).map(|word| 100 + word).collect();
    bench.set_memory(0, &words);
    let address = bench.buffer.0 + 8;
    bench.set_scalars(0, &descriptor(address));
    bench.lds.fill(0xee);
    bench.run("tensor_load_to_lds s[0:3], s[4:11]").expect("a tile");
    let in_lds = |bench: &Bench, word: usize| {
        let at = 16 + 4 * word;
        u32::from_le_bytes(bench.lds[at..at + 4].try_into().expect("four bytes"))
    };
    for row in 0..3 {
        for column in 0..4 {
            let is_inside = row < 2 && column < 3;
            let expected = if is_inside { 102 + 10 * row + column } else { 0 };
            assert_eq!(in_lds(&bench, (4 * row + column) as usize), expected, "{row} {column}");
        }
    }
    assert_eq!(in_lds(&bench, 12), 0xeeee_eeee);
    // Elements outside the tensor are not written.
    bench.lds.fill(0x11);
    bench.run("tensor_store_from_lds s[0:3], s[4:11]").expect("a tile");
    let after = bench.memory::<24>(0);
    for (word, value) in after.into_iter().enumerate() {
        let is_inside = [2..5, 12..15].iter().any(|row| row.contains(&word));
        assert_eq!(value, if is_inside { 0x1111_1111 } else { 100 + word as u32 }, "{word}");
    }
    // A nonexistent group of workgroups.
    bench.set_scalars(4, &[2 << 16 | 6]);
    assert!(bench.run("tensor_load_to_lds s[0:3], s[4:11]").is_err());
}

/// A one-dimensional tile ignores the second dimension of tile and tensor.
#[test]
fn one_dimensional_tile_ignores_second_dimension() {
    let mut bench = Bench::with_lanes("gfx1250", 32);
    bench.set_memory(0, &[1, 2, 3, 4, 5, 6]);
    let mut row = descriptor(bench.buffer.0);
    (row[6], row[8]) = (0, 0);
    let moved = |bench: &mut Bench, row: &[u32]| {
        bench.set_scalars(0, row);
        bench.lds.fill(0xee);
        bench.run("tensor_load_to_lds s[0:3], s[4:11]").expect("a row");
        let words = bench.lds[16..36].chunks(4);
        words.map(|word| u32::from_le_bytes(word.try_into().expect("four"))).collect::<Vec<_>>()
    };
    const OLD: u32 = 0xeeee_eeee;
    assert_eq!(moved(&mut bench, &row), [1, 2, 3, 0, OLD]);
    // With an empty second dimension, every element is out of range.
    let mut outside = row;
    outside[8] = 1;
    assert_eq!(moved(&mut bench, &outside), [0, 0, 0, 0, OLD]);
    let mut off = row;
    off[0] = 0;
    assert_eq!(moved(&mut bench, &off), [OLD; 5]);
}

/// Two of three waves meet at a named barrier. In one case the initialization sets its member
/// count, in the other each signal does.
#[test]
fn two_waves_meet_at_a_named_barrier() {
    let request = |operation, barrier, members| BarrierRequest {
        operation,
        barrier,
        members,
        destination: ScalarIndex(0),
    };
    let machine = Machine::new(&"gfx1250".parse().expect("a target"), 32);
    for (number, at_init, at_signal) in [(1, Some(2), None), (16, None, Some(2))] {
        let mut barrier = WorkgroupBarrier::new(3);
        let mut waves = [0, 1, 2].map(|_| Wave::new(Level::Plain));
        waves.iter_mut().for_each(|wave| wave.machine = machine);
        barrier.request(&mut waves[2], request(SplitBarrier::Init, number, at_init));
        barrier.request(&mut waves[2], request(SplitBarrier::State, number, None));
        assert_eq!(waves[2].scalar(ScalarIndex(0)), at_init.unwrap_or(0) << 4 | 1);
        for wave in &mut waves[..2] {
            barrier.request(wave, request(SplitBarrier::Join, number, None));
        }
        barrier.request(&mut waves[0], request(SplitBarrier::SignalIsFirst, number, at_signal));
        assert!(waves[0].scc);
        assert!(!barrier.request(&mut waves[0], request(SplitBarrier::Wait, 1, None)));
        assert!(!barrier.let_pass(&mut waves[0]));
        barrier.request(&mut waves[1], request(SplitBarrier::SignalIsFirst, number, at_signal));
        assert!(!waves[1].scc);
        assert!(barrier.let_pass(&mut waves[0]));
        assert!(barrier.request(&mut waves[1], request(SplitBarrier::Wait, 1, None)));
        // The next phase needs new signals.
        assert!(!barrier.request(&mut waves[1], request(SplitBarrier::Wait, 1, None)));
    }
}

/// Constants of bfloat16 operations are single-precision constants; `op_sel` selects the half that
/// is read.
#[test]
fn bfloat16_constants_are_in_the_high_half() {
    let mut bench = Bench::with_lanes("gfx1250", 32);
    bench.set_lanes(2, |_| 0x4000_4040);
    bench.run("v_pk_add_bf16 v4, v2, 1.0 op_sel:[0,1] op_sel_hi:[1,1]").unwrap();
    assert_eq!(bench.lanes(4)[7], 0x4040_4080);
    bench.run("v_pk_add_bf16 v4, v2, 1.0 op_sel:[0,0] op_sel_hi:[1,0]").unwrap();
    assert_eq!(bench.lanes(4)[7], 0x4000_4040, "the low half is zero");
    // A register with the same bits gives the same result as the constant, in each operand and with
    // each selection of halves.
    bench.set_lanes(3, |_| 0xc110_3e80);
    let mut differs_from_low = false;
    for (name, sources) in [
        ("v_pk_add_bf16", 2),
        ("v_pk_mul_bf16", 2),
        ("v_pk_min_num_bf16", 2),
        ("v_pk_max_num_bf16", 2),
        ("v_pk_fma_bf16", 3),
        ("v_fma_mix_f32_bf16", 3),
        ("v_fma_mixlo_bf16", 3),
        ("v_fma_mixhi_bf16", 3),
    ] {
        let places = (0..sources).flat_map(|place| (0..4).map(move |choice| (place, choice)));
        for (place, choice) in places {
            let line = |operand: &str| {
                let list = |operand_text: &dyn Fn(usize) -> String| {
                    (0..sources).map(operand_text).collect::<Vec<_>>().join(",")
                };
                let operands = list(&|index| match index {
                    _ if index == place => operand.to_owned(),
                    0 => "v2".to_owned(),
                    _ => "v3".to_owned(),
                });
                let bits = |bit: u32, default: u32| {
                    let selected = choice >> bit & 1;
                    list(&|at| if at == place { selected } else { default }.to_string())
                };
                let (low, high) = (bits(0, 0), bits(1, 1));
                format!("{name} v4, {operands} op_sel:[{low}] op_sel_hi:[{high}]")
            };
            let mut result = |operand: &str, held: u32| {
                bench.set_lanes(8, |_| held);
                bench.set_lanes(4, |_| 0);
                bench.run(&line(operand)).unwrap();
                bench.lanes(4)[7]
            };
            for (constant, bits) in [
                ("1.0", 0x3f80_0000_u32),
                ("-4.0", 0xc080_0000),
                ("0.15915494", 0x3e22_f983),
                ("3", 3),
            ] {
                let found = result(constant, 0);
                assert_eq!(found, result("v8", bits), "{}", line(constant));
                differs_from_low |= found != result("v8", bits >> 16);
            }
        }
    }
    assert!(differs_from_low);
    // Short forms read the low half, which is zero. LLVM encodes most of them only in this form.
    bench.run("v_rcp_bf16_e32 v4, 1.0\nv_cvt_f32_bf16_e32 v5, 1.0").unwrap();
    assert_eq!((bench.lanes(4)[7] & 0xffff, bench.lanes(5)[7]), (0x7f80, 0));
    bench.run("v_cvt_f32_bf16_e64 v5, 1.0 op_sel:[1,0]").unwrap();
    assert_eq!(bench.lanes(5)[7], 0x3f80_0000);
}

/// One of three members leaves the barrier at which another waits: the barrier completes with one signal
/// fewer.
#[test]
fn leaving_a_named_barrier_completes_it() {
    let request = |operation, barrier, members| BarrierRequest {
        operation,
        barrier,
        members,
        destination: ScalarIndex(0),
    };
    let machine = Machine::new(&"gfx1250".parse().expect("a target"), 32);
    let mut barrier = WorkgroupBarrier::new(3);
    let mut waves = [0, 1].map(|_| Wave::new(Level::Plain));
    waves.iter_mut().for_each(|wave| wave.machine = machine);
    barrier.request(&mut waves[0], request(SplitBarrier::Init, 3, Some(2)));
    for wave in &mut waves {
        barrier.request(wave, request(SplitBarrier::Join, 3, None));
    }
    barrier.request(&mut waves[0], request(SplitBarrier::Signal, 3, None));
    assert!(!barrier.request(&mut waves[0], request(SplitBarrier::Wait, 3, None)));
    barrier.request(&mut waves[1], request(SplitBarrier::Leave, 0, None));
    assert!(!waves[1].scc, "one member is left");
    assert!(barrier.let_pass(&mut waves[0]));
    // The wave that has left never waits, and leaving again has no effect.
    assert!(barrier.request(&mut waves[1], request(SplitBarrier::Wait, 3, None)));
    barrier.request(&mut waves[1], request(SplitBarrier::Leave, 0, None));
    barrier.request(&mut waves[0], request(SplitBarrier::State, 3, None));
    assert_eq!(waves[0].scalar(ScalarIndex(0)) >> 4 & 0x7f, 1);
    barrier.request(&mut waves[0], request(SplitBarrier::Leave, 0, None));
    assert!(waves[0].scc, "no member is left");
}

/// The 64-bit state of a barrier in LDS for `members` arrivals, as Triton initializes it.
fn lds_barrier(members: u64) -> u64 {
    (members - 1) << 32 | (members - 1)
}

/// Arrivals at a barrier in LDS: lane by lane, in numbers of any size, and by a move of a tensor.
#[test]
fn arrivals_at_lds_barriers_change_the_phase() {
    let mut bench = Bench::with_lanes("gfx1250", 32);
    let state = |bench: &Bench| u64::from_le_bytes(bench.lds[64..72].try_into().expect("eight"));
    let parity = |state: u64| state >> 29 & 1;
    bench.lds[64..72].copy_from_slice(&lds_barrier(40).to_le_bytes());
    bench.set_lanes(4, |_| 56);
    bench.set_lanes(6, |_| 1);
    bench.set_lanes(7, |_| 0);
    bench.run("ds_atomic_barrier_arrive_rtn_b64 v[2:3], v4, v[6:7] offset:8").expect("arrivals");
    // Each lane sees the arrivals of the lanes before it.
    assert!(
        bench.lanes(2)[..32].iter().enumerate().all(|(lane, count)| *count == 39 - lane as u32)
    );
    assert_eq!((state(&bench) & 0x1fff_ffff, parity(state(&bench))), (7, 0));
    bench.wave.set_exec(LaneMask(0xff));
    bench.run("ds_atomic_async_barrier_arrive_b64 v4 offset:8").expect("arrivals");
    assert_eq!((state(&bench) & 0x1fff_ffff, parity(state(&bench))), (39, 1));
    assert_eq!(state(&bench) >> 32, 39, "the count of the next phase stays");
    // A tensor arrives once, after its move. 40 moves complete the second phase.
    let mut tile = descriptor(bench.buffer.0);
    tile[4] |= 1 << 18;
    tile[5] |= 64 / 8;
    bench.set_scalars(0, &tile);
    for arrivals in 1..=40u64 {
        bench.run("tensor_load_to_lds s[0:3], s[4:11]").expect("a tile");
        let expected = if arrivals == 40 { (39, 0) } else { (39 - arrivals, 1) };
        assert_eq!((state(&bench) & 0x1fff_ffff, parity(state(&bench))), expected);
    }
    // A descriptor that moves nothing does not arrive.
    tile[0] = 0;
    bench.set_scalars(0, &tile);
    let before = state(&bench);
    bench.run("tensor_load_to_lds s[0:3], s[4:11]").expect("nothing");
    assert_eq!(state(&bench), before);
}

/// In a dispatch without clusters, loads for a cluster load what plain loads do.
#[test]
fn cluster_loads_load_like_plain_loads() {
    let mut bench = Bench::with_lanes("gfx1250", 32);
    let words: Vec<u32> = (0..128).map(|word| 7 * word + 1).collect();
    bench.set_memory(0, &words);
    let address = bench.buffer.0;
    bench.set_scalars(2, &[address as u32, (address >> 32) as u32]);
    bench.set_lanes(4, |lane| 12 * lane);
    for (width, registers) in [("b32", "v2"), ("b64", "v[2:3]"), ("b128", "v[2:5]")] {
        let address_register = "v8";
        bench.set_lanes(8, |lane| 12 * lane);
        bench
            .run(&format!("cluster_load_{width} {registers}, {address_register}, s[2:3] offset:8"))
            .expect("a load");
        for lane in [0, 5, 20] {
            assert_eq!(bench.lanes(2)[lane], words[3 * lane + 2], "{width}, lane {lane}");
        }
    }
    bench.set_lanes(1, |lane| 4 * lane + 16);
    bench.run("cluster_load_async_to_lds_b32 v1, v8, s[2:3] offset:4").expect("a load");
    for lane in 0..32 {
        let at = 4 * lane + 20;
        let word = u32::from_le_bytes(bench.lds[at..at + 4].try_into().expect("four"));
        assert_eq!(word, words[3 * lane + 1], "lane {lane}");
    }
}

/// `clamp` selects E5M3, which has no sign (values of AMD's tests of rocjitsu).
#[test]
fn clamp_of_conversions_selects_e5m3() {
    let mut bench = Bench::with_lanes("gfx1250", 32);
    let numbers = [0x00, 0x01, 0x07, 0x08, 0x38, 0xfe, 0xff];
    bench.set_lanes(2, |lane| numbers[lane as usize % 7]);
    bench.run("v_cvt_f32_fp8_e64 v3, v2 clamp\nv_cvt_f32_fp8_e64 v4, v2").expect("conversions");
    let expected =
        [0.0, 2f32.powi(-17), 0.875 * 2f32.powi(-14), 2f32.powi(-14), 2f32.powi(-8), 114688.0];
    for (lane, expected) in expected.into_iter().enumerate() {
        assert_eq!(f32::from_bits(bench.lanes(3)[lane]), expected);
    }
    assert!(f32::from_bits(bench.lanes(3)[6]).is_nan());
    // Negative control: E4M3 has a sign.
    assert_eq!(f32::from_bits(bench.lanes(4)[5]), -448.0);
}
