//! Uninitialised private memory.

use super::planted::{breaks, keeps};
use flipwave_injector_amdgpu::golden_strict;
use flipwave_isa::{FlatScratch, Generation};
use flipwave_sim::strict::{Finding, Rule, StrictOptions};
use flipwave_tests::{Machine, TestProgram, cases, clean, compile_for, machines, scalar};

/// Machines whose hardware sets up the base of private memory.
fn architected() -> impl Iterator<Item = Machine> {
    machines().filter(|machine| {
        machine.has_strict_level() && machine.target().flat_scratch() == FlatScratch::Architected
    })
}

/// A wait for all memory operations.
fn wait(machine: Machine) -> &'static str {
    match machine.target().generation() {
        Generation::Gfx12 | Generation::Gfx125 => "s_wait_idle",
        Generation::Gfx11 => "s_waitcnt vmcnt(0) lgkmcnt(0)\n s_waitcnt_vscnt null, 0x0",
        _ => "s_waitcnt vmcnt(0) lgkmcnt(0)",
    }
}

/// Operation suffixes of a generation, for dwords, bytes and stores.
fn names(machine: Machine) -> [&'static str; 3] {
    if machine.target().generation() >= Generation::Gfx11 {
        ["load_b32", "store_b32", "store_b8"]
    } else {
        ["load_dword", "store_dword", "store_byte"]
    }
}

#[test]
fn private_memory_is_undefined_until_the_lane_has_stored_it() {
    for machine in architected() {
        let [load, store, store_byte] = names(machine);
        let wait = wait(machine);
        let exec = if machine.lanes == 32 { "s_mov_b32 exec_lo," } else { "s_mov_b64 exec," };
        let body = |before: &str, mask: &str| {
            format!(
                ".set private_bytes, 16\n v_mov_b32 v2, 0\n {before}\n {wait}\n \
                 scratch_{load} v5, off, off offset:4\n {wait}\n {mask}\n\
                 wrong: global_load_dword v6, v5, s[2:3]\n"
            )
        };
        let low = "v_and_b32 v5, 0xfc, v5";
        let high = "v_lshrrev_b32 v5, 8, v5\n v_and_b32 v5, 0xfc, v5";
        let whole = format!("scratch_{store} off, v2, off offset:4");
        let byte = format!("scratch_{store_byte} off, v2, off offset:4");
        let elsewhere = format!("scratch_{store} off, v2, off offset:8");
        let some_lanes = format!("{exec} 1\n {whole}\n {exec} 3");
        breaks(machine, Rule::UndefinedValue, 64, &body("", low), &body(&whole, low));
        breaks(machine, Rule::UndefinedValue, 64, &body(&elsewhere, low), &body(&whole, high));
        // Tracked by byte.
        breaks(machine, Rule::UndefinedValue, 64, &body(&byte, high), &body(&byte, low));
        // Tracked by lane.
        let all_lanes = format!("{exec} 3\n {whole}");
        let violation = breaks(
            machine,
            Rule::UndefinedValue,
            32,
            &body(&some_lanes, low),
            &body(&all_lanes, low),
        );
        assert_eq!(violation.lanes.0, 0b10);
        // Storing an undefined value leaves the memory undefined.
        let undefined = format!("scratch_{store} off, v20, off offset:4");
        breaks(machine, Rule::UndefinedValue, 64, &body(&undefined, low), &body(&whole, low));
    }
}

#[test]
fn private_memory_is_tracked_through_flat_addresses() {
    for machine in architected() {
        let [load, store, _] = names(machine);
        let wait = wait(machine);
        let body = |stored: u32| {
            format!(
                ".set private_bytes, 16\n s_mov_b64 s[4:5], src_private_base\n v_mov_b32 v2, 0\n \
                 v_mov_b32 v6, 4\n v_mov_b32 v7, s5\n \
                 scratch_{store} off, v2, off offset:{stored}\n {wait}\n \
                 flat_{load} v5, v[6:7]\n {wait}\n v_and_b32 v5, 0xfc, v5\n\
                 wrong: global_load_dword v6, v5, s[2:3]\n"
            )
        };
        breaks(machine, Rule::UndefinedValue, 64, &body(8), &body(4));
    }
}

#[test]
fn compiled_reads_of_uninitialised_memory_are_reported() {
    const GROUPS: u32 = 300;
    let all = machines().filter(|machine| machine.has_strict_level());
    let all = all.flat_map(|machine| ["-O0", "-O3"].map(|level| (machine, level)));
    for (machine, level) in cases(all, 5) {
        println!("{machine} {level}");
        let code = compile_for(machine, "unwritten.cl", &[level]);
        let workload = |absent: u32| {
            let mut program = TestProgram::new(&code);
            let out = program.output(&vec![0u32; GROUPS as usize * 64]);
            let values = program.input(&[0u32; 64]);
            let arguments = [out, values, scalar(absent)];
            program.launch("sparse", [GROUPS * 64, 1, 1], [64, 1, 1], &arguments);
            program.workload()
        };
        clean(&workload(8));
        let (_, found) = golden_strict(&workload(3), StrictOptions::default())
            .unwrap_or_else(|error| panic!("{error}"));
        let reports: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 1, "{machine} {level}:\n{}", reports.join("\n"));
        assert!(matches!(found[0].finding, Finding::Undefined { .. }), "{}", reports[0]);
        assert_eq!(found[0].wave.workgroup, [GROUPS - 1, 0, 0], "{}", reports[0]);
        assert_eq!(found[0].lanes.count() as usize, machine.lanes / 8, "{}", reports[0]);

        // Undefined padding may be copied and stored.
        let mut program = TestProgram::new(&code);
        let out = program.output(&[0u32; 128]);
        let values = program.input(&[0u32; 64]);
        program.launch("copies", [64, 1, 1], [64, 1, 1], &[out, values]);
        clean(&program.workload());
    }
    // Negative control: a kernel without private memory.
    machines().filter(|machine| machine.has_strict_level()).for_each(|machine| {
        keeps(machine, 64, "global_load_dword v6, v1, s[2:3]\n");
    });
}
