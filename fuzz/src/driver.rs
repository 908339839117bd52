//! Driver for fuzzers with numbered inputs.

use std::time::{Duration, Instant};

/// Number of findings after which the driver stops.
const MOST_FINDINGS: usize = 20;

/// Calls `test` with consecutive numbers from FLIPWAVE_FUZZ_EPISODE on, for FLIPWAVE_FUZZ_SECONDS seconds
/// or else for `few` numbers. Prints the number of inputs, and panics with the findings.
pub fn drive(name: &str, few: u64, mut test: impl FnMut(u64) -> Result<(), String>) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("FLIPWAVE_FUZZ_EPISODE").unwrap_or(0);
    let seconds = number("FLIPWAVE_FUZZ_SECONDS");
    let clock = Instant::now();
    let goes_on = |done: u64| match seconds {
        Some(seconds) => clock.elapsed() < Duration::from_secs(seconds),
        None => done < few,
    };
    let (mut done, mut findings) = (0, Vec::new());
    while goes_on(done) && findings.len() < MOST_FINDINGS {
        let number = first + done;
        let panic_note = PanicNote { name, number };
        if let Err(what) = test(number) {
            findings.push(format!("FLIPWAVE_FUZZ_EPISODE={number}: {what}"));
        }
        std::mem::forget(panic_note);
        done += 1;
    }
    let seconds = clock.elapsed().as_secs();
    println!("{name}: {done} inputs in {seconds} s, {} findings", findings.len());
    assert!(findings.is_empty(), "{}", findings.join("\n\n"));
}

/// Prints how to reproduce an input if a test panics.
struct PanicNote<'a> {
    name: &'a str,
    number: u64,
}

impl Drop for PanicNote<'_> {
    fn drop(&mut self) {
        eprintln!("{}: reproduce with FLIPWAVE_FUZZ_EPISODE={}", self.name, self.number);
    }
}
