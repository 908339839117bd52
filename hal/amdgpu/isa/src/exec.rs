//! What instructions do to EXEC, and which lanes they read and write (the ISA documents, "Program
//! flow control" and the description of each operation).

use crate::{Class, Family, Inst, Opcode, Operand, Register, RegisterRange, Role, Value};

/// How the lanes that EXEC selects after an instruction relate to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExecChange {
    /// They are some of them.
    Narrows,
    /// They are those and maybe more.
    Widens,
    /// They are none of them.
    Complements,
    /// They may be any.
    Replaces,
}

/// Which lanes of a vector register an instruction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LanesWritten {
    /// Those that EXEC selects.
    Active,
    /// All, whatever EXEC is.
    All,
    /// One, or only some of those that EXEC selects.
    Some,
}

impl Inst {
    /// How it changes EXEC; `None` where it does not.
    pub fn exec_change(&self) -> Option<ExecChange> {
        let exec = *self.writes.iter().find(|range| is_exec(**range))?;
        if self.operation.is(Family::Compare) {
            // Lanes that were off give zero.
            return Some(ExecChange::Narrows);
        }
        let sources: Vec<&Operand> = self.sources().collect();
        let is_old = |index: usize| {
            sources.get(index).is_some_and(|operand| operand.value == Value::Register(exec))
        };
        let is_number =
            |number| sources.first().is_some_and(|operand| operand.value == Value::Integer(number));
        use Opcode::*;
        Some(match self.operation.opcode() {
            SAndSaveexec | SAndn1Saveexec | SAndn1Wrexec => ExecChange::Narrows,
            SOrSaveexec | SOrn1Saveexec => ExecChange::Widens,
            SAndn2Saveexec | SAndn2Wrexec => ExecChange::Complements,
            SAnd if is_old(0) || is_old(1) => ExecChange::Narrows,
            SAndn2 if is_old(0) => ExecChange::Narrows,
            SAndn2 if is_old(1) => ExecChange::Complements,
            SOr if is_old(0) || is_old(1) => ExecChange::Widens,
            SOrn2 | SWqm if is_old(0) => ExecChange::Widens,
            SMov if is_number(-1) => ExecChange::Widens,
            SMov if is_number(0) => ExecChange::Narrows,
            _ => ExecChange::Replaces,
        })
    }

    /// Whether a lane of the result may come from other lanes of the sources, or from lanes that
    /// EXEC does not select. Where not even the ISA documents are clear, the answer is yes.
    pub fn reads_other_lanes(&self) -> bool {
        self.modifiers.dpp.is_some()
            || matches!(self.class(), Class::Matrix | Class::Image | Class::Graphics)
            || self.operation.is(Family::OtherLanes)
    }

    /// Which lanes of its vector destinations it writes.
    pub fn lanes_written(&self) -> LanesWritten {
        let operation = self.operation;
        if operation.is(Family::Mfma) || operation.is(Family::SparseMfma) {
            // MI200 ISA, "Matrix arithmetic instructions": EXEC is ignored.
            LanesWritten::All
        } else if operation.opcode() == Opcode::VWritelane
            // Lanes whose source is off keep what they have; v_permlane64 does nothing at all in
            // waves of 32 lanes.
            || operation.is(Family::Permlane)
            || self.modifiers.dpp.is_some()
        {
            LanesWritten::Some
        } else {
            LanesWritten::Active
        }
    }

    /// Whether it reaches registers that it does not name, through an index in M0: `v_movrels`,
    /// `s_movreld` and the like. In GPR-index mode all vector arithmetic does.
    pub fn indexes_registers(&self) -> bool {
        self.operation.is(Family::Movrel)
    }

    /// The operand that an instruction reads at a place among its sources.
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

    /// What an operation computes for every pair of bits says how it changes EXEC.
    #[test]
    fn exec_changes_as_the_operation_s_truth_table_says() {
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
    fn exec_changes_of_moves_and_comparisons() {
        for (target, line, expected) in [
            ("gfx90a", "s_mov_b64 exec, -1", Some(ExecChange::Widens)),
            ("gfx90a", "s_mov_b64 exec, 0", Some(ExecChange::Narrows)),
            ("gfx90a", "s_mov_b64 exec, s[0:1]", Some(ExecChange::Replaces)),
            ("gfx90a", "s_mov_b32 exec_lo, s0", Some(ExecChange::Replaces)),
            ("gfx90a", "s_and_b32 exec_lo, exec_hi, s0", Some(ExecChange::Replaces)),
            ("gfx90a", "s_wqm_b64 exec, exec", Some(ExecChange::Widens)),
            ("gfx90a", "v_cmpx_eq_u32 vcc, v0, v1", Some(ExecChange::Narrows)),
            ("gfx1100", "v_cmpx_eq_u32 v0, v1", Some(ExecChange::Narrows)),
            // Whatever lanes the value of a lane names.
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
    fn lanes_read_and_written() {
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
