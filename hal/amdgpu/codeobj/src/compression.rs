//! Decompression with a limit: in offload bundles and in debug sections.

use crate::CodeObjectError;
use std::io::Read;

/// The most bytes that are decompressed.
pub(crate) const SIZE_LIMIT: u64 = 4 << 30;

/// A window that every Zstandard decoder should accept, in bytes (RFC 8878, 3.1.1.1.2).
const USUAL_WINDOW: u64 = 8 << 20;

/// A compression method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Zlib,
    Zstandard,
}

/// Decompresses what `data` begins with to exactly `size` bytes; also gives how many bytes of
/// `data` were used. `offset` is where `data` lies in the file.
pub(crate) fn decompress(
    method: Method,
    data: &[u8],
    size: u64,
    offset: u64,
) -> Result<(Vec<u8>, usize), CodeObjectError> {
    if size > SIZE_LIMIT {
        return Err(CodeObjectError::TooLarge {
            what: "decompressed size",
            unit: "bytes",
            size,
            limit: SIZE_LIMIT,
        });
    }
    let refuse = |reason: String| CodeObjectError::Compression {
        offset,
        reason,
        expected: format!("{method:?} data for {size:#x} bytes"),
    };
    // One byte more than expected shows whether there is more, without reading all of it.
    let mut output = Vec::new();
    let used = match method {
        Method::Zlib => {
            let mut decoder = flate2::read::ZlibDecoder::new(data);
            decoder
                .by_ref()
                .take(size + 1)
                .read_to_end(&mut output)
                .map_err(|error| refuse(error.to_string()))?;
            decoder.total_in() as usize
        }
        Method::Zstandard => {
            let mut rest = data;
            // The decoder keeps a window of output before it gives any. An encoder that has the
            // size takes the next power of two at most.
            let mut decoder = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(
                &mut rest,
                (size * 2).max(USUAL_WINDOW),
            )
            .map_err(|error| refuse(error.to_string()))?;
            decoder
                .by_ref()
                .take(size + 1)
                .read_to_end(&mut output)
                .map_err(|error| refuse(error.to_string()))?;
            data.len() - rest.len()
        }
    };
    if output.len() as u64 != size {
        let more = if output.len() as u64 > size { "more" } else { "less" };
        return Err(refuse(format!("it decompresses to {more}")));
    }
    Ok((output, used))
}
