//! Topology of the machine: node 0 is the host, the other nodes are GPUs. The figures are those of
//! boards on the market; docs/boards.md lists their sources. Programs may print them; nothing is
//! timed by them.

use flipwave_isa::Target;

/// Base address of the LDS aperture in the flat address space.
pub const LDS_APERTURE: u64 = 1 << 48;
/// Base address of the aperture of private memory (scratch) in the flat address space.
pub const SCRATCH_APERTURE: u64 = 2 << 48;
/// Number of resources of global wave sync (GWS) of a GPU.
pub const GWS_RESOURCES: u8 = 64;

/// A board with a GPU.
#[derive(Debug)]
pub struct Board {
    /// LLVM's name of the processor.
    pub processor: &'static str,
    /// Major version, minor version and stepping of the processor: 9, 0, 10 for gfx90a.
    pub version: [u32; 3],
    /// PCI device number.
    pub device: u16,
    /// PCI revision. Programs look up the product name by device number and revision
    /// (`amdgpu.ids`).
    pub revision: u8,
    /// Number of shader engines of all dies.
    pub shader_engines: u32,
    /// Number of shader arrays of a shader engine.
    pub arrays_per_engine: u32,
    /// Number of compute units of a shader array, including those that the product disables.
    pub units_per_array: u32,
    /// Number of accelerator complex dies (XCC).
    pub dies: u32,
    /// Size of the memory in bytes.
    pub memory_bytes: u64,
    /// Highest clock rate.
    pub clock_mhz: u32,
    /// `true` if the memory and the SRAMs have ECC. This is part of the target's name (`sramecc`).
    pub has_ecc: bool,
    /// Versions of the firmware.
    pub firmware: Firmware,
}

/// Versions of a board's firmware, which runtimes compare with those that introduced a feature; 0
/// if no version is published.
#[derive(Debug)]
pub struct Firmware {
    /// Version of the compute processor's firmware (MEC).
    pub compute: u32,
    /// Version of the copy engines' firmware.
    pub sdma: u32,
}

const BOARDS: [Board; 12] = [
    Board {
        processor: "gfx906",
        version: [9, 0, 6],
        device: 0x66a1,
        // Instinct MI50.
        revision: 0x02,
        shader_engines: 4,
        arrays_per_engine: 1,
        units_per_array: 16,
        dies: 1,
        memory_bytes: 16 << 30,
        clock_mhz: 1725,
        has_ecc: true,
        firmware: Firmware { compute: 472, sdma: 145 },
    },
    Board {
        processor: "gfx908",
        version: [9, 0, 8],
        device: 0x738c,
        // Instinct MI100.
        revision: 0x01,
        shader_engines: 8,
        arrays_per_engine: 1,
        units_per_array: 16,
        dies: 1,
        memory_bytes: 32 << 30,
        clock_mhz: 1502,
        has_ecc: true,
        firmware: Firmware { compute: 65, sdma: 18 },
    },
    Board {
        processor: "gfx90a",
        version: [9, 0, 10],
        device: 0x740f,
        // Instinct MI210.
        revision: 0x02,
        shader_engines: 8,
        arrays_per_engine: 1,
        units_per_array: 14,
        dies: 1,
        memory_bytes: 64 << 30,
        clock_mhz: 1700,
        has_ecc: true,
        firmware: Firmware { compute: 78, sdma: 8 },
    },
    Board {
        processor: "gfx942",
        version: [9, 4, 2],
        device: 0x74a1,
        // Instinct MI300X.
        revision: 0x00,
        shader_engines: 32,
        arrays_per_engine: 1,
        units_per_array: 10,
        dies: 8,
        memory_bytes: 192 << 30,
        clock_mhz: 2100,
        has_ecc: true,
        firmware: Firmware { compute: 166, sdma: 22 },
    },
    Board {
        processor: "gfx950",
        version: [9, 5, 0],
        device: 0x75a3,
        // Instinct MI355X.
        revision: 0x00,
        shader_engines: 32,
        arrays_per_engine: 1,
        units_per_array: 9,
        dies: 8,
        memory_bytes: 288 << 30,
        clock_mhz: 2400,
        has_ecc: true,
        firmware: Firmware { compute: 34, sdma: 12 },
    },
    Board {
        processor: "gfx1030",
        version: [10, 3, 0],
        device: 0x73bf,
        // Radeon RX 6900 XT.
        revision: 0xc0,
        shader_engines: 4,
        arrays_per_engine: 2,
        units_per_array: 10,
        dies: 1,
        memory_bytes: 16 << 30,
        clock_mhz: 2250,
        has_ecc: false,
        firmware: Firmware { compute: 0, sdma: 0 },
    },
    Board {
        processor: "gfx1100",
        version: [11, 0, 0],
        device: 0x744c,
        // Radeon RX 7900 XTX.
        revision: 0xc8,
        shader_engines: 6,
        arrays_per_engine: 2,
        units_per_array: 8,
        dies: 1,
        memory_bytes: 24 << 30,
        clock_mhz: 2500,
        has_ecc: false,
        firmware: Firmware { compute: 550, sdma: 19 },
    },
    Board {
        processor: "gfx1101",
        version: [11, 0, 1],
        device: 0x747e,
        // Radeon RX 7800 XT.
        revision: 0xc8,
        shader_engines: 3,
        arrays_per_engine: 2,
        units_per_array: 10,
        dies: 1,
        memory_bytes: 16 << 30,
        clock_mhz: 2430,
        has_ecc: false,
        firmware: Firmware { compute: 0, sdma: 0 },
    },
    Board {
        processor: "gfx1151",
        version: [11, 5, 1],
        device: 0x1586,
        // Radeon 8060S, with 96 GB of the system's memory.
        revision: 0xc1,
        shader_engines: 2,
        arrays_per_engine: 2,
        units_per_array: 10,
        dies: 1,
        memory_bytes: 96 << 30,
        clock_mhz: 2900,
        has_ecc: false,
        firmware: Firmware { compute: 32, sdma: 17 },
    },
    Board {
        processor: "gfx1200",
        version: [12, 0, 0],
        device: 0x7590,
        // Radeon RX 9060 XT.
        revision: 0xc0,
        shader_engines: 2,
        arrays_per_engine: 2,
        units_per_array: 8,
        dies: 1,
        memory_bytes: 16 << 30,
        clock_mhz: 3130,
        has_ecc: false,
        firmware: Firmware { compute: 0, sdma: 0 },
    },
    Board {
        processor: "gfx1201",
        version: [12, 0, 1],
        device: 0x7550,
        // Radeon RX 9070 XT.
        revision: 0xc0,
        shader_engines: 4,
        arrays_per_engine: 2,
        units_per_array: 8,
        dies: 1,
        memory_bytes: 16 << 30,
        clock_mhz: 2970,
        has_ecc: false,
        firmware: Firmware { compute: 358, sdma: 662 },
    },
    Board {
        processor: "gfx1250",
        version: [12, 5, 0],
        device: 0x75c1,
        // Instinct MI455X.
        revision: 0x00,
        shader_engines: 16,
        arrays_per_engine: 2,
        units_per_array: 8,
        dies: 8,
        memory_bytes: 432 << 30,
        clock_mhz: 2700,
        has_ecc: true,
        firmware: Firmware { compute: 0, sdma: 0 },
    },
];

