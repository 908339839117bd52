//! Fault sites: one fault of one program, absolute, as one line of text.

mod fields;
mod text;

use crate::fault::{Action, Intermittent, all_ones};
use flipwave_device::WaveId;
use flipwave_isa::{Lane, LaneMask, Operation, Pc, Register, Target};
use flipwave_sim::{MatrixElement, ProductShape, SumPart};
use std::num::NonZeroU32;

/// Where and when a fault strikes, and what it does. A site is absolute: it names the same events
/// on every run, host and device.
///
/// As text on one line, in this order:
/// `dispatch=0 workgroup=3,1,0 wave=2 pc=0x1a9c occurrence=5 lane=17 register=v4 flip=0x00000400`.
///
/// - When: `wave=all` stands for every wave of the workgroup; `window=100 rate=0x80000000 key=0x1`
///   after `occurrence` for an [`Intermittent`] fault; and in place of all up to `occurrence`,
///   `opcode=v_fma_f32 units=104 unit=3 simd=1 slot=5` for a permanent one.
/// - Where: `register=` after the instruction, `source=` as it reads it, `lds=`, `scratch=` (byte
///   offsets), `buffer=1 offset=0x40`, `encoding=` (number of the dword), `branch=decision`,
///   `program_counter=` (0 the low, 1 the high half), `destination=` (number of the word among
///   those that the instruction writes), `product=3,7 step=5`, `partial_sum=3,7 step=5` and
///   `accumulator=3,7` (row and column of an element that a product of matrices sums up; after them
///   `block=2` of a matrix that is not the first, and after all `word=1` for the upper half of double
///   precision). In front of it, where each lane has its own: `lane=17`,
///   `lanes=0x00000000ffffffff`, `lanes=active` or `lanes=all`.
/// - What: `flip=`, `set=`, `stuck_at_zero=`, `stuck_at_one=` with a word, or `relative_f32=0.01`
///   and the like with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// When it strikes.
    pub when: When,
    /// What it strikes.
    pub place: Place,
    /// Whose, where each lane has its own.
    pub lanes: Option<Lanes>,
    /// What happens to it.
    pub action: Action,
}

/// When a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum When {
    /// At executions of one instruction by the waves of one workgroup.
    At(Event),
    /// At every execution of an operation by one part of the device.
    Always(Unit),
}

/// Executions of one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// Index of the dispatch in the workload, from 0.
    pub dispatch: u32,
    /// Position of the workgroup in the grid.
    pub workgroup: [u32; 3],
    /// Index of the wave in its workgroup; nothing for all of them.
    pub wave: Option<u32>,
    /// The instruction, as ELF virtual address.
    pub pc: Pc,
    /// Which execution of the instruction by the wave, from 0.
    pub occurrence: u64,
    /// How it goes on from there, and the key that decides which executions are struck; nothing
    /// for a fault that strikes once.
    pub intermittent: Option<(Intermittent, u32)>,
}

/// A part of a device on which a permanent fault sits.
///
/// The waves of a program are mapped to it by a rule, since an emulated GPU has no such parts and
/// a real one does not promise which it takes: of `units` compute units, workgroup number n of a
/// dispatch (x fastest) runs on unit n modulo `units`; of the SIMDs of a unit, wave number n of a
/// workgroup on SIMD n modulo their number; lane n of a wave in slot n modulo the SIMD's width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unit {
    /// The operation whose executions are struck.
    pub opcode: Operation,
    /// Compute units of the device.
    pub units: NonZeroU32,
    /// The compute unit, from 0.
    pub unit: u32,
    /// The SIMD of the compute unit, from 0.
    pub simd: u8,
    /// The lane slot of the SIMD, from 0; nothing where the destination is one for the wave.
    pub slot: Option<u8>,
}

/// What a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A register, after the instruction. Those of a plan are ones that the instruction writes or
    /// the kernel has; a site written by hand may name any of the wave.
    Register(Register),
    /// A register, as the instruction reads it: it is changed before, and changed back after,
    /// unless the instruction wrote it.
    Source(Register),
    /// The word at this byte offset in the LDS of the workgroup, after the instruction.
    Lds(u32),
    /// The word at this byte offset in a lane's scratch, after the instruction.
    Scratch(u32),
    /// A word of a buffer of the workload, after the instruction.
    Memory {
        /// Index of the buffer.
        buffer: u32,
        /// Byte offset in it.
        offset: u64,
    },
    /// A dword of the instruction's encoding, for this one execution.
    Encoding(u8),
    /// Whether the branch is taken: a bit, 1 where it is.
    Branch,
    /// The low (0) or high (1) word of the program counter, after the instruction: of the ELF
    /// virtual address at which the wave goes on.
    ProgramCounter(u8),
    /// This word of the registers that the instruction writes, in the order of its register list.
    Destination(u8),
    /// What a product of matrices sums up to an element of its result, as it does.
    Sum(SumPlace),
}

