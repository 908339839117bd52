//! Numbers in buffers: little-endian and contiguous.

/// A number type of buffers and scalar arguments.
pub trait Element: Copy {
    /// Appends the number's bytes.
    fn append(self, bytes: &mut Vec<u8>);
    /// Converts the number's bytes.
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! elements {
    ($($number:ty)*) => {$(
        impl Element for $number {
            fn append(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn read(bytes: &[u8]) -> $number {
                <$number>::from_le_bytes(bytes.try_into().expect("the bytes of one number"))
            }
        }
    )*};
}

elements!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

/// The bytes of a buffer.
pub fn to_bytes<T: Element>(values: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(values));
    values.iter().for_each(|value| value.append(&mut bytes));
    bytes
}

/// The numbers in a buffer's bytes.
pub fn to_values<T: Element>(bytes: &[u8]) -> Vec<T> {
    assert_eq!(bytes.len() % size_of::<T>(), 0, "a part of a number is left over");
    bytes.chunks_exact(size_of::<T>()).map(T::read).collect()
}
