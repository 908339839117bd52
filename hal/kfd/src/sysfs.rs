//! What the driver shows of the machine in files below `/dev` and `/sys`. Programs are led to a folder
//! with them.

use crate::ioctl::{FIRST_RENDER_MINOR, GPU_ID};
use crate::topology::{Board, GLOBAL_SYNC, Gpu, Topology, TopologyError};
use flipwave_isa::Target;
use std::fmt::Write as _;

/// Where the nodes are.
const TOPOLOGY: &str = "sys/devices/virtual/kfd/kfd/topology";
const AMD: u32 = 0x1002;

/// A file of the driver's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFile {
    /// Where it is, from the root on.
    pub path: String,
    /// What it is.
    pub content: FileContent,
}

/// What a file of the driver's is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// A file with this text; a device is an empty one.
    Text(String),
    /// A link to this path.
    Link(String),
}

/// All files that show a machine with GPUs of these targets.
///
/// # Errors
/// [`TopologyError`].
pub fn device_files(targets: &[Target]) -> Result<Vec<DeviceFile>, TopologyError> {
    let topology = Topology::of(targets)?;
    let mut files = Vec::new();
    let mut add = |path: String, content| files.push(DeviceFile { path, content });
    let text = |text: &str| FileContent::Text(text.to_owned());
    add("dev/kfd".to_owned(), text(""));
    add("sys/module/amdgpu/initstate".to_owned(), text("live\n"));
    let system = lines(&[("platform_oem", 0), ("platform_id", 0), ("platform_rev", 0)]);
    add(format!("{TOPOLOGY}/system_properties"), FileContent::Text(system));
    add(format!("{TOPOLOGY}/generation_id"), text("1\n"));
    for node in 0..topology.nodes() {
        for (path, text) in node_files(&topology, node) {
            add(format!("{TOPOLOGY}/nodes/{node}/{path}"), FileContent::Text(text));
        }
        let Some(gpu) = topology.gpu(node) else { continue };
        let (render, card) = (FIRST_RENDER_MINOR + node - 1, node - 1);
        let device = format!("sys/dev/char/226:{render}/device");
        for (path, text) in pci_files(gpu, node) {
            add(format!("{device}/{path}"), FileContent::Text(text));
        }
        for name in [format!("renderD{render}"), format!("card{card}")] {
            add(format!("dev/dri/{name}"), text(""));
            add(format!("{device}/drm/{name}/dev"), FileContent::Text(format!("226:{render}\n")));
        }
        add(format!("{device}/subsystem"), FileContent::Link("../../../../bus/pci".to_owned()));
    }
    Ok(files)
}

/// A property to a line, as the driver writes them.
fn lines(all: &[(&str, u64)]) -> String {
    all.iter().fold(String::new(), |mut text, (name, value)| {
        // A text takes everything.
        let _ = writeln!(text, "{name} {value}");
        text
    })
}

/// What is in the folder of a node.
fn node_files(topology: &Topology, node: u32) -> Vec<(String, String)> {
    let own = topology.gpu(node);
    let (id, name) = own.map_or((0, ""), |gpu| (GPU_ID + node, gpu.board.processor));
    let parts = [
        ("mem_banks", vec![bank(own)]),
        ("caches", own.map(|_| caches(node)).unwrap_or_default()),
        ("io_links", links(topology, node)),
    ];
    let mut properties: Vec<(String, u64)> = Vec::new();
    let mut files =
        vec![("gpu_id".to_owned(), format!("{id}\n")), ("name".to_owned(), format!("{name}\n"))];
    for (folder, texts) in parts {
        properties.push((format!("{folder}_count"), texts.len() as u64));
        let file = |(index, text)| (format!("{folder}/{index}/properties"), text);
        files.extend(texts.into_iter().enumerate().map(file));
    }
    let others = own.map_or_else(host, |own| gpu(own, node));
    properties.extend(others.into_iter().map(|(name, value)| (name.to_owned(), value)));
    let all: Vec<(&str, u64)> =
        properties.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    files.push(("properties".to_owned(), lines(&all)));
    files
}

/// Cores of the host that are shown, and their clock.
const CORES: u64 = 8;
const HOST_MHZ: u64 = 2000;
/// Bytes of the host's memory that the runtime may hand out.
const HOST_BYTES: u64 = 64 << 30;

fn host() -> Vec<(&'static str, u64)> {
    vec![("cpu_cores_count", CORES), ("max_engine_clk_ccompute", HOST_MHZ)]
}

/// By what processors and caches of a GPU are numbered.
fn first_processor(node: u32) -> u64 {
    0x8000_0000 | u64::from(node) << 12
}

