//! What the driver shows of the machine in files below `/dev` and `/sys`. Programs are led to a folder
//! with them.

use crate::abi::{CacheProperties, HeapType, IoLinkProperties, MemoryProperties};
use crate::ioctl::{FIRST_RENDER_MINOR, GPU_ID};
use crate::machine::MachineError;
use crate::topology::Topology;
use flipwave_isa::Target;
use std::fmt::Write as _;

/// Where the nodes are.
const TOPOLOGY: &str = "sys/devices/virtual/kfd/kfd/topology";
const AMD: u32 = 0x1002;

/// A file of the driver's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeviceFile {
    /// Where it is, from the root on.
    pub path: String,
    /// What it is.
    pub content: FileContent,
}

/// What a file of the driver's is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FileContent {
    /// A file with this text; a device is an empty one.
    Text(String),
    /// A link to this path.
    Link(String),
}

/// All files that show a machine with this many GPUs.
///
/// # Errors
/// [`MachineError`].
pub fn device_files(target: &Target, gpus: u32) -> Result<Vec<DeviceFile>, MachineError> {
    let topology = Topology::of(target, gpus)?;
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
        if !Topology::is_gpu(node) {
            continue;
        }
        let (render, card) = (FIRST_RENDER_MINOR + node - 1, node - 1);
        let device = format!("sys/dev/char/226:{render}/device");
        for (path, text) in pci_files(&topology, node) {
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
    let is_gpu = Topology::is_gpu(node);
    let id = if is_gpu { GPU_ID + node } else { 0 };
    let mut files = vec![
        ("gpu_id".to_owned(), format!("{id}\n")),
        ("name".to_owned(), format!("{}\n", if is_gpu { topology.processor() } else { "" })),
        ("properties".to_owned(), lines(&node_properties(topology, node))),
    ];
    let mut folder = |name: &str, all: Vec<String>| {
        for (index, text) in all.into_iter().enumerate() {
            files.push((format!("{name}/{index}/properties"), text));
        }
    };
    folder("mem_banks", banks(topology, node));
    folder("caches", caches(topology, node));
    folder("io_links", links(topology, node));
    files
}

fn node_properties(topology: &Topology, node: u32) -> Vec<(&'static str, u64)> {
    let Some(own) = topology.node(node) else { return Vec::new() };
    let mut all = vec![
        ("cpu_cores_count", own.cpu_cores.into()),
        ("simd_count", own.compute_cores.into()),
        ("mem_banks_count", banks(topology, node).len() as u64),
        ("caches_count", caches(topology, node).len() as u64),
        ("io_links_count", links(topology, node).len() as u64),
        ("p2p_links_count", 0),
        ("cpu_core_id_base", own.cpu_core_id.into()),
        ("simd_id_base", own.compute_core_id.into()),
        ("capability", own.capability.into()),
        ("max_waves_per_simd", own.waves_per_simd.into()),
        ("lds_size_in_kb", own.lds_kib.into()),
        ("gds_size_in_kb", own.gds_kib.into()),
        ("num_gws", own.gws.into()),
        ("wave_front_size", own.wave_size.into()),
        ("array_count", (own.shader_banks * own.arrays).into()),
        ("simd_arrays_per_engine", own.arrays.into()),
        ("cu_per_simd_array", own.units_per_array.into()),
        ("simd_per_cu", own.simds_per_unit.into()),
        ("max_slots_scratch_cu", own.scratch_slots_per_unit.into()),
    ];
    if Topology::is_gpu(node) {
        all.extend([
            ("gfx_target_version", topology.processor_version().into()),
            ("vendor_id", own.vendor.into()),
            ("device_id", own.device.into()),
            ("location_id", own.location.into()),
            ("domain", own.domain.into()),
            ("drm_render_minor", (FIRST_RENDER_MINOR + node - 1).into()),
            ("hive_id", own.hive),
            ("num_sdma_engines", own.sdma_engines.into()),
            ("num_sdma_xgmi_engines", own.sdma_xgmi_engines.into()),
            ("num_sdma_queues_per_engine", own.sdma_queues_per_engine.into()),
            ("num_cp_queues", own.compute_queues.into()),
            ("max_engine_clk_fcompute", own.compute_clock_mhz.into()),
            ("local_mem_size", own.local_memory),
            ("unique_id", own.unique_id),
            ("num_xcc", topology.dies().into()),
        ]);
    }
    all.push(("max_engine_clk_ccompute", own.cpu_clock_mhz.into()));
    all
}

/// Memory, but for what the runtime adds by itself: LDS, private memory and registers.
fn banks(topology: &Topology, node: u32) -> Vec<String> {
    let all = topology.memory(node).unwrap_or_default();
    let is_shown = |heap| matches!(heap, HeapType::System | HeapType::FrameBufferPublic);
    let bank = |own: MemoryProperties| {
        lines(&[
            ("heap_type", own.heap as u64),
            ("size_in_bytes", own.bytes),
            ("flags", own.flags.into()),
            ("width", own.width_bits.into()),
            ("mem_clk_max", own.clock_mhz.into()),
        ])
    };
    all.into_iter().filter(|own| is_shown(own.heap)).map(bank).collect()
}

/// Caches of a GPU; those of the host are in other files.
fn caches(topology: &Topology, node: u32) -> Vec<String> {
    if !Topology::is_gpu(node) {
        return Vec::new();
    }
    let cache = |own: CacheProperties| {
        let text = lines(&[
            ("processor_id_low", own.processor.into()),
            ("level", own.level.into()),
            ("size", own.size.into()),
            ("cache_line_size", own.line_bytes.into()),
            ("cache_lines_per_tag", own.lines_per_tag.into()),
            ("association", own.associativity.into()),
            ("latency", own.latency_ns.into()),
            ("type", own.kind.into()),
        ]);
        format!("{text}sibling_map 1,1,1,1\n")
    };
    topology.caches(node).unwrap_or_default().into_iter().map(cache).collect()
}

fn links(topology: &Topology, node: u32) -> Vec<String> {
    let link = |own: IoLinkProperties| {
        lines(&[
            ("type", own.kind.into()),
            ("version_major", own.version_major.into()),
            ("version_minor", own.version_minor.into()),
            ("node_from", own.from.into()),
            ("node_to", own.to.into()),
            ("weight", own.weight.into()),
            ("min_latency", own.least_latency.into()),
            ("max_latency", own.most_latency.into()),
            ("min_bandwidth", own.least_bandwidth.into()),
            ("max_bandwidth", own.most_bandwidth.into()),
            ("recommended_transfer_size", own.transfer_bytes.into()),
            ("flags", own.flags.into()),
        ])
    };
    topology.links(node).unwrap_or_default().into_iter().map(link).collect()
}

/// What PCI says of a GPU.
fn pci_files(topology: &Topology, node: u32) -> Vec<(&'static str, String)> {
    let hexadecimal = |number: u32| format!("0x{number:04x}\n");
    vec![
        ("vendor", hexadecimal(AMD)),
        ("device", hexadecimal(topology.device_id().into())),
        ("subsystem_vendor", hexadecimal(AMD)),
        ("subsystem_device", hexadecimal(topology.device_id().into())),
        ("revision", "0x00\n".to_owned()),
        ("uevent", format!("DRIVER=amdgpu\nPCI_SLOT_NAME=0000:{node:02x}:00.0\n")),
    ]
}
