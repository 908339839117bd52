//! Memory images that contain addresses: structs passed by value, and buffers with pointers.

use flipwave_device::Address;

/// Maximum size of a struct in bytes.
const MAX_BYTES: usize = 1 << 24;

/// Size and alignment of a pointer in bytes.
const POINTER_BYTES: usize = 8;

/// A memory image, except for the addresses in it, which are known when buffers are allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Content, with zeros in place of addresses.
    bytes: Vec<u8>,
    /// Addresses in the content.
    pointers: Vec<PlacedPointer>,
    /// Alignment in bytes.
    alignment: usize,
}

/// An address in an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PlacedPointer {
    /// Position in the image in bytes.
    at: usize,
    /// Index in [`crate::file::kernels::Kernels::pointers`].
    pointer: usize,
}

impl Image {
    /// Returns an image of bytes without alignment.
    pub(crate) fn of_bytes(bytes: Vec<u8>) -> Image {
        Image::aligned(bytes, 1)
    }

    /// Returns an image of elements with `alignment` bytes.
    pub(crate) fn aligned(bytes: Vec<u8>, alignment: usize) -> Image {
        Image { bytes, pointers: Vec::new(), alignment }
    }

    /// Returns the image of a null pointer.
    pub(crate) fn null() -> Image {
        Image::aligned(vec![0; POINTER_BYTES], POINTER_BYTES)
    }

    /// Returns the image of a pointer, given by its index in
    /// [`crate::file::kernels::Kernels::pointers`].
    pub(crate) fn of_pointer(pointer: usize) -> Image {
        Image { pointers: vec![PlacedPointer { at: 0, pointer }], ..Image::null() }
    }

    /// Returns the number of bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the content, with zeros in place of addresses.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes the addresses of pointers, by index, to the content of this image.
    pub(crate) fn write_addresses(&self, addresses: &[Address], content: &mut [u8]) {
        for PlacedPointer { at, pointer } in &self.pointers {
            let field = content.get_mut(*at..at + POINTER_BYTES);
            if let (Some(field), Some(address)) = (field, addresses.get(*pointer)) {
                field.copy_from_slice(&address.0.to_le_bytes());
            }
        }
    }

    /// Returns the content with the addresses of pointers, by index.
    pub(crate) fn with_addresses(&self, addresses: &[Address]) -> Vec<u8> {
        let mut content = self.bytes.clone();
        self.write_addresses(addresses, &mut content);
        content
    }
}

/// A struct under construction, laid out as C does: each member is at a multiple of its alignment, and
/// the size is a multiple of the largest alignment. Bytes between members are zero.
pub(crate) struct StructLayout {
    image: Image,
    /// First and last-plus-one byte of each member.
    members: Vec<(usize, usize)>,
    /// End of the member that was added last.
    end: usize,
}

impl StructLayout {
    /// Returns a struct without members.
    pub fn new() -> StructLayout {
        StructLayout { image: Image::of_bytes(Vec::new()), members: Vec::new(), end: 0 }
    }

    /// Adds a member at `offset`, or if `None` after the previous member.
    ///
    /// # Errors
    /// Returns the reason why the member cannot be there.
    pub fn add(&mut self, member: &Image, offset: Option<u32>) -> Result<(), String> {
        let start = match offset {
            Some(offset) => offset as usize,
            None => self.end.next_multiple_of(member.alignment),
        };
        let end = start + member.size();
        if end > MAX_BYTES {
            return Err(format!("ends at byte {end}; a struct has at most {MAX_BYTES} bytes"));
        }
        // Members are usually in order, so that only the end of the struct matters.
        let overlaps = |other: &&(usize, usize)| start < other.1 && other.0 < end;
        if start < self.image.size()
            && let Some((first, last)) = self.members.iter().find(overlaps)
        {
            return Err(format!(
                "bytes {start} to {} overlap another member at bytes {first} to {}",
                end - 1,
                last - 1
            ));
        }
        if end > self.image.size() {
            self.image.bytes.resize(end, 0);
        }
        self.image.bytes[start..end].copy_from_slice(&member.bytes);
        let moved = |placed: &PlacedPointer| PlacedPointer { at: start + placed.at, ..*placed };
        self.image.pointers.extend(member.pointers.iter().map(moved));
        self.image.alignment = self.image.alignment.max(member.alignment);
        self.members.push((start, end));
        self.end = end;
        Ok(())
    }

