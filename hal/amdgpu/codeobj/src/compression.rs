//! Size-limited decompression of offload bundles and debug sections.

use crate::CodeObjectError;
use std::io::Read;

/// Largest decompressed size, in bytes.
pub(crate) const SIZE_LIMIT: u64 = 4 << 30;

/// Window size that every Zstandard decoder should support, in bytes (RFC 8878, 3.1.1.1.2).
const RECOMMENDED_WINDOW: u64 = 8 << 20;

/// A compression method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Zlib,
    Zstandard,
}

/// Decompresses the stream at the start of `data` to exactly `size` bytes. Also returns the length
/// of the stream in bytes. `offset` is the offset of `data` in the file, for errors.
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
    let error = |reason: String| CodeObjectError::Compression {
        offset,
        reason,
        expected: format!("{method:?} data for {size:#x} bytes"),
    };
    // Reading one byte more than expected detects a longer stream without decompressing all of it.
    let mut output = Vec::new();
    let used = match method {
        Method::Zlib => {
            let mut decoder = flate2::read::ZlibDecoder::new(data);
            decoder
                .by_ref()
                .take(size + 1)
                .read_to_end(&mut output)
                .map_err(|reason| error(reason.to_string()))?;
            decoder.total_in() as usize
        }
        Method::Zstandard => {
            let mut remaining = data;
            // The decoder buffers a whole window. An encoder that knows the size uses a window of
            // at most the next power of two.
            let mut decoder = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(
                &mut remaining,
                (size * 2).max(RECOMMENDED_WINDOW),
            )
            .map_err(|reason| error(reason.to_string()))?;
            decoder
                .by_ref()
                .take(size + 1)
                .read_to_end(&mut output)
                .map_err(|reason| error(reason.to_string()))?;
            data.len() - remaining.len()
        }
    };
    if output.len() as u64 != size {
        let amount = if output.len() as u64 > size { "more" } else { "fewer" };
        return Err(error(format!("it decompresses to {amount} bytes")));
    }
    Ok((output, used))
}
