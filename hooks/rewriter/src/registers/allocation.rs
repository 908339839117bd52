//! Registers that a wave has.

use flipwave_codeobj::Kernel;
use flipwave_isa::{AccVgpr, AccVgprs, Register, RegisterSet, Sgpr, Target, Vgpr};

/// How many registers of each file a wave has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// VGPRs.
    pub vgprs: u16,
    /// AccVGPRs.
    pub acc_vgprs: u16,
    /// SGPRs that instructions can name, without VCC and the like.
    pub sgprs: u8,
}

impl Allocation {
    /// What a kernel's descriptor asks for.
    pub fn of(kernel: &Kernel, target: &Target) -> Allocation {
        let vgprs = kernel.descriptor.rsrc1.vgprs;
        let (vgprs, acc_vgprs) = match target.acc_vgprs() {
            AccVgprs::None => (vgprs, 0),
            AccVgprs::Separate => (vgprs, vgprs),
            AccVgprs::Unified => {
                let offset = kernel.descriptor.acc_vgpr_base().unwrap_or(vgprs);
                (offset, vgprs - offset)
            }
        };
        // VCC, FLAT_SCRATCH and XNACK_MASK are the highest six of an allocation (LLVM's
        // `IsaInfo::getNumExtraSGPRs`); from gfx10 on every wave has all.
        let sgprs = match target.sgpr_granule() {
            Some(_) => kernel.descriptor.rsrc1.sgprs.saturating_sub(6) as u8,
            None => target.max_sgprs(),
        };
        Allocation {
            vgprs: vgprs.min(256),
            acc_vgprs: acc_vgprs.min(256),
            sgprs: sgprs.min(target.max_sgprs()),
        }
    }

    /// The most that a wave can have.
    pub fn maximal(target: &Target) -> Allocation {
        let acc_vgprs = if target.acc_vgprs() == AccVgprs::None { 0 } else { 256 };
        Allocation { vgprs: 256, acc_vgprs, sgprs: target.max_sgprs() }
    }

    /// The registers.
    pub fn registers(self) -> RegisterSet {
        let numbers = |count: u16| (0..count.min(256)).map(|n| n as u8);
        (0..self.vgprs)
            .map(|n| Register::Vgpr(Vgpr(n)))
            .chain(numbers(self.acc_vgprs).map(|n| Register::AccVgpr(AccVgpr(n))))
            .chain((0..self.sgprs).map(|n| Register::Sgpr(Sgpr(n))))
            .collect()
    }

    /// What both have.
    #[must_use]
    pub fn least(self, other: Allocation) -> Allocation {
        Allocation {
            vgprs: self.vgprs.min(other.vgprs),
            acc_vgprs: self.acc_vgprs.min(other.acc_vgprs),
            sgprs: self.sgprs.min(other.sgprs),
        }
    }

    /// How many registers of each file a set has.
    pub fn count(set: RegisterSet) -> Allocation {
        let count = |file| set.intersection(file).len();
        Allocation {
            vgprs: count(RegisterSet::VGPRS) as u16,
            acc_vgprs: count(RegisterSet::ACC_VGPRS) as u16,
            sgprs: count(RegisterSet::SGPRS) as u8,
        }
    }

    /// The smallest allocation that has what this one has and `registers` besides.
    #[must_use]
    pub fn with(self, registers: RegisterSet) -> Allocation {
        let mut grown = self;
        for register in registers.iter() {
            match register {
                Register::Vgpr(Vgpr(n)) => grown.vgprs = grown.vgprs.max(n + 1),
                Register::AccVgpr(AccVgpr(n)) => {
                    grown.acc_vgprs = grown.acc_vgprs.max(u16::from(n) + 1);
                }
                Register::Sgpr(Sgpr(n)) => grown.sgprs = grown.sgprs.max(n.saturating_add(1)),
                _ => {}
            }
        }
        grown
    }
}