fn gpu(own: &Gpu, node: u32) -> Vec<(&'static str, u64)> {
    let Gpu { board, target, units } = own;
    let simds_per_unit = target.simds_per_unit();
    let [major, minor, stepping] = board.version;
    vec![
        ("simd_count", (units * simds_per_unit).into()),
        ("simd_id_base", first_processor(node)),
        ("capability", capability(board)),
        ("max_waves_per_simd", target.waves_per_simd().into()),
        ("lds_size_in_kb", (target.lds_bytes() >> 10).into()),
        ("num_gws", GLOBAL_SYNC.into()),
        ("wave_front_size", target.default_wave_size().into()),
        ("array_count", board.shader_engines.into()),
        ("simd_arrays_per_engine", 1),
        ("cu_per_simd_array", (units / board.shader_engines).into()),
        ("simd_per_cu", simds_per_unit.into()),
        ("max_slots_scratch_cu", 32),
        ("gfx_target_version", (major * 10_000 + minor * 100 + stepping).into()),
        ("vendor_id", AMD.into()),
        ("device_id", board.device.into()),
        ("location_id", u64::from(node) << 8),
        ("drm_render_minor", (FIRST_RENDER_MINOR + node - 1).into()),
        ("num_sdma_engines", 2),
        ("num_sdma_queues_per_engine", 8),
        ("num_cp_queues", 24),
        ("max_engine_clk_fcompute", board.clock_mhz.into()),
        ("max_engine_clk_ccompute", HOST_MHZ),
        ("local_mem_size", board.memory_bytes),
        ("unique_id", 0xf11b_0000_0000_0000 | u64::from(node)),
        ("num_xcc", board.dies.into()),
    ]
}

/// `HSA_CAPABILITY`: 64-bit doorbells, queues whose size is a power of two, error correction, and
/// memory that is shared with the program.
fn capability(board: &Board) -> u64 {
    const QUEUE_SIZE_POWER_OF_TWO: u64 = 1 << 3;
    const DOORBELL_64_BITS: u64 = 2 << 12;
    const MEMORY_CORRECTS: u64 = 1 << 20;
    const SRAM_CORRECTS: u64 = 1 << 26;
    const SHARES_MEMORY: u64 = 1 << 27;
    let corrects = if board.corrects_errors { MEMORY_CORRECTS | SRAM_CORRECTS } else { 0 };
    QUEUE_SIZE_POWER_OF_TWO | DOORBELL_64_BITS | SHARES_MEMORY | corrects
}

/// The memory of a GPU, or of the host. The runtime adds LDS, private memory and registers by itself.
fn bank(own: Option<&Gpu>) -> String {
    const SYSTEM: u64 = 0;
    /// All of it can be mapped by programs.
    const PUBLIC: u64 = 1;
    let (heap, bytes) = own.map_or((SYSTEM, HOST_BYTES), |own| (PUBLIC, own.board.memory_bytes));
    lines(&[
        ("heap_type", heap),
        ("size_in_bytes", bytes),
        ("flags", 0),
        ("width", 4096),
        ("mem_clk_max", 1600),
    ])
}

/// Caches of a GPU; those of the host are in other files.
fn caches(node: u32) -> Vec<String> {
    const DATA_OF_GPU: u64 = 1 | 8;
    let cache = |(level, size)| {
        let text = lines(&[
            ("processor_id_low", first_processor(node)),
            ("level", level),
            ("size", size),
            ("cache_line_size", 64),
            ("cache_lines_per_tag", 1),
            ("association", 16),
            ("latency", 0),
            ("type", DATA_OF_GPU),
        ]);
        format!("{text}sibling_map 1,1,1,1\n")
    };
    [(1, 16), (2, 8192)].map(cache).to_vec()
}

/// The links of a node to all others: without them its memory cannot be reached from there.
fn links(topology: &Topology, node: u32) -> Vec<String> {
    const PCI_EXPRESS: u64 = 2;
    let link = |to: u32| {
        lines(&[
            ("type", PCI_EXPRESS),
            ("version_major", 4),
            ("version_minor", 0),
            ("node_from", node.into()),
            ("node_to", to.into()),
            ("weight", 20),
            ("min_latency", 0),
            ("max_latency", 0),
            ("min_bandwidth", 32000),
            ("max_bandwidth", 32000),
            ("recommended_transfer_size", 0),
            ("flags", 0),
        ])
    };
    (0..topology.nodes()).filter(|to| *to != node).map(link).collect()
}

