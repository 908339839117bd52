//! Programs compiled by the same compiler for the host and for the embedded GPU compute the same bits: an
//! oracle that is independent of our interpretation of the ISA documents.

mod addressing;
pub(crate) mod case;
mod csmith;
pub(crate) mod float;
pub(crate) mod integer;
mod rules;

use case::Case;
use flipwave_tests::{GFX90A, MACHINES, Machine, host_c};
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Optimisation levels. In unoptimised code, locals are in scratch memory and calls are not inlined.
pub(crate) const LEVELS: [&str; 4] = ["-O0", "-O1", "-O3", "-Os"];

/// Applies `work` to all items on all of the host's processors. Returns the results in order.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        items.get(index).map(|item| (index, work(item)))
    };
    let workers = std::thread::available_parallelism().map_or(1, |count| count.get());
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers)
            .map(|_| scope.spawn(|| std::iter::from_fn(take).collect::<Vec<_>>()))
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker's results")).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Exit code on the host of a program that runs too long or does almost nothing (`csmith_entry.h`).
const UNSUITABLE: i32 = 3;

/// Output of a program on the host for an input; `None` if it is unsuitable.
fn host_output(source: &str, options: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, program) = (folder.path().join("program.c"), folder.path().join("program"));
    std::fs::write(&file, source).expect("the source written");
    host_c(&file, options, &program);
    let piped = || Stdio::piped();
    let mut child =
        Command::new(&program).stdin(piped()).stdout(piped()).spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("its input");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input).expect("input that is read"));
        child.wait_with_output().expect("its output")
    });
    if output.status.code() == Some(UNSUITABLE) {
        return None;
    }
    assert!(output.status.success(), "on the host: {}\n{source}", output.status);
    Some(output.stdout)
}

/// A machine other than the default one, in turn by seed.
fn other_machine(seed: u32) -> Machine {
    MACHINES[1 + seed as usize % (MACHINES.len() - 1)]
}

/// Compares the cases of `seeds`, each at the optimisation levels `levels(seed)`, on the default machine and
/// on another one.
fn compare(
    seeds: impl Iterator<Item = u32>,
    case: impl Fn(u32) -> Option<Arc<Case>> + Sync,
    levels: impl Fn(u32) -> Vec<&'static str> + Sync,
) {
    let seeds: Vec<u32> = seeds.collect();
    let results = in_parallel(&seeds, |&seed| {
        let case = case(seed)?;
        let on_both = |(number, level): (u32, &'static str)| {
            [GFX90A, other_machine(seed + number)].map(|machine| case.check_at(machine, level))
        };
        Some((0..).zip(levels(seed)).flat_map(on_both).collect::<Vec<_>>())
    });
    let run: Vec<_> = results.into_iter().flatten().collect();
    println!("{} of {} programs are of use", run.len(), seeds.len());
    assert!(run.len() * 2 > seeds.len(), "only {} of {} are of use", run.len(), seeds.len());
    let wrong: Vec<String> = run.into_iter().flatten().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
