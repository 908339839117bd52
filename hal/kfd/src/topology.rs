//! Topology of the machine: node 0 is the host, the other nodes are GPUs. The figures are those of
//! boards on the market. Programs may print them; nothing is timed by them.

use flipwave_isa::Target;

/// Base of the window to LDS, and to private memory, in the flat address space.
pub const APERTURES: [u64; 2] = [1 << 48, 2 << 48];
/// Resources of global wave sync.
pub const GLOBAL_SYNC: u8 = 64;

/// A board.
#[derive(Debug)]
pub struct Board {
    /// What its code is compiled for.
    pub processor: &'static str,
    /// The processor's version: 9, 0, 10 for gfx90a.
    pub version: [u32; 3],
    /// The number by which PCI has it, beside AMD's own.
    pub device: u16,
    /// The revision by which programs know, with that number, what it is sold as (`amdgpu.ids`).
    pub revision: u8,
    /// Shader engines.
    pub shader_engines: u32,
    /// Accelerator complex dies, `XCC`s.
    pub dies: u32,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// The highest clock.
    pub clock_mhz: u32,
    /// Whether its memories correct errors, which is part of the target's name.
    pub corrects_errors: bool,
}

const BOARDS: [Board; 6] = [
    Board {
        processor: "gfx906",
        version: [9, 0, 6],
        device: 0x66a1,
        // Instinct MI50.
        revision: 0x02,
        shader_engines: 4,
        dies: 1,
        memory_bytes: 16 << 30,
        clock_mhz: 1725,
        corrects_errors: true,
    },
    Board {
        processor: "gfx908",
        version: [9, 0, 8],
        device: 0x738c,
        // Instinct MI100.
        revision: 0x01,
        shader_engines: 8,
        dies: 1,
        memory_bytes: 32 << 30,
        clock_mhz: 1502,
        corrects_errors: true,
    },
    Board {
        processor: "gfx90a",
        version: [9, 0, 10],
        device: 0x740f,
        // Instinct MI210.
        revision: 0x02,
        shader_engines: 8,
        dies: 1,
        memory_bytes: 64 << 30,
        clock_mhz: 1700,
        corrects_errors: true,
    },
    Board {
        processor: "gfx942",
        version: [9, 4, 2],
        device: 0x74a1,
        // Instinct MI300X.
        revision: 0x00,
        shader_engines: 32,
        dies: 8,
        memory_bytes: 192 << 30,
        clock_mhz: 2100,
        corrects_errors: true,
    },
    Board {
        processor: "gfx1030",
        version: [10, 3, 0],
        device: 0x73bf,
        // Radeon RX 6900 XT.
        revision: 0xc0,
        shader_engines: 4,
        dies: 1,
        memory_bytes: 16 << 30,
        clock_mhz: 2250,
        corrects_errors: false,
    },
    Board {
        processor: "gfx1100",
        version: [11, 0, 0],
        device: 0x744c,
        // Radeon RX 7900 XTX.
        revision: 0xc8,
        shader_engines: 6,
        dies: 1,
        memory_bytes: 24 << 30,
        clock_mhz: 2500,
        corrects_errors: false,
    },
];

/// The processors that the vendor's runtime can be given.
pub fn processors() -> impl Iterator<Item = &'static str> {
    BOARDS.iter().map(|board| board.processor)
}

/// Errors returned when building a [`Topology`].
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// AMD's runtime or the embedded GPU does not support the requested GPU.
    #[error("unsupported GPU `{requested}` for AMD's runtime: expected one of {}", supported.join(", "))]
    UnknownBoard {
        /// The requested target.
        requested: String,
        /// Processors of all supported boards.
        supported: Vec<&'static str>,
    },
    /// The number of GPUs is not between 1 and [`MAX_GPUS`].
    #[error("invalid number of GPUs {0}: expected 1 to {MAX_GPUS}")]
    Count(usize),
}

/// Largest number of GPUs in a machine.
pub const MAX_GPUS: usize = 16;

/// A GPU.
#[derive(Debug)]
pub struct Gpu {
    /// What it is sold as.
    pub board: &'static Board,
    /// What it executes.
    pub target: Target,
    /// Compute units.
    pub units: u32,
}

impl Gpu {
    fn of(target: &Target) -> Result<Gpu, TopologyError> {
        let board = BOARDS.iter().find(|board| board.processor == target.processor());
        let (Some(board), Some(units)) = (board, target.compute_units()) else {
            let supported = processors().collect();
            return Err(TopologyError::UnknownBoard { requested: target.to_string(), supported });
        };
        Ok(Gpu { board, target: target.clone(), units })
    }
}

/// The machine: a host and some GPUs.
pub struct Topology {
    /// From node 1 on.
    gpus: Vec<Gpu>,
}

impl Topology {
    /// A machine with these GPUs.
    ///
    /// # Errors
    /// [`TopologyError`] for an unsupported GPU or number of GPUs.
    pub fn of(targets: &[Target]) -> Result<Topology, TopologyError> {
        if !(1..=MAX_GPUS).contains(&targets.len()) {
            return Err(TopologyError::Count(targets.len()));
        }
        Ok(Topology { gpus: targets.iter().map(Gpu::of).collect::<Result<_, _>>()? })
    }

    /// Nodes, the host's included.
    pub fn nodes(&self) -> u32 {
        1 + self.gpus.len() as u32
    }

    /// The GPU of a node; none of the host's, and of those that there are not.
    pub fn gpu(&self, node: u32) -> Option<&Gpu> {
        self.gpus.get((node as usize).checked_sub(1)?)
    }
}
