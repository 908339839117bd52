//! What is known of all registers at a point of a seam.

use super::content::{Content, ONES};
use super::index::Mode;
use flipwave_isa::{Register, RegisterSet};
use std::collections::BTreeMap;

/// A place that holds 32 bits, or 32 bits for each lane of a part of the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    /// A register that all lanes share.
    Scalar(Register),
    /// A vector register, in the lanes of the EXEC of the beginning or in the others.
    Vector(Plane, Register),
    /// One lane of a vector register, where all lanes are unknown.
    Lane(Register, u32),
    /// A dword of scratch, likewise.
    Slot(Plane, Slot),
}

/// The lanes that EXEC selected at the beginning of the seam, or the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Plane {
    Active,
    Masked,
}

impl Plane {
    /// Both.
    pub const ALL: [Plane; 2] = [Plane::Active, Plane::Masked];
}

/// A dword of each lane's scratch, addressed the same way for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    /// What addresses it: the scratch resource's first register for buffer instructions.
    pub resource: Option<Register>,
    /// What a scalar register adds.
    pub base: Content,
    /// What the instruction adds, in bytes.
    pub offset: i64,
}

/// Which lanes a vector instruction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Those of the EXEC of the beginning.
    Active,
    /// Some of them.
    Some,
    /// All others.
    Masked,
    /// All.
    All,
    /// It is not known.
    Any,
}

/// What GPR-index mode (gfx8, gfx9) does to vector instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Indexing {
    /// Nothing.
    #[default]
    Off,
    /// It may be on for the guest, and may be as the guest left it.
    Guest,
    /// Inserted code switched it on.
    On,
}

impl Indexing {
    fn of(guest: Mode) -> Indexing {
        if guest == Mode::Off { Indexing::Off } else { Indexing::Guest }
    }
}

/// The bit of MODE that is GPR-index mode (Vega ISA, "MODE register", GPR_IDX_EN).
pub const INDEX_MODE: u32 = 1 << 27;

/// Arguments in memory that the original kernel had in registers when it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreloadedArguments {
    /// What the words of their address are.
    pub pointer: [Content; 2],
    /// The register of the first.
    pub first: Register,
    /// How many words there are.
    pub words: u8,
    /// Where the first lies after the address, in bytes.
    pub offset: u64,
}

impl PreloadedArguments {
    /// What a load of a word from the address and an offset gives.
    pub fn loaded(&self, pointer: [Content; 2], offset: u64) -> Content {
        let distance = offset.wrapping_sub(self.offset);
        let word = u8::try_from(distance / 4).ok().filter(|word| {
            pointer == self.pointer && distance.is_multiple_of(4) && *word < self.words
        });
        let register = word.and_then(|word| self.first.offset(word));
        register.map_or(Content::Unknown, Content::Own)
    }
}

/// What is known of all registers. What is not in the map is as it was at the beginning; lanes
/// and slots that are not in it are unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolicState {
    contents: BTreeMap<Location, Content>,
    /// Bits of MODE that may have changed.
    pub mode_changed: u32,
    /// GPR-index mode.
    indexing: Indexing,
    /// The same at the beginning.
    guest: Mode,
    /// What the kernel's start may load instead of finding it in registers.
    pub arguments: Option<PreloadedArguments>,
    /// Whether EXEC was changed for good: the lanes of the two planes are then those of the new
    /// EXEC.
    exec_changed: bool,
    wave_size: u8,
}

fn initial(location: Location) -> Content {
    match location {
        Location::Scalar(register) | Location::Vector(_, register) => Content::Own(register),
        Location::Lane(..) | Location::Slot(..) => Content::Unknown,
    }
}

impl SymbolicState {
    /// The beginning of a seam.
    pub fn new(wave_size: u8, guest: Mode) -> SymbolicState {
        let contents = BTreeMap::new();
        let arguments = None;
        let indexing = Indexing::of(guest);
        let (mode_changed, exec_changed) = (0, false);
        SymbolicState {
            contents,
            mode_changed,
            indexing,
            guest,
            arguments,
            exec_changed,
            wave_size,
        }
    }

