//! Results of the suite's programs, compared with plain Rust. The references use simpler algorithms
//! where possible, and double precision for rounded numbers.

use flipwave_campaigns::{Campaign, prepare};
use flipwave_injector::Golden;
use flipwave_tests::{Finished, buffer, flipwave, rows, suite, to_values};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Computes the outputs of a program, in the order of the campaign file.
type Reference = fn(&Campaign) -> Vec<Values>;

/// Values of an output.
enum Values {
    Whole(Vec<i32>),
    Single(Vec<f64>),
    Double(Vec<f64>),
}

impl Values {
    /// Returns `true` if the bytes of an output hold these values, up to rounding.
    fn agree(&self, found: &[u8]) -> bool {
        let near = |found: Vec<f64>, expected: &[f64], limit: f64| {
            found.len() == expected.len()
                && found
                    .iter()
                    .zip(expected)
                    .all(|(a, b)| (a - b).abs() <= limit * b.abs().max(1.0))
        };
        match self {
            Values::Whole(expected) => to_values::<i32>(found) == *expected,
            Values::Single(expected) => {
                near(to_values::<f32>(found).into_iter().map(f64::from).collect(), expected, 1e-5)
            }
            Values::Double(expected) => near(to_values(found), expected, 1e-12),
        }
    }
}

const REFERENCES: [(&str, Reference); 13] = [
    ("attention", attention),
    ("bfs", bfs),
    ("cnn", cnn),
    ("fft", fft),
    ("gaussian", gaussian),
    ("hotspot", hotspot),
    ("jacobi", jacobi),
    ("lavamd", lavamd),
    ("lud", lud),
    ("mergesort", mergesort),
    ("mxm", mxm),
    ("nw", nw),
    ("quicksort", quicksort),
];

/// Files and names of the suite's programs.
pub(crate) fn suite_programs() -> Vec<(PathBuf, &'static str)> {
    let files = suite();
    assert_eq!(files.len(), REFERENCES.len());
    files.into_iter().zip(REFERENCES).map(|(file, (name, _))| (file, name)).collect()
}

/// Returns `true` if the outputs of a program of the suite are those of its reference, up to rounding.
pub(crate) fn agrees_with_reference(campaign: &Campaign, golden: &Golden) -> bool {
    let known = REFERENCES.iter().find(|(name, _)| *name == campaign.name);
    let (name, reference) = known.expect("a program of the suite");
    let expected = reference(campaign);
    assert_eq!(expected.len(), golden.outputs.len(), "{name}");
    expected.iter().zip(&golden.outputs).all(|(values, found)| values.agree(&found.bytes()))
}

#[test]
fn suite_programs_agree_with_plain_rust() {
    for (file, name) in suite_programs() {
        let campaign = read(&file);
        assert_eq!(campaign.name, name);
        let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{error}"));
        let golden = prepared.workload.golden().unwrap_or_else(|error| panic!("{error}"));
        assert!(agrees_with_reference(&campaign, &golden), "{name}");
        // Negative control: the results for other inputs.
        let changed = Campaign { seed: campaign.seed + 1, ..campaign };
        assert!(!agrees_with_reference(&changed, &golden), "{name} does not depend on its input");
    }
}

/// The table in docs/suite.md contains the rates of the campaigns.
#[test]
fn agreement_table_matches_documentation() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let published = root.join("examples/suite/published.csv");
    let text = std::fs::read_to_string(&published).expect("rates");
    let files = suite();
    let name = |file: &Path| file.file_stem().expect("a name").to_string_lossy().into_owned();
    let is_published = |file: &&std::path::PathBuf| text.contains(&format!("\n{},", name(file)));
    let mut arguments = vec!["compare-published".into()];
    for file in files.iter().filter(is_published) {
        let out = folder.path().join(name(file));
        let run = ["run".as_ref(), file.as_os_str(), "--out".as_ref(), out.as_os_str()];
        flipwave(folder.path(), &run, &[]).expect_success();
        arguments.push(out.into_os_string());
    }
    assert_eq!(arguments.len(), 8);
    let agreement = |published: &OsStr, others: &[&OsStr]| -> Finished {
        let mut arguments = arguments.clone();
        arguments.extend(["--published".into(), published.to_owned()]);
        arguments.extend(others.iter().map(|argument| (*argument).to_owned()));
        flipwave(folder.path(), &arguments, &[])
    };
    let csv = folder.path().join("table.csv");
    let printed = agreement(published.as_os_str(), &["--csv".as_ref(), csv.as_os_str()]);
    let printed = printed.expect_success().stdout;
    let page = std::fs::read_to_string(root.join("docs/suite.md")).expect("the page");
    for line in printed.lines().filter(|line| !line.starts_with("table: ")) {
        assert!(page.contains(line), "the book does not have `{line}`:\n{printed}");
    }
    assert_eq!(std::fs::read_to_string(csv).expect("a table").lines().count(), 15);
    // Negative controls: changed rates, and an invalid rate.
    let changed_rates = folder.path().join("other.csv");
    let with = |text: &str| {
        std::fs::write(&changed_rates, text).expect("written");
        agreement(changed_rates.as_os_str(), &[])
    };
    let changed = with(&text.replace("bfs,sdc,0.042", "bfs,sdc,0.242")).expect_success().stdout;
    assert!(changed.contains("0 of 7 inside"), "{changed}");
    let refused = with("workload,outcome,rate,source\nmxm,sdc,7,x\n");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("line 2: invalid sdc rate 7 of mxm"), "{}", refused.stderr);
}

