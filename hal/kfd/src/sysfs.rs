//! Files of the driver below `/dev` and `/sys` that describe the machine. The preload shim
//! redirects programs to a folder with these files.

use crate::ioctl::{FIRST_RENDER_MINOR, GPU_ID};
use crate::ip_discovery;
use crate::topology::{Board, GWS_RESOURCES, Gpu, Topology, TopologyError};
use flipwave_isa::Target;
use std::fmt::Write as _;

/// Folder of the nodes.
const TOPOLOGY: &str = "sys/devices/virtual/kfd/kfd/topology";
/// AMD's PCI vendor number.
const AMD: u32 = 0x1002;

/// A file of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFile {
    /// Path without the leading slash.
    pub path: String,
    /// Content of the file.
    pub content: FileContent,
}

/// Content of a [`DeviceFile`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// A regular file with this text. Devices are represented by empty files.
    Text(String),
    /// A symbolic link to this path.
    Link(String),
}

/// All files that describe a machine with GPUs of these targets.
///
/// # Errors
/// [`TopologyError`].
pub fn device_files(targets: &[Target]) -> Result<Vec<DeviceFile>, TopologyError> {
    let topology = Topology::new(targets)?;
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
        for (path, text) in ip_discovery::files(gpu.board.processor) {
            add(format!("{device}/ip_discovery/{path}"), FileContent::Text(text));
        }
        // Before files below the links.
        for (path, to) in device_links(render, card, node) {
            add(path, FileContent::Link(to));
        }
        for name in [format!("renderD{render}"), format!("card{card}")] {
            add(format!("dev/dri/{name}"), text(""));
            add(format!("{device}/drm/{name}/dev"), FileContent::Text(format!("226:{render}\n")));
        }
        add(format!("{device}/subsystem"), FileContent::Link("../../../../bus/pci".to_owned()));
    }
    add(
        "sys/class/kfd/kfd".to_owned(),
        FileContent::Link("../../devices/virtual/kfd/kfd".to_owned()),
    );
    Ok(files)
}

/// Path and target of each link to a GPU's PCI device. System management programs find a GPU by its
/// card, and read the PCI address from the link.
fn device_links(render: u32, card: u32, node: u32) -> Vec<(String, String)> {
    let device = format!("devices/pci0000:00/{}", pci_address(node));
    let character_device = format!("dev/char/226:{render}/device");
    let mut links = vec![(format!("sys/{device}"), format!("../../{character_device}"))];
    for name in [format!("card{card}"), format!("renderD{render}")] {
        links.push((
            format!("sys/{character_device}/drm/{name}/device"),
            format!("../../../../../../{device}"),
        ));
        links.push((format!("sys/class/drm/{name}"), format!("../../{device}/drm/{name}")));
    }
    links
}

/// PCI address of a node's GPU.
fn pci_address(node: u32) -> String {
    format!("0000:{node:02x}:00.0")
}

/// Formats properties as the driver does, one per line.
fn lines(properties: &[(&str, u64)]) -> String {
    properties.iter().fold(String::new(), |mut text, (name, value)| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name} {value}");
        text
    })
}

