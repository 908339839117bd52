//! Tests of variables, channels, register access by number, EXEC, and waits.

use super::bench;
use super::bench::{MACHINES, Numbers, range, register, shuffle};
use crate::hook::{Body, BodyInst, Channel, DataPointer, IndexedAccess, IndexedFile};
use flipwave_isa::Register;

fn word(bytes: &[u8], at: u64) -> u32 {
    u32::from_le_bytes(bytes[at as usize..at as usize + 4].try_into().expect("four bytes"))
}

#[test]
fn counters_count_lanes_or_waves() {
    let text = "uint64_t before = 5, counters[3];\n\
        void f(uint32_t index) {\n\
            flipwave_count(&counters[index], 1);\n\
            if (flipwave_first_lane()) flipwave_count(&counters[0], 100);\n\
        }";
    for machine in MACHINES {
        let bench = bench(machine);
        let compiled = bench.call(text, &[register("s7", 1)], &[], "s_nop 0").expect("compiles");
        let names = shuffle(&compiled.bodies[0], &mut Numbers(1));
        let outcome = bench.run(&compiled, &names, &[vec![2]], 7);
        let counters = compiled.data.symbols["counters"];
        let at = |index: u64| word(&outcome.data, counters.offset + 8 * index);
        assert_eq!([at(0), at(1), at(2)], [100, 0, 7], "{machine:?}");
        assert_eq!(counters.size, 24);
        let before = compiled.data.symbols["before"].offset;
        assert_eq!(compiled.data.bytes[before as usize], 5);
        assert!(compiled.data.zeros >= 24 && compiled.data.alignment >= 8);
    }
}

#[test]
fn records_are_appended_in_lane_order_and_lost_records_are_counted() {
    let text = "struct record { uint32_t lane, value; };\n\
        FLIPWAVE_CHANNEL(trace, struct record, 6);\n\
        void f(uint32_t value) {\n\
            if (value & 1)\n\
                flipwave_append(&trace, ((struct record) { flipwave_lane(), value }));\n\
        }";
    for machine in MACHINES {
        let bench = bench(machine);
        let compiled = bench.call(text, &[register("v7", 1)], &[], "s_nop 0").expect("compiles");
        let names = shuffle(&compiled.bodies[0], &mut Numbers(2));
        for (lanes, kept, lost) in [(8, 4, 0), (20, 6, 4)] {
            let values = (100..164).collect();
            let outcome = bench.run(&compiled, &names, &[values], lanes);
            let trace = compiled.data.symbols["trace"];
            let bytes = &outcome.data[trace.offset as usize..][..trace.size as usize];
            let channel = Channel::new(bytes, 8).expect("a channel");
            let records: Vec<(u32, u32)> =
                channel.records().map(|bytes| (word(bytes, 0), word(bytes, 4))).collect();
            let expected: Vec<(u32, u32)> =
                (0..kept).map(|at| (2 * at + 1, 101 + 2 * at)).collect();
            assert_eq!(records, expected, "{machine:?}");
            assert_eq!(channel.lost(), lost, "{machine:?}");
        }
    }
}

#[test]
fn pointers_between_variables_are_reported() {
    let text = "uint32_t numbers[3] = { 7, 8, 9 };\n\
        uint32_t *second = &numbers[1];\n\
        uint32_t f(void) { return *second; }";
    let bench = bench(("gfx90a", 64));
    let compiled = bench.call(text, &[], &[range("v9", 1)], "s_nop 0").expect("compiles");
    let at = |name: &str| compiled.data.symbols[name].offset;
    let expected = DataPointer { at: at("second"), to: at("numbers") + 4 };
    assert_eq!(compiled.data.pointers, [expected]);
    let names = shuffle(&compiled.bodies[0], &mut Numbers(2));
    assert_eq!(bench.run(&compiled, &names, &[], 1).outputs[0][0], 8);
}

