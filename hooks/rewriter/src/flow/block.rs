//! Division of a function into basic blocks.

use super::decoded::DecodedFunction;
use super::{BlockEnd, EdgeKind};
use flipwave_isa::{Control, Generation, Pc};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The target of an `s_setpc_b64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpTarget {
    /// The caller.
    Return,
    /// A known address.
    To(Pc),
    /// An unknown address.
    Unknown,
}

/// A block. Indices of instructions and blocks are relative to the function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalBlock {
    pub instructions: Range<usize>,
    pub successors: Vec<(usize, EdgeKind)>,
    pub end: BlockEnd,
}

/// The blocks of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    pub blocks: Vec<LocalBlock>,
    /// Instructions whose successors are unknown, with the reasons.
    pub unresolved: BTreeMap<usize, String>,
    /// Branches out of the function, with their targets.
    pub tail_calls: BTreeMap<usize, Pc>,
}

impl Blocks {
    /// Divides a function. `jumps` are the targets of its `s_setpc_b64`; `is_entry` returns `true` for
    /// addresses of functions.
    pub fn new(
        decoded: &DecodedFunction,
        generation: Generation,
        jumps: &BTreeMap<usize, JumpTarget>,
        is_entry: impl Fn(Pc) -> bool,
    ) -> Blocks {
        let controls: Vec<Control> =
            decoded.insts.iter().map(|inst| inst.control(generation)).collect();
        let target = |index: usize, control: Control| match (control, jumps.get(&index)) {
            (Control::Branch | Control::Conditional, _) => decoded.insts[index].branch_target,
            (Control::Jump, Some(JumpTarget::To(target))) => Some(*target),
            _ => None,
        };
        let mut leaders = BTreeSet::from([0]);
        for (index, control) in controls.iter().enumerate() {
            if *control != Control::Next || decoded.gaps.contains(&index) {
                leaders.insert(index + 1);
            }
            leaders.extend(target(index, *control).and_then(|target| decoded.at(target)));
        }
        leaders.retain(|leader| *leader < decoded.insts.len());
        let starts: Vec<usize> = leaders.into_iter().collect();
        let ends = starts.iter().copied().skip(1).chain([decoded.insts.len()]);
        let block_at = |inst: usize| starts.binary_search(&inst).ok();

        let mut result = Blocks::default();
        for (start, end) in starts.iter().copied().zip(ends) {
            let last = end - 1;
            let control = controls[last];
            let next = block_at(end).filter(|_| !decoded.gaps.contains(&last));
            let mut successors = Vec::new();
            let mut unresolved = None;
            let mut kind = BlockEnd::Edges;
            let fall_through = |successors: &mut Vec<_>, unresolved: &mut Option<String>| match next
            {
                Some(next) => successors.push((next, EdgeKind::FallThrough)),
                None => {
                    *unresolved = Some(
                        "control reaches bytes that are not instructions of the function"
                            .to_owned(),
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
                        (Some(target), _) => match decoded.at(target).and_then(block_at) {
                            Some(block) => successors.push((block, EdgeKind::Taken)),
                            None if is_entry(target) && successors.is_empty() => {
                                kind = BlockEnd::TailCall;
                                result.tail_calls.insert(last, target);
                            }
                            None => {
                                unresolved = Some(format!(
                                    "branch to {target}, which is not an instruction of the function"
                                ));
                            }
                        },
                        (None, Some(JumpTarget::Return)) => kind = BlockEnd::Return,
                        (None, _) => {
                            unresolved = Some("jump to an unknown address".to_owned());
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
