//! Attributes of shared virtual memory, which GPUs share with the program (`HSA_SVM_ATTRIBUTE`,
//! `struct kfd_ioctl_svm_attribute`).

use crate::machine::Machine;
use crate::memory::PAGE;
use std::ops::Range;

/// An attribute of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// `HSA_SVM_ATTR_*`.
    pub kind: u32,
    /// A node, [`NO_NODE`] or a number, depending on the kind.
    pub value: u32,
}

/// Value of an attribute that names no node.
pub const NO_NODE: u32 = u32::MAX;

const PREFERRED_LOCATION: u32 = 0;
const PREFETCH_LOCATION: u32 = 1;
/// A node may access the memory.
const ACCESS: u32 = 2;
/// A node may access the memory without migrating its pages.
const ACCESS_IN_PLACE: u32 = 3;
const NO_ACCESS: u32 = 4;
const GRANULARITY: u32 = 7;

/// Returns `true` for the kinds of attributes that set the access of a node.
pub fn is_access(kind: u32) -> bool {
    matches!(kind, ACCESS | ACCESS_IN_PLACE | NO_ACCESS)
}

/// The pages around a range of the program's memory; `None` for addresses outside of user space.
pub fn pages(address: u64, bytes: u64) -> Option<Range<u64>> {
    const END: u64 = 1 << 47;
    let end = address.checked_add(bytes)?.checked_next_multiple_of(PAGE)?;
    (address != 0 && bytes != 0 && end <= END).then_some(address & !(PAGE - 1)..end)
}

/// Sets an attribute of pages.
pub fn set(machine: &Machine, pages: Range<u64>, attribute: Attribute) {
    let node = attribute.value;
    if !machine.is_gpu(node) {
        return;
    }
    match attribute.kind {
        ACCESS | ACCESS_IN_PLACE => machine.with_memory(|memory| memory.share(node, pages)),
        NO_ACCESS => machine.with_memory(|memory| memory.unshare(node, pages)),
        // The preferred location of pages and their coherence make no difference here.
        _ => {}
    }
}

/// Looks up an attribute of pages.
pub fn get(machine: &Machine, pages: Range<u64>, attribute: &mut Attribute) {
    let node = attribute.value;
    match attribute.kind {
        ACCESS | ACCESS_IN_PLACE | NO_ACCESS => {
            let is_shared = || machine.with_memory(|memory| memory.shared.contains(node, pages));
            let may_access = !machine.is_gpu(node) || is_shared();
            attribute.kind = if may_access { ACCESS_IN_PLACE } else { NO_ACCESS };
        }
        // The defaults: coherent host memory, in pages of 2 MiB.
        PREFERRED_LOCATION | PREFETCH_LOCATION => attribute.value = NO_NODE,
        GRANULARITY => attribute.value = 9,
        _ => attribute.value = 0,
    }
}