    /// What GPR-index mode does to vector instructions here.
    pub fn indexing(&self) -> Indexing {
        self.indexing
    }

    /// GPR-index mode is switched on or off, or either. Where it is known what it was for the
    /// guest, it may be that again.
    pub fn set_indexing(&mut self, is_on: Option<bool>) {
        self.indexing = match is_on {
            Some(false) => Indexing::Off,
            Some(true) if self.guest == Mode::On => Indexing::Guest,
            _ => Indexing::On,
        };
        let is_own =
            is_on.is_some_and(|is_on| self.guest == if is_on { Mode::On } else { Mode::Off });
        if is_own {
            self.mode_changed &= !INDEX_MODE;
        } else {
            self.mode_changed |= INDEX_MODE;
        }
    }

    /// GPR-index mode is as it was at the beginning.
    pub fn set_indexing_of_guest(&mut self) {
        self.mode_changed &= !INDEX_MODE;
        self.indexing = Indexing::of(self.guest);
    }

    /// How many registers a lane mask takes.
    pub fn mask_words(&self) -> usize {
        if self.wave_size == 32 { 1 } else { 2 }
    }

    /// Whether EXEC was changed for good.
    pub fn exec_changed(&self) -> bool {
        self.exec_changed
    }

    /// What a location holds.
    pub fn get(&self, location: Location) -> Content {
        self.contents.get(&location).copied().unwrap_or_else(|| initial(location))
    }

    /// What a register holds that all lanes share.
    pub fn scalar(&self, register: Register) -> Content {
        self.get(Location::Scalar(register))
    }

    /// Gives a location a content.
    pub fn set(&mut self, location: Location, content: Content) {
        if content == initial(location) {
            self.contents.remove(&location);
        } else {
            self.contents.insert(location, content);
        }
    }

    /// Gives a register a content that all lanes share.
    pub fn set_scalar(&mut self, register: Register, content: Content) {
        match register {
            Register::Null => {}
            Register::Mode => self.mode_changed = u32::MAX,
            _ => self.set(Location::Scalar(register), content),
        }
    }

    /// The lanes that EXEC selects now.
    pub fn reach(&self) -> Reach {
        let low = self.scalar(Register::ExecLo);
        let high = match self.wave_size {
            32 => None,
            _ => Some(self.scalar(Register::ExecHi)),
        };
        let is = |wanted: fn(Register) -> Content| {
            low == wanted(Register::ExecLo)
                && high.is_none_or(|high| high == wanted(Register::ExecHi))
        };
        let part = |content: Content| {
            let exec = matches!(content, Content::Own(Register::ExecLo | Register::ExecHi));
            exec || matches!(content, Content::Within(_) | Content::Constant(0))
        };
        if is(Content::Own) {
            Reach::Active
        } else if is(Content::Inverse) {
            Reach::Masked
        } else if is(|_| ONES) {
            Reach::All
        } else if part(low) && high.is_none_or(part) {
            Reach::Some
        } else {
            Reach::Any
        }
    }

    /// Writes a location of lanes as a vector instruction does: `contents` are the new ones of the
    /// active and of the masked lanes.
    pub fn write_lanes(&mut self, at: impl Fn(Plane) -> Location, contents: [Content; 2]) {
        let reach = self.reach();
        for (plane, content) in Plane::ALL.into_iter().zip(contents) {
            let location = at(plane);
            let old = self.get(location);
            let new = match (reach, plane) {
                (Reach::All, _)
                | (Reach::Active, Plane::Active)
                | (Reach::Masked, Plane::Masked) => content,
                (Reach::Any, _) | (Reach::Some, Plane::Active) => old.join(content),
                _ => old,
            };
            self.set(location, new);
        }
    }

