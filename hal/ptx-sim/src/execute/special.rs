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

    /// Positions of the threads of a wave in their workgroup, in one dimension.
    pub fn threads_of(&self, wave: &Wave, element: usize) -> Row {
        let [x, y, _] = self.workgroup.map(|size| size.max(1));
        let first = wave.id.wave * 32;
        let mut position = [first % x, first / x % y, first / (x * y)];
        let mut row = [0; LANES];
        for value in &mut row {
            *value = position.get(element).copied().unwrap_or(0).into();
            position[0] += 1;
            if position[0] == x {
                position = [0, position[1] + 1, position[2]];
            }
            if position[1] == y {
                position = [position[0], 0, position[2] + 1];
            }
        }
        row
    }

    /// The value of a special register in all lanes. Clocks count the instructions of the wave: they do not
    /// depend on the host. Each workgroup is a cluster of its own, and runs on multiprocessor 0.
    pub fn special(&self, operand: SpecialOperand, wave: &Wave) -> Row {
        let element = usize::from(operand.element);
        let of = |dimensions: Dim3| u64::from(dimensions.get(element).copied().unwrap_or(0));
        let uniform = |value: u64| [value; LANES];
        let each = |value: fn(u64) -> u64| std::array::from_fn(|lane| value(lane as u64));
        match operand.register {
            SpecialRegister::Tid => self.threads_of(wave, element),
            SpecialRegister::Ntid => uniform(of(self.workgroup)),
            SpecialRegister::LaneId => each(|lane| lane),
            SpecialRegister::WarpId => uniform(wave.id.wave.into()),
            SpecialRegister::NwarpId => uniform(self.threads().div_ceil(32).into()),
            SpecialRegister::CtaId | SpecialRegister::ClusterId => uniform(of(wave.id.workgroup)),
            SpecialRegister::NctaId | SpecialRegister::NclusterId => uniform(of(self.workgroups)),
            SpecialRegister::ClusterNctaId => uniform(of([1; 3])),
            SpecialRegister::NsmId | SpecialRegister::ClusterNctaRank => uniform(1),
            SpecialRegister::LaneMaskEq => each(|lane| 1 << lane),
            SpecialRegister::LaneMaskLt => each(|lane| (1 << lane) - 1),
            SpecialRegister::LaneMaskLe => each(|lane| (2 << lane) - 1),
            SpecialRegister::LaneMaskGt => each(|lane| 0xffff_ffff & !((2 << lane) - 1)),
            SpecialRegister::LaneMaskGe => each(|lane| 0xffff_ffff & !((1 << lane) - 1)),
            SpecialRegister::Clock
            | SpecialRegister::Clock64
            | SpecialRegister::GlobalTimer
            | SpecialRegister::GlobalTimerLo => uniform(wave.executed),
            SpecialRegister::ClockHi | SpecialRegister::GlobalTimerHi => {
                uniform(wave.executed >> 32)
            }
            SpecialRegister::TotalSharedBytes | SpecialRegister::AggregateSharedBytes => {
                uniform(self.shared)
            }
            SpecialRegister::DynamicSharedBytes => uniform(self.dynamic_shared.into()),
            SpecialRegister::SmId
            | SpecialRegister::GridId
            | SpecialRegister::IsExplicitCluster
            | SpecialRegister::ClusterCtaId
            | SpecialRegister::ClusterCtaRank
            | SpecialRegister::CurrentGraphExec
            | SpecialRegister::Environment(_)
            | SpecialRegister::PerformanceCounter(_) => uniform(0),
        }
    }
}
