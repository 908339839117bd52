//! Time of matrix instructions per multiply-add on one thread, for several kinds of values, as a ratio to
//! `v_mfma_f32_16x16x16f16` of gfx90a with normal values. Each kernel is a loop of four independent chains of
//! one instruction. Prints medians of several runs.
//!
//! Run with `make bench`, or `cargo bench --bench matrix -- NAME ...` for instructions whose names contain one
//! of these.

use flipwave_campaigns::{Campaign, Prepared, prepare};
use flipwave_device::{Completion, Device};
use flipwave_tests::gpu;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

const RUNS: usize = 7;
/// Iterations of the loop.
const STEPS: u32 = 64;
/// Instructions per iteration.
const CHAINS: u32 = 4;
/// Words of A and B per lane that the input holds.
const WORDS: usize = 16;

/// Format of the elements of A and B.
#[derive(Clone, Copy, PartialEq)]
enum Elements {
    Half,
    Brain,
    /// Eight bits with four bits of exponent.
    Fp8,
    Integer,
}

/// A matrix instruction.
struct Case {
    target: &'static str,
    /// Assembly text: `%0` is C and D, `%1` is A, `%2` is B, `%3` is [`Case::word`].
    text: &'static str,
    /// Words of A, of B and of C per lane.
    words: [usize; 3],
    /// Products of all sums that elements of A contribute.
    products: u32,
    elements: Elements,
}

impl Case {
    /// The positions of the elements of a sparse A, the first two of each four; four scales of one for other
    /// instructions.
    fn word(&self) -> u32 {
        if self.text.contains("mac_") { 0x4444_4444 } else { 0x7f7f_7f7f }
    }
}

const fn case(
    target: &'static str,
    text: &'static str,
    words: [usize; 3],
    products: u32,
    elements: Elements,
) -> Case {
    Case { target, text, words, products, elements }
}

use Elements::{Brain, Fp8, Half, Integer};

const CASES: [Case; 23] = [
    case("gfx90a", "v_mfma_f32_16x16x16f16 %0, %1, %2, %0", [2, 2, 4], 4096, Half),
    case("gfx90a", "v_mfma_f32_32x32x8bf16_1k %0, %1, %2, %0", [2, 2, 16], 8192, Brain),
    case("gfx90a", "v_mfma_i32_32x32x8i8 %0, %1, %2, %0", [1, 1, 16], 8192, Integer),
    case("gfx942", "v_mfma_f32_16x16x16_f16 %0, %1, %2, %0", [2, 2, 4], 4096, Half),
    case("gfx942", "v_mfma_f32_32x32x8_bf16 %0, %1, %2, %0", [2, 2, 16], 8192, Brain),
    case("gfx942", "v_mfma_f32_16x16x32_fp8_fp8 %0, %1, %2, %0", [2, 2, 4], 8192, Fp8),
    case("gfx942", "v_smfmac_f32_16x16x32_f16 %0, %1, %2, %3", [2, 4, 4], 4096, Half),
    case("gfx942", "v_smfmac_i32_16x16x64_i8 %0, %1, %2, %3", [2, 4, 4], 8192, Integer),
    case("gfx950", "v_mfma_f32_16x16x32_f16 %0, %1, %2, %0", [4, 4, 4], 8192, Half),
    case(
        "gfx950",
        "v_mfma_scale_f32_16x16x128_f8f6f4 %0, %1, %2, %0, %3, %3",
        [8, 8, 4],
        32768,
        Fp8,
    ),
    case("gfx1100", "v_wmma_f32_16x16x16_f16 %0, %1, %2, %0", [8, 8, 8], 4096, Half),
    case("gfx1100", "v_wmma_f32_16x16x16_bf16 %0, %1, %2, %0", [8, 8, 8], 4096, Brain),
    case("gfx1100", "v_wmma_f16_16x16x16_f16 %0, %1, %2, %0", [8, 8, 8], 4096, Half),
    case("gfx1100", "v_wmma_i32_16x16x16_iu8 %0, %1, %2, %0 clamp", [4, 4, 8], 4096, Integer),
    case("gfx1201", "v_wmma_f32_16x16x16_f16 %0, %1, %2, %0", [4, 4, 8], 4096, Half),
    case("gfx1201", "v_wmma_bf16_16x16x16_bf16 %0, %1, %2, %0", [4, 4, 4], 4096, Brain),
    case("gfx1201", "v_wmma_f32_16x16x16_fp8_fp8 %0, %1, %2, %0", [2, 2, 8], 4096, Fp8),
    case("gfx1201", "v_swmmac_f32_16x16x32_f16 %0, %1, %2, %3", [4, 8, 8], 4096, Half),
    case("gfx1201", "v_swmmac_i32_16x16x32_iu8 %0, %1, %2, %3", [2, 4, 8], 4096, Integer),
    case("gfx1250", "v_wmma_f32_16x16x32_f16 %0, %1, %2, %0", [8, 8, 8], 8192, Half),
    case("gfx1250", "v_wmma_f16_16x16x64_fp8_fp8 %0, %1, %2, %0", [8, 8, 4], 16384, Fp8),
    case("gfx1250", "v_wmma_f32_16x16x128_f8f6f4 %0, %1, %2, %0", [16, 16, 8], 32768, Fp8),
    case(
        "gfx1250",
        "v_wmma_scale_f32_16x16x128_f8f6f4 %0, %1, %2, %0, %3, %3",
        [16, 16, 8],
        32768,
        Fp8,
    ),
];

