//! Content of a capture.

use flipwave_device::{Address, Change, KernelPacket, QueuedPacket};

/// A step of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Memory was changed, not by a kernel. A write contains only bytes that no kernel has written.
    Change(Change),
    /// The host read memory: an output of the run.
    Read {
        /// Address of the memory.
        address: Address,
        /// Content of the memory.
        bytes: Vec<u8>,
    },
    /// A kernel ran.
    Dispatch(Box<RecordedDispatch>),
}

/// Number of a code object in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeObjectId(pub u32);

/// A code object that was loaded into memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCode {
    /// Load bias: the difference between load address and ELF virtual address.
    pub bias: u64,
    /// Bytes of the ELF file, or the text of the PTX module.
    pub elf: Vec<u8>,
}

/// A dispatch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedDispatch {
    /// Number of the dispatch in the process, from 0.
    pub number: u32,
    /// Number of the queue in order of creation. A queue serves one or several streams of the
    /// application.
    pub stream: u64,
    /// Name of the kernel.
    pub kernel: String,
    /// Named range (ROCTX) in which the application submitted the dispatch.
    pub range: Option<String>,
    /// Code object of the kernel.
    pub code_object: CodeObjectId,
    /// The dispatch packet, which is in memory as well.
    pub packet: KernelPacket,
    /// Addresses of the packet and its queue.
    pub queued: QueuedPacket,
    /// Arguments of the kernel, if they are not in memory: on GPUs for PTX, which have no packets. Grid,
    /// workgroup and dynamic shared memory of their launches are those of the packet.
    pub arguments: Vec<u8>,
    /// `true` if the workgroups take turns, on GPUs for PTX: a cooperative launch.
    pub is_cooperative: bool,
    /// Number of executed wave instructions.
    pub instructions: u64,
    /// Address and size in bytes of each range of memory that the kernel wrote, by ascending
    /// address.
    pub written: Vec<(Address, u64)>,
}

/// Kind of the step of a dispatch in the table `step`.
pub(crate) const DISPATCH: &str = "dispatch";
/// Kind of the step of a cooperative launch.
pub(crate) const COOPERATIVE_DISPATCH: &str = "cooperative_dispatch";

/// Encodes ranges: address and length of each, as little-endian 64-bit numbers.
pub(crate) fn encode_ranges(ranges: &[(Address, u64)]) -> Vec<u8> {
    ranges
        .iter()
        .flat_map(|(address, length)| [address.0, *length])
        .flat_map(u64::to_le_bytes)
        .collect()
}

/// Decodes the bytes of [`encode_ranges`]; `None` for an invalid length.
pub(crate) fn decode_ranges(bytes: &[u8]) -> Option<Vec<(Address, u64)>> {
    let (words, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() || !words.len().is_multiple_of(2) {
        return None;
    }
    let word = |index: usize| u64::from_le_bytes(words[index]);
    let range = |index: usize| (Address(word(2 * index)), word(2 * index + 1));
    Some((0..words.len() / 2).map(range).collect())
}