/// A word of a part of the sum that is an element of a product of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SumPlace {
    /// Of what part.
    pub part: SumPart,
    /// Of which element.
    pub element: MatrixElement,
    /// At which step of the sum; 0 for the accumulator.
    pub step: u8,
    /// 0, or 1 for the upper half of double precision.
    pub word: u8,
}

impl SumPlace {
    /// Whether an instruction of this shape has it, of values of so many words.
    pub(crate) fn is_of(&self, shape: &ProductShape, words: u8) -> bool {
        shape.has(self.element)
            && shape.steps(self.part).any(|step| step == self.step)
            && self.word + words <= shape.words()
    }

    /// The same part and word of another column.
    pub(crate) fn at_column(self, column: u8) -> SumPlace {
        SumPlace { element: MatrixElement { column, ..self.element }, ..self }
    }
}

/// Which lanes of a wave are struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lanes {
    /// One.
    One(Lane),
    /// These.
    Mask(LaneMask),
    /// Those that the instruction runs on: whose destinations it writes.
    Active,
    /// All that the wave has.
    All,
}

impl Site {
    /// The event, of all faults but permanent ones.
    pub fn event(&self) -> Option<&Event> {
        match &self.when {
            When::At(event) => Some(event),
            When::Always(_) => None,
        }
    }

    /// Checks what the types leave open.
    ///
    /// # Errors
    /// [`SiteError`] if lanes are missing, superfluous or above 63, if nothing is flipped, or
    /// if the parts contradict one another.
    pub fn check(&self) -> Result<(), SiteError> {
        match self.lanes {
            None if self.place.is_per_lane() => return Err(SiteError::LaneMissing(self.place)),
            Some(_) if !self.place.is_per_lane() => {
                return Err(SiteError::LaneSuperfluous(self.place));
            }
            Some(Lanes::One(lane)) if lane.0 > 63 => return Err(SiteError::NoSuchLane(lane)),
            Some(Lanes::Mask(LaneMask::EMPTY)) => return Err(SiteError::NoLane),
            _ => {}
        }
        match (self.when, self.place) {
            (When::Always(unit), Place::Destination(_)) => unit.check()?,
            (When::Always(_), place) => return Err(SiteError::PermanentPlace(place)),
            (When::At(_), Place::Destination(_)) => return Err(SiteError::TransientDestination),
            (When::At(_), _) => {}
        }
        if let Place::ProgramCounter(word @ 2..) = self.place {
            return Err(SiteError::NoSuchHalf { word });
        }
        if let Place::Sum(SumPlace { part, step, word, .. }) = self.place
            && (word > 1 || part == SumPart::Accumulator && step > 0)
        {
            return Err(SiteError::NoSuchSum { place: self.place });
        }
        let offset = match self.place {
            Place::Lds(offset) | Place::Scratch(offset) => offset.into(),
            Place::Memory { offset, .. } => offset,
            _ => 0,
        };
        if !offset.is_multiple_of(4) {
            return Err(SiteError::Misaligned { offset });
        }
        if self.action == Action::Flip(0) {
            return Err(SiteError::NothingFlipped);
        }
        let bits = self.place.bits();
        if self.action.word() & !all_ones(bits) != 0 {
            let (place, word) = (self.place, self.action.word());
            return Err(SiteError::TooWide { place, word, bits });
        }
        match self.action {
            Action::Relative(..) if !self.place.is_typed() => {
                Err(SiteError::NotTyped { place: self.place })
            }
            _ => Ok(()),
        }
    }
}

impl Event {
    /// Whether a wave is of the event.
    pub fn strikes_wave(&self, wave: WaveId) -> bool {
        wave.workgroup == self.workgroup && self.wave.is_none_or(|own| own == wave.wave)
    }

    /// Whether an execution of the instruction is, by its number among the wave's own.
    pub(crate) fn strikes(&self, occurrence: u64) -> bool {
        match (occurrence.checked_sub(self.occurrence), self.intermittent) {
            (None, _) => false,
            (Some(n), None) => n == 0,
            (Some(n), Some((intermittent, key))) => intermittent.strikes(key, n),
        }
    }

    /// Whether it is one execution by one wave.
    pub(crate) fn is_single(&self) -> bool {
        self.wave.is_some() && self.intermittent.is_none()
    }

