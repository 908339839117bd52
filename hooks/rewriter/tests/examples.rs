//! The examples run, and find what they say.

#![allow(clippy::duplicate_mod, reason = "each example has the common part for itself")]

#[path = "../../../examples/hooks/opcode_histogram.rs"]
mod opcode_histogram;
#[path = "../../../examples/hooks/wave_fft.rs"]
mod wave_fft;

#[test]
fn the_histogram_counts_every_wave() {
    opcode_histogram::main().unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn the_hook_in_place_of_the_proxy_transforms() {
    wave_fft::main().unwrap_or_else(|error| panic!("{error}"));
}
