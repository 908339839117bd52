//! Integer programs by csmith. Compares the checksum and every global variable of each lane.

use super::case::{Buffer, Case};
use super::csmith::{Globals, program};
use super::{LEVELS, compare, host_output};
use flipwave_tests::{Once, cases};
use std::sync::Arc;

/// 64-bit words that a lane reports, and bytes for its global variables (`csmith_entry.h`).
const REPORT_WORDS: usize = 1024;
const GLOBALS_BYTES: usize = 65536;

/// LLVM 22 treats sign-extended unsigned numbers as short ones and divides them incorrectly in single
/// precision: 0xfffffff0 / 0xffffffff gives 1 (seed 1181 at -O1).
const NO_SHORT_DIVISIONS: [&str; 2] = ["-mllvm", "-amdgpu-codegenprepare-disable-idiv-expansion"];

/// The program of a seed, with its results on the host. The location of its global variables depends on the
/// seed. Returns `None` for unsuitable programs, which are endless or end immediately.
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
fn random_integer_programs_agree_with_the_host() {
    compare(cases(0..48, 5), case, |seed| vec![LEVELS[seed as usize / 4 % 4]]);
}

#[test]
#[ignore = "long: 300 random programs at four levels, on two machines each"]
fn hundreds_of_random_integer_programs_agree_with_the_host() {
    compare(1000..1300, case, |_| LEVELS.to_vec());
}