    /// The number of the last execution that may be struck.
    pub fn last(&self) -> u64 {
        let window = self.intermittent.map_or(1, |(intermittent, _)| intermittent.window.get());
        self.occurrence.saturating_add(window - 1)
    }
}

impl Unit {
    /// SIMDs of a compute unit and the lanes that each of them executes at once: four of 16 up to
    /// gfx9 ("Compute unit" in the CDNA and Vega ISA documents), two of 32 from gfx10 on (RDNA ISA
    /// documents).
    pub(crate) fn simds(target: &Target) -> (u8, u8) {
        match target.simds_per_unit() {
            2 => (2, 32),
            _ => (4, 16),
        }
    }

    /// The compute unit and the SIMD that a wave runs on, of a dispatch with this many workgroups
    /// in x and y, on a device with this many SIMDs to a unit.
    pub(crate) fn place_of(&self, wave: WaveId, workgroups: [u32; 2], simds: u8) -> (u32, u8) {
        let [x, y, z] = wave.workgroup.map(u64::from);
        let [width, height] = workgroups.map(u64::from);
        let number = x + width * (y + height * z);
        ((number % u64::from(self.units.get())) as u32, (wave.wave % u32::from(simds)) as u8)
    }

    /// Whether a wave runs on this part of the device.
    pub fn runs(&self, wave: WaveId, workgroups: [u32; 2], simds: u8) -> bool {
        self.place_of(wave, workgroups, simds) == (self.unit, self.simd)
    }

    /// The lanes of a wave that run in the slot, of SIMDs of this width.
    pub fn lanes(&self, width: u8) -> LaneMask {
        let slot = self.slot.unwrap_or(0);
        let lanes = (0..64).filter(|lane| lane % width == slot);
        LaneMask(lanes.fold(0, |mask, lane| mask | 1 << lane))
    }

    fn check(&self) -> Result<(), SiteError> {
        if self.unit >= self.units.get() {
            return Err(SiteError::NoSuchUnit { unit: self.unit, units: self.units });
        }
        Ok(())
    }
}

impl Lanes {
    /// The lanes, of an instruction that runs on `active` of a wave that has `all`.
    pub fn of(self, active: LaneMask, all: LaneMask) -> LaneMask {
        match self {
            Lanes::One(lane) => LaneMask(1 << lane.0),
            Lanes::Mask(mask) => mask,
            Lanes::Active => active,
            Lanes::All => all,
        }
    }
}

impl Place {
    /// Whether each lane has its own.
    pub(crate) fn is_per_lane(self) -> bool {
        match self {
            Place::Register(register) | Place::Source(register) => register.is_per_lane(),
            Place::Scratch(_) => true,
            _ => false,
        }
    }

    /// Width in bits.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Place::Register(register) | Place::Source(register) => register.bits(),
            Place::Branch => 1,
            _ => 32,
        }
    }

    /// Whether it can hold a floating-point number.
    fn is_typed(self) -> bool {
        match self {
            Place::Register(register) | Place::Source(register) => register.bits() == 32,
            Place::Destination(_) | Place::Sum(_) => true,
            _ => false,
        }
    }

    /// Whether it is struck before the instruction is executed.
    pub(crate) fn is_struck_before(self) -> bool {
        matches!(self, Place::Source(_) | Place::Encoding(_) | Place::Sum(_))
    }
}

