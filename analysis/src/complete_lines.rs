//! The complete lines of a table that a killed run may have cut off.

use std::io::{self, Read, Seek, SeekFrom};

/// Most bytes of a line.
const MAX_LINE: u64 = 16 << 20;

/// Length in bytes of the complete lines of a file, up to and including the last line feed. A run that
/// was killed may have left an incomplete line after it.
///
/// # Errors
/// An I/O error, also if the incomplete last line is longer than a line of a table can be.
pub fn complete_lines_len(file: &mut (impl Read + Seek)) -> io::Result<u64> {
    let mut block = vec![0; 1 << 16];
    let length = file.seek(SeekFrom::End(0))?;
    let mut end = length;
    while end > 0 {
        if length - end > MAX_LINE {
            let message = format!("a line is longer than {} MiB", MAX_LINE >> 20);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let start = end.saturating_sub(block.len() as u64);
        let part = &mut block[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(position) = part.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + position as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_last_line_is_excluded_whatever_its_length() {
        for (complete, incomplete) in
            [(0, 0), (0, 9), (1, 0), (5, 3), (5, 200_000), (70_000, 65_536)]
        {
            let text =
                "x".repeat(usize::max(complete, 1) - 1) + if complete > 0 { "\n" } else { "" };
            let mut file = io::Cursor::new(text + &"y".repeat(incomplete));
            let found = complete_lines_len(&mut file).expect("reads");
            assert_eq!(found, complete as u64, "{complete} and {incomplete}");
        }
    }
}
