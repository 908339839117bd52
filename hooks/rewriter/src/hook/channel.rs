//! Records that hooks append to a channel, read by the host.

/// Bytes of a channel's head (`struct flipwave_channel` of `flipwave.h`).
const HEAD: usize = 16;

/// A channel's memory after a dispatch: what `FLIPWAVE_CHANNEL` defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel<'a> {
    appended: u64,
    record_size: usize,
    records: &'a [u8],
}

/// A record that a hook writes.
pub trait Record: Sized {
    /// Its size in bytes, as the hook's compiler lays it out.
    const SIZE: usize;

    /// The record of [`Record::SIZE`] bytes, little-endian.
    fn from_bytes(bytes: &[u8]) -> Self;
}

/// Memory that is no channel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{size} bytes are no channel of records of {record_size} bytes: expected a head of {HEAD} \
     bytes and whole records after it"
)]
pub struct ChannelError {
    size: usize,
    record_size: usize,
}

impl<'a> Channel<'a> {
    /// The channel in `bytes`, the whole variable, whose records have `record_size` bytes.
    ///
    /// # Errors
    /// [`ChannelError`] where `bytes` are too few, or not a whole number of records.
    pub fn new(bytes: &'a [u8], record_size: usize) -> Result<Channel<'a>, ChannelError> {
        let wrong = || ChannelError { size: bytes.len(), record_size };
        let (head, records) = bytes.split_at_checked(HEAD).ok_or_else(wrong)?;
        let appended = head.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        if records.len().checked_rem(record_size) != Some(0) {
            return Err(wrong());
        }
        Ok(Channel { appended: appended.ok_or_else(wrong)?, record_size, records })
    }

    /// How many records were appended, the lost ones included.
    pub fn appended(&self) -> u64 {
        self.appended
    }

    /// How many records have place.
    pub fn capacity(&self) -> u64 {
        (self.records.len() / self.record_size) as u64
    }

    /// How many records found no place.
    pub fn lost(&self) -> u64 {
        self.appended.saturating_sub(self.capacity())
    }

    /// The bytes of each record that found place, in the order of their places. Which wave was
    /// first is up to the device.
    pub fn records(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let kept = self.appended.min(self.capacity()) as usize;
        self.records.chunks_exact(self.record_size).take(kept)
    }

    /// The same, read; `None` where `R` has another size than the channel's records.
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
    fn records_are_those_that_were_appended() {
        let bytes = memory(2, &[1, 2, 3, 4, 9, 9]);
        let channel = Channel::new(&bytes, 8).expect("a channel");
        let read: Vec<_> = channel.read::<Pair>().expect("pairs").map(|p| (p.0, p.1)).collect();
        assert_eq!(read, [(1, 2), (3, 4)]);
        assert_eq!((channel.appended(), channel.capacity(), channel.lost()), (2, 3, 0));
        let wrong = Channel::new(&bytes, 4).expect("a channel").read::<Pair>().is_none();
        assert!(wrong);
    }

    #[test]
    fn what_found_no_place_is_counted() {
        let bytes = memory(7, &[1, 2, 3, 4]);
        let channel = Channel::new(&bytes, 8).expect("a channel");
        assert_eq!((channel.lost(), channel.records().count()), (5, 2));
    }

    #[test]
    fn memory_that_is_no_channel_is_refused() {
        let bytes = memory(1, &[1, 2, 3]);
        for (bytes, size) in [(&bytes[..], 8), (&bytes[..12], 4), (&bytes[..], 0)] {
            let error = Channel::new(bytes, size).expect_err("no channel");
            assert!(error.to_string().contains("whole records"), "{error}");
        }
    }
}
