//! Changes of EXEC, and the lanes that instructions read and write (the ISA documents, "Program flow
//! control" and the description of each operation).

use crate::{Class, Family, Inst, Opcode, Operand, Register, RegisterRange, Role, Value};

/// The relation of EXEC after an instruction to EXEC before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExecChange {
    /// The new lanes are a subset of the old ones.
    Narrows,
    /// The new lanes are a superset of the old ones.
    Widens,
    /// The new lanes are disjoint from the old ones.
    Complements,
    /// The new lanes are arbitrary.
    Replaces,
}

/// The lanes of a vector register that an instruction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LanesWritten {
    /// The active lanes: those selected by EXEC.
    Active,
    /// All lanes, regardless of EXEC.
    All,
    /// A single lane, or a subset of the active ones.
    Some,
}

impl Inst {
    /// The change of EXEC; `None` if the instruction does not write EXEC.
    pub fn exec_change(&self) -> Option<ExecChange> {
        let exec = *self.writes.iter().find(|range| is_exec(**range))?;
        if self.operation.is(Family::Compare) {
            // Inactive lanes compare as zero.
            return Some(ExecChange::Narrows);
        }
        let sources: Vec<&Operand> = self.sources().collect();
        let is_exec_source = |index: usize| {
            sources.get(index).is_some_and(|operand| operand.value == Value::Register(exec))
        };
        let is_constant =
            |number| sources.first().is_some_and(|operand| operand.value == Value::Integer(number));
        use Opcode::*;
        Some(match self.operation.opcode() {
            SAndSaveexec | SAndn1Saveexec | SAndn1Wrexec => ExecChange::Narrows,
            SOrSaveexec | SOrn1Saveexec => ExecChange::Widens,
            SAndn2Saveexec | SAndn2Wrexec => ExecChange::Complements,
            SAnd if is_exec_source(0) || is_exec_source(1) => ExecChange::Narrows,
            SAndn2 if is_exec_source(0) => ExecChange::Narrows,
            SAndn2 if is_exec_source(1) => ExecChange::Complements,
            SOr if is_exec_source(0) || is_exec_source(1) => ExecChange::Widens,
            SOrn2 | SWqm if is_exec_source(0) => ExecChange::Widens,
            SMov if is_constant(-1) => ExecChange::Widens,
            SMov if is_constant(0) => ExecChange::Narrows,
            _ => ExecChange::Replaces,
        })
    }

    /// Returns `true` if a lane of the result may depend on other lanes of the sources or on inactive lanes.
    /// Where the ISA documents are unclear, the answer is `true`.
    pub fn reads_other_lanes(&self) -> bool {
        self.modifiers.dpp.is_some()
            || matches!(self.class(), Class::Matrix | Class::Image | Class::Graphics)
            || self.operation.is(Family::CrossLane)
    }

    /// The lanes that the instruction writes in its vector destinations.
    pub fn lanes_written(&self) -> LanesWritten {
        let operation = self.operation;
        if operation.is(Family::Mfma) || operation.is(Family::SparseMfma) {
            // MI200 ISA, "Matrix arithmetic instructions": EXEC is ignored.
            LanesWritten::All
        } else if operation.opcode() == Opcode::VWritelane
            // Lanes with an inactive source keep their value; v_permlane64 is a no-op in wave32.
            || operation.is(Family::Permlane)
            || self.modifiers.dpp.is_some()
        {
            LanesWritten::Some
        } else {
            LanesWritten::Active
        }
    }

    /// Returns `true` if the instruction accesses registers through an index in M0: `v_movrels`,
    /// `s_movreld` and similar. (In GPR-index mode all vector arithmetic does; this is not included.)
    pub fn indexes_registers(&self) -> bool {
        self.operation.is(Family::Movrel)
    }

    /// The value of source number `index`, from 0.
    pub fn source(&self, index: usize) -> Option<&Value> {
        let mut sources = self.operands.iter().filter(|operand| operand.role == Role::Source);
        sources.nth(index).map(|operand| &operand.value)
    }
}

