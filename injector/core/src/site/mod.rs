//! Fault sites: absolute descriptions of single faults as one line of text.

mod fields;
mod names;
mod text;

pub use names::UndeclaredRegister;

use crate::fault::{Action, Intermittent, all_ones};
use flipwave_arch::{
    Lane, LaneMask, MatrixElement, OperationName, Pc, ProductShape, RegisterId, SumPart,
};
use flipwave_device::WaveId;
use std::num::NonZeroU32;

/// A fault: when and where it strikes, and what it does. A site is absolute: it denotes the same events
/// on every run, host and device.
///
/// The text form is one line, in this order:
/// `dispatch=0 workgroup=3,1,0 wave=2 pc=0x1a9c occurrence=5 lane=17 register=v4 flip=0x00000400`.
///
/// - When: `wave=all` denotes every wave of the workgroup; `window=100 rate=0x80000000 key=0x1`
///   after `occurrence` an [`Intermittent`] fault; and instead of the fields up to `occurrence`,
///   `opcode=v_fma_f32 units=104 unit=3 simd=1 slot=5` denotes a permanent fault.
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
    /// When the fault strikes.
    pub when: When,
    /// The place that it strikes.
    pub place: Place,
    /// The lanes, for places that exist per lane.
    pub lanes: Option<Lanes>,
    /// The change of the value.
    pub action: Action,
}

/// Time of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum When {
    /// Strikes executions of one instruction by the waves of one workgroup.
    At(Event),
    /// Strikes every execution of an operation by one unit of the device.
    Always(Unit),
}

/// Executions of one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// Index of the dispatch in the workload, from 0.
    pub dispatch: u32,
    /// Position of the workgroup in the grid.
    pub workgroup: [u32; 3],
    /// Index of the wave in its workgroup; `None` for all waves.
    pub wave: Option<u32>,
    /// ELF virtual address of the instruction.
    pub pc: Pc,
    /// Number of earlier executions of the instruction by the wave.
    pub occurrence: u64,
    /// For a fault that strikes repeatedly: its parameters, and the key that determines the struck
    /// executions.
    pub intermittent: Option<(Intermittent, u32)>,
}

/// A unit of a device with a permanent fault.
///
/// Waves are mapped to units by a fixed rule, because a simulated GPU has no such units and a real one
/// does not specify which unit it uses: workgroup n of a dispatch (numbered with x fastest) runs on
/// compute unit n modulo `units`, wave n of a workgroup on SIMD n modulo the SIMDs of a compute unit,
/// and lane n of a wave in slot n modulo the SIMD's width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unit {
    /// The operation whose executions are struck.
    pub opcode: OperationName,
    /// Number of compute units of the device.
    pub units: NonZeroU32,
    /// Index of the compute unit.
    pub unit: u32,
    /// Index of the SIMD in the compute unit.
    pub simd: u8,
    /// Index of the lane slot in the SIMD; `None` for scalar destinations.
    pub slot: Option<u8>,
}

/// Place that a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A register, after the instruction. Plans only use registers that the instruction writes or the
    /// kernel allocates; a site written by hand may name any register of the wave.
    Register(RegisterId),
    /// A register as the instruction reads it: changed before the instruction, and restored after it
    /// unless the instruction wrote it.
    Source(RegisterId),
    /// The word at this byte offset in the workgroup's LDS, after the instruction.
    Lds(u32),
    /// The word at this byte offset in the lane's scratch memory, after the instruction.
    Scratch(u32),
    /// A word of one of the workload's buffers, after the instruction.
    Memory {
        /// Index of the buffer.
        buffer: u32,
        /// Byte offset in the buffer.
        offset: u64,
    },
    /// A dword of the instruction's encoding, for one execution.
    Encoding(u8),
    /// The decision of a conditional branch: one bit, 1 if taken.
    Branch,
    /// The low (0) or high (1) word of the program counter after the instruction, that is, of the ELF
    /// virtual address where the wave continues.
    ProgramCounter(u8),
    /// Word of the registers that the instruction writes, numbered in the order of its register list.
    Destination(u8),
    /// A part of a sum that a matrix multiplication computes, during the computation.
    Sum(SumPlace),
}

/// A word of a part of the sum that yields one element of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SumPlace {
    /// The part of the sum.
    pub part: SumPart,
    /// The element of the product.
    pub element: MatrixElement,
    /// The step of the sum; 0 for the accumulator.
    pub step: u8,
    /// 0 for the low word, 1 for the upper half of a double-precision number.
    pub word: u8,
}

