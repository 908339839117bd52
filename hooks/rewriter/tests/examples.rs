//! Runs the examples, which check their results.

#![allow(clippy::duplicate_mod, reason = "each example includes the common part")]

#[path = "../../../examples/hooks/opcode_histogram.rs"]
mod opcode_histogram;
#[path = "../../../examples/hooks/wave_fft.rs"]
mod wave_fft;

#[test]
fn opcode_histogram_counts_all_waves() {
    opcode_histogram::main().unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn wave_fft_replaces_the_proxy() {
    wave_fft::main().unwrap_or_else(|error| panic!("{error}"));
}