#[test]
fn register_accesses_by_number_are_left_to_the_engine() {
    let text = "uint32_t f(uint32_t number) {\n\
            flipwave_write_vgpr(number + 1, flipwave_lane() + 10);\n\
            flipwave_write_sgpr(number, flipwave_read_vgpr(number) + 5);\n\
            flipwave_write_agpr(number, flipwave_read_sgpr(number) + flipwave_read_agpr(3));\n\
            return flipwave_read_sgpr(number);\n\
        }";
    for machine in MACHINES {
        let bench = bench(machine);
        let compiled =
            bench.call(text, &[register("s7", 1)], &[range("v9", 1)], "s_nop 0").expect("compiles");
        let accesses: Vec<IndexedAccess> = compiled.bodies[0]
            .instructions
            .iter()
            .filter_map(|inst| match inst {
                BodyInst::Indexed(indexed) => Some(*indexed),
                _ => None,
            })
            .collect();
        let kinds: Vec<_> = accesses.iter().map(|access| (access.writes, access.file)).collect();
        use IndexedFile::{AccVgpr, Sgpr, Vgpr};
        assert_eq!(
            kinds,
            [
                (true, Vgpr),
                (false, Vgpr),
                (true, Sgpr),
                (false, Sgpr),
                (false, AccVgpr),
                (true, AccVgpr),
                (false, Sgpr)
            ]
        );
        assert!(accesses.iter().all(|access| matches!(access.index.first, Register::Sgpr(_))));
        // In tests, all accesses by number refer to v6 and s6.
        let names = shuffle(&compiled.bodies[0], &mut Numbers(5));
        let outcome = bench.run(&compiled, &names, &[vec![3]], 4);
        // The SGPR is written with the value of the first lane: 10 + 5.
        assert_eq!(outcome.outputs[0][..4], [15; 4], "{machine:?}");
        assert_eq!(outcome.outputs[1][..4], [25, 26, 27, 28], "{machine:?}");
        assert_eq!(outcome.outputs[2][..4], [15; 4], "{machine:?}");
    }
}

fn compiled(text: &str, machine: (&str, u8)) -> Body {
    bench(machine).body(text, &[register("v7", 1)], &[range("v9", 1)]).expect("compiles")
}

#[test]
fn only_code_that_enables_lanes_widens_exec() {
    for machine in MACHINES {
        let narrow = "uint32_t f(uint32_t a) {\n\
            uint32_t s = 0;\n\
            for (uint32_t i = 0; i < (a & 63); i++) { if (i & a) s += i * a; else if (s > a) break; }\n\
            return s;\n}";
        assert!(!compiled(narrow, machine).widens_exec, "{machine:?}");
        let mask = if machine.1 == 64 { "s_mov_b64 exec" } else { "s_mov_b32 exec_lo" };
        let wide =
            format!("uint32_t f(uint32_t a) {{ asm volatile(\"{mask}, -1\"); return a + 1; }}");
        assert!(compiled(&wide, machine).widens_exec, "{machine:?}");
    }
}

#[test]
fn body_lists_registers_read_and_written() {
    let body = compiled("uint32_t f(uint32_t a) { return a + 1; }", ("gfx90a", 64));
    assert_eq!(body.instructions.len(), 1);
    assert_eq!(body.reads.to_string(), "exec");
    assert_eq!(body.writes, [body.outputs[0]].into_iter().collect());
    let body = compiled("uint32_t f(float a) { return a * 3.7f > 1.5f; }", ("gfx90a", 64));
    assert_eq!(body.reads.to_string(), "exec mode");
    assert!(body.writes.contains(Register::VccLo), "{:?}", body.writes);
}

#[test]
fn waits_of_the_calling_convention_and_hints_are_omitted() {
    for machine in MACHINES {
        let text = "uint64_t counter; uint32_t f(uint32_t a) {\n\
            flipwave_count(&counter, a); return a * a; }";
        let body = compiled(text, machine);
        for inst in &body.instructions {
            if let BodyInst::Inst { inst, .. } = inst {
                let name = inst.operation.name();
                assert!(
                    !name.starts_with("s_wait") && name != "s_delay_alu",
                    "{machine:?}: {inst}"
                );
            }
        }
        // A load must complete before the kernel uses its destination again.
        let text = "uint32_t value; uint32_t f(uint32_t a) { (void)*(volatile uint32_t *)&value; return a; }";
        let waits = |inst: &BodyInst| match inst {
            BodyInst::Inst { inst, .. } => inst.operation.name().starts_with("s_wait"),
            _ => false,
        };
        assert!(compiled(text, machine).instructions.iter().any(waits), "{machine:?}");
    }
}
