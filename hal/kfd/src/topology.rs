//! What the runtime reads of the machine: node 0 is the host, the others are GPUs. Figures are
//! those of boards that are sold; a program may print them, and nothing is timed by them.

use crate::abi::{CacheProperties, HeapType, IoLinkProperties, MemoryProperties, NodeProperties};
use crate::machine::MachineError;
use flipwave_isa::{AccVgprs, Generation, Target};

/// Base of the window to LDS, and to private memory, in the flat address space.
pub const APERTURES: [u64; 2] = [1 << 48, 2 << 48];
/// Resources of global wave sync.
pub const GLOBAL_SYNC: u8 = 64;
/// Bytes of the host's memory that the runtime may hand out.
const SYSTEM_BYTES: u64 = 64 << 30;

struct Board {
    processor: &'static str,
    /// Of the version that the runtime names the processor by: 9, 0, 10 for gfx90a.
    engine: [u32; 3],
    device: u16,
    name: &'static str,
    shader_banks: u32,
    /// Accelerator complex dies, `XCC`s.
    dies: u32,
    memory_bytes: u64,
    clock_mhz: u32,
    /// Whether its memories correct errors, which is part of the target's name.
    corrects_errors: bool,
}

const BOARDS: [Board; 6] = [
    Board {
        processor: "gfx906",
        engine: [9, 0, 6],
        device: 0x66a1,
        name: "AMD Radeon Instinct MI50",
        shader_banks: 4,
        dies: 1,
        memory_bytes: 16 << 30,
        clock_mhz: 1725,
        corrects_errors: true,
    },
    Board {
        processor: "gfx908",
        engine: [9, 0, 8],
        device: 0x738c,
        name: "AMD Instinct MI100",
        shader_banks: 8,
        dies: 1,
        memory_bytes: 32 << 30,
        clock_mhz: 1502,
        corrects_errors: true,
    },
    Board {
        processor: "gfx90a",
        engine: [9, 0, 10],
        device: 0x740f,
        name: "AMD Instinct MI210",
        shader_banks: 8,
        dies: 1,
        memory_bytes: 64 << 30,
        clock_mhz: 1700,
        corrects_errors: true,
    },
    Board {
        processor: "gfx942",
        engine: [9, 4, 2],
        device: 0x74a1,
        name: "AMD Instinct MI300X",
        shader_banks: 32,
        dies: 8,
        memory_bytes: 192 << 30,
        clock_mhz: 2100,
        corrects_errors: true,
    },
    Board {
        processor: "gfx1030",
        engine: [10, 3, 0],
        device: 0x73bf,
        name: "AMD Radeon RX 6900 XT",
        shader_banks: 4,
        dies: 1,
        memory_bytes: 16 << 30,
        clock_mhz: 2250,
        corrects_errors: false,
    },
    Board {
        processor: "gfx1100",
        engine: [11, 0, 0],
        device: 0x744c,
        name: "AMD Radeon RX 7900 XTX",
        shader_banks: 6,
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

/// The machine: a host and some GPUs of one kind.
pub struct Topology {
    board: &'static Board,
    target: Target,
    units: u32,
    gpus: u32,
}

impl Topology {
    /// A machine with this many GPUs.
    ///
    /// # Errors
    /// [`MachineError::Count`], and [`MachineError::UnknownBoard`] if the runtime has no such GPU.
    pub fn of(target: &Target, gpus: u32) -> Result<Topology, MachineError> {
        if !(1..=16).contains(&gpus) {
            return Err(MachineError::Count(gpus));
        }
        let board = BOARDS.iter().find(|board| board.processor == target.processor());
        let (Some(board), Some(units)) = (board, target.compute_units()) else {
            let supported = processors().collect();
            return Err(MachineError::UnknownBoard { wanted: target.to_string(), supported });
        };
        Ok(Topology { board, target: target.clone(), units, gpus })
    }

    /// The name of the GPUs' processor.
    pub fn processor(&self) -> &'static str {
        self.board.processor
    }

    /// Nodes, the host's included.
    pub fn nodes(&self) -> u32 {
        1 + self.gpus
    }

    /// Bytes of memory of a GPU.
    pub fn memory_bytes(&self) -> u64 {
        self.board.memory_bytes
    }

    /// The number by which PCI has the GPUs, beside AMD's own.
    pub fn device_id(&self) -> u16 {
        self.board.device
    }

    /// The GPUs' highest clock.
    pub fn clock_mhz(&self) -> u32 {
        self.board.clock_mhz
    }

    /// Compute units of a GPU.
    pub fn compute_units(&self) -> u32 {
        self.units
    }

    /// Shader engines of a GPU.
    pub fn shader_engines(&self) -> u32 {
        self.board.shader_banks
    }

    /// Accelerator complex dies of a GPU.
    pub fn dies(&self) -> u32 {
        self.board.dies
    }

    /// The version by which the driver has the processor: 9 00 10 for gfx90a.
    pub fn processor_version(&self) -> u32 {
        let [major, minor, stepping] = self.board.engine;
        major * 10_000 + minor * 100 + stepping
    }

    /// What the GPUs' instructions are.
    pub fn generation(&self) -> Generation {
        self.target.generation()
    }

    /// Whether a node is a GPU.
    pub fn is_gpu(node: u32) -> bool {
        node > 0
    }

    /// The properties of a node.
    pub fn node(&self, node: u32) -> Option<NodeProperties> {
        if node >= self.nodes() {
            return None;
        }
        // SAFETY: plain numbers, all of which may be 0.
        let nothing: NodeProperties = unsafe { std::mem::zeroed() };
        let common = NodeProperties {
            memory_banks: self.memory(node)?.len() as u32,
            caches: self.caches(node)?.len() as u32,
            io_links: self.links(node)?.len() as u32,
            ..nothing
        };
        if !Topology::is_gpu(node) {
            return Some(NodeProperties { cpu_cores: 8, cpu_clock_mhz: 2000, ..common });
        }
        let Topology { board, target, units, .. } = self;
        let simds_per_unit = target.simds_per_unit();
        // AccVGPRs have a file of the same size where they are not part of this one.
        let files = if target.acc_vgprs() == AccVgprs::Separate { 2 } else { 1 };
        let vgprs_per_unit = files * target.vgprs_per_simd(64) * simds_per_unit;
        let mut marketing_name = [0; 64];
        for (place, unit) in marketing_name.iter_mut().zip(board.name.encode_utf16()) {
            *place = unit;
        }
        let mut name = [0; 64];
        name[..board.processor.len()].copy_from_slice(board.processor.as_bytes());
        let [major, minor, stepping] = board.engine;
        Some(NodeProperties {
            compute_cores: units * simds_per_unit,
            compute_core_id: 0x8000_0000 | (node << 12),
            capability: capability(board),
            waves_per_simd: target.waves_per_simd(),
            lds_kib: target.lds_bytes() >> 10,
            wave_size: target.default_wave_size().into(),
            shader_banks: board.shader_banks,
            arrays: 1,
            units_per_array: units / board.shader_banks,
            simds_per_unit,
            scratch_slots_per_unit: 32,
            engine: 64 | major << 10 | minor << 16 | stepping << 24,
            vendor: 0x1002,
            device: board.device,
            location: node << 8,
            local_memory: board.memory_bytes,
            compute_clock_mhz: board.clock_mhz,
            cpu_clock_mhz: 2000,
            render_minor: 127 + node as i32,
            marketing_name,
            name,
            sdma_engines: 2,
            sdma_queues_per_engine: 8,
            compute_queues: 24,
            gws: GLOBAL_SYNC,
            unique_id: 0xf11b_0000_0000_0000 | u64::from(node),
            vgpr_bytes_per_unit: vgprs_per_unit * 64 * 4,
            sgpr_bytes_per_unit: 0x4000,
            ..common
        })
    }

    /// The memory banks of a node.
    pub fn memory(&self, node: u32) -> Option<Vec<MemoryProperties>> {
        let bank = |heap, bytes, base| MemoryProperties {
            heap,
            bytes,
            flags: 0,
            width_bits: 4096,
            clock_mhz: 1600,
            base,
        };
        let [lds, scratch] = APERTURES;
        match node {
            0 => Some(vec![bank(HeapType::System, SYSTEM_BYTES, 0)]),
            node if node < self.nodes() => Some(vec![
                bank(HeapType::FrameBufferPublic, self.board.memory_bytes, 0),
                bank(HeapType::Lds, self.target.lds_bytes().into(), lds),
                bank(HeapType::Scratch, 1 << 32, scratch),
            ]),
            _ => None,
        }
    }

    /// The caches of a node.
    pub fn caches(&self, node: u32) -> Option<Vec<CacheProperties>> {
        let cache = |level, size, kind| CacheProperties {
            processor: if Topology::is_gpu(node) { 0x8000_0000 | (node << 12) } else { 0 },
            level,
            size,
            line_bytes: 64,
            lines_per_tag: 1,
            associativity: 16,
            latency_ns: 0,
            kind,
            siblings: [1; 256],
        };
        const OF_HOST: u32 = 1 | 4;
        const OF_GPU: u32 = 1 | 8;
        match node {
            0 => Some(vec![cache(1, 32, OF_HOST), cache(2, 512, OF_HOST)]),
            node if node < self.nodes() => Some(vec![cache(1, 16, OF_GPU), cache(2, 8192, OF_GPU)]),
            _ => None,
        }
    }

    /// The links of a node to all others.
    pub fn links(&self, node: u32) -> Option<Vec<IoLinkProperties>> {
        const PCI_EXPRESS: u32 = 2;
        let link = |to| IoLinkProperties {
            kind: PCI_EXPRESS,
            version_major: 4,
            version_minor: 0,
            from: node,
            to,
            weight: 20,
            least_latency: 0,
            most_latency: 0,
            least_bandwidth: 32000,
            most_bandwidth: 32000,
            transfer_bytes: 0,
            flags: 0,
        };
        (node < self.nodes())
            .then(|| (0..self.nodes()).filter(|to| *to != node).map(link).collect())
    }
}

/// `HSA_CAPABILITY`: 64-bit doorbells, queues whose size is a power of two, error correction, and
/// memory that is shared with the program.
fn capability(board: &Board) -> u32 {
    const QUEUE_SIZE_POWER_OF_TWO: u32 = 1 << 3;
    const DOORBELL_64_BITS: u32 = 2 << 12;
    const MEMORY_CORRECTS: u32 = 1 << 20;
    const SRAM_CORRECTS: u32 = 1 << 26;
    const SHARES_MEMORY: u32 = 1 << 27;
    let corrects = if board.corrects_errors { MEMORY_CORRECTS | SRAM_CORRECTS } else { 0 };
    QUEUE_SIZE_POWER_OF_TWO | DOORBELL_64_BITS | SHARES_MEMORY | corrects
}
