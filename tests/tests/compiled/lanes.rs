//! Operations across the lanes of a wave, and floating-point atomics, in HIP.

use super::at_every_level;
use flipwave_tests::{random_words, to_bytes, to_values};

const COUNT: usize = 256;

#[test]
fn lane_exchanges_match_rust() {
    let values: Vec<i32> = random_words(COUNT).iter().map(|word| *word as i32 >> 4).collect();
    at_every_level("lanes.hip", &[], |mut program| {
        let arguments = [
            program.input(&values),
            program.output(&[0i32; COUNT]),
            program.output(&[0i32; COUNT]),
            program.output(&[0u64; COUNT]),
        ];
        program.launch("exchange", [COUNT as u32, 1, 1], [128, 1, 1], &arguments);
        let outputs = program.outputs();
        let (sums, shuffled, ballots) = exchanged(&values, program.lanes());
        assert_eq!(to_values::<i32>(&outputs[0]), sums);
        assert_eq!(to_values::<i32>(&outputs[1]), shuffled);
        assert_eq!(to_values::<u64>(&outputs[2]), ballots);
        // Negative control: the other wave size gives other results.
        assert_ne!(exchanged(&values, 96 - program.lanes()), (sums, shuffled, ballots));
    });
}

/// Expected results of exchanges in waves of `lanes` lanes.
fn exchanged(values: &[i32], lanes: usize) -> (Vec<i32>, Vec<i32>, Vec<u64>) {
    let (mut sums, mut shuffled, mut ballots) = (Vec::new(), Vec::new(), Vec::new());
    for wave in values.chunks(lanes) {
        let mut sum = wave.to_vec();
        for distance in [32, 16, 8, 4, 2, 1] {
            // A lane without a partner reads its own value.
            let partner =
                |lane: usize| sum[if lane + distance < lanes { lane + distance } else { lane }];
            sum = (0..lanes).map(|lane| sum[lane].wrapping_add(partner(lane))).collect();
        }
        sums.extend(sum);
        shuffled.extend((0..lanes).map(|lane| {
            let product = wave[(lane * 7 + 3) % lanes].wrapping_mul(3);
            wave[lane ^ 5].wrapping_sub(product).wrapping_add(wave[lane.saturating_sub(1)])
        }));
        let vote = |holds: fn(i32) -> bool| {
            wave.iter().rev().fold(0u64, |votes, value| votes << 1 | u64::from(holds(*value)))
        };
        let (positive, two_of_odd) = (vote(|value| value > 0), vote(|value| value & 3 == 3));
        let ballot = |value: &i32| {
            if value & 1 == 1 { positive ^ two_of_odd } else { positive }
        };
        ballots.extend(wave.iter().map(ballot));
    }
    (sums, shuffled, ballots)
}

#[test]
fn floating_point_atomics_are_exact() {
    let values: Vec<f32> = random_words(COUNT).iter().map(|word| (word % 100) as f32).collect();
    let mut sums = [0.0f32; 4];
    values.iter().zip((0..4).cycle()).for_each(|(value, bin)| sums[bin] += value);
    // With compare-and-exchange loops, and with atomic instructions.
    for options in [&[][..], &["-munsafe-fp-atomics"]] {
        at_every_level("lanes.hip", options, |mut program| {
            let arguments = [program.input(&values), program.output(&[0.0f32; 4])];
            program.launch("float_sums", [COUNT as u32, 1, 1], [64, 1, 1], &arguments);
            assert_eq!(program.outputs(), [to_bytes(&sums)]);
        });
    }
}
