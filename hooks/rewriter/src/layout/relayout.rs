//! Lays out a program with edits.

use super::addresses::StreamAddresses;
use super::chains::Chains;
use super::emit::{self, Emitted, KERNEL_ALIGNMENT};
use super::encoding::Encoding;
use super::finish::{self, Text};
use super::fixups::Fixups;
use super::lookup::Lookup;
use super::reach::{self, BranchEncoding};
use super::stream::Labels;
use super::{
    CodeLayout, Edits, InsertPurpose, LayoutError, Placement, RelocatedInst, far, hints,
    join_points, preload,
};
use crate::flow::{Disassembly, Function, FunctionIndex, IndexRange, IndexVec, InstIndex, Key};
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Inst, Pc};
use std::collections::{BTreeMap, BTreeSet};

/// Lays out the edited code of a program at a new `address` of the code object, a multiple of 256, and
/// fixes branches, calls and PC-relative addresses.
///
/// # Errors
/// [`LayoutError`]. After [`LayoutError::Sites`], the layout can be repeated without the edits of these
/// sites.
pub fn relayout(
    object: &CodeObject,
    program: &Disassembly,
    edits: &Edits,
    address: Pc,
) -> Result<CodeLayout, LayoutError> {
    if !address.0.is_multiple_of(KERNEL_ALIGNMENT) {
        return Err(LayoutError::Alignment { address: address.0 });
    }
    check(program, edits)?;
    let placements = placements(program, edits)?;
    let lookup = Lookup::new(program);
    let chains = Chains::new(program, &lookup)?;
    let dropped = hints::dropped(program, edits, &placements);
    let mut encoding = Encoding::new(&program.target, program.wave_size)?;
    let placed = program.functions.iter().zip(&placements);
    let is_far = placed.map(|(function, placement)| {
        *placement == Placement::Trampoline && far::is_far(object, program, function, address)
    });
    let is_far: IndexVec<FunctionIndex, bool> = is_far.collect();
    let join_points = if is_far.contains(&true) {
        join_points::join_points(program, &lookup, |_| true)
    } else {
        BTreeSet::new()
    };
    let attribute = |error| attribute_to_edits(program, &lookup, edits, error);
    let emitted = emit::emit(
        emit::EmitSource {
            object,
            program,
            edits,
            lookup: &lookup,
            chains: &chains,
            is_far: &is_far,
            join_points: &join_points,
        },
        &mut encoding,
        &dropped,
        &placements,
    )?;
    if !emitted.refused.is_empty() {
        return Err(attribute(LayoutError::Sites(emitted.refused)));
    }
    let entered = entered(program, &lookup, &placements, &emitted);
    let labels = Labels {
        units: &emitted.units,
        entries: &emitted.entries,
        routines: &emitted.routines,
        old: &lookup.addresses,
    };
    let fixups = Fixups {
        object,
        program,
        lookup: &lookup,
        labels: &labels,
        placements: &placements,
        is_far: &is_far,
        entered: &entered,
    };
    let branches = BranchEncoding { word: encoding.branch, offset_3f_bug: encoding.offset_3f_bug };
    let mut hops = finish::hops(&emitted.stream, &labels)?;
    let mut slots = fixups.unused_words(&encoding);
    let (entry_branches, jumps) =
        fixups.entry_branches(&encoding, &edits.free_pairs, &mut slots).map_err(attribute)?;
    hops.extend(entry_branches);
    let reach = reach::reach(address.0, &emitted.stream, hops, slots, branches, &lookup.addresses)
        .map_err(attribute)?;
    let mut text = Text::new(address.0, &emitted.stream, &reach, &labels, &encoding)?;
    for jump in jumps {
        jump.put(&mut encoding, &reach, &mut text)?;
    }
    let mut stale = fixups.fix_chains(&chains, &reach, &mut text)?;
    stale.extend(fixups.fix_outgoing(&reach, &mut text)?);
    stale.sort_unstable();
    fixups.overwrite_hints(&dropped, encoding.nop, &mut text);
    let overwritten = fixups.overwritten(&dropped, &text).into_iter();
    let mut inserted: Vec<_> = overwritten.map(|range| (range, InsertPurpose::Island)).collect();
    inserted.extend(finish::inserted(&emitted.stream, &reach, &text));

    let addresses = &reach.addresses;
    let entries = emitted.entries.iter().map(|entry| Pc(addresses.of(*entry)));
    let spans = emitted.stream.spans.iter();
    Ok(CodeLayout {
        address: address.0,
        places: places(program, &emitted, addresses, &dropped),
        inserted,
        functions: functions(object, program, entries.clone()),
        moved_functions: moved_functions(program, &placements),
        entries: entries.collect(),
        spans: spans.map(|(range, index)| (finish::addresses(range, &reach), *index)).collect(),
        dropped: dropped.into_iter().collect(),
        placements,
        stale,
        patches: text.patches(),
        bytes: text.bytes,
        old: lookup.addresses,
    })
}

