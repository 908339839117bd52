//! Names of file formats that are often mistaken for code objects.

/// Returns the format that a file begins with, and what to do with it; the first bytes if the format is
/// unknown.
pub(crate) fn describe(file: &[u8]) -> String {
    const FORMATS: [(&[u8], &str); 11] = [
        (b"BC\xc0\xde", "LLVM bitcode, not machine code; compile it with clang -mcpu and -c"),
        (b"\xde\xc0\x17\x0b", "LLVM bitcode, not machine code; compile it with clang -mcpu and -c"),
        (b"\x03\x02\x23\x07", SPIR_V),
        (b"\x07\x23\x02\x03", SPIR_V),
        (b"!<arch>\n", "an archive; extract its members with llvm-ar x"),
        (b"!<thin>\n", "a thin archive; use the files that it lists"),
        (b"\x1f\x8b", "data compressed with gzip; decompress them"),
        (b"\x28\xb5\x2f\xfd", "data compressed with Zstandard; decompress them"),
        (b"PK\x03\x04", "a ZIP file; extract it"),
        (b"# __CLANG_OFFLOAD_BUNDLE__", "an offload bundle of text; compile it with clang -c"),
        (b"; __CLANG_OFFLOAD_BUNDLE__", "an offload bundle of text; compile it with clang -c"),
    ];
    const SPIR_V: &str = "SPIR-V, which AMD's runtime compiles when it is loaded; compile the source for a GPU instead";
    if let Some((_, name)) = FORMATS.iter().find(|(magic, _)| file.starts_with(magic)) {
        return format!("the file is {name}");
    }
    let start = file.get(..4).unwrap_or(file);
    let text = file.get(..file.len().min(256)).unwrap_or_default();
    if text.starts_with(b".version") || text.windows(10).any(|part| part == b"\n.version ") {
        return "the file is PTX, the assembly language of NVIDIA's GPUs".to_owned();
    }
    format!("the file begins with the bytes {start:02x?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_named_by_their_first_bytes() {
        for (file, word) in [
            (&b"BC\xc0\xde5\x14\0\0"[..], "LLVM bitcode"),
            (b"\x03\x02\x23\x07\0\0\x01\0", "SPIR-V"),
            (b"!<arch>\nfoo.o/", "archive"),
            (b"\x1f\x8b\x08", "gzip"),
            (b"//\n// Generated\n//\n.version 8.0\n.target sm_80", "PTX"),
            (b"# __CLANG_OFFLOAD_BUNDLE____START__ hip", "bundle of text"),
            (b"abc", "begins with the bytes [61, 62, 63]"),
            (b"", "begins with the bytes []"),
        ] {
            let found = describe(file);
            assert!(found.contains(word), "{found}");
        }
    }
}
