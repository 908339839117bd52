//! Hooks can read and write every kind of register, before and after an instruction, by name and, where
//! there are several, by number. Written values persist.

use flipwave_codeobj::CodeObject;
use flipwave_device::Device;
use flipwave_hooks::hook::{Argument, Mask};
use flipwave_hooks::rewrite::{HookCall, Instrumentation, When};
use flipwave_isa::{Register, RegisterRange};
use flipwave_tests::{TestProgram, assemble, gpu, gpu_mut, hook_compiler, hook_source};

/// Sets every kind of register, executes `site`, and stores the registers.
const KERNEL: &str = "
    v_mov_b32 v5, 0x11110005
    v_accvgpr_write_b32 a3, v5
    s_mov_b32 s20, 0x22220020
    s_mov_b32 m0, 0x55550000
    s_mov_b32 vcc_lo, 0x33330000
    s_mov_b32 vcc_hi, 0x33330001
    s_mov_b64 s[24:25], exec
    s_cmp_eq_u32 s20, s20
site:
    s_nop 0
behind:
    s_cselect_b32 s30, 1, 0
    s_mov_b64 s[26:27], exec
    s_mov_b64 exec, s[24:25]
    s_getreg_b32 s31, hwreg(HW_REG_MODE)
    v_accvgpr_read_b32 v6, a3
    v_mov_b32 v7, s20
    v_mov_b32 v8, m0
    v_mov_b32 v9, vcc_lo
    v_mov_b32 v10, vcc_hi
    v_mov_b32 v11, s26
    v_mov_b32 v12, s30
    v_mov_b32 v13, s31
    global_store_dword v1, v5, s[2:3]
    global_store_dword v1, v6, s[2:3] offset:256
    global_store_dword v1, v7, s[2:3] offset:512
    global_store_dword v1, v8, s[2:3] offset:768
    global_store_dword v1, v9, s[2:3] offset:1024
    global_store_dword v1, v10, s[2:3] offset:1280
    global_store_dword v1, v11, s[2:3] offset:1536
    global_store_dword v1, v12, s[2:3] offset:1792
    global_store_dword v1, v13, s[2:3] offset:2048
";

