//! Channels: records that hooks append and the host reads.

/// Size of a channel's header in bytes (`struct flipwave_channel` of `flipwave.h`).
const HEADER: usize = 16;

/// A channel defined by `FLIPWAVE_CHANNEL`, as read from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel<'a> {
    appended: u64,
    record_size: usize,
    records: &'a [u8],
}

/// A record that a hook writes.
pub trait Record: Sized {
    /// Size in bytes, as laid out by the hook's compiler.
    const SIZE: usize;

    /// Decodes a record of [`Record::SIZE`] little-endian bytes.
    fn from_bytes(bytes: &[u8]) -> Self;
}

/// Error returned for memory that is not a channel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid channel of {size} bytes with records of {record_size} bytes: expected a header of {HEADER} \
     bytes and complete records"
)]
pub struct ChannelError {
    size: usize,
    record_size: usize,
}

impl<'a> Channel<'a> {
    /// Reads the channel in `bytes`, the content of the variable, with records of `record_size` bytes.
    ///
    /// # Errors
    /// [`ChannelError`] if the header or a record is incomplete.
    pub fn new(bytes: &'a [u8], record_size: usize) -> Result<Channel<'a>, ChannelError> {
        let wrong = || ChannelError { size: bytes.len(), record_size };
        let (head, records) = bytes.split_at_checked(HEADER).ok_or_else(wrong)?;
        let appended = head.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        if records.len().checked_rem(record_size) != Some(0) {
            return Err(wrong());
        }
        Ok(Channel { appended: appended.ok_or_else(wrong)?, record_size, records })
    }

    /// Number of appended records, including lost ones.
    pub fn appended(&self) -> u64 {
        self.appended
    }

    /// Maximum number of records.
    pub fn capacity(&self) -> u64 {
        (self.records.len() / self.record_size) as u64
    }

    /// Number of records lost because the channel was full.
    pub fn lost(&self) -> u64 {
        self.appended.saturating_sub(self.capacity())
    }

    /// The bytes of each stored record. The order of waves depends on the device.
    pub fn records(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let kept = self.appended.min(self.capacity()) as usize;
        self.records.chunks_exact(self.record_size).take(kept)
    }

    /// The stored records, decoded; `None` if `R` has another size than the records of the channel.
    pub fn read<R: Record>(&self) -> Option<impl Iterator<Item = R>> {
        (R::SIZE == self.record_size).then(|| self.records().map(R::from_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pair(u32, u32);

    impl Record for Pair {
        const SIZE: usize = 8;

        fn from_bytes(bytes: &[u8]) -> Pair {
            let word = |at: usize| {
                let bytes = bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
                u32::from_le_bytes(bytes.unwrap_or_default())
            };
            Pair(word(0), word(4))
        }
    }

    fn memory(appended: u64, words: &[u32]) -> Vec<u8> {
        let mut bytes = [appended.to_le_bytes(), [0; 8]].concat();
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes
    }

    #[test]
    fn appended_records_are_read() {
        let bytes = memory(2, &[1, 2, 3, 4, 9, 9]);
        let channel = Channel::new(&bytes, 8).expect("a channel");
        let read: Vec<_> = channel.read::<Pair>().expect("pairs").map(|p| (p.0, p.1)).collect();
        assert_eq!(read, [(1, 2), (3, 4)]);
        assert_eq!((channel.appended(), channel.capacity(), channel.lost()), (2, 3, 0));
        let wrong = Channel::new(&bytes, 4).expect("a channel").read::<Pair>().is_none();
        assert!(wrong);
    }

    #[test]
    fn lost_records_are_counted() {
        let bytes = memory(7, &[1, 2, 3, 4]);
        let channel = Channel::new(&bytes, 8).expect("a channel");
        assert_eq!((channel.lost(), channel.records().count()), (5, 2));
    }

    #[test]
    fn incomplete_channels_are_refused() {
        let bytes = memory(1, &[1, 2, 3]);
        for (bytes, size) in [(&bytes[..], 8), (&bytes[..12], 4), (&bytes[..], 0)] {
            let error = Channel::new(bytes, size).expect_err("no channel");
            assert!(error.to_string().contains("complete records"), "{error}");
        }
    }
}