/// Checks that the instructions and functions named by edits exist.
fn check(program: &Disassembly, edits: &Edits) -> Result<(), LayoutError> {
    let last = edits.code.keys().next_back().map(|point| point.at);
    if let Some(last) = last.filter(|last| last.number() >= program.instructions.len()) {
        return Err(LayoutError::Unknown { what: format!("instruction {}", last.number()) });
    }
    let last = edits.entries.keys().chain(edits.placements.keys()).max();
    if let Some(last) = last.filter(|last| last.number() >= program.functions.len()) {
        return Err(LayoutError::Unknown { what: format!("function {}", last.number()) });
    }
    Ok(())
}

/// Displaced instructions that control enters at their old addresses: by falling through from an
/// instruction that stays, by a branch or, in a function with unresolved control flow, in any way.
fn entered(
    program: &Disassembly,
    lookup: &Lookup<'_>,
    placements: &IndexVec<FunctionIndex, Placement>,
    emitted: &Emitted,
) -> BTreeSet<InstIndex> {
    let stays = |index: InstIndex| emitted.units[index].is_none();
    let functions = program.functions.iter().zip(placements);
    let staying = functions.filter(|(_, placement)| **placement == Placement::Trampoline);
    let mut entered = BTreeSet::new();
    let mut join_points = None;
    for (function, _) in staying {
        let join_points =
            join_points.get_or_insert_with(|| join_points::join_points(program, lookup, stays));
        let mut previous_stays = true;
        for index in function.instructions.iter() {
            let is_entered =
                previous_stays || join_points.contains(&index) || !function.unresolved.is_empty();
            previous_stays = stays(index);
            if !previous_stays && is_entered {
                entered.insert(index);
            }
        }
    }
    entered
}

/// Attributes refused sites to edited instructions: an instruction that was only displaced because of a
/// neighbour is replaced with the nearest edited instruction.
fn attribute_to_edits(
    program: &Disassembly,
    lookup: &Lookup<'_>,
    edits: &Edits,
    error: LayoutError,
) -> LayoutError {
    let LayoutError::Sites(sites) = error else { return error };
    let edited = |(pc, reason): (Pc, String)| {
        let nearest = lookup.at(pc).and_then(|index| {
            let function = &program.functions[lookup.function_of(index)];
            edits.nearest(index, function.instructions)
        });
        Some((lookup.addresses[nearest?], reason))
    };
    let edited: BTreeMap<Pc, String> = sites.iter().cloned().filter_map(edited).collect();
    if edited.is_empty() {
        return LayoutError::Sites(sites);
    }
    LayoutError::Sites(edited.into_iter().collect())
}

fn placements(
    program: &Disassembly,
    edits: &Edits,
) -> Result<IndexVec<FunctionIndex, Placement>, LayoutError> {
    let placement = |(index, function): (FunctionIndex, &Function)| {
        let requested = edits.placements.get(&index);
        match (requested, function.unresolved.first()) {
            (Some(Placement::Inline), Some(unresolved)) => Err(LayoutError::Unmovable {
                function: function.name.clone(),
                pc: program.instructions[unresolved.at].pc,
                reason: unresolved.reason.clone(),
            }),
            (Some(placement), _) => Ok(*placement),
            (None, Some(_)) => Ok(Placement::Trampoline),
            (None, None) => Ok(Placement::Inline),
        }
    };
    program.functions.enumerated().map(placement).collect()
}

fn places(
    program: &Disassembly,
    emitted: &Emitted,
    addresses: &StreamAddresses,
    dropped: &BTreeSet<InstIndex>,
) -> IndexVec<InstIndex, RelocatedInst> {
    let place = |(index, inst): (InstIndex, &Inst)| match &emitted.units[index] {
        Some(unit) => RelocatedInst {
            start: Pc(addresses.label(unit.start)),
            inst: unit.inst.map(|at| Pc(addresses.label(at))),
            end: Pc(addresses.end(unit.end)),
        },
        None => RelocatedInst {
            start: inst.pc,
            inst: Some(inst.pc).filter(|_| !dropped.contains(&index)),
            end: Pc(inst.pc.0.saturating_add(inst.size.into())),
        },
    };
    program.insts().map(place).collect()
}

/// Instructions of the functions that move as a whole.
fn moved_functions(
    program: &Disassembly,
    placements: &IndexVec<FunctionIndex, Placement>,
) -> Vec<IndexRange<InstIndex>> {
    let functions = program.functions.iter().zip(placements);
    let inline = functions.filter(|(_, placement)| **placement == Placement::Inline);
    inline.map(|(function, _)| function.instructions).collect()
}

/// New addresses of functions, by old address.
fn functions(
    object: &CodeObject,
    program: &Disassembly,
    entries: impl Iterator<Item = Pc>,
) -> BTreeMap<Pc, Pc> {
    let old = |function| preload::entry(object, program, function);
    let pairs = program.functions.iter().zip(entries);
    pairs.map(|(function, new)| (old(function), new)).collect()
}
