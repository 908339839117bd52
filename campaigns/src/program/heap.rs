//! Memory of device-side `malloc`.
//!
//! AMD's device libraries keep a heap in memory that the runtime provides: the hidden argument
//! `hidden_heap_v1` points to it, and it is zero at first. Blocks of up to 3072 bytes come from slabs of
//! 2 MiB, one or more for each size. More slabs and larger blocks come from the host. In kernels that are
//! compiled here, a function replaces this call and takes memory from an arena. Compiled kernels get the
//! arena as initial slabs, which libraries since ROCm 5.3 use before they call the host.

use flipwave_codeobj::{ArgumentKind, CodeObject, Kernel};
use flipwave_device::{Address, Device, DeviceError};

/// Source of the function that replaces the call of the host.
pub(crate) const HEADER: &str = include_str!("heap.h");

/// Size of the heap's own data, which the libraries define (`heap_t` in ROCm-Device-Libs, "ockl", dm).
pub(crate) const HEAP_BYTES: u64 = 131_072;

/// Size and alignment of a slab.
const SLAB_BYTES: u64 = 1 << 21;

/// Offset of the address of the next initial slab in the heap. The end and the start of the initial slabs
/// follow.
const INITIAL_SLABS: u64 = 108_544;

/// Size of the data that [`HEADER`] has behind the heap.
const ARENA_BYTES: u64 = 24;

/// Default size of the memory for blocks: a slab for each of the 16 block sizes.
pub(crate) const DEFAULT_BYTES: u64 = 16 * SLAB_BYTES;

/// Maximum size of the memory for blocks.
pub(crate) const MAX_BYTES: u64 = 1 << 32;

/// Use of the heap by a code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeapUse {
    /// The code does not allocate memory.
    None,
    /// The code contains [`HEADER`].
    Arena,
    /// The code uses initial slabs.
    InitialSlabs,
}

/// Returns `true` if code allocates memory. Unoptimized code lists the hidden argument for each kernel, so
/// that only the presence of the allocator tells.
pub(crate) fn allocates(object: &CodeObject) -> bool {
    let is_allocator = |name: &str| ["__ockl_dm_alloc", "__ockl_devmem_request"].contains(&name);
    object.kernels().iter().any(takes_heap)
        && object.symbols().iter().any(|symbol| is_allocator(&symbol.name))
}

/// Returns `true` if a code object may allocate memory: it does, or its symbols were removed.
pub(crate) fn may_allocate(object: &CodeObject) -> bool {
    allocates(object)
        || object.section(".symtab").is_none() && object.kernels().iter().any(takes_heap)
}

fn takes_heap(kernel: &Kernel) -> bool {
    kernel.arguments().iter().any(|argument| argument.kind == ArgumentKind::HiddenHeapV1)
}

/// Allocates and initializes a heap with `bytes` of memory for blocks. Returns its address.
///
/// # Errors
/// [`DeviceError`] if the memory is not available.
pub(crate) fn make_heap<D: Device>(
    device: &mut D,
    bytes: u64,
    uses: impl Iterator<Item = HeapUse> + Clone,
) -> Result<Address, DeviceError> {
    let bytes = bytes.next_multiple_of(SLAB_BYTES);
    let has = |wanted| uses.clone().any(|used| used == wanted);
    let initial = match (has(HeapUse::InitialSlabs), has(HeapUse::Arena)) {
        (false, _) => 0,
        (true, false) => bytes,
        (true, true) => (bytes / 2).next_multiple_of(SLAB_BYTES),
    };
    let heap = device.allocate(HEAP_BYTES + ARENA_BYTES)?;
    let start = device.allocate(bytes + SLAB_BYTES)?.0.next_multiple_of(SLAB_BYTES);
    let mut content = vec![0; (HEAP_BYTES + ARENA_BYTES) as usize];
    let mut write = |offset: u64, value: u64| {
        let offset = offset as usize;
        content[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
    };
    if initial > 0 {
        write(INITIAL_SLABS, start);
        write(INITIAL_SLABS + 8, start + initial);
        write(INITIAL_SLABS + 16, start);
    }
    write(HEAP_BYTES, start + initial);
    write(HEAP_BYTES + 8, bytes - initial);
    device.write(heap, &content)?;
    Ok(heap)
}
