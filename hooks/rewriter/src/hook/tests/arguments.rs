//! Tests of lowered arguments.

use super::bench;
use super::bench::{MACHINES, Numbers, range, register, shuffle};
use crate::hook::{Argument, EntryValue, InputValue, Passing};

/// Lowers a call of `void f(uint64_t)` at an instruction.
fn inputs(argument: Argument, site: &str) -> (Vec<InputValue>, crate::hook::EntryPoint) {
    let bench = bench(("gfx90a", 64));
    let source = bench.read("void f(uint64_t a) {}").expect("compiles");
    let site = bench.inst(site);
    let call = source.function("f").expect("there").call(&[argument], &[], &site, 64);
    let call = call.expect("fits");
    (call.inputs, call.entry)
}

#[test]
fn calls_that_differ_in_registers_and_numbers_share_a_wrapper() {
    let address = |site| inputs(Argument::MemoryAddress, site);
    let (first, entry) = address("global_load_dword v0, v1, s[2:3] offset:16");
    let (second, second_entry) = address("global_store_dwordx2 v9, v[4:5], s[8:9] offset:-8");
    assert_eq!(entry, second_entry);
    assert_eq!(
        first,
        [
            InputValue::Registers(range("s2", 2)),
            InputValue::Registers(range("v1", 1)),
            InputValue::Constant(16)
        ]
    );
    assert_eq!(second[2], InputValue::Constant(0xffff_fff8));
    let (_, without_saddr) = address("global_load_dword v0, v[2:3], off");
    assert_ne!(entry, without_saddr);
}

#[test]
fn numbers_are_lowered_to_inputs() {
    let site = "v_add_f32 v0, 1.0, v1";
    let bits = |argument| inputs(argument, site).0;
    assert_eq!(bits(Argument::Constant(7)), [InputValue::Constant(7)]);
    let (values, entry) = inputs(Argument::LaneConstant(7), site);
    assert_eq!(values, [InputValue::Constant(7)]);
    assert_eq!(entry.arguments[0].inputs, [Passing::Vector(2)]);
    assert_eq!(bits(Argument::Pc), [InputValue::Constant(0x1234)]);
    assert_eq!(bits(Argument::Exec), [InputValue::Registers(range("exec_lo", 2))]);
    // Constants have the bits that the operation reads.
    let constant = |site: &str| inputs(Argument::Operand(1), site).0;
    assert_eq!(constant(site), [InputValue::Constant(0x3f80_0000)]);
    assert_eq!(constant("v_add_f16 v0, 1.0, v1"), [InputValue::Constant(0x3c00)]);
    let double = "v_add_f64 v[0:1], 1.0, v[2:3]";
    assert_eq!(constant(double), [InputValue::Constant(1.0f64.to_bits())]);
    assert_eq!(bits(Argument::Kernarg), [InputValue::Entry(EntryValue::Kernarg)]);
    let data = Argument::Data { symbol: "x".into(), offset: 8 };
    assert_eq!(bits(data), [InputValue::Data { symbol: "x".into(), offset: 8 }]);
    let bytes = inputs(Argument::MemoryBytes, "global_load_dwordx3 v[0:2], v[4:5], off").0;
    assert_eq!(bytes, [InputValue::Constant(12)]);
    let literal = inputs(Argument::Operand(2), "s_add_u32 s0, s1, 0x12345678").0;
    assert_eq!(literal, [InputValue::Constant(0x1234_5678)]);
}

/// Compiled code computes the addresses that the ISA documents define.
#[test]
fn addresses_match_the_isa_documents() {
    type Expected = fn(&[u32]) -> u64;
    let rows: [(&str, Expected); 7] = [
        ("global_load_dword v0, v[2:3], off offset:16", |w| {
            (u64::from(w[0]) | u64::from(w[1]) << 32).wrapping_add(16)
        }),
        ("global_store_dword v1, v0, s[2:3] offset:-16", |w| {
            (u64::from(w[0]) | u64::from(w[1]) << 32).wrapping_add(w[2].into()).wrapping_sub(16)
        }),
        ("flat_load_dword v0, v[2:3]", |w| u64::from(w[0]) | u64::from(w[1]) << 32),
        ("s_load_dword s0, s[2:3], 0x10", |w| {
            ((u64::from(w[0]) | u64::from(w[1]) << 32).wrapping_add(16)) & !3
        }),
        ("ds_read2_b32 v[0:1], v2 offset0:3 offset1:9", |w| u64::from(w[0]) + 12),
        ("ds_write_b64 v2, v[4:5] offset:24", |w| u64::from(w[0]) + 24),
        ("buffer_load_dword v0, v2, s[8:11], s4 offen offset:8", |w| {
            let base = (u64::from(w[0]) | u64::from(w[1]) << 32) & 0xffff_ffff_ffff;
            // Words: resource, offset, constant, scalar offset.
            let (stride, together) = (u64::from(w[1] >> 16 & 0x3fff), 8u64 << (w[3] >> 21 & 3));
            let offset = u64::from(w[4].wrapping_add(8));
            let within = match w[1] >> 31 {
                0 => offset,
                _ => offset / 4 * 4 * together + offset % 4,
            };
            let _ = stride;
            base.wrapping_add(w[6].into()).wrapping_add(within)
        }),
    ];
    for machine in MACHINES {
        let bench = bench(machine);
        for (site, expected) in rows {
            let text = "uint64_t f(uint64_t address) { return address; }";
            let compiled = bench
                .call(text, &[Argument::MemoryAddress], &[range("v8", 2)], site)
                .unwrap_or_else(|error| panic!("{machine:?} {site}: {error}"));
            let mut numbers = Numbers(11);
            let names = shuffle(&compiled.bodies[0], &mut numbers);
            let offset = bench.inst(site).modifiers.offset as u32;
            let words: usize =
                compiled.bodies[0].inputs.iter().map(|range| usize::from(range.words)).sum();
            let mut values: Vec<Vec<u32>> =
                (0..words).map(|_| vec![(numbers.next() >> 40) as u32]).collect();
            // The engine would provide the constant.
            match site.split('_').next() {
                Some("global") if words == 3 => values[2] = vec![16],
                Some("global") => values[3] = vec![offset],
                Some("s") => values[2] = vec![16],
                Some("ds") if site.contains("read2") => values[1] = vec![12],
                Some("ds") => values[1] = vec![24],
                Some("buffer") => {
                    // Disables adding the lane.
                    values[3][0] &= !(1 << 23);
                    values[5] = vec![8];
                }
                _ => {}
            }
            let outcome = bench.run(&compiled, &names, &values, 5);
            let words: Vec<u32> = values.iter().map(|row| row[0]).collect();
            let found = u64::from(outcome.outputs[0][4]) | u64::from(outcome.outputs[1][4]) << 32;
            assert_eq!(found, expected(&words), "{machine:?}: {site}");
        }
    }
}

#[test]
fn registers_are_passed_as_bits() {
    let bench = bench(("gfx90a", 64));
    let text = "double f(double a) { return -a; }";
    let compiled = bench.call(text, &[register("v2", 2)], &[range("v2", 2)], "s_nop 0");
    let compiled = compiled.expect("compiles");
    let names = shuffle(&compiled.bodies[0], &mut Numbers(1));
    let bits = 1.5f64.to_bits();
    let outcome = bench.run(&compiled, &names, &[vec![bits as u32], vec![(bits >> 32) as u32]], 1);
    let found = u64::from(outcome.outputs[0][0]) | u64::from(outcome.outputs[1][0]) << 32;
    assert_eq!(f64::from_bits(found), -1.5);
}