/// A register, the row (of 64 lanes) to which the kernel stores it, its value, and the value that a hook
/// writes.
struct Case {
    register: &'static str,
    row: usize,
    holds: u32,
    becomes: u32,
    /// The hook's function that accesses the register by number, and the number.
    by_number: Option<(&'static str, u64)>,
}

const fn case(register: &'static str, row: usize, holds: u32, becomes: u32) -> Case {
    Case { register, row, holds, becomes, by_number: None }
}

const fn numbered(case: Case, file: &'static str, number: u64) -> Case {
    Case { by_number: Some((file, number)), ..case }
}

/// MODE: 16-bit and 64-bit denormals, IEEE and DX10_CLAMP; then 16 and 64 bits rounded to zero.
const CASES: [Case; 9] = [
    numbered(case("v5", 0, 0x1111_0005, 0xdead_beef), "vgpr", 5),
    numbered(case("a3", 1, 0x1111_0005, 0xdead_beef), "agpr", 3),
    numbered(case("s20", 2, 0x2222_0020, 0xdead_beef), "sgpr", 20),
    case("m0", 3, 0x5555_0000, 0xdead_beef),
    case("vcc_lo", 4, 0x3333_0000, 0xdead_beef),
    case("vcc_hi", 5, 0x3333_0001, 0xdead_beef),
    case("exec_lo", 6, 0xffff_ffff, 0x0000_ffff),
    case("scc", 7, 1, 0),
    case("mode", 8, 0x3c0, 0x3cc),
];

const HOOKS: &str = "
uint32_t seen[64];
void see(uint32_t value) { seen[flipwave_lane()] = value; }
uint32_t give(uint32_t value) { return value; }
void see_vgpr(uint32_t number) { seen[flipwave_lane()] = flipwave_read_vgpr(number); }
void see_agpr(uint32_t number) { seen[flipwave_lane()] = flipwave_read_agpr(number); }
void see_sgpr(uint32_t number) { seen[flipwave_lane()] = flipwave_read_sgpr(number); }
void set_vgpr(uint32_t number, uint32_t value) { flipwave_write_vgpr(number, value); }
void set_agpr(uint32_t number, uint32_t value) { flipwave_write_agpr(number, value); }
void set_sgpr(uint32_t number, uint32_t value) { flipwave_write_sgpr(number, value); }
";

fn range(case: &Case) -> RegisterRange {
    RegisterRange::new(case.register.parse().expect(case.register), 1)
}

/// Runs the kernel with one hook. Returns the stored rows, whose lanes must be equal, and the value that the
/// hook read in each lane.
fn run(
    when: When,
    function: &str,
    arguments: Vec<Argument>,
    results: Vec<RegisterRange>,
) -> (Vec<u32>, Vec<u32>) {
    let kernel = assemble(KERNEL);
    let object = CodeObject::parse(&kernel.code_object).expect("a code object");
    let mut instrumentation =
        Instrumentation::new(&object).unwrap_or_else(|error| panic!("{error}"));
    let source = instrumentation.add_source(hook_source("registers.c", HOOKS, &instrumentation));
    let at = instrumentation.program().at(kernel.label("site")).expect("the site");
    let call =
        HookCall { source, function: function.into(), arguments, results, mask: Mask::Guest };
    instrumentation.call(at, when, call);
    let new = instrumentation.rewrite(hook_compiler()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(new.report.refused, [], "{function}");
    let mut program = TestProgram::new(new.object.bytes());
    let out = program.output(&[0u32; 64 * 9]);
    program.launch("planted", [64, 1, 1], [64, 1, 1], &[out]);
    let mut workload = program.workload();
    let dispatch = workload.program.dispatches[0].clone();
    let module = dispatch.module;
    gpu_mut(&mut workload.device).dispatch(&dispatch).expect("a launch");
    let words = |device: &flipwave_sim::EmbeddedGpu, address, count: usize| {
        let mut bytes = vec![0; 4 * count];
        device.read(address, &mut bytes).expect("memory");
        flipwave_tests::to_values::<u32>(&bytes)
    };
    let stored = words(gpu(&workload.device), workload.program.outputs[0].address, 64 * 9);
    let (base, data) = &new.data[0];
    let seen = data.symbols["seen"].offset + base.0;
    let seen = gpu(&workload.device).address_of(module, seen).expect("the hook's data");
    let seen = words(gpu(&workload.device), seen, 64);
    let row = |row: &[u32]| {
        assert!(row.iter().all(|lane| *lane == row[0]), "{row:x?}");
        row[0]
    };
    (stored.chunks(64).map(row).collect(), seen)
}

/// Values that the kernel stores without hooks.
fn untouched() -> Vec<u32> {
    CASES.iter().map(|case| case.holds).collect()
}

#[test]
fn registers_are_read_by_name_before_and_after() {
    for when in [When::Before, When::After] {
        for case in &CASES {
            let arguments = vec![Argument::Register(range(case))];
            let (stored, seen) = run(when, "see", arguments, Vec::new());
            assert_eq!(seen, vec![case.holds; 64], "{} {when:?}", case.register);
            assert_eq!(stored, untouched(), "{} {when:?}", case.register);
        }
    }
}

#[test]
fn writes_by_name_persist_before_and_after() {
    for when in [When::Before, When::After] {
        for case in &CASES {
            let arguments = vec![Argument::Constant(case.becomes.into())];
            let (stored, _) = run(when, "give", arguments, vec![range(case)]);
            let mut expected = untouched();
            expected[case.row] = case.becomes;
            assert_eq!(stored, expected, "{} {when:?}", case.register);
        }
    }
}

#[test]
fn registers_are_read_by_number_before_and_after() {
    for when in [When::Before, When::After] {
        for case in &CASES {
            let Some((file, number)) = case.by_number else {
                continue;
            };
            for (number, holds) in [(number, case.holds), (999, 0)] {
                let arguments = vec![Argument::Constant(number)];
                let (stored, seen) = run(when, &format!("see_{file}"), arguments, Vec::new());
                assert_eq!(seen, vec![holds; 64], "{file} {number} {when:?}");
                assert_eq!(stored, untouched(), "{file} {number} {when:?}");
            }
        }
    }
}

#[test]
fn writes_by_number_persist_before_and_after() {
    for when in [When::Before, When::After] {
        for case in &CASES {
            let Some((file, number)) = case.by_number else {
                continue;
            };
            for (number, becomes) in [(number, case.becomes), (999, case.holds)] {
                let arguments =
                    vec![Argument::Constant(number), Argument::Constant(case.becomes.into())];
                let (stored, _) = run(when, &format!("set_{file}"), arguments, Vec::new());
                let mut expected = untouched();
                expected[case.row] = becomes;
                assert_eq!(stored, expected, "{file} {number} {when:?}");
            }
        }
    }
}

#[test]
fn a_register_of_every_kind_has_a_case() {
    let kinds: Vec<Register> = CASES.iter().map(|case| range(case).first).collect();
    for wanted in [Register::ExecLo, Register::VccLo, Register::Scc, Register::M0, Register::Mode] {
        assert!(kinds.contains(&wanted), "{wanted}");
    }
}
