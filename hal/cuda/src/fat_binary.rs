//! Fat binaries: containers with PTX and machine code for several architectures.
//!
//! The outer structure is what clang emits for CUDA (`CGCUDANV.cpp`: magic number, version, pointer to the
//! container). The container is a header and a list of entries, each with a header; PTX is stored as text, or
//! compressed with LZ4 or Zstandard. Nothing in the container is trusted.

use std::io::Read;

/// Magic number of the structure that refers to a container.
pub const WRAPPER: u32 = 0x466243b1;
/// Magic number of a container.
const CONTAINER: u32 = 0xba55ed50;
/// Size of the header of a container in bytes.
const HEADER: usize = 16;
/// Size of the known part of an entry's header in bytes.
const ENTRY: usize = 64;
/// Kind of entries with PTX.
const PTX: u16 = 1;
/// Kind of entries with machine code.
const ELF: u16 = 2;
/// Flag of entries that are compressed with LZ4.
const LZ4: u64 = 0x2000;
/// Flag of entries that are compressed with Zstandard.
const ZSTD: u64 = 0x8000;
/// The largest text that is decompressed, in bytes.
const MOST_BYTES: u64 = 1 << 30;
/// The largest number of bytes to which LZ4 decompresses one byte: a byte in the length of a match (LZ4 block format,
/// "Sequences").
const LZ4_RATIO: u64 = 255;

/// Errors returned when reading a fat binary.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FatBinaryError {
    /// The container or an entry is damaged.
    #[error("damaged fat binary: {what} at offset {offset}")]
    Damaged {
        /// The invalid part.
        what: &'static str,
        /// Its offset in bytes.
        offset: usize,
    },
    /// There is no PTX for the target.
    #[error(
        "the fat binary has no PTX for sm_{target}, only {found}; compile with `-gencode \
         arch=compute_{target},code=compute_{target}`"
    )]
    NoPtx {
        /// The target's number, such as 90.
        target: u32,
        /// The entries.
        found: String,
    },
}

/// Size of a container in bytes, including its header; `None` if the bytes do not begin with a container.
pub fn container_bytes(header: &[u8; HEADER]) -> Option<usize> {
    let size = u64::from_le_bytes(header[8..].try_into().ok()?);
    let header_bytes = u16::from_le_bytes([header[6], header[7]]);
    let is_container = header[..4] == CONTAINER.to_le_bytes();
    let size = usize::try_from(size).ok()?.checked_add(header_bytes.into())?;
    (is_container && size as u64 <= MOST_BYTES).then_some(size)
}

/// Number of bytes that [`container_bytes`] needs.
pub const HEADER_BYTES: usize = HEADER;

/// An entry of a container.
#[derive(Debug)]
struct Entry<'a> {
    /// Offset of the entry in bytes.
    offset: usize,
    kind: u16,
    /// Number of the architecture, such as 90.
    architecture: u32,
    flags: u64,
    decompressed: u64,
    content: &'a [u8],
}

impl Entry<'_> {
    fn name(&self) -> String {
        match self.kind {
            PTX => format!("PTX for sm_{}", self.architecture),
            ELF => format!("machine code (SASS) for sm_{}", self.architecture),
            kind => format!("code of kind {kind} for sm_{}", self.architecture),
        }
    }
}

fn entries(bytes: &[u8]) -> Result<Vec<Entry<'_>>, FatBinaryError> {
    let damaged = |what, offset| FatBinaryError::Damaged { what, offset };
    let header: Option<&[u8; HEADER]> = bytes.first_chunk();
    let end = header.and_then(container_bytes).filter(|end| *end <= bytes.len());
    let end = end.ok_or(damaged("invalid header", 0))?;
    let start = usize::from(u16::from_le_bytes([bytes[6], bytes[7]]));
    let mut offset = start;
    let mut all = Vec::new();
    while offset < end {
        let invalid = || damaged("invalid entry", offset);
        let entry =
            bytes[..end].get(offset..).filter(|rest| rest.len() >= ENTRY).ok_or_else(invalid)?;
        let u16_at = |at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
        let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let header = u32_at(4) as usize;
        let padded = usize::try_from(u64_at(8)).map_err(|_| invalid())?;
        let next =
            header.checked_add(padded).filter(|next| header >= ENTRY && *next <= entry.len());
        let next = next.ok_or_else(invalid)?;
        let flags = u64_at(40);
        let compressed = u32_at(16) as usize;
        let is_compressed = flags & (LZ4 | ZSTD) != 0;
        let size = if is_compressed && compressed != 0 { compressed } else { padded };
        let content = entry[header..next].get(..size).ok_or_else(invalid)?;
        let (kind, architecture) = (u16_at(0), u32_at(28));
        let decompressed = u64_at(56);
        all.push(Entry { offset, kind, architecture, flags, decompressed, content });
        offset += next;
    }
    Ok(all)
}

