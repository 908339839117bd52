//! Integer programs by csmith: the checksum and every global variable, lane by lane.

use super::case::{Buffer, Case};
use super::csmith::{Globals, program};
use super::{LEVELS, compare, host_output};
use flipwave_tests::{Once, cases};
use std::sync::Arc;

/// 64-bit words that a lane reports, and bytes it has for its globals (`csmith_entry.h`).
const REPORT_WORDS: usize = 1024;
const GLOBALS_BYTES: usize = 65536;

/// LLVM 22 takes unsigned numbers that are extended from a sign for short ones, and divides them
/// in single precision, wrongly: 0xfffffff0 / 0xffffffff becomes 1 (seed 1181 at -O1).
const NO_SHORT_DIVISIONS: [&str; 2] = ["-mllvm", "-amdgpu-codegenprepare-disable-idiv-expansion"];

/// The program of a seed, with the host's results. The globals lie in one of four places in turn.
/// Nothing for programs that are no use: endless ones, and those that end at once.
pub fn case(seed: u32) -> Option<Arc<Case>> {
    static CASES: Once<u32, Option<Arc<Case>>> = Once::new();
    CASES.get(seed, || made(seed).map(Arc::new))
}

fn made(seed: u32) -> Option<Case> {
    let globals = Globals::ALL[seed as usize % 4];
    let source = program(seed, globals);
    let lanes = globals.lanes();
    let options = ["-O0", "-fsanitize-coverage=trace-pc", &format!("-DLANES={lanes}")];
    let expected = host_output(&source, &options, &[])?;
    Some(Case {
        name: format!("csmith {seed} ({globals:?})"),
        source,
        options: [globals.definition(), &format!("-DWORKGROUP={}", globals.workgroup())]
            .into_iter()
            .chain(NO_SHORT_DIVISIONS)
            .map(str::to_owned)
            .collect(),
        kernels: vec!["entry".into()],
        lanes,
        workgroup: globals.workgroup(),
        buffers: vec![
            Buffer::Output(lanes as usize * REPORT_WORDS * 8),
            Buffer::Input(vec![0; lanes as usize * GLOBALS_BYTES]),
        ],
        expected: vec![expected],
    })
}

#[test]
fn random_programs_compute_on_the_device_what_they_compute_on_the_host() {
    compare(cases(0..48, 5), case, |seed| vec![LEVELS[seed as usize / 4 % 4]]);
}

#[test]
#[ignore = "long: 300 random programs at four levels, on two machines each"]
fn hundreds_of_random_programs_at_every_level() {
    compare(1000..1300, case, |_| LEVELS.to_vec());
}