/// Values of A and B.
#[derive(Clone, Copy, PartialEq)]
enum Values {
    /// Magnitudes from an eighth to two.
    Normal,
    /// All magnitudes up to two.
    Wide,
    /// Denormals.
    Denormal,
    /// Half of the words are zero.
    Sparse,
}

impl Values {
    const ALL: [Values; 4] = [Values::Normal, Values::Wide, Values::Denormal, Values::Sparse];

    fn name(self) -> &'static str {
        match self {
            Values::Normal => "normal",
            Values::Wide => "wide",
            Values::Denormal => "denormal",
            Values::Sparse => "sparse",
        }
    }

    fn word(self, elements: Elements, random: &mut ChaCha8Rng) -> u32 {
        let bits = random.next_u32();
        let (kept, set) = match (self, elements) {
            (_, Elements::Integer) => (u32::MAX, 0),
            (Values::Normal | Values::Sparse, Elements::Half) => (0x8fff_8fff, 0x3000_3000),
            (Values::Normal | Values::Sparse, Elements::Brain) => (0x81ff_81ff, 0x3e00_3e00),
            (Values::Normal | Values::Sparse, Elements::Fp8) => (0x8f8f_8f8f, 0x3030_3030),
            (Values::Wide, Elements::Half | Elements::Brain) => (0xbfff_bfff, 0),
            // The last bit keeps minus zero, a NaN of gfx942, away.
            (Values::Wide, Elements::Fp8) => (0xbfbf_bfbf, 0x0101_0101),
            (Values::Denormal, Elements::Half) => (0x83ff_83ff, 0),
            (Values::Denormal, Elements::Brain) => (0x807f_807f, 0),
            (Values::Denormal, Elements::Fp8) => (0x8787_8787, 0x0101_0101),
        };
        let is_zero = self == Values::Sparse && random.next_u32().is_multiple_of(2);
        if is_zero { 0 } else { bits & kept | set }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let is_wanted = |text: &str| wanted.is_empty() || wanted.iter().any(|name| text.contains(name));
    print!("{:<8} {:<34} {:>8}", "target", "instruction", "ns/fma");
    println!("{}", Values::ALL.map(|values| format!(" {:>8}", values.name())).concat());
    let unit = time_per_product(&CASES[0], Values::Normal)?;
    for case in CASES.iter().filter(|case| is_wanted(case.text)) {
        let name = case.text.split(' ').next().unwrap_or_default();
        let mut times = Vec::new();
        for values in Values::ALL {
            times.push(time_per_product(case, values)?);
        }
        let ratios: String = times.iter().map(|time| format!(" {:>7.2}x", time / unit)).collect();
        println!("{:<8} {name:<34} {:>8.4}{ratios}", case.target, times[0]);
    }
    Ok(())
}

