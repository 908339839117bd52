//! Divides a function into basic blocks.

use super::draft::Draft;
use super::{BlockEnd, EdgeKind};
use flipwave_isa::{Control, Generation, Pc};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Where an `s_setpc_b64` goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpTarget {
    /// Back to the caller.
    Return,
    /// To an address.
    To(Pc),
    /// It is not known where.
    Unknown,
}

/// A block; instructions and blocks are counted from the function's first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalBlock {
    pub instructions: Range<usize>,
    pub successors: Vec<(usize, EdgeKind)>,
    pub end: BlockEnd,
}

/// A function's blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    pub blocks: Vec<LocalBlock>,
    /// Instructions that control leaves to places that are not known, and why.
    pub unresolved: BTreeMap<usize, String>,
    /// Branches out of the function, and where they go.
    pub tail_calls: BTreeMap<usize, Pc>,
}

impl Blocks {
    /// Divides a function. `jumps` says of `s_setpc_b64` where they go; `is_entry` whether a
    /// function begins at an address.
    pub fn of(
        draft: &Draft,
        generation: Generation,
        jumps: &BTreeMap<usize, JumpTarget>,
        is_entry: impl Fn(Pc) -> bool,
    ) -> Blocks {
        let controls: Vec<Control> =
            draft.insts.iter().map(|inst| inst.control(generation)).collect();
        let target = |index: usize, control: Control| match (control, jumps.get(&index)) {
            (Control::Branch | Control::Conditional, _) => draft.insts[index].branch_target,
            (Control::Jump, Some(JumpTarget::To(target))) => Some(*target),
            _ => None,
        };
        let mut leaders = BTreeSet::from([0]);
        for (index, control) in controls.iter().enumerate() {
            if *control != Control::Next || draft.gaps.contains(&index) {
                leaders.insert(index + 1);
            }
            leaders.extend(target(index, *control).and_then(|target| draft.at(target)));
        }
        leaders.retain(|leader| *leader < draft.insts.len());
        let starts: Vec<usize> = leaders.into_iter().collect();
        let ends = starts.iter().copied().skip(1).chain([draft.insts.len()]);
        let block_at = |inst: usize| starts.binary_search(&inst).ok();

        let mut result = Blocks::default();
        for (start, end) in starts.iter().copied().zip(ends) {
            let last = end - 1;
            let control = controls[last];
            let next = block_at(end).filter(|_| !draft.gaps.contains(&last));
            let mut successors = Vec::new();
            let mut unresolved = None;
            let mut kind = BlockEnd::Edges;
            let fall_through = |successors: &mut Vec<_>, unresolved: &mut Option<String>| match next
            {
                Some(next) => successors.push((next, EdgeKind::FallThrough)),
                None => {
                    *unresolved = Some(
                        "control runs on into bytes that are no code of the function".to_owned(),
                    )
                }
            };
            match control {
                Control::Next => fall_through(&mut successors, &mut unresolved),
                Control::End => kind = BlockEnd::EndOfProgram,
                Control::Call => {
                    kind = BlockEnd::Call;
                    successors.extend(next.map(|next| (next, EdgeKind::Return)));
                }
                Control::Unknown(reason) => unresolved = Some(reason.to_owned()),
                Control::Branch | Control::Conditional | Control::Jump => {
                    if control == Control::Conditional {
                        fall_through(&mut successors, &mut unresolved);
                    }
                    match (target(last, control), jumps.get(&last)) {
                        (Some(target), _) => match draft.at(target).and_then(block_at) {
                            Some(block) => successors.push((block, EdgeKind::Taken)),
                            None if is_entry(target) && successors.is_empty() => {
                                kind = BlockEnd::TailCall;
                                result.tail_calls.insert(last, target);
                            }
                            None => {
                                unresolved = Some(format!(
                                    "it goes to {target}, where no instruction of the function begins"
                                ));
                            }
                        },
                        (None, Some(JumpTarget::Return)) => kind = BlockEnd::Return,
                        (None, _) => {
                            unresolved = Some("it goes to an address that is not known".to_owned());
                        }
                    }
                }
            }
            if let Some(reason) = unresolved {
                kind = BlockEnd::Unknown;
                result.unresolved.insert(last, reason);
            }
            result.blocks.push(LocalBlock { instructions: start..end, successors, end: kind });
        }
        result
    }
}
