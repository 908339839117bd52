//! Fuzzes the reader of fat binaries.

use flipwave_cuda::Image;

/// The target whose code is wanted.
const TARGET: u32 = 90;

/// Reads bytes as an image of a CUDA application: a fat binary, or PTX. The text of a module must be read again as the
/// same module.
pub fn fat_binary(bytes: &[u8]) {
    let Ok(image) = Image::read(bytes, TARGET) else { return };
    let again = Image::read(image.text.as_bytes(), TARGET);
    let again = again.unwrap_or_else(|error| panic!("{error}:\n{}", image.text));
    assert_eq!(again.module.to_string(), image.module.to_string());
    assert_eq!(again.managed, image.managed);
}