/// A text that is no site, or a site that contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SiteError {
    /// Another field stands where one is expected.
    #[error("a site needs `{expected}` where `{found}` stands")]
    Field {
        /// Key of the field expected.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A value that cannot be read.
    #[error("`{key}={text}` in a site: expected {expected}")]
    Value {
        /// Key of the field.
        key: &'static str,
        /// The value as written.
        text: String,
        /// What it has to be.
        expected: &'static str,
    },
    /// A place of which each lane has its own, without a lane.
    #[error("each lane has its own {0}: the site needs `lane` or `lanes`")]
    LaneMissing(Place),
    /// A place that lanes share, with a lane.
    #[error("{0} is one for the whole wave: the site must not name a lane")]
    LaneSuperfluous(Place),
    /// A lane that no wave has.
    #[error("lane {0} does not exist: a wave has lanes 0 to 63")]
    NoSuchLane(Lane),
    /// A set of lanes without one.
    #[error("`lanes` names no lane")]
    NoLane,
    /// A flip without a bit.
    #[error("`flip` names no bit")]
    NothingFlipped,
    /// More bits than the place has.
    #[error("{word:#010x} does not fit {place}, which has {bits} bit(s)")]
    TooWide {
        /// The place.
        place: Place,
        /// The mask or value.
        word: u32,
        /// The place's width.
        bits: u32,
    },
    /// An error relative to what is no number.
    #[error("{place} holds no floating-point number that an error could be relative to")]
    NotTyped {
        /// The place.
        place: Place,
    },
    /// A word that does not begin where words do.
    #[error("offset {offset:#x} is not that of a word: expected a multiple of 4")]
    Misaligned {
        /// The offset.
        offset: u64,
    },
    /// A word of the program counter that is not there.
    #[error("word {word} of the program counter does not exist: it has 0 and 1")]
    NoSuchHalf {
        /// The word.
        word: u8,
    },
    /// A part of a sum that no instruction has.
    #[error("{place} does not exist: an accumulator has step 0 only, and sums have words 0 and 1")]
    NoSuchSum {
        /// The place.
        place: Place,
    },
    /// A compute unit that is not there.
    #[error("unit {unit} does not exist: there are {units}, counted from 0")]
    NoSuchUnit {
        /// The unit.
        unit: u32,
        /// How many there are.
        units: NonZeroU32,
    },
    /// A permanent fault that is not one of results.
    #[error("a permanent fault strikes results: expected `destination`, not {0}")]
    PermanentPlace(Place),
    /// A destination by its number, of an instruction that is known.
    #[error("`destination` is for permanent faults; name the register with `register`")]
    TransientDestination,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::wave;

    #[test]
    fn an_event_strikes_its_waves_and_its_executions_only() {
        let one: Site =
            "dispatch=0 workgroup=3,0,0 wave=1 pc=0x0 occurrence=5 register=scc flip=0x1"
                .parse()
                .unwrap();
        let event = *one.event().unwrap();
        assert!(event.strikes_wave(wave(3, 1)));
        assert!(!event.strikes_wave(wave(3, 0)) && !event.strikes_wave(wave(2, 1)));
        assert_eq!((0..10).filter(|n| event.strikes(*n)).collect::<Vec<_>>(), [5]);
        let all = Event { wave: None, ..event };
        assert!(all.strikes_wave(wave(3, 0)) && !all.strikes_wave(wave(2, 1)));
        let window = std::num::NonZeroU64::new(3).unwrap();
        let intermittent = Some((Intermittent { window, rate: u32::MAX }, 0));
        let again = Event { intermittent, ..event };
        assert_eq!((0..10).filter(|n| again.strikes(*n)).collect::<Vec<_>>(), [5, 6, 7]);
        assert_eq!(again.last(), 7);
    }

    #[test]
    fn a_site_that_is_sound_is_one_that_can_be_read() {
        let text = "dispatch=0 workgroup=0,0,0 wave=0 pc=0x0 occurrence=0 program_counter=1 \
                    flip=0x00000001";
        let high: Site = text.parse().unwrap();
        assert_eq!(high.check(), Ok(()));
        let none = Site { place: Place::ProgramCounter(2), ..high };
        assert_eq!(none.check(), Err(SiteError::NoSuchHalf { word: 2 }));
        let element = MatrixElement { block: 0, row: 3, column: 7 };
        let part = SumPart::Accumulator;
        let sum =
            |step, word| Site { place: Place::Sum(SumPlace { part, element, step, word }), ..high };
        assert_eq!(sum(0, 1).check(), Ok(()));
        assert!(sum(1, 0).check().is_err() && sum(0, 2).check().is_err());
    }

    #[test]
    fn waves_and_lanes_are_mapped_to_units_as_documented() {
        let site: Site =
            "opcode=v_fma_f32 units=4 unit=3 simd=1 slot=5 destination=0 flip=0x1".parse().unwrap();
        let When::Always(unit) = site.when else { panic!("{site:?}") };
        let wave = |workgroup, wave| WaveId { workgroup, wave };
        // Of 2 x 3 workgroups in x and y, number 3 and number 7 are at 1,1,0 and 1,0,1.
        assert!(unit.runs(wave([1, 1, 0], 1), [2, 3], 4));
        assert!(unit.runs(wave([1, 0, 1], 5), [2, 3], 4));
        assert!(!unit.runs(wave([1, 1, 0], 2), [2, 3], 4));
        assert!(!unit.runs(wave([0, 1, 0], 1), [2, 3], 4));
        assert_eq!(unit.lanes(16), LaneMask(1 << 5 | 1 << 21 | 1 << 37 | 1 << 53));
        assert_eq!(unit.lanes(32), LaneMask(1 << 5 | 1 << 37));
        assert_eq!(Unit::simds(&"gfx90a".parse().unwrap()), (4, 16));
        assert_eq!(Unit::simds(&"gfx1100".parse().unwrap()), (2, 32));
    }
}
