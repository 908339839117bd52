//! Selection of the part of a program that a campaign strikes.

use super::{Group, Unreached};
use flipwave_arch::{Instruction, LaneMask, Pc, RegisterSpan, SourceLine};
use flipwave_device::{ModuleId, WaveId, kernel_matches};
use flipwave_machine::Simulator;
use std::fmt;
use std::ops::RangeInclusive;

/// Conditions on executions; all given conditions must hold. An empty list is no condition; for other
/// lists, one entry must match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Names of kernels, or patterns as in [`kernel_matches`].
    pub kernels: Vec<String>,
    /// `true` to include the runtime's kernels for copies and fills although they are not named.
    pub runtime_kernels: bool,
    /// Indices of dispatches in the workload.
    pub dispatches: Option<RangeInclusive<u32>>,
    /// Positions of workgroups.
    pub workgroups: Vec<[u32; 3]>,
    /// Indices of waves in their workgroup.
    pub waves: Option<RangeInclusive<u32>>,
    /// Lanes.
    pub lanes: Option<LaneMask>,
    /// Instruction groups.
    pub groups: Vec<Group>,
    /// Canonical names of operations.
    pub opcodes: Vec<String>,
    /// Instructions, as ELF virtual addresses.
    pub pcs: Vec<Pc>,
    /// Source lines.
    pub lines: Vec<Lines>,
    /// Registers, for faults that strike registers; see [`Selection::registers_of`].
    pub registers: Vec<RegisterSpan>,
    /// Words that the injection method cannot strike; they are counted but not drawn.
    pub unreached: Unreached,
    /// Executions of the instruction by its wave, counted from 0; for an instruction in a loop that is
    /// entered once, the iterations of the loop.
    pub occurrences: Option<RangeInclusive<u64>>,
    /// Time: number of instructions that the wave has executed before.
    pub window: Option<RangeInclusive<u64>>,
}

/// Lines of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    /// Suffix of the file's path, in whole path components.
    pub file: String,
    /// The lines, counted from 1.
    pub lines: RangeInclusive<u32>,
}

impl Lines {
    fn contain(&self, line: &SourceLine) -> bool {
        let path = line.file.strip_suffix(self.file.as_str());
        path.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
            && self.lines.contains(&line.line)
    }
}

/// The time of an execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub wave: WaveId,
    /// Number of earlier executions of the instruction by the wave.
    pub occurrence: u64,
    /// Number of instructions that the wave had executed before.
    pub time: u64,
}

fn fits<T: PartialEq>(entries: &[T], value: &T) -> bool {
    entries.is_empty() || entries.contains(value)
}

/// Returns `true` for kernels of AMD's HIP runtime (ROCclr, `device/blitcl.cpp`).
fn is_of_runtime(kernel: &str) -> bool {
    kernel.starts_with("__amd_rocclr_")
}

impl Selection {
    /// Returns `true` if a dispatch is selected.
    pub fn has_dispatch(&self, index: u32, kernel: &str) -> bool {
        self.dispatches.as_ref().is_none_or(|all| all.contains(&index))
            && match &self.kernels[..] {
                [] => self.runtime_kernels || !is_of_runtime(kernel),
                names => names.iter().any(|name| kernel_matches(kernel, name)),
            }
    }

    /// Returns `true` if an instruction is selected.
    pub fn has_instruction(&self, inst: &dyn Instruction, line: Option<&SourceLine>) -> bool {
        (self.groups.is_empty() || self.groups.iter().any(|group| inst.is_in(*group)))
            && (self.opcodes.is_empty()
                || self.opcodes.iter().any(|name| name == inst.operation().name()))
            && fits(&self.pcs, &inst.pc())
            && (self.lines.is_empty()
                || line.is_some_and(|line| self.lines.iter().any(|lines| lines.contain(line))))
    }

    /// Returns `true` if an execution at this time is selected.
    pub(crate) fn has_moment(&self, moment: &Moment) -> bool {
        fits(&self.workgroups, &moment.wave.workgroup)
            && self.waves.as_ref().is_none_or(|all| all.contains(&moment.wave.wave))
            && self.occurrences.as_ref().is_none_or(|all| all.contains(&moment.occurrence))
            && self.window.as_ref().is_none_or(|all| all.contains(&moment.time))
    }

    /// The selected registers in the code of a module; `None` for all. Names are those of registers that functions of
    /// the module declare. A declared name comes before one of a class.
    pub fn registers_of(&self, device: &Simulator, module: ModuleId) -> Option<Vec<RegisterSpan>> {
        let resolve = |span: &RegisterSpan| {
            let declared = device.registers_named(module, &span.to_string());
            match declared.is_empty() && !span.first.is_declared() {
                true => vec![*span],
                false => declared,
            }
        };
        let is_limited = !self.registers.is_empty();
        is_limited.then(|| self.registers.iter().flat_map(resolve).collect())
    }

    /// The selected lanes among `lanes`.
    pub(crate) fn of_lanes(&self, lanes: LaneMask) -> LaneMask {
        LaneMask(lanes.0 & self.lanes.unwrap_or(LaneMask::FULL).0)
    }
}

