//! Rules of buffer addressing, one [`Rules`] per generation. The address of a byte is
//!
//! ```text
//! base + scalar offset + layout(index, offset)
//! index  = register (idxen), plus the lane number where it is added
//! offset = register (offen) + immediate offset
//! layout = index * stride + offset, or swizzled:
//!          (index / N * stride + offset / E * E) * N + index % N * E + offset % E
//! ```
//!
//! with N records side by side and elements of E bytes.

use flipwave_isa::Generation;
use std::fmt::Write;

/// Buffer addressing and range checks of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Generations that have these rules.
    pub name: &'static str,
    /// Condition under which `ADD_TID_ENABLE` adds the lane number to the index.
    pub lane_index: LaneIndex,
    /// Condition under which the resource's swizzle bit takes effect.
    pub swizzle: SwizzleUse,
    /// Position of the scalar offset in the address.
    pub scalar_offset: ScalarOffset,
    /// `true` if the sum of the offsets has more than 32 bits instead of wrapping.
    pub sum_is_wide: bool,
    /// Range checks; the first one whose condition holds applies.
    pub range: &'static [RangeRule],
}

/// Condition under which the lane number is added to the index, if the resource enables it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneIndex {
    /// Unless a linear buffer is indexed. The stride then has four more bits, in place of the data
    /// format, if nothing is converted.
    UnlessLinearIndexed,
    /// Unless the instruction has an index.
    UnlessIndexed,
    /// There is no such bit.
    Never,
}

/// Condition under which a resource with the swizzle bit is swizzled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwizzleUse {
    /// The lane number is added.
    WithLane,
    /// The instruction has an index, or the lane number is added.
    WithIndexOrLane,
    /// Always.
    Always,
}

impl SwizzleUse {
    /// Returns `true` if the swizzle bit takes effect.
    pub fn is_on(self, adds_lane: bool, indexed: bool) -> bool {
        match self {
            SwizzleUse::WithLane => adds_lane,
            SwizzleUse::WithIndexOrLane => adds_lane || indexed,
            SwizzleUse::Always => true,
        }
    }
}

/// Position of the scalar offset in the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarOffset {
    /// Added to the address.
    Outside,
    /// Added to the offset before swizzling, if the buffer is swizzled.
    InElement,
}

/// Range check of an access. Out-of-range loads return zero, out-of-range stores are dropped.
/// Dwords are checked one by one, atomics and converted elements as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Everything is in range.
    Nothing,
    /// The buffer has at least one record.
    AnyRecords,
    /// The index is less than the number of records.
    Index,
    /// The index is less than the number of records, and offset plus size do not exceed the stride.
    IndexAndRecord,
    /// Scalar offset, offset and size together do not exceed the number of records, in bytes.
    Bytes,
    /// Scalar offset, index times stride, offset and size together do not exceed the number of
    /// records, in bytes.
    Address,
    /// The condition of `Address`, and scalar offset, offset and size together do not exceed the stride.
    AddressAndRecord,
}

impl Check {
    /// Returns the description that the generated documentation shows.
    pub fn describe(self) -> &'static str {
        match self {
            Check::Nothing => "everything",
            Check::AnyRecords => "NUM_RECORDS != 0",
            Check::Index => "index < NUM_RECORDS",
            Check::IndexAndRecord => "index < NUM_RECORDS and offset + size <= STRIDE",
            Check::Bytes => "SOFFSET + offset + size <= NUM_RECORDS",
            Check::Address => "SOFFSET + index * STRIDE + offset + size <= NUM_RECORDS",
            Check::AddressAndRecord => {
                "SOFFSET + index * STRIDE + offset + size <= NUM_RECORDS and SOFFSET + offset + size \
                 <= STRIDE"
            }
        }
    }
}

/// Properties of an access that select its range check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// `OOB_SELECT`.
    pub mode: u8,
    /// `ADD_TID_ENABLE`.
    pub adds_lane: bool,
    /// The instruction has an index register.
    pub indexed: bool,
    /// The stride is not zero, ignoring its upper bits on gfx9.
    pub has_stride: bool,
    /// The access is swizzled.
    pub is_swizzled: bool,
}

/// A condition on [`Facts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The lane number is added, and the instruction has no index.
    LaneWithoutIndex,
    /// The instruction has an index, and the stride is not zero.
    IndexAndStride,
    /// `OOB_SELECT` has this value.
    Mode(u8),
    /// `OOB_SELECT` has this value, the access is swizzled, and the stride is not zero.
    SwizzledMode(u8),
    /// The access is swizzled.
    Swizzled,
    /// Always; the last rule.
    Otherwise,
}

impl When {
    /// Returns `true` if the condition holds.
    pub fn holds(self, facts: Facts) -> bool {
        match self {
            When::LaneWithoutIndex => facts.adds_lane && !facts.indexed,
            When::IndexAndStride => facts.indexed && facts.has_stride,
            When::Mode(mode) => facts.mode == mode,
            When::SwizzledMode(mode) => facts.mode == mode && facts.is_swizzled && facts.has_stride,
            When::Swizzled => facts.is_swizzled,
            When::Otherwise => true,
        }
    }