/// What PCI says of a GPU.
fn pci_files(own: &Gpu, node: u32) -> Vec<(&'static str, String)> {
    let board = own.board;
    let hexadecimal = |number: u32| format!("0x{number:04x}\n");
    vec![
        ("vendor", hexadecimal(AMD)),
        ("device", hexadecimal(board.device.into())),
        ("subsystem_vendor", hexadecimal(AMD)),
        ("subsystem_device", hexadecimal(board.device.into())),
        ("revision", format!("0x{:02x}\n", board.revision)),
        ("uevent", format!("DRIVER=amdgpu\nPCI_SLOT_NAME=0000:{node:02x}:00.0\n")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// All files of a machine, by path; links are left out.
    fn files(processor: &str, gpus: u32) -> BTreeMap<String, String> {
        files_of(&vec![processor; gpus as usize])
    }

    fn files_of(processors: &[&str]) -> BTreeMap<String, String> {
        let target = |processor: &&str| processor.parse().expect("a target");
        let targets: Vec<Target> = processors.iter().map(target).collect();
        let files = device_files(&targets).expect("a machine");
        let text = |file: DeviceFile| match file.content {
            FileContent::Text(text) => Some((file.path, text)),
            FileContent::Link(_) => None,
        };
        files.into_iter().filter_map(text).collect()
    }

    fn property(text: &str, name: &str) -> Option<u64> {
        let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
        text.lines().find_map(value)
    }

    #[test]
    fn a_node_has_as_many_folders_as_it_says() {
        for (processor, gpus) in [("gfx90a", 1), ("gfx942", 2), ("gfx1100", 3)] {
            let files = files(processor, gpus);
            for node in 0..=gpus {
                let folder = format!("{TOPOLOGY}/nodes/{node}");
                let properties = &files[&format!("{folder}/properties")];
                for part in ["mem_banks", "caches", "io_links"] {
                    let below = format!("{folder}/{part}/");
                    let count = files.keys().filter(|path| path.starts_with(&below)).count();
                    let said = property(properties, &format!("{part}_count"));
                    assert_eq!(said, Some(count as u64), "{folder}/{part}");
                }
                let id = files[&format!("{folder}/gpu_id")].trim();
                assert_eq!(id == "0", node == 0);
                let minor = property(properties, "drm_render_minor");
                let has_file = |minor| files.contains_key(&format!("dev/dri/renderD{minor}"));
                assert!(minor.is_none_or(has_file) && minor.is_some() == (node > 0));
            }
            assert!(!files.contains_key(&format!("{TOPOLOGY}/nodes/{}/gpu_id", gpus + 1)));
        }
    }

    #[test]
    fn a_gpu_is_the_processor_that_was_asked_for() {
        let versions =
            [("gfx906", 90_006), ("gfx90a", 90_010), ("gfx942", 90_402), ("gfx1100", 110_000)];
        for (processor, version) in versions {
            let text = &files(processor, 1)[&format!("{TOPOLOGY}/nodes/1/properties")];
            assert_eq!(property(text, "gfx_target_version"), Some(version));
            let [simds, per_unit] = ["simd_count", "simd_per_cu"].map(|name| property(text, name));
            let units = simds.zip(per_unit).map(|(simds, per_unit)| simds / per_unit);
            let [arrays, in_array] =
                ["array_count", "cu_per_simd_array"].map(|name| property(text, name));
            let in_arrays = arrays.zip(in_array).map(|(arrays, units)| arrays * units);
            assert!(units.is_some() && units >= in_arrays, "{processor}");
            // The runtime reads a page at most.
            assert!(text.len() < 4096);
        }
    }

    #[test]
    fn each_node_is_the_gpu_that_was_asked_for_there() {
        let files = files_of(&["gfx90a", "gfx1100", "gfx90a"]);
        let of = |node: u32, name: &str| {
            property(&files[&format!("{TOPOLOGY}/nodes/{node}/properties")], name)
        };
        let versions = [1, 2, 3].map(|node| of(node, "gfx_target_version"));
        assert_eq!(versions, [Some(90_010), Some(110_000), Some(90_010)]);
        let sizes = [1, 2].map(|node| of(node, "wave_front_size"));
        assert_eq!(sizes, [Some(64), Some(32)]);
        let device = |minor: u32| &files[&format!("sys/dev/char/226:{minor}/device/device")];
        assert_eq!([128, 129, 130].map(device), ["0x740f\n", "0x744c\n", "0x740f\n"]);
    }

    #[test]
    fn a_machine_that_cannot_be_has_no_files() {
        let refused = |processor: &str, gpus| {
            device_files(&vec![processor.parse().expect("a target"); gpus]).is_err()
        };
        assert!(refused("gfx90a", 0) && refused("gfx90a", 17) && refused("gfx1250", 1));
        assert!(!refused("gfx90a", 16));
    }
}
