//! Integer programs by csmith: the checksum and every global variable, lane by lane.

use crate::case::{Buffer, Case};
use crate::csmith::{Globals, program};
use crate::{LEVELS, in_parallel};
use flipwave_tests::host_c;
use std::process::Command;

/// 64-bit words that a lane reports, and bytes it has for its globals (`csmith_entry.h`).
const REPORT_WORDS: usize = 1024;
const GLOBALS_BYTES: usize = 65536;

/// How the host's program ends that runs for too long or does next to nothing
/// (`csmith_entry.h`).
const NO_USE: i32 = 3;

/// The programs of these seeds, with the host's results. A seed's globals lie in one of four
/// places in turn. Nothing for programs that are no use: endless ones, and those that end at
/// once.
pub fn case(seed: u32) -> Option<Case> {
    let globals = Globals::ALL[seed as usize % 4];
    let source = program(seed, globals);
    let folder = tempfile::tempdir().expect("a folder");
    let (file, native) = (folder.path().join("program.c"), folder.path().join("program"));
    std::fs::write(&file, &source).expect("the source written");
    let lanes = globals.lanes();
    host_c(
        &file,
        &["-O0", "-fsanitize-coverage=trace-pc", &format!("-DLANES={lanes}")],
        &native,
    );
    let output = Command::new(&native).output().expect("the program starts");
    if output.status.code() == Some(NO_USE) {
        return None;
    }
    assert!(output.status.success(), "csmith's program {seed} on the host: {}", output.status);
    Some(Case {
        name: format!("csmith {seed} ({globals:?})"),
        source,
        options: vec![globals.definition().into(), format!("-DWORKGROUP={}", globals.workgroup())],
        kernel: "entry",
        lanes,
        workgroup: globals.workgroup(),
        buffers: vec![
            Buffer::Output(lanes as usize * REPORT_WORDS * 8),
            Buffer::Input(vec![0; lanes as usize * GLOBALS_BYTES]),
        ],
        expected: vec![output.stdout],
    })
}

/// Compares the programs of these seeds, each at `levels` of it.
fn compare(seeds: std::ops::Range<u32>, levels: impl Fn(u32) -> Vec<&'static str> + Sync) {
    let seeds: Vec<u32> = seeds.collect();
    let wrong = in_parallel(&seeds, |&seed| match case(seed) {
        None => vec![None],
        Some(case) => {
            levels(seed).into_iter().map(|level| Some(case.check_at(level))).collect()
        }
    });
    let results: Vec<_> = wrong.into_iter().flatten().collect();
    let skipped = results.iter().filter(|result| result.is_none()).count();
    let wrong: Vec<String> = results.into_iter().flatten().filter_map(Result::err).collect();
    println!("{} seeds, {skipped} of them no use", seeds.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(skipped * 2 < seeds.len(), "{skipped} of {} programs are no use", seeds.len());
}

#[test]
fn random_programs_compute_on_the_device_what_they_compute_on_the_host() {
    compare(0..48, |seed| vec![LEVELS[seed as usize / 4 % 4]]);
}

#[test]
#[ignore = "long: 300 random programs at four levels"]
fn hundreds_of_random_programs_at_every_level() {
    compare(1000..1300, |_| LEVELS.to_vec());
}