/// Fault sites drawn by instructions are ordinary sites, which hooks can also strike.
#[test]
fn sites_drawn_by_instruction_are_equal_with_hooks() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = suite();
    let file = files.iter().find(|file| file.ends_with("lavamd.yaml")).expect("a program");
    let kernels = file.with_file_name("kernels").canonicalize().expect("kernels");
    let text = std::fs::read_to_string(file).expect("a campaign");
    let text = text.replace("source: kernels", &format!("source: {}", kernels.display()));
    let rows_of = |draw: &str, by: &str| {
        let campaign = folder.path().join("lavamd.yaml");
        let text = text.replace("draw: instructions\n  count: 1000", draw);
        std::fs::write(&campaign, text).expect("written");
        let out = folder.path().join(format!("{by} {}", draw.len()));
        let run = ["run".as_ref(), campaign.as_os_str(), "--out".as_ref(), out.as_os_str()];
        let run = run.into_iter().chain(["--by".as_ref(), by.as_ref()]).collect::<Vec<&OsStr>>();
        flipwave(folder.path(), &run, &[]).expect_success();
        let rows = rows(&out).into_iter();
        rows.map(|row| (row.site, row.outcome, row.after)).collect::<Vec<_>>()
    };
    let drawn = "draw: instructions\n  count: 40";
    let instructions = rows_of(drawn, "embedded");
    assert_eq!(instructions.len(), 40);
    assert_eq!(instructions, rows_of(drawn, "hook"));
    // Negative control: drawing by bits gives other sites.
    assert_ne!(instructions, rows_of("draw: bits\n  count: 40", "embedded"));
}

fn read(file: &Path) -> Campaign {
    Campaign::read(file).unwrap_or_else(|error| panic!("{error}"))
}

/// Initial values of a buffer of single-precision numbers.
fn numbers(campaign: &Campaign, name: &str) -> Vec<f64> {
    buffer::<f32>(campaign, name).into_iter().map(f64::from).collect()
}

/// A square matrix, made diagonally dominant.
fn dominant(campaign: &Campaign, size: usize) -> Vec<f64> {
    let mut a = numbers(campaign, "a");
    assert_eq!(a.len(), size * size);
    (0..size).for_each(|i| a[i * size + i] += size as f64);
    a
}

/// The product of a matrix stored by rows and a matrix stored by columns.
fn products(rows: &[f64], columns: &[f64], width: usize) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum();
    let row =
        |row: &[f64]| columns.chunks(width).map(|column| dot(row, column)).collect::<Vec<f64>>();
    rows.chunks(width).flat_map(row).collect()
}

fn transposed(matrix: &[f64], width: usize) -> Vec<f64> {
    (0..width).flat_map(|column| matrix.iter().skip(column).step_by(width).copied()).collect()
}

fn mxm(campaign: &Campaign) -> Vec<Values> {
    let columns = transposed(&numbers(campaign, "right"), 64);
    vec![Values::Single(products(&numbers(campaign, "left"), &columns, 64))]
}

fn lud(campaign: &Campaign) -> Vec<Values> {
    const SIZE: usize = 64;
    let mut a = dominant(campaign, SIZE);
    for k in 0..SIZE {
        for row in k + 1..SIZE {
            a[row * SIZE + k] /= a[k * SIZE + k];
            for column in k + 1..SIZE {
                a[row * SIZE + column] -= a[row * SIZE + k] * a[k * SIZE + column];
            }
        }
    }
    vec![Values::Single(a)]
}

