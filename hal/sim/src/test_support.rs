//! What the unit tests share.

use crate::op::{Op, Run};
use flipwave_isa::{Encoding, Flags, Inst, Modifiers, Operation, Pc};

/// An operation without operands that runs `run`.
pub fn op(run: Run) -> Op {
    let inst = Inst {
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
    };
    Op::new(inst, run)
}