    /// Returns the struct with `size` bytes, or if `None` with the size that C gives it.
    ///
    /// # Errors
    /// Returns the reason why the size is invalid.
    pub fn finish(self, size: Option<u32>) -> Result<Image, String> {
        let StructLayout { mut image, .. } = self;
        let size = match size {
            Some(size) => size as usize,
            None => image.size().next_multiple_of(image.alignment),
        };
        if size < image.size() || size > MAX_BYTES {
            let end = image.size();
            return Err(format!(
                "{size} bytes; expected {end} (the end of the last member) to {MAX_BYTES}"
            ));
        }
        image.bytes.resize(size, 0);
        Ok(image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(bytes: &[u8]) -> Image {
        Image::aligned(bytes.to_vec(), bytes.len())
    }

    #[test]
    fn members_are_placed_as_in_c() {
        // struct { char a; int b; char c; char *d; short e; }
        let mut layout = StructLayout::new();
        for member in
            [number(&[1]), number(&[2; 4]), number(&[3]), Image::of_pointer(1), number(&[4; 2])]
        {
            layout.add(&member, None).expect("no overlap");
        }
        let image = layout.finish(None).expect("a size");
        let addresses = [Address(0), Address(0x1122_3344)];
        let mut expected = [0; 32];
        expected[0] = 1;
        expected[4..8].copy_from_slice(&[2; 4]);
        expected[8] = 3;
        expected[16..20].copy_from_slice(&[0x44, 0x33, 0x22, 0x11]);
        expected[24..26].copy_from_slice(&[4; 2]);
        assert_eq!(image.with_addresses(&addresses), expected);
        assert_eq!(&image.bytes()[16..24], [0; 8]);
    }

    #[test]
    fn pointers_of_nested_structs_move_with_them() {
        let mut inner = StructLayout::new();
        inner.add(&number(&[7]), None).expect("no overlap");
        inner.add(&Image::of_pointer(0), None).expect("no overlap");
        let inner = inner.finish(None).expect("a size");
        let mut outer = StructLayout::new();
        outer.add(&number(&[9; 4]), None).expect("no overlap");
        outer.add(&inner, None).expect("no overlap");
        let image = outer.finish(None).expect("a size");
        let found = image.with_addresses(&[Address(0x55)]);
        assert_eq!((found.len(), found[8], found[16]), (24, 7, 0x55));
    }

    #[test]
    fn offsets_and_sizes_are_checked() {
        let mut layout = StructLayout::new();
        layout.add(&number(&[1; 4]), Some(6)).expect("a packed member");
        layout.add(&number(&[2; 2]), Some(0)).expect("a member before it");
        let error = layout.add(&number(&[3; 4]), Some(9)).expect_err("overlap");
        assert!(error.contains("bytes 9 to 12") && error.contains("6 to 9"), "{error}");
        layout.add(&number(&[3; 4]), Some(2)).expect("a member between them");
        let error = layout.add(&number(&[1]), Some(1 << 25)).expect_err("too large");
        assert!(error.contains("at most"), "{error}");
        let finished = |size| {
            let mut layout = StructLayout::new();
            layout.add(&number(&[1; 4]), Some(6)).expect("no overlap");
            layout.finish(size).map(|image| image.size())
        };
        assert_eq!(
            [finished(None), finished(Some(10)), finished(Some(16))],
            [Ok(12), Ok(10), Ok(16)]
        );
        assert!(finished(Some(9)).expect_err("too small").contains("expected 10"));
    }
}