    /// Returns the description that the generated documentation shows.
    pub fn describe(self) -> String {
        match self {
            When::LaneWithoutIndex => "ADD_TID_ENABLE, no idxen".into(),
            When::IndexAndStride => "idxen, STRIDE != 0".into(),
            When::Mode(mode) => format!("OOB_SELECT {mode}"),
            When::SwizzledMode(mode) => format!("OOB_SELECT {mode}, swizzled, STRIDE != 0"),
            When::Swizzled => "swizzled".into(),
            When::Otherwise => "otherwise".into(),
        }
    }
}

/// Evidence for a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Measured on a chip.
    Measured,
    /// Stated by a manual or a driver.
    Documented,
    /// Unsettled by any source.
    NotSettled,
}

impl Standing {
    /// Returns the description that the generated documentation shows.
    pub fn describe(self) -> &'static str {
        match self {
            Standing::Measured => "measured",
            Standing::Documented => "documented",
            Standing::NotSettled => "not settled",
        }
    }
}

/// A range check and the condition under which it applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeRule {
    /// The condition.
    pub when: When,
    /// The range check.
    pub check: Check,
    /// Evidence for the rule.
    pub standing: Standing,
    /// Document or code that states the rule.
    pub source: &'static str,
}

const GFX9: Rules = Rules {
    name: "gfx9 to gfx950",
    lane_index: LaneIndex::UnlessLinearIndexed,
    swizzle: SwizzleUse::WithLane,
    scalar_offset: ScalarOffset::Outside,
    sum_is_wide: false,
    range: &[
        RangeRule {
            when: When::LaneWithoutIndex,
            check: Check::Nothing,
            standing: Standing::Measured,
            source: "gfx950, rocm-systems pull request 10928; LLVM, \
                     `privateMemoryResourceIsRangeChecked`",
        },
        RangeRule {
            when: When::IndexAndStride,
            check: Check::Index,
            standing: Standing::Measured,
            source: "gfx950, rocm-systems pull request 10928; CDNA 3 ISA 9.1.5",
        },
        RangeRule {
            when: When::Otherwise,
            check: Check::Bytes,
            standing: Standing::Measured,
            source: "gfx950, rocm-systems pull request 10928; CDNA 3 ISA 9.1.5",
        },
    ],
};

const RDNA_RANGE: &[RangeRule] = &[
    RangeRule {
        when: When::Mode(0),
        check: Check::IndexAndRecord,
        standing: Standing::Documented,
        source: "RDNA 2, 3 and 4 ISA, \"Range checking\"",
    },
    RangeRule {
        when: When::Mode(1),
        check: Check::Index,
        standing: Standing::Documented,
        source: "RDNA 2, 3 and 4 ISA, \"Range checking\"",
    },
    RangeRule {
        when: When::Mode(2),
        check: Check::AnyRecords,
        standing: Standing::Documented,
        source: "RDNA 2, 3 and 4 ISA, \"Range checking\"",
    },
    RangeRule {
        when: When::SwizzledMode(3),
        check: Check::IndexAndRecord,
        standing: Standing::Documented,
        source: "RDNA 2, 3 and 4 ISA, \"Range checking\"",
    },
    RangeRule {
        when: When::Otherwise,
        check: Check::Bytes,
        standing: Standing::Documented,
        source: "rocMLIR pull request 678; ROCm's rocjitsu, `rdna_buffer_range_check_lane`",
    },
];

const RDNA: Rules = Rules {
    name: "gfx10 to gfx12",
    lane_index: LaneIndex::UnlessIndexed,
    swizzle: SwizzleUse::WithIndexOrLane,
    scalar_offset: ScalarOffset::Outside,
    sum_is_wide: false,
    range: RDNA_RANGE,
};

const GFX125: Rules = Rules {
    name: "gfx1250",
    lane_index: LaneIndex::Never,
    swizzle: SwizzleUse::Always,
    scalar_offset: ScalarOffset::InElement,
    sum_is_wide: true,
    range: &[
        RangeRule {
            when: When::Swizzled,
            check: Check::Nothing,
            standing: Standing::NotSettled,
            source: "ROCm's rocjitsu checks nothing",
        },
        RangeRule {
            when: When::Mode(1),
            check: Check::AddressAndRecord,
            standing: Standing::Documented,
            source: "CDNA 5 ISA 9.4.1",
        },
        RangeRule {
            when: When::Otherwise,
            check: Check::Address,
            standing: Standing::Documented,
            source: "CDNA 5 ISA 9.4.1",
        },
    ],
};

impl Rules {
    /// Rules of all simulated generations.
    pub const ALL: [&'static Rules; 3] = [&GFX9, &RDNA, &GFX125];

    /// Rules of a generation.
    pub fn of(generation: Generation) -> &'static Rules {
        match generation {
            Generation::Gfx125 => &GFX125,
            _ if generation >= Generation::Gfx10 => &RDNA,
            _ => &GFX9,
        }
    }

    /// The range check.
    pub fn check(&self, facts: Facts) -> Check {
        let rule = self.range.iter().find(|rule| rule.when.holds(facts));
        rule.map_or(Check::Nothing, |rule| rule.check)
    }
}

/// Formats the rules as a Markdown table.
pub fn table() -> String {
    let mut text = String::from(
        "| generations | when | in range | standing | source |\n|---|---|---|---|---|\n",
    );
    for rules in Rules::ALL {
        for rule in rules.range {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} |",
                rules.name,
                rule.when.describe(),
                rule.check.describe(),
                rule.standing.describe(),
                rule.source
            );
        }
    }
    text
}
