//! Local, global and private memory accesses of every width; atomics, barriers, and grid shapes.

use super::at_every_level;
use flipwave_tests::{random_words, scalar, to_bytes, to_values};

#[test]
fn local_atomics_match_rust() {
    let values: Vec<u8> = random_words(5000).iter().map(|word| (word >> 40) as u8 / 3).collect();
    let mut bins = vec![0u32; 256];
    values.iter().for_each(|value| bins[usize::from(*value)] += 1);
    at_every_level("memory.cl", &[], |mut program| {
        let count = scalar(values.len() as u32);
        let arguments = [program.input(&values), count, program.output(&[0u32; 256])];
        program.launch("histogram", [1000, 1, 1], [192, 1, 1], &arguments);
        assert_eq!(program.outputs(), [to_bytes(&bins)]);
    });
}

#[test]
fn global_atomics_with_results_match_rust() {
    const COUNT: u32 = 640;
    let values: Vec<u32> =
        random_words(COUNT as usize).iter().map(|word| (word >> 33) as u32).collect();
    let sum = |term: fn(u32) -> u32| {
        values.iter().fold(0u32, |sum, value| sum.wrapping_add(term(*value)))
    };
    let words = [
        COUNT,
        1u32.wrapping_sub(sum(|value| value)),
        values.iter().copied().min().unwrap_or(0),
        values.iter().copied().max().unwrap_or(0),
        values.iter().fold(u32::MAX, |all, value| all & (value | 0xff)),
        values.iter().fold(0, |any, value| any | value & 0xff),
        values.iter().fold(0, |all, value| all ^ value),
        values.iter().map(|value| *value as i32).min().unwrap_or(0).min(5) as u32,
        sum(|value| value.wrapping_mul(value)),
    ];
    let wide_values = values.iter().map(|value| u64::from(*value));
    let wide = [
        wide_values.clone().map(|value| value << 20).sum(),
        wide_values.clone().map(|value| value * value).max().unwrap_or(0),
        wide_values.clone().fold(0, |all, value| all ^ (value << 32 | value)),
        0u64.wrapping_sub(wide_values.sum()),
    ];
    at_every_level("memory.cl", &[], |mut program| {
        let arguments = [
            program.input(&values),
            program.output(&vec![0u32; COUNT as usize]),
            program.output(&[0u32, 1, u32::MAX, 0, u32::MAX, 0, 0, 5, 0]),
            program.output(&[0u64; 4]),
        ];
        program.launch("atomics", [COUNT, 1, 1], [128, 1, 1], &arguments);
        let outputs = program.outputs();
        let mut tickets: Vec<u32> = to_values(&outputs[0]);
        tickets.sort_unstable();
        assert!(tickets.iter().copied().eq(0..COUNT), "each ticket is drawn once");
        assert_eq!(outputs[1..], [to_bytes(&words), to_bytes(&wide)]);
    });
}

#[test]
fn sort_with_barriers_in_loops_matches_rust() {
    let values: Vec<i32> = random_words(768).iter().map(|word| *word as i32).collect();
    let mut sorted = values.clone();
    sorted.chunks_mut(256).for_each(<[i32]>::sort_unstable);
    at_every_level("memory.cl", &[], |mut program| {
        let arguments = [program.output(&values)];
        program.launch("sort", [768, 1, 1], [256, 1, 1], &arguments);
        assert_eq!(program.outputs(), [to_bytes(&sorted)]);
    });
}

#[test]
fn work_item_ids_in_partial_workgroups_match_rust() {
    const GRID: [u32; 3] = [13, 7, 5];
    const WORKGROUP: [u32; 3] = [4, 3, 2];
    let mut expected: Vec<u32> = Vec::new();
    for z in 0..GRID[2] {
        for y in 0..GRID[1] {
            for x in 0..GRID[0] {
                let id = [x, y, z];
                let pack = |part: fn(u32, u32, u32) -> u32| {
                    (0..3).map(|d| part(id[d], GRID[d], WORKGROUP[d]) << (8 * d)).sum::<u32>()
                };
                expected.extend([
                    pack(|id, _, workgroup| id % workgroup),
                    pack(|id, _, workgroup| id / workgroup),
                    pack(|id, grid, workgroup| workgroup.min(grid - id / workgroup * workgroup)),
                    pack(|_, grid, workgroup| grid.div_ceil(workgroup)) | 3 << 24,
                ]);
            }
        }
    }
    at_every_level("memory.cl", &[], |mut program| {
        let arguments = [program.output(&vec![0u32; expected.len()])];
        program.launch("places", GRID, WORKGROUP, &arguments);
        assert_eq!(to_values::<u32>(&program.outputs()[0]), expected);
    });
}

