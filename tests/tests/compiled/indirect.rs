//! Calls through pointers, and indexed registers.

use super::at_every_level;
use flipwave_tests::{random_words, scalar, to_bytes};

const COUNT: usize = 128;

#[test]
fn calls_through_pointers_match_rust() {
    let values: Vec<i32> = random_words(COUNT).iter().map(|word| *word as i32).collect();
    let choices = [1, 0, 2, 2, 1, 0, 2];
    let expected = |item: usize, lanes: usize| {
        choices.iter().enumerate().fold(values[item], |a, (i, choice)| {
            let b = (item + i) as i32;
            let first = (item / lanes * lanes + i) as i32;
            let all = [a, b, a.wrapping_add(b), a.wrapping_sub(b), a ^ b, a & b, a | b, !a];
            let result = match choice {
                0 => a.wrapping_mul(3).wrapping_add(b),
                1 => a.wrapping_mul(b).wrapping_add(7),
                _ => all[(first & 7) as usize],
            };
            result ^ a
        })
    };
    at_every_level("indirect.cl", &[], |mut program| {
        let arguments =
            [program.input(&choices), scalar(choices.len() as i32), program.output(&values)];
        program.launch("call", [COUNT as u32, 1, 1], [64, 1, 1], &arguments);
        let lanes = program.lanes();
        let expected: Vec<i32> = (0..COUNT).map(|item| expected(item, lanes)).collect();
        assert_eq!(program.outputs(), [to_bytes(&expected)]);
    });
}

#[test]
fn uniformly_indexed_registers_match_rust() {
    let values: Vec<i32> = random_words(16 * COUNT).iter().map(|word| *word as i32).collect();
    let at = 5;
    let rotated = |values: &[i32]| {
        let mut result = values.to_vec();
        for i in 0..16 {
            result[(at + i) & 15] = values[(i * at) & 15].wrapping_add(i as i32);
        }
        result
    };
    let expected: Vec<i32> = values.chunks(16).flat_map(rotated).collect();
    at_every_level("indirect.cl", &[], |mut program| {
        let output = program.output(&[0i32; 16 * COUNT]);
        let arguments = [program.input(&values), scalar(at as i32), output];
        program.launch("rotate", [COUNT as u32, 1, 1], [64, 1, 1], &arguments);
        assert_eq!(program.outputs(), [to_bytes(&expected)]);
    });
}

#[test]
fn divergently_indexed_registers_match_rust() {
    let values: Vec<i32> = random_words(16 * COUNT).iter().map(|word| *word as i32).collect();
    let places: Vec<i32> = (0..COUNT as i32).map(|item| item * 7 + 3).collect();
    let expected: Vec<i32> = places
        .iter()
        .zip(values.chunks(16))
        .map(|(place, values)| values[(place & 15) as usize])
        .collect();
    at_every_level("indirect.cl", &[], |mut program| {
        let output = program.output(&[0i32; COUNT]);
        let arguments = [program.input(&values), program.input(&places), output];
        program.launch("pick", [COUNT as u32, 1, 1], [64, 1, 1], &arguments);
        assert_eq!(program.outputs(), [to_bytes(&expected)]);
    });
}
