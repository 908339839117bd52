//! Any instruction that LLVM encodes can be a proxy: two and three sources, literals and modifiers,
//! scalar and packed operations, register ranges, immediates, a destination that is read. Proxies work in
//! OpenCL C and in HIP, on every generation.

use flipwave_campaigns::{Campaign, Code, emulate};
use flipwave_tests::{campaign_target, emulated_folder, flipwave, kernels, kernels_mut, to_values};
use std::path::{Path, PathBuf};

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/proxies/forms.yaml")
}

/// Expected results of a work-item.
fn expected(x: u32, item: u32) -> [u32; 10] {
    let (base, uniform) = (81_985_529_216_486_895_u64, 305_419_896_u32);
    let swapped = base.swap_bytes();
    let four = [
        x.wrapping_add(x),
        item.wrapping_add(item),
        3_u32.wrapping_mul(x),
        4_u32.wrapping_mul(item),
    ];
    [
        x.wrapping_mul(3).wrapping_add(1),
        (x ^ item).wrapping_add(7),
        uniform.count_ones(),
        swapped as u32,
        (swapped >> 32) as u32,
        item.wrapping_add(9),
        x.wrapping_sub(7),
        x.rotate_left(21 & 7),
        four[0] ^ four[1],
        four[2] ^ four[3],
    ]
}

#[test]
fn proxies_of_every_form_compute_their_hooks() {
    for level in ["-O0", "-O3"] {
        let mut campaign = Campaign::read(&file()).unwrap_or_else(|error| panic!("{error}"));
        for launch in &mut kernels_mut(&mut campaign).launches {
            if let Code::Source { options, .. } = &mut launch.code {
                *options = vec![level.to_owned()];
            }
        }
        let inputs: Vec<u32> =
            to_values(&kernels(&campaign).buffers[0].contents(0).expect("numbers"));
        let emulation = emulate(&campaign).unwrap_or_else(|error| panic!("{error}"));
        let outputs: Vec<u32> = to_values(&emulation.outputs[0]);
        for (item, x) in (0..100).zip(inputs) {
            let found = &outputs[10 * item as usize..][..10];
            assert_eq!(found, expected(x, item), "{level}, work-item {item}");
        }
        // Inactive lanes keep their initial zeros.
        assert!(outputs[1000..].iter().all(|word| *word == 0));
        let each = emulation.instructions.iter().map(|proxy| proxy.executions);
        assert_eq!(each.collect::<Vec<_>>(), [2; 7], "two waves");
    }
}

/// Runs a program of a kernel, a hook and a campaign file. Returns its output.
fn outputs(kernel: (&str, &str), hook: (&str, &str), yaml: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    write(kernel.0, kernel.1).expect("the kernel");
    write(hook.0, hook.1).expect("the hook");
    write("file.yaml", yaml).expect("the file");
    let campaign = Campaign::read(&folder.path().join("file.yaml"));
    let campaign = campaign.unwrap_or_else(|error| panic!("{error}"));
    emulate(&campaign).unwrap_or_else(|error| panic!("{error}")).outputs.remove(0)
}

#[test]
fn wave_hooks_see_all_lanes_and_exec() {
    let kernel = "#include <flipwave.h>\n\
        #define rank(x) FLIPWAVE_PROXY(v_rank, uint, \"v_or_b32 %0, 0xfefefefe, %1\", \"v\"(x))\n\
        __kernel void emulated(__global uint *out)\n{\n\
        uint i = get_global_id(0);\n    if (i % 3)\n        out[i] = rank(i);\n}\n";
    // The value of the next lane, even if it is inactive, and the number of active lanes.
    let hook = "uint32_t rank(uint32_t src, uint64_t exec)\n{\n\
        uint32_t above = __builtin_amdgcn_ds_bpermute(4 * (flipwave_lane() + 1), src);\n\
        return above << 8 | __builtin_popcountll(exec);\n}\n";
    let yaml = "name: rank\nworkload: {kernel: {source: rank.cl, name: emulated, grid: 64, \
        workgroup: 64, args: [{buffer: out, type: u32, count: 64, output: true}]}}\n\
        instructions: [{name: v_rank, proxy: \"v_or_b32 dst, 0xfefefefe, src\", lanes: all, \
        operands: {dst: vgpr, src: vgpr}, hook: {source: rank.c, function: rank}}]\n";
    let outputs: Vec<u32> = to_values(&outputs(("rank.cl", kernel), ("rank.c", hook), yaml));
    for (i, found) in (0..).zip(outputs) {
        // 42 of 64 numbers are not multiples of 3.
        let expected = if i % 3 == 0 { 0 } else { ((i + 1) % 64) << 8 | 42 };
        assert_eq!(found, expected, "lane {i}");
    }
}

