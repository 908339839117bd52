//! Memory accesses of operations, derived from their canonical names.

use crate::Half;

/// The address space of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemorySpace {
    /// Memory described by a buffer resource.
    Buffer,
    /// Generic addresses, which the apertures map to global memory, LDS or scratch.
    Flat,
    /// Global memory.
    Global,
    /// Private memory of a lane.
    Scratch,
    /// Memory accessed through the scalar cache.
    Scalar,
    /// Local data share.
    Lds,
}

/// The kind of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// Reads memory into registers.
    Load,
    /// Writes registers to memory.
    Store,
    /// Reads and modifies memory atomically.
    Atomic,
}

/// A memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryAccess {
    /// Address space.
    pub space: MemorySpace,
    /// Load, store or atomic.
    pub kind: MemoryKind,
    /// Bytes per lane, or per wave for scalar accesses.
    pub bytes: u8,
}

/// The access that [`Operation::memory`](crate::Operation::memory) returns, from the canonical name.
pub(crate) fn of(name: &str) -> Option<MemoryAccess> {
    const SPACES: [(&str, MemorySpace); 9] = [
        ("tbuffer_", MemorySpace::Buffer),
        ("buffer_", MemorySpace::Buffer),
        ("flat_", MemorySpace::Flat),
        ("global_", MemorySpace::Global),
        ("cluster_", MemorySpace::Global),
        ("scratch_", MemorySpace::Scratch),
        ("s_buffer_", MemorySpace::Scalar),
        ("s_scratch_", MemorySpace::Scalar),
        ("s_", MemorySpace::Scalar),
    ];
    if let Some(rest) = name.strip_prefix("ds_") {
        let (kind, bytes) = lds(rest)?;
        return Some(MemoryAccess { space: MemorySpace::Lds, kind, bytes });
    }
    let (space, rest) =
        SPACES.iter().find_map(|(prefix, space)| Some((*space, name.strip_prefix(prefix)?)))?;
    let (verb, rest) = rest.split_once('_')?;
    let (kind, bytes) = match verb {
        "load" => (MemoryKind::Load, width(rest)?),
        "store" => (MemoryKind::Store, width(rest)?),
        "atomic" => (MemoryKind::Atomic, atomic_width(rest)),
        _ => return None,
    };
    Some(MemoryAccess { space, kind, bytes })
}

/// The half that [`Operation::data_half`](crate::Operation::data_half) returns, from the canonical name.
pub(crate) fn data_half(name: &str) -> Option<Half> {
    let access = of(name)?;
    if access.bytes > 2 || access.space == MemorySpace::Scalar {
        return None;
    }
    match access.kind {
        MemoryKind::Load | MemoryKind::Store if name.contains("_d16_hi") => Some(Half::High),
        MemoryKind::Load => name.contains("_d16").then_some(Half::Low),
        MemoryKind::Store => Some(Half::Low),
        MemoryKind::Atomic => None,
    }
}

/// The access width in bytes, from the part of a name after `load_` or `store_`.
fn width(rest: &str) -> Option<u8> {
    if let Some(format) = rest.strip_prefix("format_") {
        let (component, components) = match format.strip_prefix("d16_") {
            Some(components) => (2, components.trim_start_matches("hi_")),
            None => (4, format),
        };
        return Some(component * u8::try_from(components.len()).ok()?);
    }
    const VARIANTS: [&str; 9] = [
        "lds_",
        "tr_",
        "tr4_",
        "tr6_",
        "tr8_",
        "tr16_",
        "monitor_",
        "async_to_lds_",
        "async_from_lds_",
    ];
    let rest = VARIANTS.iter().find_map(|variant| rest.strip_prefix(variant)).unwrap_or(rest);
    let unit = rest.split('_').next()?;
    Some(match unit {
        "ubyte" | "sbyte" | "byte" | "u8" | "i8" | "b8" => 1,
        "ushort" | "sshort" | "short" | "u16" | "i16" | "b16" => 2,
        "dword" | "b32" => 4,
        "dwordx2" | "b64" => 8,
        "dwordx3" | "b96" => 12,
        "dwordx4" | "b128" => 16,
        "dwordx8" => 32,
        "dwordx16" => 64,
        // 32 registers, selected by a mask in M0.
        "block" => 128,
        _ => return None,
    })
}

