//! Helpers of the end-to-end tests: kernels compiled from source, programs that launch them, and the
//! `flipwave` program. If a required tool is missing, the test panics with its name.

mod application;
mod assembly;
mod browser;
mod c_compiler;
mod command;
mod element;
mod example;
mod faults;
mod full_device;
mod instrumented;
mod machine;
mod once;
mod program;
mod python;
mod random;
mod running;
mod scribble;
mod side_by_side;
mod slow_folder;
mod straggler;
mod tiers;

pub use application::{
    Compiler, application, application_for, application_module, applications, benchmark,
    benchmarks, failing_applications, mpi_application,
};
pub use assembly::{Assembly, assemble, assemble_for};
pub use browser::Browser;
pub use c_compiler::{Form, assemble_text, device_c, device_ptx, host_c};
pub use command::{Finished, flipwave, flipwave_within, program, released_program};
pub use element::{Element, to_bytes, to_values};
pub use example::{
    buffer, campaign_target, emulated_examples, emulated_folder, example, examples,
    examples_folder, kernels, kernels_mut, rows, suite, timeless_rows, workload, yaml_files,
};
pub use faults::{plan_of, profile_of};
pub use flipwave_depth::cases;
pub use full_device::create_full_device;
pub use instrumented::{Instrumented, hook_compiler, hook_source, instrument};
pub use machine::{
    GFX90A, MACHINES, Machine, is_long_run, machines, rewritten_levels, rewritten_machines,
    unified_machines,
};
pub use once::Once;
pub use program::{
    TestProgram, clean, compile, compile_at, compile_file, compile_for, contents, gfx90a, gpu,
    gpu_mut, scalar, site, site_error,
};
pub use python::Python;
pub use random::random_words;
pub use running::RunningProgram;
pub use scribble::{Overwrites, scribbled};
pub use side_by_side::{Twins, assert_lockstep};
pub use slow_folder::slow_folder;
pub use straggler::Straggler;
pub use tiers::{Findings, Tiers};
