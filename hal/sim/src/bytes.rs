//! The bytes of an allocation.

use std::ops::Deref;
use std::sync::Arc;

/// Bytes that clones may share until one of them writes.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// Nobody else has them; a clone copies them.
    Own(Vec<u8>),
    /// Clones have them too.
    Shared(Arc<Vec<u8>>),
}

impl Bytes {
    /// Lets clones from now on share the bytes.
    pub fn share(&mut self) {
        if let Bytes::Own(bytes) = self {
            *self = Bytes::Shared(Arc::new(std::mem::take(bytes)));
        }
    }

    /// The bytes, to be written: from now on nobody else has them.
    #[inline(always)]
    pub fn own(&mut self) -> &mut [u8] {
        if let Bytes::Shared(_) = self {
            self.copy();
        }
        match self {
            Bytes::Own(bytes) => bytes,
            Bytes::Shared(_) => &mut [],
        }
    }

    #[cold]
    fn copy(&mut self) {
        if let Bytes::Shared(shared) = self {
            *self = Bytes::Own(Arc::unwrap_or_clone(std::mem::take(shared)));
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Own(bytes) => bytes,
            Bytes::Shared(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_clone_writes_the_others_do_not_see() {
        let mut first = Bytes::Own(vec![1, 2, 3]);
        first.share();
        let mut second = first.clone();
        second.own()[1] = 9;
        first.own()[2] = 7;
        assert_eq!((&*first, &*second), (&[1, 2, 7][..], &[1, 9, 3][..]));
    }

    #[test]
    fn clones_share_what_they_do_not_write() {
        let mut first = Bytes::Own(vec![0; 4096]);
        assert_ne!(first.as_ptr(), first.clone().as_ptr());
        first.share();
        assert_eq!(first.as_ptr(), first.clone().as_ptr());
    }
}
