//! PTX from the command line: CUDA sources, one file for two instruction sets, shards, and refused features.

use flipwave_tests::{flipwave, rows};
use std::path::Path;

/// Adds vectors through shared memory, and lets the lanes of a wave exchange values.
const KERNEL: &str = r#"
extern "C" __global__ void add(const float *a, const float *b, float *sum, unsigned *lanes, int count)
{
    __shared__ float tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    tile[63 - threadIdx.x] = a[i];
    __syncthreads();
    sum[i] = fmaf(2.0f, b[i], tile[63 - threadIdx.x]) + sqrtf(4.0f);
    int other = __shfl_xor_sync(0xffffffff, i, 1);
    if (__popc(__ballot_sync(0xffffffff, other == (i ^ 1))) == 32)
        atomicAdd(&lanes[0], 1u);
}
"#;

const CAMPAIGN: &str = "name: add
seed: 5
target: sm_90
workload:
  kernel:
    source: add.cu
    name: add
    grid: 256
    workgroup: 64
    args:
      - {buffer: a, type: f32, count: 256, init: {range: {start: 0.0, step: 1.0}}}
      - {buffer: b, type: f32, count: 256, init: {range: {start: 1.0, step: 0.5}}}
      - {buffer: sum, type: f32, count: 256, output: true}
      - {buffer: lanes, type: u32, count: 1, output: true}
      - {scalar: 256, type: i32}
faults: {model: flip_one_bit, count: 60}
";

fn write(folder: &Path, campaign: &str) {
    std::fs::write(folder.join("add.cu"), KERNEL).expect("written");
    std::fs::write(folder.join("add.yaml"), campaign).expect("written");
}

#[test]
fn cuda_sources_compute_what_the_host_computes() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for target in ["sm_75", "sm_80", "sm_90a", "sm_100", "sm_120"] {
        for level in ["-O0", "-O2"] {
            let campaign = CAMPAIGN.replace("sm_90", target);
            let campaign = campaign
                .replace("    name: add\n", &format!("    name: add\n    options: [{level}]\n"));
            write(folder, &campaign);
            let _ = std::fs::remove_dir_all(folder.join("golden"));
            flipwave(folder, &["golden", "add.yaml", "--out", "golden"], &[]).expect_success();
            let words = |name: &str| -> Vec<u32> {
                let bytes = std::fs::read(folder.join("golden").join(name)).expect(name);
                let (words, _) = bytes.as_chunks();
                words.iter().map(|word| u32::from_le_bytes(*word)).collect()
            };
            let expected = (0..256).map(|i| {
                let (a, b) = (i as f32, 1.0 + 0.5 * i as f32);
                (b.mul_add(2.0, a) + 2.0).to_bits()
            });
            assert_eq!(words("sum.bin"), expected.collect::<Vec<_>>(), "{target} {level}");
            assert_eq!(words("lanes.bin"), [256], "{target} {level}");
        }
    }
}

#[test]
fn shards_of_a_cuda_campaign_merge_to_its_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, CAMPAIGN);
    flipwave(folder, &["run", "add.yaml", "--out", "one"], &[]).expect_success();
    for shard in ["1/2", "2/2"] {
        flipwave(folder, &["run", "add.yaml", "--out", "two", "--shard", shard], &[])
            .expect_success();
    }
    flipwave(folder, &["merge", "two"], &[]).expect_success();
    let table = |name: &str| std::fs::read(folder.join(name).join("results.csv")).expect("a table");
    assert!(table("one") == table("two"));
    let found = rows(&folder.join("one"));
    let is_of_kernel =
        |line: &Option<String>| line.as_deref().is_some_and(|line| line.contains("add.cu:"));
    // Others are in the header for CUDA.
    assert!(found.iter().filter(|row| is_of_kernel(&row.line)).count() > 30);
    for row in found.iter().step_by(20) {
        let replayed = flipwave(folder, &["replay", "add.yaml", "--site", &row.site], &[]);
        let stdout = replayed.expect_success().stdout;
        assert!(stdout.contains(&format!("outcome:        {}", row.outcome)), "{stdout}");
    }
}

