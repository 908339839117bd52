//! Register pressure and indirect calls. Spilled values are in lanes of vector registers, in accumulation
//! registers and in private memory.

use super::at_every_level;
use flipwave_tests::{random_words, to_values};

const ITEMS: usize = 128;
const WORKGROUP: usize = 64;

/// Result of the kernels for the values of one work-item.
fn mix(values: &[u32], start: u32) -> u32 {
    let mixed =
        values.iter().rev().fold(start, |mixed, value| mixed.wrapping_mul(31).wrapping_add(*value));
    (0..).zip(values).fold(mixed, |mixed, (k, value)| mixed ^ value >> (k % 7))
}

fn input(count: usize) -> Vec<u32> {
    random_words(count).into_iter().map(|word| word as u32).collect()
}

/// Runs a kernel and compares the result of each work-item.
fn check(kernel: &str, values: &[u32], expected: &[u32]) {
    at_every_level("pressure.hip", &[], |mut program| {
        let arguments = [program.input(values), program.output(&[0u32; ITEMS])];
        let (grid, workgroup) = (ITEMS as u32, WORKGROUP as u32);
        program.launch(kernel, [grid, 1, 1], [workgroup, 1, 1], &arguments);
        assert_eq!(to_values::<u32>(&program.outputs()[0]), expected);
    });
}

#[test]
fn spilled_vector_registers_keep_their_values() {
    let values = input(ITEMS * 48);
    let expected: Vec<u32> = values.chunks(48).map(|values| mix(values, 0)).collect();
    check("vectors", &values, &expected);
}

#[test]
fn spilled_scalar_registers_keep_their_values() {
    let values = input(ITEMS / WORKGROUP * 96);
    let expected = values.chunks(96).flat_map(|values| {
        (0..WORKGROUP as u32).map(|thread| mix(values, thread)).collect::<Vec<_>>()
    });
    check("scalars", &values, &expected.collect::<Vec<_>>());
}

#[test]
fn function_pointers_match_rust() {
    let doubled = |x: u32| x.wrapping_mul(2).wrapping_add(1);
    let squared = |x: u32| x.wrapping_mul(x);
    let values = input(ITEMS);
    let expected = values.iter().map(|value| {
        (0..6).fold(*value, |x, k| match x >> k & 3 {
            0 => doubled(x),
            1 => squared(x),
            2 => !x,
            _ => squared(doubled(x)) ^ x,
        })
    });
    check("through_pointers", &values, &expected.collect::<Vec<_>>());
}
