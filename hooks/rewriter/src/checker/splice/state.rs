//! Symbolic values of all registers at a point of a splice.

use super::content::{Content, ONES};
use super::index_mode::GuestIndexMode;
use flipwave_isa::{Register, RegisterSet};
use std::collections::BTreeMap;

/// A location that holds 32 bits, or 32 bits for each lane of a set of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    /// A scalar register.
    Scalar(Register),
    /// A vector register in a set of lanes.
    Vector(LaneSet, Register),
    /// One lane of a vector register whose other lanes are unknown.
    Lane(Register, u32),
    /// A dword of scratch in a set of lanes.
    Slot(LaneSet, ScratchSlot),
}

/// A set of lanes, by the value of EXEC at the beginning of the splice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaneSet {
    /// Lanes that EXEC selected.
    Active,
    /// All other lanes.
    Masked,
}

impl LaneSet {
    /// Both sets.
    pub const ALL: [LaneSet; 2] = [LaneSet::Active, LaneSet::Masked];
}

/// The contents of a location in both sets of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneContents {
    /// Content in [`LaneSet::Active`].
    pub active: Content,
    /// Content in [`LaneSet::Masked`].
    pub masked: Content,
}

impl LaneContents {
    /// Unknown contents in all lanes.
    pub const UNKNOWN: LaneContents = LaneContents::uniform(Content::Unknown);

    /// The same content in both sets.
    pub const fn uniform(content: Content) -> LaneContents {
        LaneContents { active: content, masked: content }
    }

    /// Applies a function to both contents.
    pub fn map(self, operation: impl Fn(Content) -> Content) -> LaneContents {
        LaneContents { active: operation(self.active), masked: operation(self.masked) }
    }

    fn get(self, lanes: LaneSet) -> Content {
        match lanes {
            LaneSet::Active => self.active,
            LaneSet::Masked => self.masked,
        }
    }
}

/// A dword in each lane's scratch, at an address that is the same in all lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScratchSlot {
    /// The first register of the scratch resource, for buffer instructions.
    pub resource: Option<Register>,
    /// The scalar part of the address.
    pub base: Content,
    /// The instruction's offset in bytes.
    pub offset: i64,
}

/// The lanes that a vector instruction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenLanes {
    /// All of [`LaneSet::Active`].
    Active,
    /// A subset of [`LaneSet::Active`].
    SomeActive,
    /// All of [`LaneSet::Masked`].
    Masked,
    /// All lanes.
    All,
    /// Any lanes.
    Unknown,
}

/// The effect of GPR-index mode (gfx8, gfx9) on vector instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Indexing {
    /// None: the mode is off.
    #[default]
    Off,
    /// The mode may be on, as the original program set it.
    Guest,
    /// Inserted code may have switched the mode on.
    Inserted,
}

impl Indexing {
    fn of(guest: GuestIndexMode) -> Indexing {
        if guest == GuestIndexMode::Off { Indexing::Off } else { Indexing::Guest }
    }
}

/// A value that inserted code writes to GPR_IDX_EN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexModeWrite {
    /// The mode is switched off.
    Off,
    /// The mode is switched on.
    On,
    /// An unknown value.
    Unknown,
}

/// The bit of MODE that enables GPR-index mode (Vega ISA, "MODE register", GPR_IDX_EN).
pub const INDEX_MODE: u32 = 1 << 27;

/// Arguments in memory that the original kernel had in registers when it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreloadedArguments {
    /// The address of the kernarg segment.
    pub pointer: [Content; 2],
    /// The register of the first word.
    pub first: Register,
    /// Number of words.
    pub words: u8,
    /// Offset of the first word in the kernarg segment, in bytes.
    pub offset: u64,
}

impl PreloadedArguments {
    /// The result of loading a word from `pointer` plus `offset`.
    pub fn loaded(&self, pointer: [Content; 2], offset: u64) -> Content {
        let distance = offset.wrapping_sub(self.offset);
        let word = u8::try_from(distance / 4).ok().filter(|word| {
            pointer == self.pointer && distance.is_multiple_of(4) && *word < self.words
        });
        let register = word.and_then(|word| self.first.offset(word));
        register.map_or(Content::Unknown, Content::Initial)
    }
}

/// Symbolic values of all registers. Registers that are not in `contents` have their initial values;
/// other single lanes and scratch slots have unknown values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolicState {
    contents: BTreeMap<Location, Content>,
    /// Bits of MODE that may have changed.
    pub mode_changed: u32,
    indexing: Indexing,
    /// GPR-index mode at the beginning.
    guest: GuestIndexMode,
    /// Arguments that the kernel's start loads, and which the original had in registers.
    pub arguments: Option<PreloadedArguments>,
    /// Inserted code changed EXEC on request. The lane sets then refer to the new EXEC.
    exec_changed: bool,
    wave_size: u8,
}