impl SumPlace {
    /// Returns `true` if an instruction of this shape computes this part with values of `words` words.
    pub(crate) fn is_of(&self, shape: &ProductShape, words: u8) -> bool {
        shape.has(self.element)
            && shape.steps(self.part).any(|step| step == self.step)
            && self.word + words <= shape.words()
    }

    /// Returns the part and word for another column.
    pub(crate) fn at_column(self, column: u8) -> SumPlace {
        SumPlace { element: MatrixElement { column, ..self.element }, ..self }
    }
}

/// Lanes that a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lanes {
    /// One lane.
    One(Lane),
    /// The lanes of a mask.
    Mask(LaneMask),
    /// The lanes that the instruction runs on, that is, whose destinations it writes.
    Active,
    /// All lanes of the wave.
    All,
}

impl Site {
    /// The event, for all faults except permanent ones.
    pub fn event(&self) -> Option<&Event> {
        match &self.when {
            When::At(event) => Some(event),
            When::Always(_) => None,
        }
    }

    /// Checks the constraints that the types do not enforce.
    ///
    /// # Errors
    /// [`SiteError`] if lanes are missing, superfluous or above 63, if no bit is flipped, or if the
    /// parts are inconsistent.
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
            Action::Relative(..) | Action::Function { format: Some(_), .. }
                if !self.place.is_typed() =>
            {
                Err(SiteError::NotTyped { place: self.place })
            }
            _ => Ok(()),
        }
    }
}

impl Event {
    /// Returns `true` if the event strikes the wave.
    pub fn strikes_wave(&self, wave: WaveId) -> bool {
        wave.workgroup == self.workgroup && self.wave.is_none_or(|struck| struck == wave.wave)
    }

    /// Returns `true` if the event strikes this execution, given by its number within the wave.
    pub fn strikes(&self, occurrence: u64) -> bool {
        match (occurrence.checked_sub(self.occurrence), self.intermittent) {
            (None, _) => false,
            (Some(n), None) => n == 0,
            (Some(n), Some((intermittent, key))) => intermittent.strikes(key, n),
        }
    }

    /// Returns `true` if the event is one execution by one wave.
    pub(crate) fn is_single(&self) -> bool {
        self.wave.is_some() && self.intermittent.is_none()
    }

    /// Number of the last execution that may be struck.
    pub fn last(&self) -> u64 {
        let window = self.intermittent.map_or(1, |(intermittent, _)| intermittent.window.get());
        self.occurrence.saturating_add(window - 1)
    }
}

impl Unit {
    /// The compute unit and SIMD that a wave runs on. `workgroups` is the number of workgroups in x and
    /// y, `simds` the number of SIMDs per compute unit.
    pub(crate) fn place_of(&self, wave: WaveId, workgroups: [u32; 2], simds: u8) -> (u32, u8) {
        let [x, y, z] = wave.workgroup.map(u64::from);
        let [width, height] = workgroups.map(u64::from);
        let number = x + width * (y + height * z);
        ((number % u64::from(self.units.get())) as u32, (wave.wave % u32::from(simds)) as u8)
    }

    /// Returns `true` if a wave runs on this unit.
    pub fn runs(&self, wave: WaveId, workgroups: [u32; 2], simds: u8) -> bool {
        self.place_of(wave, workgroups, simds) == (self.unit, self.simd)
    }

    /// The lanes of a wave that run in the slot, for SIMDs of this width.
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
    /// The lanes as a mask, for an instruction that runs on `active` in a wave with the lanes `all`.
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
    /// Returns `true` if each lane has its own value.
    pub fn is_per_lane(self) -> bool {
        match self {
            Place::Register(register) | Place::Source(register) => register.is_per_lane(),
            Place::Scratch(_) => true,
            _ => false,
        }
    }

    /// Width in bits.
    pub fn bits(self) -> u32 {
        match self {
            Place::Register(register) | Place::Source(register) => register.bits(),
            Place::Branch => 1,
            _ => 32,
        }
    }

    /// Returns `true` if the place can hold a floating-point number.
    fn is_typed(self) -> bool {
        match self {
            Place::Register(register) | Place::Source(register) => register.bits() == 32,
            Place::Destination(_) | Place::Sum(_) => true,
            _ => false,
        }
    }

    /// Returns `true` if the place is struck before the instruction executes.
    pub(crate) fn is_struck_before(self) -> bool {
        matches!(self, Place::Source(_) | Place::Encoding(_) | Place::Sum(_))
    }
}