#[test]
fn narrow_and_vector_accesses_match_rust() {
    const COUNT: usize = 192;
    let bytes: Vec<u8> = random_words(3 * COUNT).iter().map(|word| (word >> 24) as u8).collect();
    let signed = |at: usize| bytes[at] as i8;
    let mut vectors = Vec::new();
    let mut triples = Vec::new();
    for three in bytes.chunks(3) {
        let four = [three[2], three[1], three[0], three[0].saturating_add(three[1])];
        vectors.extend(four.iter().zip(1u8..).map(|(byte, less)| byte.wrapping_sub(less)));
        let wide = [(0, 1), (1, -100), (2, 10_000)];
        let wide = wide.map(|(at, factor)| i32::from(three[at] as i8) * factor);
        triples.extend([wide[1], wide[2], wide[0]]);
    }
    let expected = [
        to_bytes(&(0..COUNT).map(|at| signed(at) >> 1).collect::<Vec<i8>>()),
        to_bytes(
            &(0..COUNT)
                .map(|at| (u16::from(bytes[at]) * 257).wrapping_add(bytes[at + 1].into()))
                .collect::<Vec<u16>>(),
        ),
        to_bytes(
            &(0..COUNT)
                .map(|at| i16::from(signed(at)) * i16::from(signed(at + 2)))
                .collect::<Vec<i16>>(),
        ),
        to_bytes(&vectors),
        to_bytes(&triples),
    ];
    at_every_level("memory.cl", &[], |mut program| {
        let arguments = [
            program.input(&bytes),
            program.output(&[0i8; COUNT]),
            program.output(&[0u16; COUNT]),
            program.output(&[0i16; COUNT]),
            program.output(&[0u8; 4 * COUNT]),
            program.output(&[0i32; 3 * COUNT]),
        ];
        program.launch("narrow", [COUNT as u32, 1, 1], [64, 1, 1], &arguments);
        assert_eq!(program.outputs(), expected);
    });
}

/// If private memory is accessed with buffer instructions, the register may contain a negative offset that
/// becomes positive with the instruction's offset (LLVM, `SelectMUBUFScratchOffen`).
#[test]
fn private_arrays_are_indexed_from_the_end() {
    const ITEMS: usize = 192;
    const COUNT: usize = 9;
    let words = random_words(ITEMS * COUNT);
    let places: Vec<i32> = words.iter().map(|word| 1 + (word >> 33) as i32 % 17).collect();
    let mut bins = vec![0f64; ITEMS * 17];
    for (at, row) in places.chunks(ITEMS).enumerate() {
        for (item, place) in row.iter().enumerate() {
            bins[item * 17 + 17 - *place as usize] += 1.0 + at as f64;
        }
    }
    at_every_level("private_offsets.cl", &[], |mut program| {
        let (input, count) = (program.input(&places), scalar(COUNT as u32));
        let arguments = [input, count, program.output(&vec![0f64; ITEMS * 17])];
        program.launch("from_the_end", [ITEMS as u32, 1, 1], [64, 1, 1], &arguments);
        assert_eq!(to_values::<f64>(&program.outputs()[0]), bins);
    });
}

#[test]
fn narrow_private_elements_are_indexed_from_below() {
    const ITEMS: usize = 128;
    const COUNT: usize = 7;
    let words = random_words(ITEMS * COUNT);
    let places: Vec<i32> = words.iter().map(|word| 2 + (word >> 33) as i32 % 15).collect();
    let sums = (0..ITEMS).map(|item| {
        let mut bytes: [u8; 32] = std::array::from_fn(|at| at as u8);
        let mut halves: [i16; 32] = std::array::from_fn(|at| -(at as i16));
        let mut triples: [[u32; 3]; 16] =
            std::array::from_fn(|at| [0, 1, 2].map(|part| 2 * at as u32 + 1 + part));
        (0..COUNT).fold(0u32, |sum, at| {
            let below = -places[at * ITEMS + item];
            let up = |by: i32| (below + by) as usize;
            bytes[up(20)] = bytes[up(20)].wrapping_add(at as u8);
            halves[up(30)] ^= i16::from(bytes[up(21)]);
            triples[up(17)][1] = triples[up(17)][1].wrapping_add(halves[up(31)] as u32);
            sum.wrapping_mul(31)
                .wrapping_add(bytes[up(18)].into())
                .wrapping_add(halves[up(19)] as u32)
                .wrapping_add(triples[up(17)][1])
                .wrapping_add(triples[up(18) & 15][2])
        })
    });
    let sums: Vec<u32> = sums.collect();
    at_every_level("private_offsets.cl", &[], |mut program| {
        let (input, count) = (program.input(&places), scalar(COUNT as u32));
        let arguments = [input, count, program.output(&[0u32; ITEMS])];
        program.launch("from_below", [ITEMS as u32, 1, 1], [64, 1, 1], &arguments);
        assert_eq!(to_values::<u32>(&program.outputs()[0]), sums);
    });
}
