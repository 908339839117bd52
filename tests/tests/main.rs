//! Everything together, by topic.
//!
//! They are one program: each program that tests are in is linked with everything below them, and
//! is waited for to the end of its longest test before the next one starts.

#![allow(clippy::duplicate_mod, reason = "the tests of compiled kernels are run in several ways")]

mod accelerations;
mod alone;
mod application_campaigns;
mod application_fidelity;
mod applications;
mod applications_killed;
mod architecture;
mod attached;
mod book;
mod compare;
mod compiled;
mod defects;
mod determinism;
mod doctor;
mod driver_paths;
mod emulated;
mod emulator;
mod errors;
mod exchange;
mod exhaustive;
mod failures;
mod faults;
mod fidelity;
mod generations;
mod gfx1250;
mod golden;
mod hardened;
mod hooks;
mod host_calls;
mod inspect;
mod instructions;
mod interrupt;
mod liveness;
mod lockstep;
mod math;
mod matrix;
mod moved;
mod other_rocm;
mod outcomes;
mod outputs;
mod profile;
mod programs;
mod proxies;
mod references;
mod replay;
mod report;
mod residency;
mod results_folder;
mod retargeted;
mod rocr;
mod round_trip;
mod run_options;
mod schedule;
mod severity;
mod shapes;
mod shards;
mod shards_killed;
mod state;
mod statistics;
mod strict;
mod suite;
mod survey;
mod tier;
mod tools;
mod trace;
mod triton;
mod until;
mod vary;
mod wave_state;
mod workloads;
mod writing;