/// Path and text of each file in the folder of a node.
fn node_files(topology: &Topology, node: u32) -> Vec<(String, String)> {
    let gpu = topology.gpu(node);
    let (id, name) = gpu.map_or((0, ""), |gpu| (GPU_ID + node, gpu.board.processor));
    let parts = [
        ("mem_banks", vec![memory_bank(gpu)]),
        ("caches", gpu.map(|_| caches(node)).unwrap_or_default()),
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
    let more = gpu.map_or_else(host_properties, |gpu| gpu_properties(gpu, node));
    properties.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
    let all: Vec<(&str, u64)> =
        properties.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    files.push(("properties".to_owned(), lines(&all)));
    files
}

/// Number of cores of the host.
const CORES: u64 = 8;
/// Clock rate of the host's cores.
const HOST_MHZ: u64 = 2000;
/// Size in bytes of the host memory that the runtime may allocate.
const HOST_BYTES: u64 = 64 << 30;

fn host_properties() -> Vec<(&'static str, u64)> {
    vec![("cpu_cores_count", CORES), ("max_engine_clk_ccompute", HOST_MHZ)]
}

/// Number of a GPU's first processor (SIMD). Caches refer to it.
fn first_processor(node: u32) -> u64 {
    0x8000_0000 | u64::from(node) << 12
}

fn gpu_properties(gpu: &Gpu, node: u32) -> Vec<(&'static str, u64)> {
    let Gpu { board, target, units } = gpu;
    let simds_per_unit = target.simds_per_unit();
    let [major, minor, stepping] = board.version;
    vec![
        ("simd_count", (units * simds_per_unit).into()),
        ("simd_id_base", first_processor(node)),
        ("capability", capability(board)),
        ("max_waves_per_simd", target.waves_per_simd().into()),
        ("lds_size_in_kb", (target.lds_bytes() >> 10).into()),
        ("num_gws", GWS_RESOURCES.into()),
        ("wave_front_size", target.default_wave_size().into()),
        ("array_count", (board.shader_engines * board.arrays_per_engine).into()),
        ("simd_arrays_per_engine", board.arrays_per_engine.into()),
        ("cu_per_simd_array", board.units_per_array.into()),
        ("simd_per_cu", simds_per_unit.into()),
        ("max_slots_scratch_cu", 32),
        ("gfx_target_version", (major * 10_000 + minor * 100 + stepping).into()),
        ("vendor_id", AMD.into()),
        ("device_id", board.device.into()),
        ("location_id", u64::from(node) << 8),
        ("domain", 0),
        ("drm_render_minor", (FIRST_RENDER_MINOR + node - 1).into()),
        ("num_sdma_engines", 2),
        ("num_sdma_queues_per_engine", 8),
        ("num_cp_queues", 24),
        ("max_engine_clk_fcompute", board.clock_mhz.into()),
        ("max_engine_clk_ccompute", HOST_MHZ),
        ("local_mem_size", board.memory_bytes),
        ("unique_id", 0xf11b_0000_0000_0000 | u64::from(node)),
        ("hive_id", 0),
        ("num_xcc", board.dies.into()),
        ("fw_version", board.firmware.compute.into()),
        ("sdma_fw_version", board.firmware.sdma.into()),
    ]
}

/// `HSA_CAPABILITY`: 64-bit doorbells, queue sizes that are powers of two, ECC and shared virtual
/// memory.
fn capability(board: &Board) -> u64 {
    const QUEUE_SIZE_POWER_OF_TWO: u64 = 1 << 3;
    const DOORBELL_64_BITS: u64 = 2 << 12;
    const MEMORY_ECC: u64 = 1 << 20;
    const SRAM_ECC: u64 = 1 << 26;
    const SHARED_VIRTUAL_MEMORY: u64 = 1 << 27;
    let ecc = if board.has_ecc { MEMORY_ECC | SRAM_ECC } else { 0 };
    QUEUE_SIZE_POWER_OF_TWO | DOORBELL_64_BITS | SHARED_VIRTUAL_MEMORY | ecc
}

/// The memory of a GPU, or of the host. The runtime adds LDS, private memory and registers by
/// itself.
fn memory_bank(gpu: Option<&Gpu>) -> String {
    const SYSTEM: u64 = 0;
    /// GPU memory that programs can map.
    const PUBLIC: u64 = 1;
    let (heap, bytes) = gpu.map_or((SYSTEM, HOST_BYTES), |gpu| (PUBLIC, gpu.board.memory_bytes));
    lines(&[
        ("heap_type", heap),
        ("size_in_bytes", bytes),
        ("flags", 0),
        ("width", 4096),
        ("mem_clk_max", 1600),
    ])
}

/// The caches of a GPU. Those of the host are in other files.
fn caches(node: u32) -> Vec<String> {
    const GPU_DATA: u64 = 1 | 8;
    let cache = |(level, size)| {
        let text = lines(&[
            ("processor_id_low", first_processor(node)),
            ("level", level),
            ("size", size),
            ("cache_line_size", 64),
            ("cache_lines_per_tag", 1),
            ("association", 16),
            ("latency", 0),
            ("type", GPU_DATA),
        ]);
        format!("{text}sibling_map 1,1,1,1\n")
    };
    [(1, 16), (2, 8192)].map(cache).to_vec()
}

/// The links of a node to all other nodes. Without a link, memory of the other node is not
/// accessible.
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

/// Name and text of each file of a GPU's PCI device.
fn pci_files(gpu: &Gpu, node: u32) -> Vec<(&'static str, String)> {
    let board = gpu.board;
    let hexadecimal = |number: u32| format!("0x{number:04x}\n");
    vec![
        ("vendor", hexadecimal(AMD)),
        ("device", hexadecimal(board.device.into())),
        ("subsystem_vendor", hexadecimal(AMD)),
        ("subsystem_device", hexadecimal(board.device.into())),
        ("revision", format!("0x{:02x}\n", board.revision)),
        ("uevent", format!("DRIVER=amdgpu\nPCI_SLOT_NAME={}\n", pci_address(node))),
        ("hwmon/hwmon0/name", "amdgpu\n".to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The regular files of a machine with equal GPUs, by path.
    fn files(processor: &str, gpus: u32) -> BTreeMap<String, String> {
        files_of_gpus(&vec![processor; gpus as usize])
    }

    /// The regular files of a machine, by path.
    fn files_of_gpus(processors: &[&str]) -> BTreeMap<String, String> {
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
    fn counts_of_a_node_match_its_folders() {
        for (processor, gpus) in [("gfx90a", 1), ("gfx942", 2), ("gfx1100", 3)] {
            let files = files(processor, gpus);
            for node in 0..=gpus {
                let folder = format!("{TOPOLOGY}/nodes/{node}");
                let properties = &files[&format!("{folder}/properties")];
                for part in ["mem_banks", "caches", "io_links"] {
                    let prefix = format!("{folder}/{part}/");
                    let found = files.keys().filter(|path| path.starts_with(&prefix)).count();
                    let count = property(properties, &format!("{part}_count"));
                    assert_eq!(count, Some(found as u64), "{folder}/{part}");
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
    fn a_gpu_has_the_version_of_its_processor() {
        let versions = [
            ("gfx906", 90_006),
            ("gfx90a", 90_010),
            ("gfx942", 90_402),
            ("gfx950", 90_500),
            ("gfx1100", 110_000),
            ("gfx1151", 110_501),
            ("gfx1201", 120_001),
            ("gfx1250", 120_500),
        ];
        for (processor, version) in versions {
            let text = &files(processor, 1)[&format!("{TOPOLOGY}/nodes/1/properties")];
            assert_eq!(property(text, "gfx_target_version"), Some(version));
            let [simds, per_unit] = ["simd_count", "simd_per_cu"].map(|name| property(text, name));
            let units = simds.zip(per_unit).map(|(simds, per_unit)| simds / per_unit);
            let [arrays, in_array] =
                ["array_count", "cu_per_simd_array"].map(|name| property(text, name));
            let in_arrays = arrays.zip(in_array).map(|(arrays, units)| arrays * units);
            assert!(units.is_some() && units <= in_arrays, "{processor}");
            // The runtime reads at most one page.
            assert!(text.len() < 4096);
        }
    }

    #[test]
    fn documentation_lists_all_boards() {
        let page = include_str!("../../../docs/boards.md");
        for processor in crate::topology::processors() {
            let topology = Topology::new(&[processor.parse().expect("a target")]).expect("a GPU");
            let Gpu { board, target, units } = topology.gpu(1).expect("a GPU");
            let row = format!(
                "{:#06x}, {:#04x} | {} x {} x {} x {} | {units} | {} | {} | {} | {} | {}, {} |",
                board.device,
                board.revision,
                board.dies,
                board.shader_engines / board.dies,
                board.arrays_per_engine,
                board.units_per_array,
                target.lds_bytes() >> 10,
                target.waves_per_simd(),
                board.clock_mhz,
                board.memory_bytes >> 30,
                board.firmware.compute,
                board.firmware.sdma,
            );
            let start = format!("| {processor} | ");
            let is_listed = |line: &str| line.starts_with(&start) && line.ends_with(&row);
            assert!(page.lines().any(is_listed), "docs/boards.md lacks: {start}... | {row}");
        }
    }

    #[test]
    fn versions_of_hardware_blocks_are_in_the_device_folder() {
        let files = files_of_gpus(&["gfx90a", "gfx1100"]);
        let gc = |minor: u32| {
            let folder = format!("sys/dev/char/226:{minor}/device/ip_discovery/die/0/11/0");
            let number = |part| files.get(&format!("{folder}/{part}")).map(String::as_str);
            ["major", "minor", "revision"].map(number)
        };
        assert_eq!(gc(128), [None; 3], "boards with gfx90a have no table");
        assert_eq!(gc(129), [Some("11\n"), Some("0\n"), Some("0\n")]);
    }

    #[test]
    fn gpus_of_different_targets_keep_their_order() {
        let files = files_of_gpus(&["gfx90a", "gfx1100", "gfx90a"]);
        let node_property = |node: u32, name: &str| {
            property(&files[&format!("{TOPOLOGY}/nodes/{node}/properties")], name)
        };
        let versions = [1, 2, 3].map(|node| node_property(node, "gfx_target_version"));
        assert_eq!(versions, [Some(90_010), Some(110_000), Some(90_010)]);
        let sizes = [1, 2].map(|node| node_property(node, "wave_front_size"));
        assert_eq!(sizes, [Some(64), Some(32)]);
        let device = |minor: u32| &files[&format!("sys/dev/char/226:{minor}/device/device")];
        assert_eq!([128, 129, 130].map(device), ["0x740f\n", "0x744c\n", "0x740f\n"]);
    }

    #[test]
    fn invalid_machines_are_refused() {
        let refused = |processor: &str, gpus| {
            device_files(&vec![processor.parse().expect("a target"); gpus]).is_err()
        };
        assert!(refused("gfx90a", 0) && refused("gfx90a", 17) && refused("gfx1010", 1));
        assert!(!refused("gfx90a", 16));
    }
}