    /// Writes a vector register under EXEC.
    pub fn write_vector(&mut self, register: Register, contents: [Content; 2]) {
        self.forget_lanes(register);
        self.write_lanes(|plane| Location::Vector(plane, register), contents);
    }

    /// A vector register in the active and in the masked lanes.
    pub fn vector(&self, register: Register) -> [Content; 2] {
        Plane::ALL.map(|plane| self.get(Location::Vector(plane, register)))
    }

    /// Writes a vector register in lanes that EXEC does not decide.
    pub fn forget_vector(&mut self, register: Register) {
        self.forget_lanes(register);
        for plane in Plane::ALL {
            self.set(Location::Vector(plane, register), Content::Unknown);
        }
    }

    /// Writes one lane of a vector register; what is known of its other single lanes stays.
    pub fn write_lane(&mut self, register: Register, lane: Content, content: Content) {
        let Content::Constant(lane) = lane else {
            return self.forget_vector(register);
        };
        for plane in Plane::ALL {
            self.set(Location::Vector(plane, register), Content::Unknown);
        }
        self.set(Location::Lane(register, lane & u32::from(self.wave_size - 1)), content);
    }

    /// One lane of a vector register.
    pub fn lane(&self, register: Register, lane: Content) -> Content {
        match lane {
            Content::Constant(lane) => {
                self.get(Location::Lane(register, lane & u32::from(self.wave_size - 1)))
            }
            _ => Content::Unknown,
        }
    }

    /// What every lane of a vector register holds, if that is one value.
    pub fn uniform(&self, register: Register) -> Content {
        match self.vector(register) {
            [Content::Own(own), _] if own.is_per_lane() => Content::Unknown,
            [active, masked] if active == masked => active,
            _ => Content::Unknown,
        }
    }

    fn forget_lanes(&mut self, register: Register) {
        self.contents
            .retain(|location, _| !matches!(location, Location::Lane(own, _) if *own == register));
    }

    /// Forgets the slots for which `keep` is false.
    pub fn retain_slots(&mut self, keep: impl Fn(&Slot) -> bool) {
        self.contents.retain(|location, _| match location {
            Location::Slot(_, slot) => keep(slot),
            _ => true,
        });
    }

    /// From here on the registers count as what they now are.
    pub fn accept(&mut self, registers: RegisterSet) {
        self.contents.retain(|location, content| match location {
            Location::Scalar(own) | Location::Vector(_, own) if registers.contains(*own) => false,
            _ => {
                if let Content::Own(own) | Content::Inverse(own) | Content::Within(own) = content
                    && registers.contains(*own)
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
            self.merge_planes();
        }
    }

    /// Each lane may now be active or masked.
    fn merge_planes(&mut self) {
        let other = |plane| match plane {
            Plane::Active => Plane::Masked,
            Plane::Masked => Plane::Active,
        };
        for location in self.changed().collect::<Vec<_>>() {
            let twin = match location {
                Location::Vector(plane, register) => Location::Vector(other(plane), register),
                Location::Slot(plane, slot) => Location::Slot(other(plane), slot),
                Location::Scalar(_) | Location::Lane(..) => continue,
            };
            let both = self.get(location).join(self.get(twin));
            self.set(location, both);
            self.set(twin, both);
        }
    }

    /// What is known where one of two ways was taken; whether that is less than what was.
    pub fn join(&mut self, other: &SymbolicState) -> bool {
        let mut joined = self.clone();
        joined.mode_changed |= other.mode_changed;
        joined.exec_changed |= other.exec_changed;
        if joined.indexing != other.indexing {
            joined.indexing = Indexing::On;
        }
        for location in self.contents.keys().chain(other.contents.keys()) {
            joined.set(*location, self.get(*location).join(other.get(*location)));
        }
        let is_less = joined != *self;
        *self = joined;
        is_less
    }

    /// The locations whose content is not that of the beginning.
    pub fn changed(&self) -> impl Iterator<Item = Location> {
        self.contents.keys().copied()
    }
}