fn is_exec(range: RegisterRange) -> bool {
    matches!(range.first, Register::ExecLo | Register::ExecHi)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::inst;

    /// The truth table of the operation on a source bit and an EXEC bit determines the change.
    #[test]
    fn exec_change_matches_the_truth_table() {
        type Table = fn(bool, bool) -> bool;
        let rows: [(&str, Table); 18] = [
            ("s_and_saveexec_b64 s[0:1], s[2:3]", |s, exec| s & exec),
            ("s_or_saveexec_b64 s[0:1], s[2:3]", |s, exec| s | exec),
            ("s_xor_saveexec_b64 s[0:1], s[2:3]", |s, exec| s ^ exec),
            ("s_nand_saveexec_b64 s[0:1], s[2:3]", |s, exec| !(s & exec)),
            ("s_andn2_saveexec_b64 s[0:1], s[2:3]", |s, exec| s & !exec),
            ("s_andn1_saveexec_b64 s[0:1], s[2:3]", |s, exec| !s & exec),
            ("s_orn2_saveexec_b64 s[0:1], s[2:3]", |s, exec| s | !exec),
            ("s_orn1_saveexec_b64 s[0:1], s[2:3]", |s, exec| !s | exec),
            ("s_andn1_wrexec_b64 s[0:1], s[2:3]", |s, exec| !s & exec),
            ("s_andn2_wrexec_b64 s[0:1], s[2:3]", |s, exec| s & !exec),
            ("s_and_b64 exec, exec, s[2:3]", |s, exec| s & exec),
            ("s_and_b64 exec, s[2:3], exec", |s, exec| s & exec),
            ("s_andn2_b64 exec, exec, s[2:3]", |s, exec| exec & !s),
            ("s_andn2_b64 exec, s[2:3], exec", |s, exec| s & !exec),
            ("s_or_b64 exec, exec, s[2:3]", |s, exec| s | exec),
            ("s_orn2_b64 exec, exec, s[2:3]", |s, exec| exec | !s),
            ("s_orn2_b64 exec, s[2:3], exec", |s, exec| s | !exec),
            ("s_xor_b64 exec, exec, s[2:3]", |s, exec| s ^ exec),
        ];
        for (line, table) in rows {
            let never_on = |exec| [false, true].iter().all(|s| !table(*s, exec));
            let never_off = |exec| [false, true].iter().all(|s| table(*s, exec));
            let expected = match () {
                () if never_on(false) => ExecChange::Narrows,
                () if never_off(true) => ExecChange::Widens,
                () if never_on(true) => ExecChange::Complements,
                () => ExecChange::Replaces,
            };
            assert_eq!(inst("gfx90a", line).exec_change(), Some(expected), "{line}");
        }
    }

    #[test]
    fn moves_and_comparisons_change_exec() {
        for (target, line, expected) in [
            ("gfx90a", "s_mov_b64 exec, -1", Some(ExecChange::Widens)),
            ("gfx90a", "s_mov_b64 exec, 0", Some(ExecChange::Narrows)),
            ("gfx90a", "s_mov_b64 exec, s[0:1]", Some(ExecChange::Replaces)),
            ("gfx90a", "s_mov_b32 exec_lo, s0", Some(ExecChange::Replaces)),
            ("gfx90a", "s_and_b32 exec_lo, exec_hi, s0", Some(ExecChange::Replaces)),
            ("gfx90a", "s_wqm_b64 exec, exec", Some(ExecChange::Widens)),
            ("gfx90a", "v_cmpx_eq_u32 vcc, v0, v1", Some(ExecChange::Narrows)),
            ("gfx1100", "v_cmpx_eq_u32 v0, v1", Some(ExecChange::Narrows)),
            // The value of a lane is an arbitrary mask.
            ("gfx90a", "v_readfirstlane_b32 exec_lo, v0", Some(ExecChange::Replaces)),
            ("gfx90a", "v_readlane_b32 exec_hi, v0, 3", Some(ExecChange::Replaces)),
            ("gfx90a", "v_cmp_eq_u32 exec, v0, v1", Some(ExecChange::Narrows)),
            ("gfx1100", "s_and_saveexec_b32 s0, vcc_lo", Some(ExecChange::Narrows)),
            ("gfx1100", "s_and_not1_b32 exec_lo, exec_lo, s0", Some(ExecChange::Narrows)),
            ("gfx90a", "s_and_b64 s[0:1], exec, s[2:3]", None),
            ("gfx90a", "v_mov_b32 v0, v1", None),
        ] {
            assert_eq!(inst(target, line).exec_change(), expected, "{target}: {line}");
        }
    }

    #[test]
    fn cross_lane_reads_and_written_lanes_are_recognized() {
        for (target, line, reads_others, written) in [
            ("gfx90a", "v_mov_b32 v0, v1", false, LanesWritten::Active),
            ("gfx90a", "v_readlane_b32 s0, v1, 3", true, LanesWritten::Active),
            ("gfx90a", "v_writelane_b32 v0, s1, 2", false, LanesWritten::Some),
            ("gfx90a", "v_mov_b32_dpp v0, v1 row_shl:1", true, LanesWritten::Some),
            ("gfx90a", "ds_bpermute_b32 v0, v1, v2", true, LanesWritten::Active),
            ("gfx90a", "v_mfma_f32_32x32x1f32 a[0:31], v0, v1, a[0:31]", true, LanesWritten::All),
            ("gfx90a", "v_accvgpr_read_b32 v0, a1", false, LanesWritten::Active),
            ("gfx1100", "v_permlane64_b32 v0, v1", true, LanesWritten::Some),
            ("gfx1100", "v_permlane16_b32 v0, v1, s0, s1", true, LanesWritten::Some),
        ] {
            let inst = inst(target, line);
            assert_eq!(inst.reads_other_lanes(), reads_others, "{target}: {line}");
            assert_eq!(inst.lanes_written(), written, "{target}: {line}");
        }
    }
}
