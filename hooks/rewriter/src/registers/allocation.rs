//! The registers allocated to a wave.

use flipwave_codeobj::Kernel;
use flipwave_isa::{AccVgpr, AccVgprs, Register, RegisterSet, Sgpr, Target, Vgpr};

/// Numbers of registers allocated to a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// VGPRs.
    pub vgprs: u16,
    /// AccVGPRs.
    pub acc_vgprs: u16,
    /// SGPRs that instructions can name, without special registers such as VCC.
    pub sgprs: u8,
}

impl Allocation {
    /// The allocation of a kernel's descriptor.
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
        // The highest six SGPRs of an allocation are VCC, FLAT_SCRATCH and XNACK_MASK (LLVM's
        // `IsaInfo::getNumExtraSGPRs`). Since gfx10, every wave has all SGPRs.
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

    /// The largest allocation of a wave.
    pub fn maximal(target: &Target) -> Allocation {
        let acc_vgprs = if target.acc_vgprs() == AccVgprs::None { 0 } else { 256 };
        Allocation { vgprs: 256, acc_vgprs, sgprs: target.max_sgprs() }
    }

    /// The allocated registers.
    pub fn registers(self) -> RegisterSet {
        let numbers = |count: u16| (0..count.min(256)).map(|n| n as u8);
        (0..self.vgprs)
            .map(|n| Register::Vgpr(Vgpr(n)))
            .chain(numbers(self.acc_vgprs).map(|n| Register::AccVgpr(AccVgpr(n))))
            .chain((0..self.sgprs).map(|n| Register::Sgpr(Sgpr(n))))
            .collect()
    }

    /// The smaller number of registers of each file.
    #[must_use]
    pub fn least(self, other: Allocation) -> Allocation {
        Allocation {
            vgprs: self.vgprs.min(other.vgprs),
            acc_vgprs: self.acc_vgprs.min(other.acc_vgprs),
            sgprs: self.sgprs.min(other.sgprs),
        }
    }

    /// Numbers of registers in a set.
    pub fn count(set: RegisterSet) -> Allocation {
        let count = |file| set.intersection(file).len();
        Allocation {
            vgprs: count(RegisterSet::VGPRS) as u16,
            acc_vgprs: count(RegisterSet::ACC_VGPRS) as u16,
            sgprs: count(RegisterSet::SGPRS) as u8,
        }
    }

    /// The smallest allocation that includes this one and `registers`.
    #[must_use]
    pub fn with(self, registers: RegisterSet) -> Allocation {
        let mut extended = self;
        for register in registers.iter() {
            match register {
                Register::Vgpr(Vgpr(n)) => extended.vgprs = extended.vgprs.max(n + 1),
                Register::AccVgpr(AccVgpr(n)) => {
                    extended.acc_vgprs = extended.acc_vgprs.max(u16::from(n) + 1);
                }
                Register::Sgpr(Sgpr(n)) => extended.sgprs = extended.sgprs.max(n.saturating_add(1)),
                _ => {}
            }
        }
        extended
    }
}