/// Hooks give the rows of injection inside the simulated GPU, with any number of workers and in shards.
#[test]
fn hooks_give_the_rows_of_the_embedded_gpu() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, CAMPAIGN);
    flipwave(folder, &["run", "add.yaml", "--out", "embedded"], &[]).expect_success();
    for workers in ["1", "2"] {
        let arguments = [
            "run",
            "add.yaml",
            "--by",
            "hook",
            "--self-test",
            "--workers",
            workers,
            "--out",
            workers,
        ];
        flipwave(folder, &arguments, &[]).expect_success();
    }
    for shard in ["1/2", "2/2"] {
        let arguments = ["run", "add.yaml", "--by", "hook", "--out", "shards", "--shard", shard];
        flipwave(folder, &arguments, &[]).expect_success();
    }
    flipwave(folder, &["merge", "shards"], &[]).expect_success();
    let table = |name: &str| std::fs::read(folder.join(name).join("results.csv")).expect("a table");
    for name in ["1", "2", "shards"] {
        assert!(table(name) == table("embedded"), "{name}");
    }
    // Negative control: other faults.
    write(folder, &CAMPAIGN.replace("seed: 5", "seed: 6"));
    flipwave(folder, &["run", "add.yaml", "--by", "hook", "--out", "other"], &[]).expect_success();
    assert!(table("other") != table("embedded"));
    write(folder, CAMPAIGN);
    for row in rows(&folder.join("1")).iter().step_by(20) {
        let arguments = ["replay", "add.yaml", "--by", "hook", "--site", &row.site];
        let stdout = flipwave(folder, &arguments, &[]).expect_success().stdout;
        assert!(stdout.contains(&format!("outcome:        {}", row.outcome)), "{stdout}");
    }
}

#[test]
fn one_file_varies_over_both_instruction_sets() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = "{model: flip_one_bit, count: 100}";
    let file = flipwave_tests::example("matmul", faults, folder.path());
    let text = std::fs::read_to_string(&file).expect("a campaign");
    let text: String = text
        .lines()
        .filter(|line| !line.starts_with("target:"))
        .fold(String::new(), |text, line| text + line + "\n");
    std::fs::write(&file, format!("{text}vary:\n  target: [gfx90a, sm_80]\n")).expect("written");
    let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
    flipwave(folder.path(), &["run", name, "--out", "out"], &[]).expect_success();
    let compare = ["compare", "out/target=gfx90a", "out/target=sm_80"];
    let compared = flipwave(folder.path(), &compare, &[]);
    assert!(compared.stderr.contains("differ in `target`: gfx90a and sm_80"), "{compared:?}");
    assert!(compared.stdout.contains("valu"), "{compared:?}");
}

#[test]
fn unavailable_features_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, CAMPAIGN);
    let run = |campaign: &str, words: &[&str]| {
        write(folder, campaign);
        flipwave(folder, &["run", "add.yaml", "--force"], &[]).expect_refused(words);
    };
    let campaign = CAMPAIGN.replace("flip_one_bit,", "flip_one_bit, target: program_counter,");
    write(folder, &campaign);
    flipwave(folder, &["run", "add.yaml", "--by", "hook"], &[])
        .expect_refused(&["hooks cannot strike target program_counter", "without `--by hook`"]);
    run(&CAMPAIGN.replace("sm_90", "gfx90a"), &["add.cu", "CUDA cannot be compiled for gfx90a"]);
    run(&CAMPAIGN.replace("sm_90", "sm_9"), &["add.yaml:3:9", "sm_75, sm_80"]);
    run(
        &CAMPAIGN.replace("name: add\n    grid", "name: sub\n    grid"),
        &["no kernel `sub`", "add"],
    );
    run(
        &CAMPAIGN.replace("      - {scalar: 256, type: i32}\n", ""),
        &["launch 0", "5 parameters, 4 arguments"],
    );
    run(
        &CAMPAIGN.replace("{scalar: 256, type: i32}", "{scalar: 256, type: i64}"),
        &["argument 4 has 8 bytes", "the parameter has 4"],
    );
    let object = CAMPAIGN.replace("source: add.cu", "code_object: add.ptx");
    for (text, words) in [
        ("\x7fELF", &["add.ptx", "line 1, column 1"][..]),
        (".version 7.8\n.target sm_90\n.visible .entry add(", &["add.ptx", "line 3"]),
        (
            ".version 7.8\n.target sm_90\n.visible .entry add() { frob.u32 %r1; }",
            &["add.ptx", "line 3"],
        ),
    ] {
        std::fs::write(folder.join("add.ptx"), text).expect("written");
        run(&object, words);
    }
    std::fs::copy(folder.join("add.cu"), folder.join("add.hip")).expect("copied");
    run(
        &CAMPAIGN.replace("add.cu", "add.hip"),
        &["HIP cannot be compiled for sm_90", "CUDA (.cu)"],
    );
    std::fs::write(folder.join("add.cl"), "kernel void add() {}").expect("written");
    write(folder, &CAMPAIGN.replace("add.cu", "add.cl"));
    flipwave(folder, &["run", "add.yaml", "--force"], &[("FLIPWAVE_LIBCLC", "/nowhere")])
        .expect_refused(&["/nowhere", "libclc"]);
}