impl fmt::Display for Selection {
    /// Writes the conditions like a campaign file; `everything` if there are none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut conditions = Vec::new();
        let mut list = |name: &str, entries: Vec<String>| {
            if !entries.is_empty() {
                conditions.push(format!("{name}: [{}]", entries.join(", ")));
            }
        };
        let position = |[x, y, z]: &[u32; 3]| format!("[{x}, {y}, {z}]");
        let lines = |lines: &Lines| {
            let (first, last) = (lines.lines.start(), lines.lines.end());
            format!("{}:{first}-{last}", lines.file)
        };
        list("kernels", self.kernels.clone());
        list("groups", self.groups.iter().map(Group::to_string).collect());
        list("opcodes", self.opcodes.clone());
        list("pcs", self.pcs.iter().map(Pc::to_string).collect());
        list("lines", self.lines.iter().map(lines).collect());
        list("registers", self.registers.iter().map(RegisterSpan::to_string).collect());
        list("workgroups", self.workgroups.iter().map(position).collect());
        let mut range = |name: &str, ends: Option<(u64, u64)>| {
            if let Some((first, last)) = ends {
                conditions.push(format!("{name}: [{first}, {last}]"));
            }
        };
        let ends = |all: &RangeInclusive<u32>| (u64::from(*all.start()), u64::from(*all.end()));
        range("dispatches", self.dispatches.as_ref().map(ends));
        range("waves", self.waves.as_ref().map(ends));
        range("occurrences", self.occurrences.as_ref().map(|all| (*all.start(), *all.end())));
        range("window", self.window.as_ref().map(|all| (*all.start(), *all.end())));
        conditions.extend(self.lanes.map(|lanes| format!("lanes: {lanes}")));
        conditions.extend(self.runtime_kernels.then(|| "runtime_kernels: true".to_owned()));
        if conditions.is_empty() {
            f.write_str("everything")
        } else {
            f.write_str(&conditions.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{inst, wave};

    fn moment(occurrence: u64, time: u64) -> Moment {
        Moment { wave: wave(1, 2), occurrence, time }
    }

    #[test]
    fn each_condition_excludes_mismatches() {
        let everything = Selection::default();
        let sum = inst(0x100, "v_add_f32_e32 v1, v2, v3");
        let line = SourceLine { file: "src/kernels/sum.cl".into(), line: 7, column: 1 };
        assert!(everything.has_dispatch(3, "sum") && everything.has_instruction(&sum, None));
        assert!(everything.has_moment(&moment(0, 0)));
        assert_eq!(everything.to_string(), "everything");

        let is_struck = |selection: &Selection| {
            selection.has_dispatch(3, "sum")
                && selection.has_instruction(&sum, Some(&line))
                && selection.has_moment(&moment(5, 100))
        };
        let lines = |file: &str, lines| vec![Lines { file: file.to_owned(), lines }];
        let fitting = Selection {
            runtime_kernels: false,
            kernels: vec!["other".to_owned(), "sum".to_owned()],
            dispatches: Some(2..=3),
            workgroups: vec![[0, 0, 0], [1, 0, 0]],
            waves: Some(2..=2),
            lanes: None,
            groups: vec![Group::Lds, Group::Valu],
            opcodes: vec!["v_add_f32".to_owned()],
            pcs: vec![Pc(0x100)],
            lines: lines("kernels/sum.cl", 7..=9),
            registers: Vec::new(),
            unreached: Unreached::default(),
            occurrences: Some(5..=5),
            window: Some(0..=100),
        };
        assert!(is_struck(&fitting));
        let all = fitting.to_string();
        for (name, mismatch) in [
            ("kernels", Selection { kernels: vec!["su".into()], ..fitting.clone() }),
            ("dispatches", Selection { dispatches: Some(0..=2), ..fitting.clone() }),
            ("workgroups", Selection { workgroups: vec![[0, 1, 0]], ..fitting.clone() }),
            ("waves", Selection { waves: Some(3..=9), ..fitting.clone() }),
            ("groups", Selection { groups: vec![Group::Lds], ..fitting.clone() }),
            ("opcodes", Selection { opcodes: vec!["v_add_u32".into()], ..fitting.clone() }),
            ("pcs", Selection { pcs: vec![Pc(0x104)], ..fitting.clone() }),
            ("lines", Selection { lines: lines("sum.cl", 8..=9), ..fitting.clone() }),
            ("lines", Selection { lines: lines("um.cl", 7..=9), ..fitting.clone() }),
            ("occurrences", Selection { occurrences: Some(6..=9), ..fitting.clone() }),
            ("window", Selection { window: Some(0..=99), ..fitting.clone() }),
        ] {
            assert!(!is_struck(&mismatch), "{mismatch}");
            assert!(all.contains(&format!("{name}: ")), "{all}");
        }
        let some = Selection { lanes: Some(LaneMask(0xf0)), ..Selection::default() };
        assert_eq!(some.of_lanes(LaneMask(0x18)), LaneMask(0x10));
    }
}
