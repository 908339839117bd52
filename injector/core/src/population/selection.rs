//! Which part of a program a campaign strikes.

use super::{Group, Unreached};
use crate::workload::kernel_name::kernel_is_called;
use flipwave_codeobj::SourceLine;
use flipwave_device::WaveId;
use flipwave_isa::{Inst, LaneMask, Pc, RegisterRange};
use std::fmt;
use std::ops::RangeInclusive;

/// Conditions on what is struck; those that are given must all hold. A list that is empty is no
/// condition, of others one entry must fit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Names of kernels.
    pub kernels: Vec<String>,
    /// Also the kernels that a runtime brings, to copy and to fill, though they are not named.
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
    /// Registers, for faults that strike registers.
    pub registers: Vec<RegisterRange>,
    /// Words that the way of injecting does not reach: they are counted, and not drawn.
    pub unreached: Unreached,
    /// Executions of the instruction by its wave, counted from 0; of an instruction in a loop that
    /// is entered once, the loop's iterations.
    pub occurrences: Option<RangeInclusive<u64>>,
    /// Time: instructions that the wave has executed before, of whatever kind.
    pub window: Option<RangeInclusive<u64>>,
}

/// Lines of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    /// The end of the file's path, whole names.
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

/// When an instruction was executed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub wave: WaveId,
    /// Which execution of the instruction by the wave it is.
    pub occurrence: u64,
    /// Instructions that the wave had executed before.
    pub time: u64,
}

fn fits<T: PartialEq>(entries: &[T], own: &T) -> bool {
    entries.is_empty() || entries.contains(own)
}

/// Whether a kernel is one that AMD's HIP runtime brings (ROCclr, `device/blitcl.cpp`).
fn is_of_runtime(kernel: &str) -> bool {
    kernel.starts_with("__amd_rocclr_")
}

impl Selection {
    /// Whether a dispatch can be struck.
    pub(crate) fn has_dispatch(&self, index: u32, kernel: &str) -> bool {
        self.dispatches.as_ref().is_none_or(|all| all.contains(&index))
            && match &self.kernels[..] {
                [] => self.runtime_kernels || !is_of_runtime(kernel),
                names => names.iter().any(|own| kernel_is_called(kernel, own)),
            }
    }

    /// Whether an instruction can be struck.
    pub(crate) fn has_instruction(&self, inst: &Inst, line: Option<&SourceLine>) -> bool {
        (self.groups.is_empty() || self.groups.iter().any(|group| group.matches(inst)))
            && (self.opcodes.is_empty()
                || self.opcodes.iter().any(|name| name == inst.operation.name()))
            && fits(&self.pcs, &inst.pc)
            && (self.lines.is_empty()
                || line.is_some_and(|line| self.lines.iter().any(|own| own.contain(line))))
    }

    /// Whether an execution of an instruction can be struck.
    pub(crate) fn has_moment(&self, moment: &Moment) -> bool {
        fits(&self.workgroups, &moment.wave.workgroup)
            && self.waves.as_ref().is_none_or(|all| all.contains(&moment.wave.wave))
            && self.occurrences.as_ref().is_none_or(|all| all.contains(&moment.occurrence))
            && self.window.as_ref().is_none_or(|all| all.contains(&moment.time))
    }

    /// The lanes, of `lanes`, that can be struck.
    pub(crate) fn of_lanes(&self, lanes: LaneMask) -> LaneMask {
        LaneMask(lanes.0 & self.lanes.unwrap_or(LaneMask::FULL).0)
    }
}

impl fmt::Display for Selection {
    /// The conditions, as a campaign file has them; `everything` if there are none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut conditions = Vec::new();
        let mut list = |name: &str, entries: Vec<String>| {
            if !entries.is_empty() {
                conditions.push(format!("{name}: [{}]", entries.join(", ")));
            }
        };
        let position = |[x, y, z]: &[u32; 3]| format!("[{x}, {y}, {z}]");
        let lines = |own: &Lines| {
            let (first, last) = (own.lines.start(), own.lines.end());
            format!("{}:{first}-{last}", own.file)
        };
        list("kernels", self.kernels.clone());
        list("groups", self.groups.iter().map(Group::to_string).collect());
        list("opcodes", self.opcodes.clone());
        list("pcs", self.pcs.iter().map(Pc::to_string).collect());
        list("lines", self.lines.iter().map(lines).collect());
        list("registers", self.registers.iter().map(RegisterRange::to_string).collect());
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
        match conditions.is_empty() {
            true => f.write_str("everything"),
            false => f.write_str(&conditions.join(", ")),
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
    fn every_condition_excludes_what_does_not_fit() {
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
        for (name, other) in [
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
            assert!(!is_struck(&other), "{other}");
            assert!(all.contains(&format!("{name}: ")), "{all}");
        }
        let some = Selection { lanes: Some(LaneMask(0xf0)), ..Selection::default() };
        assert_eq!(some.of_lanes(LaneMask(0x18)), LaneMask(0x10));
    }
}
