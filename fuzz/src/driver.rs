//! Inputs one after the other, for as long as is asked.

use std::time::{Duration, Instant};

/// Findings after which it ends.
const MOST_FINDINGS: usize = 20;

/// Gives `test` numbers, from FLIPWAVE_FUZZ_EPISODE on for as many seconds as FLIPWAVE_FUZZ_SECONDS
/// says, or `few` numbers; says how many there were, and all that they found.
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
        let telling = Telling { name, number };
        if let Err(what) = test(number) {
            findings.push(format!("FLIPWAVE_FUZZ_EPISODE={number}: {what}"));
        }
        std::mem::forget(telling);
        done += 1;
    }
    let seconds = clock.elapsed().as_secs();
    println!("{name}: {done} inputs in {seconds} s, {} findings", findings.len());
    assert!(findings.is_empty(), "{}", findings.join("\n\n"));
}

/// Says what to begin with, where a test ends with a panic.
struct Telling<'a> {
    name: &'a str,
    number: u64,
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        eprintln!("{}: FLIPWAVE_FUZZ_EPISODE={} shows it again", self.name, self.number);
    }
}