/// The processors that AMD's runtime supports on the embedded GPU.
pub fn processors() -> impl Iterator<Item = &'static str> {
    BOARDS.iter().map(|board| board.processor)
}

/// Errors returned when the requested GPUs cannot form a machine.
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
    /// The number of GPUs is not between 1 and 16.
    #[error("invalid number of GPUs {0}: expected 1 to {MAX_GPUS}")]
    Count(usize),
}

/// Largest number of GPUs in a machine.
pub const MAX_GPUS: usize = 16;

/// A GPU of the machine.
#[derive(Debug)]
pub struct Gpu {
    pub board: &'static Board,
    pub target: Target,
    /// Number of compute units.
    pub units: u32,
}

impl Gpu {
    fn new(target: &Target) -> Result<Gpu, TopologyError> {
        let board = BOARDS.iter().find(|board| board.processor == target.processor());
        let (Some(board), Some(units)) = (board, target.compute_units()) else {
            let supported = processors().collect();
            return Err(TopologyError::UnknownBoard { requested: target.to_string(), supported });
        };
        Ok(Gpu { board, target: target.clone(), units })
    }
}

/// Topology of a machine: a host and its GPUs.
pub struct Topology {
    /// The GPU of node 1 comes first.
    gpus: Vec<Gpu>,
}

impl Topology {
    /// Creates the topology of a machine with GPUs of these targets.
    ///
    /// # Errors
    /// [`TopologyError`] for an unsupported GPU or number of GPUs.
    pub fn new(targets: &[Target]) -> Result<Topology, TopologyError> {
        if !(1..=MAX_GPUS).contains(&targets.len()) {
            return Err(TopologyError::Count(targets.len()));
        }
        Ok(Topology { gpus: targets.iter().map(Gpu::new).collect::<Result<_, _>>()? })
    }

    /// Number of nodes, including the host.
    pub fn nodes(&self) -> u32 {
        1 + self.gpus.len() as u32
    }

    /// The GPU of a node; `None` for the host and for nodes that do not exist.
    pub fn gpu(&self, node: u32) -> Option<&Gpu> {
        self.gpus.get((node as usize).checked_sub(1)?)
    }
}