/// Solves the system by Jacobi's method instead of elimination.
fn gaussian(campaign: &Campaign) -> Vec<Values> {
    let (a, b) = (dominant(campaign, 32), numbers(campaign, "b"));
    let mut x = vec![0.0; 32];
    (0..200).for_each(|_| x = jacobi_step(&a, &b, &x));
    vec![Values::Single(x)]
}

fn jacobi(campaign: &Campaign) -> Vec<Values> {
    let (a, b) = (dominant(campaign, 64), numbers(campaign, "b"));
    let mut x = vec![0.0; 64];
    (0..10).for_each(|_| x = jacobi_step(&a, &b, &x));
    vec![Values::Single(x)]
}

fn jacobi_step(a: &[f64], b: &[f64], x: &[f64]) -> Vec<f64> {
    let size = b.len();
    let unknown = |row: usize| {
        let others = (0..size).filter(|column| *column != row);
        let sum: f64 = others.map(|column| a[row * size + column] * x[column]).sum();
        (b[row] - sum) / a[row * size + row]
    };
    (0..size).map(unknown).collect()
}

fn lavamd(campaign: &Campaign) -> Vec<Values> {
    const BOXES: i32 = 3;
    const PARTICLES: usize = 32;
    let particles: Vec<f64> = buffer(campaign, "particles");
    let charges: Vec<f64> = buffer(campaign, "charges");
    let box_of = |particle: usize| {
        let number = (particle / PARTICLES) as i32;
        [number % BOXES, number / BOXES % BOXES, number / BOXES / BOXES]
    };
    let force = |particle: usize| {
        let mut sum = [0.0; 4];
        for other in 0..charges.len() {
            let pairs = box_of(particle).into_iter().zip(box_of(other));
            if pairs.into_iter().any(|(a, b)| (a - b).abs() > 1) {
                continue;
            }
            let between: Vec<f64> = (0..3)
                .map(|axis| particles[4 * particle + axis] - particles[4 * other + axis])
                .collect();
            let distance: f64 = between.iter().map(|component| component * component).sum();
            let potential = (-2.0 * 0.5 * 0.5 * distance).exp() * charges[other];
            (0..3).for_each(|axis| sum[axis] += 2.0 * potential * between[axis]);
            sum[3] += potential;
        }
        sum
    };
    vec![Values::Double((0..charges.len()).flat_map(force).collect())]
}

fn hotspot(campaign: &Campaign) -> Vec<Values> {
    const SIZE: usize = 64;
    let mut chip = numbers(campaign, "even");
    let power = numbers(campaign, "power");
    for _ in 0..8 {
        let after = |at: usize| {
            let (x, y, center) = (at % SIZE, at / SIZE, chip[at]);
            let neighbours = [
                (x.saturating_sub(1), y),
                ((x + 1).min(SIZE - 1), y),
                (x, y.saturating_sub(1)),
                (x, (y + 1).min(SIZE - 1)),
            ];
            let flow: f64 =
                neighbours.iter().map(|(x, y)| 0.9 * (chip[y * SIZE + x] - center)).sum();
            center + 0.05 * (power[at] + flow + 0.1 * (80.0 - center))
        };
        chip = (0..SIZE * SIZE).map(after).collect();
    }
    vec![Values::Single(chip)]
}

fn nw(campaign: &Campaign) -> Vec<Values> {
    const SIZE: usize = 64;
    const PENALTY: i32 = 3;
    let (first, second): (Vec<i32>, Vec<i32>) =
        (buffer(campaign, "first"), buffer(campaign, "second"));
    let worth: Vec<i32> = buffer(campaign, "worth");
    let pair_score = |y: usize, x: usize| worth[(first[y] * 10 + second[x]) as usize];
    let mut scores = vec![[0; SIZE + 1]; SIZE + 1];
    for y in 0..=SIZE {
        for x in 0..=SIZE {
            let diagonal =
                (y > 0 && x > 0).then(|| scores[y - 1][x - 1] + pair_score(y - 1, x - 1));
            let up = (y > 0).then(|| scores[y - 1][x] - PENALTY);
            let left = (x > 0).then(|| scores[y][x - 1] - PENALTY);
            scores[y][x] = [diagonal, up, left].into_iter().flatten().max().unwrap_or(0);
        }
    }
    let (mut y, mut x) = (SIZE, SIZE);
    let mut path = vec![scores[y][x]];
    while (y, x) != (0, 0) {
        let score = scores[y][x];
        (y, x) = if y > 0 && x > 0 && score == scores[y - 1][x - 1] + pair_score(y - 1, x - 1) {
            (y - 1, x - 1)
        } else if y > 0 && score == scores[y - 1][x] - PENALTY {
            (y - 1, x)
        } else {
            (y, x - 1)
        };
        path.push(scores[y][x]);
    }
    path.resize(2 * SIZE + 1, 0);
    vec![Values::Whole(path)]
}

