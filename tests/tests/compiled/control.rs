//! Branches, loops, switches and calls.

use super::at_every_level;
use flipwave_tests::{random_words, scalar, to_bytes};

#[test]
fn divergent_loops_match_rust() {
    let start: Vec<u32> = (1..=256).collect();
    let steps = start.iter().map(|&start| {
        let sequence = std::iter::successors(Some(u64::from(start)), |value| match value {
            1 => None,
            even if even % 2 == 0 => Some(even / 2),
            odd => Some(3 * odd + 1),
        });
        sequence.count() as u32 - 1
    });
    let steps: Vec<u32> = steps.collect();
    at_every_level("control.cl", &[], |mut program| {
        let arguments = [program.input(&start), program.output(&[0u32; 256])];
        program.launch("collatz", [256, 1, 1], [64, 1, 1], &arguments);
        assert_eq!(program.outputs(), [to_bytes(&steps)]);
    });
}

/// A program with every case of the switch, on which lanes diverge and reconverge.
const MACHINE_PROGRAM: [i32; 26] = [
    9, 0, 3, 3, 0, 7, 2, // input * 3 - 7
    6, 8, // negated unless odd
    4, 3, // squared
    9, 5, // input, swapped with the square
    7, 8, // negated unless negative
    0, 5, 1, // plus 5
    2, // input - that
    4, 0, 2, 3, 1, // x + 2 x
    7, 8, // negated unless negative
];

fn interpret(input: i32) -> i32 {
    let (mut stack, mut top) = ([0i32; 8], 0);
    let mut at = 0;
    while at < MACHINE_PROGRAM.len() {
        let below = (top + 7) % 8;
        let (a, b) = (stack[top], stack[below]);
        let mut push = |value| {
            top = (top + 1) % 8;
            stack[top] = value;
        };
        match MACHINE_PROGRAM[at] {
            0 => {
                at += 1;
                push(MACHINE_PROGRAM[at]);
            }
            1..=3 => {
                top = below;
                stack[top] = match MACHINE_PROGRAM[at] {
                    1 => a.wrapping_add(b),
                    2 => b.wrapping_sub(a),
                    _ => a.wrapping_mul(b),
                };
            }
            4 => push(a),
            5 => (stack[top], stack[below]) = (b, a),
            6 => at += usize::from(a & 1 == 1),
            7 => at += usize::from(a < 0),
            8 => stack[top] = a.wrapping_neg(),
            _ => push(input),
        }
        at += 1;
    }
    stack[top]
}

#[test]
fn divergent_switches_match_rust() {
    let input: Vec<i32> = (-100..100).map(|value| value * 1009).collect();
    let expected: Vec<i32> = input.iter().map(|input| interpret(*input)).collect();
    at_every_level("control.cl", &[], |mut program| {
        let arguments = [
            program.input(&MACHINE_PROGRAM),
            scalar(MACHINE_PROGRAM.len() as i32),
            program.input(&input),
            program.output(&[0i32; 200]),
        ];
        program.launch("interpret", [200, 1, 1], [128, 1, 1], &arguments);
        assert_eq!(program.outputs(), [to_bytes(&expected)]);
    });
}

#[test]
fn nested_loops_with_early_exits_match_rust() {
    let numbers: Vec<u32> = (2..130).map(|number| number * number * 7 + number).collect();
    let is_prime = |candidate: u32| (2..candidate).all(|factor| !candidate.is_multiple_of(factor));
    let result = |&number: &u32| {
        let least = (2..).take_while(|f| f * f <= number).find(|f| number % f == 0);
        let primes = (2..number % 16).filter(|candidate| is_prime(*candidate)).count();
        [least.unwrap_or(number), primes as u32]
    };
    let expected: Vec<u32> = numbers.iter().flat_map(result).collect();
    at_every_level("control.cl", &[], |mut program| {
        let arguments = [program.input(&numbers), program.output(&[0u32; 256])];
        program.launch("factors", [128, 1, 1], [64, 1, 1], &arguments);
        assert_eq!(program.outputs(), [to_bytes(&expected)]);
    });
}

fn mix(value: u32, key: u32) -> u32 {
    (value ^ key.wrapping_mul(0x9e37_79b9)).rotate_left(7)
}

fn weigh(words: &[u32], key: u32) -> u64 {
    let weighed = words.iter().zip(1u64..).map(|(word, at)| u64::from(mix(*word, key)) * at);
    weighed.fold(0, u64::wrapping_add)
}

#[test]
fn calls_with_pointers_to_caller_memory_match_rust() {
    let seeds: Vec<u32> = random_words(192).into_iter().map(|word| word as u32).collect();
    let sum = |&seed: &u32| {
        let mut words = [0; 16];
        (0..16).for_each(|at| words[at as usize * 7 % 16] = mix(seed, at));
        let sum = weigh(&words, seed);
        if seed % 3 != 0 {
            return sum;
        }
        let start = seed as usize % 8;
        sum ^ weigh(&words[start..start + 8], sum as u32)
    };
    let expected: Vec<u64> = seeds.iter().map(sum).collect();
    at_every_level("control.cl", &[], |mut program| {
        let arguments = [program.input(&seeds), program.output(&[0u64; 192])];
        program.launch("calls", [192, 1, 1], [64, 1, 1], &arguments);
        assert_eq!(program.outputs(), [to_bytes(&expected)]);
    });
}
