//! What the runtime asks for of memory that GPUs share with the program (`HSA_SVM_ATTRIBUTE`,
//! `struct kfd_ioctl_svm_attribute`).

use crate::machine::Machine;
use crate::memory::PAGE;
use std::ops::Range;

/// An attribute of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Which one.
    pub kind: u32,
    /// A node, [`NO_NODE`] or a number, depending on the kind.
    pub value: u32,
}

/// No node: what is meant is not settled.
pub const NO_NODE: u32 = u32::MAX;

const PREFERRED_LOCATION: u32 = 0;
const PREFETCH_LOCATION: u32 = 1;
/// A node may access the memory.
const ACCESS: u32 = 2;
/// The same without moving pages.
const ACCESS_IN_PLACE: u32 = 3;
const NO_ACCESS: u32 = 4;
const GRANULARITY: u32 = 7;

/// Whether the value of attributes of this kind is a node that may access memory or not.
pub fn names_a_node(kind: u32) -> bool {
    matches!(kind, ACCESS | ACCESS_IN_PLACE | NO_ACCESS)
}

/// The pages around a range of the program's memory; nothing for addresses that no program has.
pub fn pages(address: u64, bytes: u64) -> Option<Range<u64>> {
    const END: u64 = 1 << 47;
    let end = address.checked_add(bytes)?.checked_next_multiple_of(PAGE)?;
    (address != 0 && bytes != 0 && end <= END).then_some(address & !(PAGE - 1)..end)
}

/// Gives pages an attribute.
pub fn set(machine: &Machine, pages: Range<u64>, attribute: Attribute) {
    let may_access = match attribute.kind {
        ACCESS | ACCESS_IN_PLACE => true,
        NO_ACCESS => false,
        // Where pages had better be, and how they are kept coherent, is all the same here.
        _ => return,
    };
    if machine.is_gpu(attribute.value) {
        machine.with_memory(|memory| memory.share(attribute.value, pages, may_access));
    }
}

/// Looks an attribute of pages up.
pub fn get(machine: &Machine, pages: Range<u64>, attribute: &mut Attribute) {
    let node = attribute.value;
    match attribute.kind {
        ACCESS | ACCESS_IN_PLACE | NO_ACCESS => {
            let is_shared = || machine.with_memory(|memory| memory.shared.is_set(node, pages));
            let may_access = !machine.is_gpu(node) || is_shared();
            attribute.kind = if may_access { ACCESS_IN_PLACE } else { NO_ACCESS };
        }
        // The host's memory, coherent, in pages of 2 MiB: what is said where nothing was asked for.
        PREFERRED_LOCATION | PREFETCH_LOCATION => attribute.value = NO_NODE,
        GRANULARITY => attribute.value = 9,
        _ => attribute.value = 0,
    }
}
