//! What the unit tests share.

use crate::op::{Op, Run, Source};
use crate::wave::{RowIndex, ScalarIndex};
use flipwave_isa::{Encoding, Flags, Inst, Modifiers, Operation, Pc};

/// An operation without operands that runs `run`.
pub fn op(run: Run) -> Op {
    Op {
        run,
        size: 4,
        vgprs_named: 0,
        acc_vgprs_named: 0,
        destination: RowIndex(0),
        scalar_destination: ScalarIndex(0),
        mask_destination: ScalarIndex::VCC,
        writes_exec: false,
        sources: [Source::NONE; 4],
        adapt: None,
        immediate: 0,
        inst: Box::new(Inst {
            pc: Pc(0),
            size: 4,
            operation: Operation::named("test"),
            encoding: Encoding::Other,
            operands: Vec::new(),
            modifiers: Modifiers::default(),
            immediate: None,
            reads: Vec::new(),
            writes: Vec::new(),
            flags: Flags::default(),
            branch_target: None,
            opcode_name: "TEST",
            text: "test".into(),
        }),
    }
}
