//! From a program and edits to code at addresses.

use super::addresses::StreamAddresses;
use super::chains::Chains;
use super::emit::{self, Emitted, KERNEL_ALIGNMENT};
use super::encoding::Encoding;
use super::finish::{self, Text};
use super::lookup::Lookup;
use super::mending::Mending;
use super::reach::{self, BranchEncoding};
use super::stream::Labels;
use super::{
    CodeLayout, Edits, InsertPurpose, LayoutError, Placement, RelocatedInst, far, hints, preload,
    ways,
};
use crate::flow::{Disassembly, Function, FunctionIndex, IndexRange, IndexVec, InstIndex, Key};
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Inst, Pc};
use std::collections::{BTreeMap, BTreeSet};

/// Puts the edited code of a program to a new `address` of the code object, a multiple of 256:
/// branches, calls, and addresses computed from the PC are mended.
///
/// # Errors
/// [`LayoutError`]. Where it is [`LayoutError::Sites`], the same without the edits of those sites
/// can be done.
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
    let joined = match is_far.contains(&true) {
        true => ways::joined(program, &lookup, |_| true),
        false => BTreeSet::new(),
    };
    let blamed = |error| blamed(program, &lookup, edits, error);
    let emitted = emit::emit(
        emit::EmitSource {
            object,
            program,
            edits,
            lookup: &lookup,
            chains: &chains,
            is_far: &is_far,
            joined: &joined,
        },
        &mut encoding,
        &dropped,
        &placements,
    )?;
    if !emitted.refused.is_empty() {
        return Err(blamed(LayoutError::Sites(emitted.refused)));
    }
    let awaited = awaited(program, &lookup, &placements, &emitted);
    let labels = Labels {
        units: &emitted.units,
        entries: &emitted.entries,
        routines: &emitted.routines,
        old: &lookup.addresses,
    };
    let mending = Mending {
        object,
        program,
        lookup: &lookup,
        labels: &labels,
        placements: &placements,
        is_far: &is_far,
        awaited: &awaited,
    };
    let branches = BranchEncoding { word: encoding.branch, offset_3f_bug: encoding.offset_3f_bug };
    let mut hops = finish::hops(&emitted.stream, &labels)?;
    let mut slots = mending.slots(&encoding);
    let (ways_in, jumps) =
        mending.ways_in(&encoding, &edits.free_pairs, &mut slots).map_err(blamed)?;
    hops.extend(ways_in);
    let reach = reach::reach(address.0, &emitted.stream, hops, slots, branches, &lookup.addresses)
        .map_err(blamed)?;
    let mut text = Text::new(address.0, &emitted.stream, &reach, &labels, &encoding)?;
    for jump in jumps {
        jump.put(&mut encoding, &reach, &mut text)?;
    }
    let mut stale = mending.chains(&chains, &reach, &mut text)?;
    stale.extend(mending.ways_out(&reach, &mut text)?);
    stale.sort_unstable();
    mending.hints(&dropped, encoding.nop, &mut text);
    let overwritten = mending.overwritten(&dropped, &text).into_iter();
    let mut inserted: Vec<_> = overwritten.map(|range| (range, InsertPurpose::Island)).collect();
    inserted.extend(finish::inserted(&emitted.stream, &reach, &text));

    let addresses = &reach.addresses;
    let entries = emitted.entries.iter().map(|spot| Pc(addresses.of(*spot)));
    let spans = emitted.stream.spans.iter();
    Ok(CodeLayout {
        address: address.0,
        places: places(program, &emitted, addresses, &dropped),
        inserted,
        functions: functions(object, program, entries.clone()),
        relaid: relaid(program, &placements),
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

/// Everything that edits name is there.
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

/// Displaced instructions that control comes to by their old addresses: from the one before, which
/// stays, by what leads there, or, in a function that is not understood, from anywhere.
fn awaited(
    program: &Disassembly,
    lookup: &Lookup<'_>,
    placements: &IndexVec<FunctionIndex, Placement>,
    emitted: &Emitted,
) -> BTreeSet<InstIndex> {
    let stays = |index: InstIndex| emitted.units[index].is_none();
    let functions = program.functions.iter().zip(placements);
    let staying = functions.filter(|(_, placement)| **placement == Placement::Trampoline);
    let mut awaited = BTreeSet::new();
    let mut joined = None;
    for (function, _) in staying {
        let joined = joined.get_or_insert_with(|| ways::joined(program, lookup, stays));
        let mut is_before_there = true;
        for index in function.instructions.iter() {
            let is_there = stays(index);
            if !is_there
                && (is_before_there || joined.contains(&index) || !function.unresolved.is_empty())
            {
                awaited.insert(index);
            }
            is_before_there = is_there;
        }
    }
    awaited
}

/// Sites that cannot be done are edited ones: of an instruction that is displaced for another's
/// sake, the nearest.
fn blamed(
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
        let asked = edits.placements.get(&index);
        match (asked, function.unresolved.first()) {
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

/// Instructions of the functions that move in whole.
fn relaid(
    program: &Disassembly,
    placements: &IndexVec<FunctionIndex, Placement>,
) -> Vec<IndexRange<InstIndex>> {
    let functions = program.functions.iter().zip(placements);
    let inline = functions.filter(|(_, placement)| **placement == Placement::Inline);
    inline.map(|(function, _)| function.instructions).collect()
}

/// New addresses of functions by the old ones.
fn functions(
    object: &CodeObject,
    program: &Disassembly,
    entries: impl Iterator<Item = Pc>,
) -> BTreeMap<Pc, Pc> {
    let old = |function| preload::entry(object, program, function);
    let pairs = program.functions.iter().zip(entries);
    pairs.map(|(function, new)| (old(function), new)).collect()
}