/// The content of a location at the beginning of a splice.
fn initial(location: Location) -> Content {
    match location {
        Location::Scalar(register) | Location::Vector(_, register) => Content::Initial(register),
        Location::Lane(..) | Location::Slot(..) => Content::Unknown,
    }
}

impl SymbolicState {
    /// The state at the beginning of a splice.
    pub fn new(wave_size: u8, guest: GuestIndexMode) -> SymbolicState {
        SymbolicState {
            contents: BTreeMap::new(),
            mode_changed: 0,
            indexing: Indexing::of(guest),
            guest,
            arguments: None,
            exec_changed: false,
            wave_size,
        }
    }

    /// The effect of GPR-index mode on vector instructions.
    pub fn indexing(&self) -> Indexing {
        self.indexing
    }

    /// Writes GPR-index mode. The mode is unchanged if the written value equals a known initial value.
    pub fn set_index_mode(&mut self, write: IndexModeWrite) {
        self.indexing = match write {
            IndexModeWrite::Off => Indexing::Off,
            IndexModeWrite::On if self.guest == GuestIndexMode::On => Indexing::Guest,
            _ => Indexing::Inserted,
        };
        let is_restored = match write {
            IndexModeWrite::Off => self.guest == GuestIndexMode::Off,
            IndexModeWrite::On => self.guest == GuestIndexMode::On,
            IndexModeWrite::Unknown => false,
        };
        if is_restored {
            self.mode_changed &= !INDEX_MODE;
        } else {
            self.mode_changed |= INDEX_MODE;
        }
    }

    /// Restores the initial GPR-index mode.
    pub fn restore_index_mode(&mut self) {
        self.mode_changed &= !INDEX_MODE;
        self.indexing = Indexing::of(self.guest);
    }

    /// Number of registers of a lane mask.
    pub fn mask_words(&self) -> usize {
        if self.wave_size == 32 { 1 } else { 2 }
    }

    /// Returns `true` if inserted code changed EXEC on request.
    pub fn exec_changed(&self) -> bool {
        self.exec_changed
    }

    /// The content of a location.
    pub fn get(&self, location: Location) -> Content {
        self.contents.get(&location).copied().unwrap_or_else(|| initial(location))
    }

    /// The content of a scalar register.
    pub fn scalar(&self, register: Register) -> Content {
        self.get(Location::Scalar(register))
    }

    /// Sets the content of a location.
    pub fn set(&mut self, location: Location, content: Content) {
        if content == initial(location) {
            self.contents.remove(&location);
        } else {
            self.contents.insert(location, content);
        }
    }

    /// Sets the content of a scalar register.
    pub fn set_scalar(&mut self, register: Register, content: Content) {
        match register {
            Register::Null => {}
            Register::Mode => self.mode_changed = u32::MAX,
            _ => self.set(Location::Scalar(register), content),
        }
    }

    /// The lanes that vector instructions write under the current EXEC.
    pub fn written_lanes(&self) -> WrittenLanes {
        let low = self.scalar(Register::ExecLo);
        let high = (self.wave_size != 32).then(|| self.scalar(Register::ExecHi));
        let both_halves_are = |expected: fn(Register) -> Content| {
            low == expected(Register::ExecLo)
                && high.is_none_or(|high| high == expected(Register::ExecHi))
        };
        let is_subset = |content: Content| {
            let exec = matches!(content, Content::Initial(Register::ExecLo | Register::ExecHi));
            exec || matches!(content, Content::ExecSubset(_) | Content::Constant(0))
        };
        if both_halves_are(Content::Initial) {
            WrittenLanes::Active
        } else if both_halves_are(Content::Inverse) {
            WrittenLanes::Masked
        } else if both_halves_are(|_| ONES) {
            WrittenLanes::All
        } else if is_subset(low) && high.is_none_or(is_subset) {
            WrittenLanes::SomeActive
        } else {
            WrittenLanes::Unknown
        }
    }

    /// Writes a location under EXEC.
    pub fn write_lanes(&mut self, location: impl Fn(LaneSet) -> Location, contents: LaneContents) {
        let written = self.written_lanes();
        for lanes in LaneSet::ALL {
            let (location, content) = (location(lanes), contents.get(lanes));
            let old = self.get(location);
            let new = match (written, lanes) {
                (WrittenLanes::All, _)
                | (WrittenLanes::Active, LaneSet::Active)
                | (WrittenLanes::Masked, LaneSet::Masked) => content,
                (WrittenLanes::Unknown, _) | (WrittenLanes::SomeActive, LaneSet::Active) => {
                    old.join(content)
                }
                _ => old,
            };
            self.set(location, new);
        }
    }

