//! How much of a table was written whole.

use std::io::{self, Read, Seek, SeekFrom};

/// Bytes of a line at most.
const LONGEST: u64 = 16 << 20;

/// Bytes of a file up to the end of its last whole line. A run that was killed may have left a part of
/// another.
///
/// # Errors
/// If it cannot be read, or ends in a part of a line that is longer than a line can be.
pub fn whole_lines(file: &mut (impl Read + Seek)) -> io::Result<u64> {
    let mut block = vec![0; 1 << 16];
    let length = file.seek(SeekFrom::End(0))?;
    let mut end = length;
    while end > 0 {
        if length - end > LONGEST {
            let what = format!("it has a line of more than {} MiB", LONGEST >> 20);
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let start = end.saturating_sub(block.len() as u64);
        let part = &mut block[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(at) = part.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_line_is_found_however_long_what_follows_is() {
        for (whole, rest) in [(0, 0), (0, 9), (1, 0), (5, 3), (5, 200_000), (70_000, 65_536)] {
            let text = "x".repeat(usize::max(whole, 1) - 1) + if whole > 0 { "\n" } else { "" };
            let mut file = io::Cursor::new(text + &"y".repeat(rest));
            let found = whole_lines(&mut file).expect("reads");
            assert_eq!(found, whole as u64, "{whole} and {rest}");
        }
    }
}