#[test]
fn hooks_use_the_program_s_mode() {
    let kernel = "#include <flipwave.h>\n\
        #define add(a, b) FLIPWAVE_PROXY(v_add, float, \"v_or_b32 %0, %1, %2\", \"v\"(a), \"v\"(b))\n\
        #define round(how) __asm__ volatile(\"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), \" how)\n\
        __kernel void emulated(__global float *out)\n{\n\
        float one = 1.0f, less = 1.0e-10f;\n\
        __asm__(\"\" : \"+v\"(one), \"+v\"(less));\n\
        out[0] = add(one, less);\n    round(\"1\");\n    out[1] = add(one, less);\n    round(\"0\");\n}\n";
    let hook = "float add(float a, float b) { return a + b; }\n";
    let yaml = "name: add\nworkload: {kernel: {source: add.cl, name: emulated, grid: 64, \
        workgroup: 64, args: [{buffer: out, type: f32, count: 2, output: true}]}}\n\
        instructions: [{name: v_add, proxy: \"v_or_b32 dst, a, b\", \
        operands: {dst: vgpr, a: vgpr, b: vgpr}, hook: {source: add.c, function: add}}]\n";
    let sums: Vec<f32> = to_values(&outputs(("add.cl", kernel), ("add.c", hook), yaml));
    // Rounded to nearest, and up.
    assert_eq!(sums, [1.0, 1.0 + f32::EPSILON]);
}

#[test]
fn emulation_tables_have_their_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = file();
    let arguments = ["emulate", file.to_str().expect("a path"), "--out", "tables"];
    flipwave(folder.path(), &arguments, &[]).expect_success();
    let table = |name: &str| {
        let path = folder.path().join("tables").join(name);
        std::fs::read_to_string(path).expect(name)
    };
    let instructions = table("instructions.csv");
    let columns = "instruction,dispatch,kernel,function,pc,line,executions\n";
    assert!(instructions.starts_with(columns), "{instructions}");
    assert_eq!(instructions.lines().count(), 8, "{instructions}");
    let executed = table("executed.csv");
    let columns = "version,dispatch,kernel,waves,instructions,per_wave\nemulated,0,emulated,2,";
    assert!(executed.starts_with(columns), "{executed}");
}

#[test]
fn emulated_instructions_run_on_every_generation() {
    for target in ["gfx908", "gfx942", "gfx1030", "gfx1100", "gfx1201"] {
        let file = emulated_folder().join("packed_i4.yaml");
        let mut campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
        campaign.target = campaign_target(&target.parse().expect("a target"));
        let emulation = emulate(&campaign).unwrap_or_else(|error| panic!("{target}: {error}"));
        assert_eq!(emulation.differences.len(), 1);
        for (output, difference) in &emulation.differences {
            assert_eq!(difference.elements_wrong, 0, "{target}: {output}");
        }
    }
}

#[test]
fn hip_kernels_can_have_proxies() {
    let kernel = "#include <flipwave.h>\n#include <hip/hip_runtime.h>\n\
        extern \"C\" __global__ void emulated(const unsigned *in, unsigned *out)\n{\n\
        unsigned i = threadIdx.x;\n\
        out[i] = FLIPWAVE_PROXY(v_twice, unsigned, \"v_or_b32 %0, 0xfefefefe, %1\", \"v\"(in[i]));\n}\n";
    let hook = "uint32_t twice(uint32_t src) { return 2 * src; }\n";
    let yaml = "name: twice\nworkload: {kernel: {source: twice.hip, name: emulated, grid: 64, \
        workgroup: 64, args: [{buffer: in, type: u32, count: 64, init: {range: {start: 5, step: 3}}}, \
        {buffer: out, type: u32, count: 64, output: true}]}}\ninstructions: [{name: v_twice, \
        proxy: \"v_or_b32 dst, 0xfefefefe, src\", operands: {dst: vgpr, src: vgpr}, \
        hook: {source: twice.c, function: twice}}]\n";
    let outputs: Vec<u32> = to_values(&outputs(("twice.hip", kernel), ("twice.c", hook), yaml));
    assert!((0..64).all(|i| outputs[i as usize] == 2 * (5 + 3 * i)), "{outputs:?}");
}

#[test]
fn tools_accept_programs_with_emulated_instructions() {
    let file = file();
    let file = file.to_str().expect("a path");
    for tool in [
        "instruction-count",
        "opcode-histogram",
        "memory-trace",
        "address-divergence",
        "branch-divergence",
        "bank-conflicts",
        "kernel-clock",
    ] {
        let finished = flipwave(Path::new("."), &["tool", tool, file], &[]).expect_success();
        assert!(finished.stderr.is_empty(), "{tool}: {}", finished.stderr);
    }
    let per = ["tool", "instruction-count", "--per", "instruction", file];
    let table = flipwave(Path::new("."), &per, &[]).expect_success().stdout;
    for name in ["x_literal", "x_three", "x_scalar", "x_wide_scalar", "x_packed", "x_number"] {
        let rows = table.lines().filter(|line| line.contains(&format!("\"{name} ")));
        assert_eq!(rows.count(), 1, "{name}:\n{table}");
    }
}
