//! Lockstep execution of original and rewritten code.

use flipwave_device::{Device, Dispatch};
use flipwave_hooks::dataflow::Liveness;
use flipwave_hooks::flow::{Disassembly, InstIndex};
use flipwave_hooks::rewrite::Rewritten;
use flipwave_isa::RegisterSet;
use flipwave_lockstep::{Lockstep, LockstepReport};
use flipwave_sim::EmbeddedGpu;
use std::collections::BTreeSet;

/// A launch of original code, and the corresponding launch of rewritten code.
pub struct Twins<'a> {
    /// The launch of the original.
    pub original: &'a Dispatch,
    /// The launch of the new code.
    pub instrumented: &'a Dispatch,
    /// Result of the rewriter.
    pub rewritten: &'a Rewritten,
    /// Instructions replaced by hooks.
    pub substituted: BTreeSet<InstIndex>,
}

impl Twins<'_> {
    /// Runs both launches in lockstep on copies of a device with both code objects.
    pub fn side_by_side(&self, device: &EmbeddedGpu, is_strict: bool) -> LockstepReport {
        let object = device.code_object(self.original.module).expect("a loaded module");
        let program = Disassembly::read(object).expect("a program");
        let liveness = Liveness::new(&program);
        let lockstep = Lockstep {
            program: &program,
            live: &|at| liveness.before(at),
            claims: &self.rewritten.claims,
            gpu: device,
            original: self.original,
            instrumented: self.instrumented,
            changed: RegisterSet::EMPTY,
            replaced: self.substituted.clone(),
            ignored: Vec::new(),
            is_strict,
        };
        lockstep.run().unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Asserts that consecutive launches run in lockstep without a difference.
pub fn assert_lockstep<'a>(mut device: EmbeddedGpu, launches: impl Iterator<Item = Twins<'a>>) {
    for twins in launches {
        let kernel = &twins.original.kernel;
        let report = twins.side_by_side(&device, false);
        println!(
            "{kernel} in step: {} instructions, {} values, {} bytes",
            report.instructions, report.registers, report.bytes
        );
        if let Some(difference) = &report.difference {
            panic!("{kernel}: {difference}");
        }
        assert!(report.instructions > 0 && report.registers > report.instructions, "{kernel}");
        device.dispatch(twins.original).unwrap_or_else(|error| panic!("{kernel}: {error}"));
    }
}