    /// Writes a vector register under EXEC.
    pub fn write_vector(&mut self, register: Register, contents: LaneContents) {
        self.forget_lanes(register);
        self.write_lanes(|lanes| Location::Vector(lanes, register), contents);
    }

    /// The contents of a vector register.
    pub fn vector(&self, register: Register) -> LaneContents {
        self.lane_contents(|lanes| Location::Vector(lanes, register))
    }

    /// The contents of a location in both sets of lanes.
    pub fn lane_contents(&self, location: impl Fn(LaneSet) -> Location) -> LaneContents {
        LaneContents {
            active: self.get(location(LaneSet::Active)),
            masked: self.get(location(LaneSet::Masked)),
        }
    }

    /// Sets a vector register to unknown values in all lanes.
    pub fn forget_vector(&mut self, register: Register) {
        self.forget_lanes(register);
        for lanes in LaneSet::ALL {
            self.set(Location::Vector(lanes, register), Content::Unknown);
        }
    }

    /// Writes one lane of a vector register. Values of other single lanes remain known.
    pub fn write_lane(&mut self, register: Register, lane: Content, content: Content) {
        let Content::Constant(lane) = lane else {
            return self.forget_vector(register);
        };
        for lanes in LaneSet::ALL {
            self.set(Location::Vector(lanes, register), Content::Unknown);
        }
        self.set(Location::Lane(register, lane & u32::from(self.wave_size - 1)), content);
    }

    /// The content of one lane of a vector register.
    pub fn lane(&self, register: Register, lane: Content) -> Content {
        match lane {
            Content::Constant(lane) => {
                self.get(Location::Lane(register, lane & u32::from(self.wave_size - 1)))
            }
            _ => Content::Unknown,
        }
    }

    /// The content of a vector register that has the same value in all lanes.
    pub fn uniform(&self, register: Register) -> Content {
        let LaneContents { active, masked } = self.vector(register);
        match active {
            Content::Initial(source) if source.is_per_lane() => Content::Unknown,
            content if content == masked => content,
            _ => Content::Unknown,
        }
    }

    /// Forgets the values of all single lanes of a vector register.
    fn forget_lanes(&mut self, register: Register) {
        self.contents.retain(
            |location, _| !matches!(location, Location::Lane(written, _) if *written == register),
        );
    }

    /// Forgets all slots for which `keep` returns `false`.
    pub fn retain_slots(&mut self, keep: impl Fn(&ScratchSlot) -> bool) {
        self.contents.retain(|location, _| match location {
            Location::Slot(_, slot) => keep(slot),
            _ => true,
        });
    }

    /// Makes the current values of `registers` their initial values.
    pub fn rebase(&mut self, registers: RegisterSet) {
        self.contents.retain(|location, content| match location {
            Location::Scalar(register) | Location::Vector(_, register)
                if registers.contains(*register) =>
            {
                false
            }
            _ => {
                if let Content::Initial(source)
                | Content::Inverse(source)
                | Content::ExecSubset(source) = content
                    && registers.contains(*source)
                {
                    *content = Content::Unknown;
                }
                true
            }
        });
        if registers.contains(Register::Mode) {
            self.mode_changed = 0;
        }
        if registers.contains(Register::ExecLo) || registers.contains(Register::ExecHi) {
            self.exec_changed = true;
            self.merge_lane_sets();
        }
    }

    /// Joins the contents of active and masked lanes, as each lane may now be in either set.
    fn merge_lane_sets(&mut self) {
        let opposite = |lanes| match lanes {
            LaneSet::Active => LaneSet::Masked,
            LaneSet::Masked => LaneSet::Active,
        };
        for location in self.changed().collect::<Vec<_>>() {
            let twin = match location {
                Location::Vector(lanes, register) => Location::Vector(opposite(lanes), register),
                Location::Slot(lanes, slot) => Location::Slot(opposite(lanes), slot),
                Location::Scalar(_) | Location::Lane(..) => continue,
            };
            let both = self.get(location).join(self.get(twin));
            self.set(location, both);
            self.set(twin, both);
        }
    }

    /// Joins the state of another path. Returns `true` if this state has changed.
    pub fn join(&mut self, other: &SymbolicState) -> bool {
        let mut joined = self.clone();
        joined.mode_changed |= other.mode_changed;
        joined.exec_changed |= other.exec_changed;
        if joined.indexing != other.indexing {
            joined.indexing = Indexing::Inserted;
        }
        for location in self.contents.keys().chain(other.contents.keys()) {
            joined.set(*location, self.get(*location).join(other.get(*location)));
        }
        let has_changed = joined != *self;
        *self = joined;
        has_changed
    }

    /// Locations whose contents differ from the initial ones.
    pub fn changed(&self) -> impl Iterator<Item = Location> {
        self.contents.keys().copied()
    }
}