/// Median time of a product in nanoseconds.
fn time_per_product(case: &Case, values: Values) -> Result<f64, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let prepared = prepared(case, values, folder.path())?;
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..RUNS {
        times.push(execute(&prepared)?);
    }
    times.sort();
    let products = f64::from(STEPS * CHAINS) * f64::from(case.products) * f64::from(WAVES);
    Ok(times[RUNS / 2].as_secs_f64() * 1e9 / products)
}

const WAVES: u32 = 16;

/// Compiles a kernel for an instruction and fills its input.
fn prepared(case: &Case, values: Values, folder: &Path) -> Result<Prepared, Box<dyn Error>> {
    let lanes: usize = if case.target.starts_with("gfx9") { 64 } else { 32 };
    let [a, b, c] = case.words;
    let vector = |words: usize| {
        if words == 1 {
            "uint".into()
        } else {
            format!("uint __attribute__((ext_vector_type({words})))")
        }
    };
    let read = |name: &str, words: usize, first: usize| -> String {
        (0..words)
            .map(|word| {
                let part = if words == 1 { name.into() } else { format!("{name}[{word}]") };
                format!("    {part} = words[{} * {lanes} + lane];\n", first + word)
            })
            .collect()
    };
    let (read_a, read_b) = (read("a", a, 0), read("b", b, WORDS));
    let (text, chains) = (case.text, CHAINS as usize);
    let declarations: String = (0..chains).map(|chain| format!("    C c{chain} = 0;\n")).collect();
    let instructions: String = (0..chains)
        .map(|chain| {
            format!("        __asm__ volatile(\"{text}\" : \"+v\"(c{chain}) : \"v\"(a), \"v\"(b), \"v\"(more));\n")
        })
        .collect();
    let element = if c == 1 { "" } else { "[0]" };
    let sum: Vec<String> = (0..chains).map(|chain| format!("c{chain}{element}")).collect();
    let source = format!(
        "typedef {} A;\ntypedef {} B;\ntypedef {} C;\n\
         kernel void chains(global uint *sums, global const uint *words, uint steps, uint more) {{\n    \
         uint lane = get_local_id(0);\n    A a;\n    B b;\n{read_a}{read_b}{declarations}    \
         for (uint step = 0; step < steps; ++step) {{\n{instructions}    }}\n    \
         sums[get_global_id(0)] = {};\n}}\n",
        vector(a),
        vector(b),
        vector(c),
        sum.join(" ^ ")
    );
    std::fs::write(folder.join("chains.cl"), source)?;
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let words: Vec<u8> = (0..2 * WORDS * lanes)
        .flat_map(|_| values.word(case.elements, &mut random).to_le_bytes())
        .collect();
    std::fs::write(folder.join("words.bin"), words)?;
    let campaign = format!(
        "name: matrix\ntarget: {}\nworkload:\n  kernel:\n    source: chains.cl\n    name: chains\n    \
         grid: {}\n    workgroup: {lanes}\n    args:\n      \
         - {{buffer: sums, type: u32, count: {}, output: true}}\n      \
         - {{buffer: words, type: u32, count: {}, init: {{file: words.bin}}}}\n      \
         - {{scalar: {STEPS}, type: u32}}\n      - {{scalar: {}, type: u32}}\n\
         faults: {{model: flip_one_bit, count: 1}}\n",
        case.target,
        WAVES as usize * lanes,
        WAVES as usize * lanes,
        2 * WORDS * lanes,
        case.word()
    );
    let file = folder.join("matrix.yaml");
    std::fs::write(&file, campaign)?;
    Ok(prepare(&Campaign::read(&file)?)?)
}

/// Time of the dispatch on a copy of the device.
fn execute(prepared: &Prepared) -> Result<Duration, Box<dyn Error>> {
    let workload = &prepared.workload;
    let mut device = gpu(&workload.device).clone();
    let start = Instant::now();
    match device.dispatch(&workload.program.dispatches[0])? {
        Completion::Completed(_) => Ok(start.elapsed()),
        other => Err(format!("{other:?}").into()),
    }
}
