//! Values of special registers.

use crate::compute::{LANES, Row};
use crate::wave::Wave;
use flipwave_device::Dim3;
use flipwave_ptx::{SpecialOperand, SpecialRegister};

/// Facts about a launch that waves can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    /// Threads of a workgroup.
    pub workgroup: Dim3,
    /// Workgroups of the grid.
    pub workgroups: Dim3,
    /// The kernel's arguments.
    pub arguments: Vec<u8>,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// Bytes of shared memory.
    pub shared: u64,
}

impl Launch {
    /// Threads of a workgroup.
    pub fn threads(&self) -> u32 {
        self.workgroup.iter().product()
    }

    /// Zeroed shared memory. Compiled code may read the 16 bytes at its beginning if no lane does, and words that
    /// it has a part of.
    pub fn shared_memory(&self) -> Vec<u8> {
        let bytes = self.shared as usize;
        let mut memory = Vec::with_capacity(bytes.next_multiple_of(16).max(16));
        memory.resize(bytes, 0);
        memory
    }

    /// Position of a lane's thread in its workgroup.
    fn thread(&self, wave: &Wave, lane: usize) -> Dim3 {
        let linear = wave.id.wave * 32 + lane as u32;
        let [x, y, _] = self.workgroup.map(|size| size.max(1));
        [linear % x, linear / x % y, linear / (x * y)]
    }

    /// The value of a special register in all lanes. Clocks count the instructions of the wave: they do not
    /// depend on the host. Each workgroup is a cluster of its own, and runs on multiprocessor 0.
    pub fn special(&self, operand: SpecialOperand, wave: &Wave) -> Row {
        let element = usize::from(operand.element);
        let of = |dimensions: Dim3| u64::from(dimensions.get(element).copied().unwrap_or(0));
        let mut row = [0; LANES];
        let mut each = |value: &dyn Fn(usize) -> u64| {
            for (lane, result) in row.iter_mut().enumerate() {
                *result = value(lane);
            }
        };
        match operand.register {
            SpecialRegister::Tid => each(&|lane| of(self.thread(wave, lane))),
            SpecialRegister::Ntid => each(&|_| of(self.workgroup)),
            SpecialRegister::LaneId => each(&|lane| lane as u64),
            SpecialRegister::WarpId => each(&|_| wave.id.wave.into()),
            SpecialRegister::NwarpId => each(&|_| self.threads().div_ceil(32).into()),
            SpecialRegister::CtaId | SpecialRegister::ClusterId => {
                each(&|_| of(wave.id.workgroup));
            }
            SpecialRegister::NctaId | SpecialRegister::NclusterId => each(&|_| of(self.workgroups)),
            SpecialRegister::ClusterNctaId => each(&|_| of([1; 3])),
            SpecialRegister::NsmId | SpecialRegister::ClusterNctaRank => each(&|_| 1),
            SpecialRegister::LaneMaskEq => each(&|lane| 1 << lane),
            SpecialRegister::LaneMaskLt => each(&|lane| (1 << lane) - 1),
            SpecialRegister::LaneMaskLe => each(&|lane| (2 << lane) - 1),
            SpecialRegister::LaneMaskGt => each(&|lane| 0xffff_ffff & !((2 << lane) - 1)),
            SpecialRegister::LaneMaskGe => each(&|lane| 0xffff_ffff & !((1 << lane) - 1)),
            SpecialRegister::Clock
            | SpecialRegister::Clock64
            | SpecialRegister::GlobalTimer
            | SpecialRegister::GlobalTimerLo => each(&|_| wave.executed),
            SpecialRegister::ClockHi | SpecialRegister::GlobalTimerHi => {
                each(&|_| wave.executed >> 32);
            }
            SpecialRegister::TotalSharedBytes | SpecialRegister::AggregateSharedBytes => {
                each(&|_| self.shared);
            }
            SpecialRegister::DynamicSharedBytes => each(&|_| self.dynamic_shared.into()),
            SpecialRegister::SmId
            | SpecialRegister::GridId
            | SpecialRegister::IsExplicitCluster
            | SpecialRegister::ClusterCtaId
            | SpecialRegister::ClusterCtaRank
            | SpecialRegister::CurrentGraphExec
            | SpecialRegister::Environment(_)
            | SpecialRegister::PerformanceCounter(_) => {}
        }
        row
    }
}
