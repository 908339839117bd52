//! What a capture is made of.

use flipwave_device::{Address, Change, KernelPacket, QueuedPacket};

/// One thing that happened, in the order of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Memory was changed without a kernel; what is written is what no kernel has written.
    Change(Change),
    /// The host gets what is there: an output of the run.
    Read {
        /// Where.
        address: Address,
        /// What was there.
        bytes: Vec<u8>,
    },
    /// A kernel ran.
    Dispatch(Box<RecordedDispatch>),
}

/// A code object of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeObjectId(pub u32);

/// A code object in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCode {
    /// What was added to its ELF virtual addresses.
    pub bias: u64,
    /// The ELF file.
    pub elf: Vec<u8>,
}

/// A kernel that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedDispatch {
    /// Its number in the process, from 0.
    pub number: u32,
    /// Its queue, by the order in which queues were made: a stream of the application, or several.
    pub stream: u64,
    /// The kernel's name.
    pub kernel: String,
    /// The range in which the application has submitted it, if it has said so.
    pub range: Option<String>,
    /// Whose kernel it is.
    pub code_object: CodeObjectId,
    /// What the packet says; it is in memory as well.
    pub packet: KernelPacket,
    /// Where the packet is.
    pub queued: QueuedPacket,
    /// Wave instructions that it executed.
    pub instructions: u64,
    /// What it wrote: first bytes and lengths, by ascending address.
    pub written: Vec<(Address, u64)>,
}

/// Runs as bytes: address and length of each, little-endian.
pub(crate) fn encode_runs(runs: &[(Address, u64)]) -> Vec<u8> {
    runs.iter()
        .flat_map(|(address, length)| [address.0, *length])
        .flat_map(u64::to_le_bytes)
        .collect()
}

/// The inverse of [`encode_runs`].
pub(crate) fn decode_runs(bytes: &[u8]) -> Option<Vec<(Address, u64)>> {
    let (words, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() || !words.len().is_multiple_of(2) {
        return None;
    }
    let word = |index: usize| u64::from_le_bytes(words[index]);
    Some((0..words.len() / 2).map(|run| (Address(word(2 * run)), word(2 * run + 1))).collect())
}
