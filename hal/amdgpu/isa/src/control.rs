//! Control flow of instructions.

use crate::{Generation, Inst, Opcode};

/// The control flow of an instruction. [`Inst::branch_target`] has the targets of direct branches and
/// calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Continues at the next instruction.
    Next,
    /// Branches to its target.
    Branch,
    /// Branches to its target or continues at the next instruction.
    Conditional,
    /// Jumps to the address in a register pair.
    Jump,
    /// Calls a function, at its target or at the address in a register pair, that returns to the next
    /// instruction.
    Call,
    /// Ends the wave.
    End,
    /// Cannot be determined, with the reason.
    Unknown(&'static str),
}

impl Control {
    /// Returns `true` if execution may continue at the next instruction, including after a call returns.
    pub fn may_fall_through(self) -> bool {
        match self {
            Control::Next | Control::Conditional | Control::Call | Control::Unknown(_) => true,
            Control::Branch | Control::Jump | Control::End => false,
        }
    }

    /// Returns `true` if all successors are known statically (the next instruction or the target), so that
    /// code can be inserted after the instruction.
    pub fn has_known_successor(self) -> bool {
        match self {
            Control::Next | Control::Branch | Control::Conditional | Control::Call => true,
            Control::Jump | Control::End | Control::Unknown(_) => false,
        }
    }
}

impl Inst {
    /// The control flow of the instruction.
    pub fn control(&self, generation: Generation) -> Control {
        match (self.operation.opcode(), self.branch_target) {
            (Opcode::SSetpc, _) => Control::Jump,
            (Opcode::SSwappc | Opcode::SCall, _) => Control::Call,
            (Opcode::SBranch, Some(_)) => Control::Branch,
            (Opcode::SCbranchFork | Opcode::SCbranchJoin, _) => {
                Control::Unknown("the target of a fork or join depends on the fork stack")
            }
            (Opcode::SRfe, _) => Control::Unknown("the instruction returns from a trap handler"),
            (Opcode::STrap, _) if self.is_final_trap(generation) => Control::End,
            (_, Some(_)) if self.flags.branch => Control::Conditional,
            _ if self.flags.branch => Control::Unknown("unknown branch instruction"),
            (Opcode::SEndpgm | Opcode::SCodeEnd, _) => Control::End,
            _ => Control::Next,
        }
    }

    /// Returns `true` for calls, returns and other jumps to an address in registers. Compilers assume that
    /// pending operations have completed before these.
    pub fn leaves_function(&self) -> bool {
        self.flags.call || self.operation.opcode() == Opcode::SSetpc
    }

    /// Returns `true` for `s_endpgm` and its variants.
    pub fn ends_wave(&self) -> bool {
        self.operation.opcode() == Opcode::SEndpgm
    }

    /// Returns `true` for a trap that does not return to the wave. From gfx11 on the trap may not be
    /// taken, and LLVM inserts code after it that halts the wave (LLVM's
    /// `SIInstrInfo::insertSimulatedTrap`).
    fn is_final_trap(&self, generation: Generation) -> bool {
        self.immediate == Some(2) && generation < Generation::Gfx11
    }
}
