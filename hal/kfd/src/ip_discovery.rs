//! Versions of a GPU's hardware blocks (IP blocks), which the driver reads from the board's IP
//! discovery table and shows in `ip_discovery` of the PCI device (`amdgpu_discovery.c` of Linux).
//! Programs without AMD's runtime select register layouts by them.

use std::fmt;

/// Version of a hardware block: major, minor, revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version([u8; 3]);

/// Hardware blocks, with their numbers in the table (`soc15_hw_ip.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// Graphics and compute.
    Gc = 11,
    /// The first copy engine.
    Sdma0 = 42,
    /// The bus interface.
    Nbif = 108,
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self as u8).fmt(f)
    }
}

/// Versions of the blocks of a processor; none for processors whose boards have no table.
fn versions(processor: &str) -> Option<[(Block, Version); 3]> {
    let versions = |gc, sdma, nbif| {
        let blocks = [(Block::Gc, gc), (Block::Sdma0, sdma), (Block::Nbif, nbif)];
        Some(blocks.map(|(block, version)| (block, Version(version))))
    };
    match processor {
        "gfx942" => versions([9, 4, 3], [4, 4, 2], [7, 9, 0]),
        "gfx950" => versions([9, 5, 0], [4, 4, 5], [7, 9, 0]),
        "gfx1100" => versions([11, 0, 0], [6, 0, 0], [4, 3, 0]),
        "gfx1201" => versions([12, 0, 1], [7, 0, 1], [6, 3, 1]),
        _ => None,
    }
}

/// Path and text of each file in a GPU's folder `ip_discovery`.
pub fn files(processor: &str) -> Vec<(String, String)> {
    let block_files = |(block, Version(numbers)): (Block, Version)| {
        let parts = ["major", "minor", "revision"].into_iter().zip(numbers);
        parts.map(move |(part, number)| (format!("die/0/{block}/0/{part}"), format!("{number}\n")))
    };
    versions(processor).into_iter().flatten().flat_map(block_files).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_a_board_have_three_files_each() {
        let files = files("gfx1100");
        assert_eq!(files.len(), 9);
        let text = |path: &str| {
            let file = files.iter().find(|(name, _)| name == path);
            file.map(|(_, text)| text.as_str())
        };
        assert_eq!(text("die/0/11/0/major"), Some("11\n"));
        assert_eq!(text("die/0/42/0/minor"), Some("0\n"));
        assert_eq!(text("die/0/108/0/revision"), Some("0\n"));
        assert_eq!(super::files("gfx90a"), []);
    }
}