/// The width in bytes, from the part of a name after `atomic_`: integer atomics of 64 bits end in `_x2`,
/// others in a type.
fn atomic_width(rest: &str) -> u8 {
    if ["_x2", "64"].iter().any(|wide| rest.ends_with(wide)) { 8 } else { 4 }
}

/// The kind and width in bytes of an LDS access, from the part of its name after `ds_`.
fn lds(rest: &str) -> Option<(MemoryKind, u8)> {
    const NO_MEMORY: [&str; 8] =
        ["permute_", "bpermute_", "swizzle_", "nop", "gws_", "ordered_", "bvh_", "direct_"];
    if NO_MEMORY.iter().any(|prefix| rest.starts_with(prefix)) || rest == "param_load" {
        return None;
    }
    let (operation, data) = rest.split_once('_').unwrap_or((rest, ""));
    let data = data.trim_start_matches("addtid_").trim_start_matches("rtn_");
    let element = || match data.split('_').next() {
        Some(variant) if variant.starts_with("tr") => width(data),
        Some(unit) => width(unit),
        None => None,
    };
    Some(match operation {
        "read" | "load" => (MemoryKind::Load, element()?),
        "read2" | "read2st64" => (MemoryKind::Load, 2 * element()?),
        "write" | "store" => (MemoryKind::Store, element()?),
        "write2" | "write2st64" => (MemoryKind::Store, 2 * element()?),
        "wrxchg2" | "wrxchg2st64" => (MemoryKind::Atomic, 2 * element()?),
        _ => (MemoryKind::Atomic, atomic_width(data)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Operation;

    #[test]
    fn names_determine_space_kind_and_width() {
        use MemoryKind::{Atomic, Load, Store};
        use MemorySpace::{Buffer, Flat, Global, Lds, Scalar, Scratch};
        for (name, space, kind, bytes) in [
            ("global_load_dwordx3", Global, Load, 12),
            ("global_load_ubyte_d16_hi", Global, Load, 1),
            ("global_load_lds_dword", Global, Load, 4),
            ("global_load_dword_addtid", Global, Load, 4),
            ("global_store_short", Global, Store, 2),
            ("global_atomic_add_x2", Global, Atomic, 8),
            ("global_atomic_cmpswap", Global, Atomic, 4),
            ("global_atomic_add_f64", Global, Atomic, 8),
            ("global_atomic_pk_add_f16", Global, Atomic, 4),
            ("flat_load_dwordx4", Flat, Load, 16),
            ("scratch_store_byte", Scratch, Store, 1),
            ("buffer_load_format_xyz", Buffer, Load, 12),
            ("buffer_store_format_d16_xy", Buffer, Store, 4),
            ("buffer_load_format_d16_hi_x", Buffer, Load, 2),
            ("tbuffer_load_format_x", Buffer, Load, 4),
            ("s_load_dwordx8", Scalar, Load, 32),
            ("s_buffer_load_dwordx16", Scalar, Load, 64),
            ("s_atomic_add", Scalar, Atomic, 4),
            ("ds_read_b32", Lds, Load, 4),
            ("ds_read_u8", Lds, Load, 1),
            ("ds_read_u16_d16_hi", Lds, Load, 2),
            ("ds_read_addtid_b32", Lds, Load, 4),
            ("ds_read2_b64", Lds, Load, 16),
            ("ds_read2st64_b32", Lds, Load, 8),
            ("ds_write_b96", Lds, Store, 12),
            ("ds_write_b8_d16_hi", Lds, Store, 1),
            ("ds_write2_b64", Lds, Store, 16),
            ("ds_add_rtn_u32", Lds, Atomic, 4),
            ("ds_add_u64", Lds, Atomic, 8),
            ("ds_cmpst_rtn_b64", Lds, Atomic, 8),
            ("ds_wrxchg2_rtn_b64", Lds, Atomic, 16),
            ("ds_append", Lds, Atomic, 4),
        ] {
            let access = MemoryAccess { space, kind, bytes };
            assert_eq!(Operation::named(name).memory(), Some(access), "{name}");
        }
        for name in [
            "ds_bpermute_b32",
            "ds_swizzle_b32",
            "buffer_wbl2",
            "s_dcache_inv",
            "v_mov_b32",
            "ds_nop",
        ] {
            assert_eq!(Operation::named(name).memory(), None, "{name}");
        }
    }
}