/// The PTX text of the newest architecture up to `target`, a number such as 90.
///
/// # Errors
/// [`FatBinaryError`].
pub fn ptx(bytes: &[u8], target: u32) -> Result<Vec<u8>, FatBinaryError> {
    let entries = entries(bytes)?;
    let usable = entries.iter().filter(|entry| entry.kind == PTX && entry.architecture <= target);
    let Some(entry) = usable.max_by_key(|entry| entry.architecture) else {
        let names: Vec<String> = entries.iter().map(Entry::name).collect();
        let found = if names.is_empty() { "no code".to_owned() } else { names.join(", ") };
        return Err(FatBinaryError::NoPtx { target, found });
    };
    let damaged = |what| FatBinaryError::Damaged { what, offset: entry.offset };
    let invalid = || damaged("text that cannot be decompressed");
    let mut text = if entry.flags & LZ4 != 0 {
        // An entry must not make the reader allocate more than its text can need.
        let most = (entry.content.len() as u64).saturating_mul(LZ4_RATIO).min(MOST_BYTES);
        let size =
            usize::try_from(entry.decompressed.min(most)).map_err(|_| damaged("invalid size"))?;
        lz4_flex::block::decompress(entry.content, size).map_err(|_| invalid())?
    } else if entry.flags & ZSTD != 0 {
        let decoder = ruzstd::decoding::StreamingDecoder::new(entry.content);
        let Ok(decoder) = decoder else { return Err(invalid()) };
        let most = if entry.decompressed == 0 { MOST_BYTES } else { entry.decompressed };
        let mut text = Vec::new();
        decoder.take(most.min(MOST_BYTES)).read_to_end(&mut text).map_err(|_| invalid())?;
        text
    } else {
        entry.content.to_vec()
    };
    // Texts end with zeroes.
    text.truncate(text.iter().position(|byte| *byte == 0).unwrap_or(text.len()));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A container with entries: kind, architecture, flags, content, decompressed size.
    fn container(all: &[(u16, u32, u64, &[u8], u64)]) -> Vec<u8> {
        let mut body = Vec::new();
        for (kind, architecture, flags, content, decompressed) in all {
            let padded = content.len().next_multiple_of(8);
            body.extend(kind.to_le_bytes());
            body.extend(0x101u16.to_le_bytes());
            body.extend((ENTRY as u32).to_le_bytes());
            body.extend((padded as u64).to_le_bytes());
            let compressed = if *decompressed == 0 { 0 } else { content.len() as u32 };
            body.extend(compressed.to_le_bytes());
            body.extend([0; 8]);
            body.extend(architecture.to_le_bytes());
            body.extend([0; 8]);
            body.extend(flags.to_le_bytes());
            body.extend([0; 8]);
            body.extend(decompressed.to_le_bytes());
            body.extend_from_slice(content);
            body.resize(body.len() + padded - content.len(), 0);
        }
        let mut bytes = CONTAINER.to_le_bytes().to_vec();
        bytes.extend(1u16.to_le_bytes());
        bytes.extend((HEADER as u16).to_le_bytes());
        bytes.extend((body.len() as u64).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn newest_text_up_to_the_target_is_chosen() {
        let entries: [(u16, u32, u64, &[u8], u64); 4] = [
            (PTX, 80, 0, b"old", 0),
            (PTX, 90, 0, b"new", 0),
            (PTX, 100, 0, b"later", 0),
            (ELF, 90, 0, b"sass", 0),
        ];
        let bytes = container(&entries);
        assert_eq!(ptx(&bytes, 90), Ok(b"new".to_vec()));
        assert_eq!(ptx(&bytes, 89), Ok(b"old".to_vec()));
        let sass = container(&entries[3..]);
        let error = ptx(&sass, 90).expect_err("no PTX").to_string();
        assert!(error.contains("no PTX for sm_90, only machine code (SASS) for sm_90"), "{error}");
    }

    #[test]
    fn compressed_texts_are_decompressed() {
        let text = b".version 7.8 .target sm_90 .target sm_90".as_slice();
        // A raw block of Zstandard: magic number, descriptor with a size of one byte, last raw block.
        let mut zstd = vec![0x28, 0xb5, 0x2f, 0xfd, 0x20, text.len() as u8];
        zstd.extend(&((text.len() as u32) << 3 | 1).to_le_bytes()[..3]);
        zstd.extend_from_slice(text);
        // LZ4: 15 + 25 literals without a match.
        let mut lz4 = vec![0xf0, text.len() as u8 - 15];
        lz4.extend_from_slice(text);
        for (flags, content) in [(ZSTD, zstd), (LZ4, lz4)] {
            let bytes = container(&[(PTX, 90, flags, &content, text.len() as u64)]);
            assert_eq!(ptx(&bytes, 90).as_deref(), Ok(text));
        }
    }

    #[test]
    fn damaged_containers_are_errors() {
        let bytes = container(&[(PTX, 90, LZ4, &[0xff; 9], 1 << 40), (PTX, 90, 0, b"text", 0)]);
        for length in 0..bytes.len() {
            assert!(ptx(&bytes[..length], 90).is_err());
        }
        for position in 0..bytes.len() {
            for value in [0, 0xff] {
                let mut damaged = bytes.clone();
                damaged[position] = value;
                let _ = ptx(&damaged, 90);
            }
        }
        let error =
            FatBinaryError::Damaged { what: "text that cannot be decompressed", offset: 16 };
        let damaged = container(&[(PTX, 90, LZ4, &[0xff; 9], 1 << 40)]);
        assert_eq!(ptx(&damaged, 90), Err(error));
    }
}
