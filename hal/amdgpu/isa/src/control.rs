//! Where control goes after an instruction.

use crate::{Generation, Inst, Opcode};

/// Where control goes after an instruction. Targets of direct branches and calls are
/// [`Inst::branch_target`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// To the next instruction.
    Next,
    /// To its target.
    Branch,
    /// To its target or to the next instruction.
    Conditional,
    /// To the address in a register pair.
    Jump,
    /// To a function that comes back: its target, or the address in a register pair.
    Call,
    /// Nowhere: the wave ends.
    End,
    /// It is not said where.
    Unknown(&'static str),
}

impl Control {
    /// Whether the next instruction may follow, after a call when it has come back.
    pub fn may_go_on(self) -> bool {
        match self {
            Control::Next | Control::Conditional | Control::Call | Control::Unknown(_) => true,
            Control::Branch | Control::Jump | Control::End => false,
        }
    }

    /// Whether control leaves it for a place where code that runs after it can stand: its target,
    /// or the next instruction.
    pub fn has_after(self) -> bool {
        match self {
            Control::Next | Control::Branch | Control::Conditional | Control::Call => true,
            Control::Jump | Control::End | Control::Unknown(_) => false,
        }
    }
}

impl Inst {
    /// Where control goes after it.
    pub fn control(&self, generation: Generation) -> Control {
        match (self.operation.opcode(), self.branch_target) {
            (Opcode::SSetpc, _) => Control::Jump,
            (Opcode::SSwappc | Opcode::SCall, _) => Control::Call,
            (Opcode::SBranch, Some(_)) => Control::Branch,
            (Opcode::SCbranchFork | Opcode::SCbranchJoin, _) => {
                Control::Unknown("where a fork or join goes depends on the stack of forks")
            }
            (Opcode::SRfe, _) => Control::Unknown("it returns from a trap handler"),
            (Opcode::STrap, _) if self.traps_for_good(generation) => Control::End,
            (_, Some(_)) if self.flags.branch => Control::Conditional,
            _ if self.flags.branch => Control::Unknown("it is no branch that is known"),
            (Opcode::SEndpgm | Opcode::SCodeEnd, _) => Control::End,
            _ => Control::Next,
        }
    }

    /// Whether it calls a function, or goes to an address as returns do. Compilers take what came before it
    /// for done.
    pub fn leaves_function(&self) -> bool {
        self.flags.call || self.operation.opcode() == Opcode::SSetpc
    }

    /// Whether it is one of the instructions that a wave ends with.
    pub fn ends_wave(&self) -> bool {
        self.operation.opcode() == Opcode::SEndpgm
    }

    /// Whether it is a trap that the wave does not come back from. From gfx11 on it may not be
    /// taken, and LLVM puts code after it that halts the wave (LLVM's
    /// `SIInstrInfo::insertSimulatedTrap`).
    fn traps_for_good(&self, generation: Generation) -> bool {
        self.immediate == Some(2) && generation < Generation::Gfx11
    }
}