/// Errors returned for invalid site texts and inconsistent sites.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SiteError {
    /// A field is missing or has the wrong key.
    #[error("invalid fault site: expected `{expected}`, found `{found}`")]
    Field {
        /// Key of the expected field.
        expected: &'static str,
        /// The field found.
        found: String,
    },
    /// A function that is not registered.
    #[error(
        "invalid fault site: unknown function `{name}`; expected the function of the campaign file's \
         `faults.model`, whose name changes with its text"
    )]
    UnknownFunction {
        /// Name in the site.
        name: String,
    },
    /// A field has an invalid value.
    #[error("invalid fault site: `{key}={text}`: expected {expected}")]
    Value {
        /// Key of the field.
        key: &'static str,
        /// The value as written.
        text: String,
        /// Description of valid values.
        expected: &'static str,
    },
    /// The code declares no register of a name.
    #[error(
        "invalid fault site: the code at {pc} declares no register `{name}`; expected a register of its function, like \
         %r12, %rd3.lo or %p1, or of another one, like scale:%r12"
    )]
    Undeclared {
        /// The name.
        name: String,
        /// Address of the site's instruction.
        pc: Pc,
    },
    /// The place exists per lane, but the site has no lane.
    #[error("each lane has its own {0}: the site needs `lane` or `lanes`")]
    LaneMissing(Place),
    /// The place is scalar, but the site has a lane.
    #[error("{0} is shared by the whole wave: the site must not name a lane")]
    LaneSuperfluous(Place),
    /// The lane does not exist.
    #[error("lane {0} does not exist: a wave has lanes 0 to 63")]
    NoSuchLane(Lane),
    /// The lane mask is empty.
    #[error("`lanes` is empty; expected at least one lane")]
    NoLane,
    /// The flip mask is empty.
    #[error("`flip` is 0; expected at least one bit")]
    NothingFlipped,
    /// The action has more bits than the place.
    #[error("{word:#010x} does not fit {place}, which has {bits} bit(s)")]
    TooWide {
        /// The place.
        place: Place,
        /// The mask or value.
        word: u32,
        /// The place's width.
        bits: u32,
    },
    /// A change of numbers in a place without floating-point numbers.
    #[error("the change needs a floating-point number, which {place} cannot hold")]
    NotTyped {
        /// Location named in the fault site.
        place: Place,
    },
    /// The offset is not aligned to a word.
    #[error("misaligned offset {offset:#x}: expected a multiple of 4")]
    Misaligned {
        /// The offset.
        offset: u64,
    },
    /// The program counter has no such word.
    #[error("word {word} of the program counter does not exist: it has 0 and 1")]
    NoSuchHalf {
        /// The word.
        word: u8,
    },
    /// The part of a sum does not exist.
    #[error("{place} does not exist: an accumulator has step 0 only, and sums have words 0 and 1")]
    NoSuchSum {
        /// The place.
        place: Place,
    },
    /// The compute unit does not exist.
    #[error("unit {unit} does not exist: there are {units}, counted from 0")]
    NoSuchUnit {
        /// The unit.
        unit: u32,
        /// Number of compute units.
        units: NonZeroU32,
    },
    /// A permanent fault in a place other than a destination.
    #[error("a permanent fault strikes results: expected `destination`, not {0}")]
    PermanentPlace(Place),
    /// `destination` in a site that is not permanent.
    #[error("`destination` is for permanent faults; name the register with `register`")]
    TransientDestination,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{site, wave};

    #[test]
    fn events_strike_only_their_waves_and_executions() {
        let one =
            site("dispatch=0 workgroup=3,0,0 wave=1 pc=0x0 occurrence=5 register=scc flip=0x1");
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
    fn check_rejects_sites_that_text_cannot_express() {
        let text = "dispatch=0 workgroup=0,0,0 wave=0 pc=0x0 occurrence=0 program_counter=1 \
                    flip=0x00000001";
        let high = site(text);
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
    fn waves_and_lanes_map_to_units_as_documented() {
        let site = site("opcode=v_fma_f32 units=4 unit=3 simd=1 slot=5 destination=0 flip=0x1");
        let When::Always(unit) = site.when else { panic!("{site:?}") };
        let wave = |workgroup, wave| WaveId { workgroup, wave };
        // In a grid of 2 x 3 workgroups in x and y, workgroups 3 and 7 are at 1,1,0 and 1,0,1.
        assert!(unit.runs(wave([1, 1, 0], 1), [2, 3], 4));
        assert!(unit.runs(wave([1, 0, 1], 5), [2, 3], 4));
        assert!(!unit.runs(wave([1, 1, 0], 2), [2, 3], 4));
        assert!(!unit.runs(wave([0, 1, 0], 1), [2, 3], 4));
        assert_eq!(unit.lanes(16), LaneMask(1 << 5 | 1 << 21 | 1 << 37 | 1 << 53));
        assert_eq!(unit.lanes(32), LaneMask(1 << 5 | 1 << 37));
    }
}