/// Searches until the queue is empty, without a limit of levels.
fn bfs(campaign: &Campaign) -> Vec<Values> {
    let (degrees, edges): (Vec<i32>, Vec<i32>) =
        (buffer(campaign, "degrees"), buffer(campaign, "edges"));
    let mut rest = edges.as_slice();
    let mut neighbours = Vec::new();
    for degree in &degrees {
        let (adjacent, remaining) = rest.split_at(*degree as usize);
        neighbours.push(adjacent);
        rest = remaining;
    }
    let mut cost = vec![-1; degrees.len()];
    cost[0] = 0;
    let mut queue = VecDeque::from([0usize]);
    while let Some(node) = queue.pop_front() {
        for neighbour in neighbours[node].iter().map(|node| *node as usize) {
            if cost[neighbour] < 0 {
                cost[neighbour] = cost[node] + 1;
                queue.push_back(neighbour);
            }
        }
    }
    assert!(cost.iter().filter(|cost| **cost > 1).count() > 300);
    vec![Values::Whole(cost)]
}

fn sorted(campaign: &Campaign, name: &str) -> Vec<Values> {
    let mut values: Vec<i32> = buffer(campaign, name);
    values.sort_unstable();
    vec![Values::Whole(values)]
}

fn quicksort(campaign: &Campaign) -> Vec<Values> {
    sorted(campaign, "values")
}

fn mergesort(campaign: &Campaign) -> Vec<Values> {
    sorted(campaign, "even")
}

/// Fourier transform by its definition.
fn fft(campaign: &Campaign) -> Vec<Values> {
    const SIZE: usize = 512;
    let signal = numbers(campaign, "signal");
    let element = |k: usize| {
        let mut sum = [0.0, 0.0];
        for n in 0..SIZE {
            let (real, imaginary) = (signal[2 * n], signal[2 * n + 1]);
            let angle = -std::f64::consts::TAU * (k * n % SIZE) as f64 / SIZE as f64;
            let (sine, cosine) = angle.sin_cos();
            sum[0] += real * cosine - imaginary * sine;
            sum[1] += real * sine + imaginary * cosine;
        }
        sum
    };
    vec![Values::Single((0..SIZE).flat_map(element).collect())]
}

fn cnn(campaign: &Campaign) -> Vec<Values> {
    let all = |name| numbers(campaign, name);
    let (image, filters, bias) = (all("image"), all("filters"), all("filter_bias"));
    let pixel = |channel: usize, y: usize, x: usize| {
        let near = (0..9).map(|k| {
            let (j, i) = (k / 3, k % 3);
            filters[channel * 9 + k] * image[(y + j) * 16 + x + i]
        });
        (bias[channel] + near.sum::<f64>()).max(0.0)
    };
    let pooled = (0..4 * 49).map(|at| {
        let (channel, y, x) = (at / 49, at / 7 % 7, at % 7);
        let corner = [(0, 0), (0, 1), (1, 0), (1, 1)];
        corner.map(|(j, i)| pixel(channel, 2 * y + j, 2 * x + i)).into_iter().fold(0.0, f64::max)
    });
    let pooled: Vec<f64> = pooled.collect();
    let scores = products(&all("weights"), &pooled, pooled.len());
    let scores = scores.iter().zip(all("class_bias")).map(|(score, bias)| score + bias);
    vec![Values::Single(scores.collect())]
}

fn attention(campaign: &Campaign) -> Vec<Values> {
    const LENGTH: usize = 64;
    const WIDTH: usize = 32;
    let scores = products(&numbers(campaign, "queries"), &numbers(campaign, "keys"), WIDTH);
    let weights: Vec<f64> = scores
        .chunks(LENGTH)
        .flat_map(|row| {
            let row: Vec<f64> =
                row.iter().map(|score| (score / (WIDTH as f64).sqrt()).exp()).collect();
            let sum: f64 = row.iter().sum();
            row.into_iter().map(move |weight| weight / sum)
        })
        .collect();
    let columns = transposed(&numbers(campaign, "values"), WIDTH);
    vec![Values::Single(products(&weights, &columns, LENGTH))]
}
