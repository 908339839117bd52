//! Instructions that observe writes of concurrently executing workgroups (AMDGPUUsage, "Memory model"
//! of each generation). Caches between a workgroup and memory are not coherent: to observe such a write,
//! code sets the cache policy of a load or invalidates caches before it.

use crate::{Generation, Inst, MemoryKind, MemorySpace, Opcode};

impl Inst {
    /// Returns `true` if the instruction, or loads after it, may observe writes of other workgroups on the
    /// device: loads and cache invalidations of agent or system scope, and all atomics.
    pub fn sees_other_workgroups(&self, generation: Generation) -> bool {
        match self.operation.opcode() {
            Opcode::CacheInvalidate if generation == Generation::Gfx940 => self.has_policy("sc1"),
            Opcode::CacheInvalidate => true,
            Opcode::GlobalInv => self.has_device_scope(),
            _ if self.modifiers.gds => true,
            _ => self.memory().is_some_and(|access| match (access.space, access.kind) {
                (MemorySpace::Lds | MemorySpace::Scratch, _) | (_, MemoryKind::Store) => false,
                (_, MemoryKind::Load) => self.is_coherent_load(generation),
                (_, MemoryKind::Atomic) => true,
            }),
        }
    }

    /// Returns `true` for a load of agent or system scope. Up to gfx11 these have `glc` but not `slc`;
    /// `slc` marks streaming data that is not used again.
    fn is_coherent_load(&self, generation: Generation) -> bool {
        match generation {
            Generation::Gfx940 => self.has_policy("sc1"),
            Generation::Gfx12 | Generation::Gfx125 => self.has_device_scope(),
            _ => self.modifiers.glc && !self.has_policy("slc"),
        }
    }

    fn has_device_scope(&self) -> bool {
        self.has_policy("scope:SCOPE_DEV") || self.has_policy("scope:SCOPE_SYS")
    }

    fn has_policy(&self, word: &str) -> bool {
        self.modifiers.cache_policy.iter().any(|policy| policy == word)
    }
}

#[cfg(test)]
mod tests {
    use crate::Target;
    use crate::testing::inst;

    #[test]
    fn device_scope_accesses_are_recognized() {
        for (target, line, expected) in [
            ("gfx906", "global_load_dword v0, v[2:3], off", false),
            ("gfx906", "global_load_dword v0, v[2:3], off glc", true),
            ("gfx906", "buffer_wbinvl1_vol", true),
            ("gfx90a", "global_load_dword v0, v[2:3], off", false),
            ("gfx90a", "flat_load_dword v0, v[2:3] glc", true),
            ("gfx90a", "global_load_dword v0, v[2:3], off glc slc", false),
            ("gfx90a", "global_store_dword v[2:3], v0, off glc", false),
            ("gfx90a", "global_atomic_add v[2:3], v0, off", true),
            ("gfx90a", "ds_add_u32 v0, v1", false),
            ("gfx906", "ds_add_u32 v0, v1 gds", true),
            ("gfx90a", "buffer_wbinvl1", true),
            ("gfx90a", "buffer_invl2", true),
            ("gfx942", "global_load_dword v0, v[2:3], off sc0", false),
            ("gfx942", "global_load_dword v0, v[2:3], off nt", false),
            ("gfx942", "global_load_dword v0, v[2:3], off sc1", true),
            ("gfx942", "buffer_inv sc0", false),
            ("gfx942", "buffer_inv sc1", true),
            ("gfx1030", "global_load_dword v0, v[2:3], off slc", false),
            ("gfx1030", "global_load_dword v0, v[2:3], off glc dlc", true),
            ("gfx1030", "buffer_gl0_inv", false),
            ("gfx1030", "buffer_gl1_inv", true),
            ("gfx1100", "global_load_b32 v0, v[2:3], off slc dlc", false),
            ("gfx1100", "global_load_b32 v0, v[2:3], off glc dlc", true),
            ("gfx1100", "scratch_load_b32 v0, off, s0 glc dlc", false),
            ("gfx1100", "buffer_gl0_inv", false),
            ("gfx1201", "global_load_b32 v0, v[2:3], off th:TH_LOAD_NT", false),
            ("gfx1201", "global_load_b32 v0, v[2:3], off scope:SCOPE_SE", false),
            ("gfx1201", "global_load_b32 v0, v[2:3], off scope:SCOPE_SYS", true),
            ("gfx1201", "global_inv scope:SCOPE_SE", false),
            ("gfx1201", "global_inv scope:SCOPE_DEV", true),
            ("gfx1201", "s_load_b32 s0, s[2:3], 0x0", false),
        ] {
            let generation = target.parse::<Target>().unwrap().generation();
            let found = inst(target, line).sees_other_workgroups(generation);
            assert_eq!(found, expected, "{target}: {line}");
        }
    }
}
