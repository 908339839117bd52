//! Numbered fault sites of one execution of an instruction.

use super::words::Words;
use crate::fault::{Action, Fault, FaultModel, FloatFormat, Scope, lanes_at_offset};
use crate::resolve::stream::Stream;
use crate::site::{Lanes, Place};
use flipwave_arch::{LaneMask, RegisterId};
use flipwave_machine::InstructionCount;
use std::num::NonZeroU64;

/// The unit that is drawn with equal probability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Draw {
    /// Each bit of each word: a site is a bit position that the fault model can strike.
    #[default]
    Bits,
    /// Each execution of an instruction by a thread: a site consists of all its words, of which one is
    /// drawn, and then one bit.
    Instructions,
}

/// Executor of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Executor {
    /// Each active lane executes the instruction.
    Lanes,
    /// The wave executes the instruction once.
    Wave,
}

/// Fault sites of one execution of an instruction.
///
/// Sites are numbered by word (in the order of [`super::words::words`]), then by lane, then by bit,
/// each from the lowest. Values shared by the lanes count once per execution, as do values struck in
/// all lanes at once by a fault of a wider scope. This order makes plans portable: a number denotes the
/// same fault on every host and device. If instructions are drawn, an execution has one site per lane,
/// from the lowest, or one site if it has no lanes or all lanes are struck together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExecutionSites {
    model: FaultModel,
    scope: Scope,
    words: Vec<Words>,
    /// Executor of the instruction, if instructions are drawn.
    executor: Option<Executor>,
    /// Number of sites per lane, or per group of lanes struck together.
    per_lane: u64,
    /// Number of sites shared by all lanes.
    shared: u64,
}

/// One site of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExecutionSite {
    pub place: Place,
    pub lanes: Option<Lanes>,
    /// Index of the site in the word: the lowest bit that a flip inverts.
    pub number: u32,
    /// Format of the number that begins in the word, if the fault model changes numbers.
    pub format: Option<FloatFormat>,
}

impl ExecutionSites {
    /// The sites of `words` for `fault`.
    pub fn new(words: Vec<Words>, fault: &Fault) -> ExecutionSites {
        let (model, scope) = (fault.model.clone(), fault.scope);
        let mut sites =
            ExecutionSites { model, scope, words, executor: None, per_lane: 0, shared: 0 };
        for index in 0..sites.words.len() {
            let word_range = sites.words[index];
            let count = word_range.count * u64::from(sites.of_word(&word_range));
            let sum =
                if sites.is_copied(&word_range) { &mut sites.per_lane } else { &mut sites.shared };
            *sum += count;
        }
        sites
    }

    /// The sites of `words` if each execution by a thread is one site.
    pub fn of_executions(words: Vec<Words>, fault: &Fault, executor: Executor) -> ExecutionSites {
        let bits = ExecutionSites::new(words, fault);
        let has_some = u64::from(bits.per_lane + bits.shared > 0);
        let is_per_lane = executor == Executor::Lanes && bits.scope.is_part_of_lanes();
        let per_lane = if is_per_lane { has_some } else { 0 };
        ExecutionSites { executor: Some(executor), per_lane, shared: has_some - per_lane, ..bits }
    }

    /// No sites, for an instruction outside the fault space.
    pub fn none(fault: &Fault) -> ExecutionSites {
        ExecutionSites::new(Vec::new(), fault)
    }

    /// The words.
    pub fn words(&self) -> &[Words] {
        &self.words
    }

    /// The registers among the words.
    pub fn registers(&self) -> impl Iterator<Item = RegisterId> {
        self.words.iter().filter_map(|words| match words.first {
            Place::Register(register) => Some(register),
            _ => None,
        })
    }

    /// Number of sites of one of the registers on `lanes`.
    pub fn of_register(&self, register: RegisterId, lanes: LaneMask) -> u64 {
        let of_word = u64::from(self.model.sites(register.bits(), None));
        if register.is_per_lane() { of_word * u64::from(lanes.count()) } else { of_word }
    }

    /// The site with this number of one of the registers on `lanes`: by lane, then by bit, from the
    /// lowest.
    pub fn get_of_register(
        &self,
        register: RegisterId,
        lanes: LaneMask,
        number: u64,
    ) -> Option<ExecutionSite> {
        let of_word = u64::from(self.model.sites(register.bits(), None));
        // At most 64 lanes of 32 sites.
        let (copy, number) = (number.checked_div(of_word)? as u32, (number % of_word) as u32);
        let lanes = if register.is_per_lane() { Some(Lanes::One(lanes.nth(copy)?)) } else { None };
        Some(ExecutionSite { place: Place::Register(register), lanes, number, format: None })
    }

    fn of_word(&self, words: &Words) -> u32 {
        self.model.sites(words.first.bits(), words.format)
    }

    /// Returns `true` if each lane has its own sites for the word.
    fn is_copied(&self, words: &Words) -> bool {
        self.scope.is_part_of_lanes() && words.first.is_per_lane()
    }

    /// Number of sites of one execution on `lanes`.
    pub fn count(&self, lanes: LaneMask) -> u64 {
        // A fault in all active lanes needs at least one active lane.
        let nothing = lanes == LaneMask::EMPTY && !self.scope.is_part_of_lanes();
        let shared = if nothing { self.shared_by_lanes() } else { self.shared };
        self.per_lane * u64::from(self.scope.parts(lanes)) + shared
    }

    /// Number of executions with sites, and their total number of sites, equal to summing
    /// [`ExecutionSites::count`]. Not defined for [`Scope::LanesEvery`].
    pub fn sum(&self, executed: &InstructionCount) -> (u64, u64) {
        let InstructionCount { executions, lanes, without_lanes } = *executed;
        let with_lanes = executions - without_lanes;
        let without = self.count(LaneMask::EMPTY);
        let has_some = |sites: u64, executions: u64| if sites > 0 { executions } else { 0 };
        let eligible =
            has_some(self.per_lane + self.shared, with_lanes) + has_some(without, without_lanes);
        (eligible, self.per_lane * lanes + self.shared * with_lanes + without * without_lanes)
    }

    /// Number of sites of scalar words, for any scope.
    fn shared_by_lanes(&self) -> u64 {
        if let Some(executor) = self.executor {
            return if executor == Executor::Lanes { 0 } else { self.shared };
        }
        let words = self.words.iter().filter(|words| !words.first.is_per_lane());
        words.map(|words| words.count * u64::from(self.of_word(words))).sum()
    }

    /// Resolves site `number` of an execution on `lanes`; `None` from [`ExecutionSites::count`] on. If a site
    /// has several words and bits, `stream` chooses one.
    pub fn draw(&self, lanes: LaneMask, number: u64, stream: &mut Stream) -> Option<ExecutionSite> {
        if self.executor.is_none() {
            return self.get(lanes, number);
        }
        if number >= self.count(lanes) {
            return None;
        }
        let words = || self.words.iter().filter(|words| self.of_word(words) > 0);
        let mut word = stream.below(NonZeroU64::new(words().map(|words| words.count).sum())?);
        let words = words().find(|words| {
            let is_found = word < words.count;
            word -= if is_found { 0 } else { words.count };
            is_found
        })?;
        let bits = NonZeroU64::new(self.of_word(words).into())?;
        // A site has at most 64 lanes, and a word 32 bits.
        let lanes =
            if words.first.is_per_lane() { Some(self.whose(lanes, number as u32)?) } else { None };
        let (place, number) = (words.place(word)?, stream.below(bits) as u32);
        Some(ExecutionSite { place, lanes, number, format: words.format })
    }

    /// The action of a fault at a site. `stream` supplies its random choices.
    pub fn action(&self, struck: &ExecutionSite, stream: &mut Stream) -> Action {
        let ExecutionSite { place, format, number, .. } = *struck;
        self.model.action(place.bits(), format, number, stream)
    }

    /// The lanes that a fault strikes in an execution on `lanes`, for copy number `copy`.
    fn whose(&self, lanes: LaneMask, copy: u32) -> Option<Lanes> {
        Some(match self.scope {
            Scope::Lane => Lanes::One(lanes.nth(copy)?),
            Scope::ActiveLanes => Lanes::Mask(lanes),
            Scope::LanesEvery(period) => Lanes::Mask(lanes_at_offset(lanes, period, copy)?),
            Scope::Wave => Lanes::All,
            Scope::Workgroup => Lanes::Active,
        })
    }

    /// Resolves site `number` of an execution on `lanes`, if bits are drawn; `None` from
    /// [`ExecutionSites::count`] on.
    pub fn get(&self, lanes: LaneMask, mut number: u64) -> Option<ExecutionSite> {
        for words in &self.words {
            let of_word = u64::from(self.of_word(words));
            let is_per_lane = words.first.is_per_lane();
            let copies = match (self.is_copied(words), is_per_lane && lanes == LaneMask::EMPTY) {
                (true, _) => self.scope.parts(lanes).into(),
                (false, true) => 0,
                (false, false) => 1,
            };
            let total = words.count * of_word * copies;
            if number >= total {
                number -= total;
                continue;
            }
            let (word, rest) = (number / (of_word * copies), number % (of_word * copies));
            // At most 64 copies of 32 sites.
            let (copy, number) = ((rest / of_word) as u32, (rest % of_word) as u32);
            let lanes = if is_per_lane { Some(self.whose(lanes, copy)?) } else { None };
            return Some(ExecutionSite {
                place: words.place(word)?,
                lanes,
                number,
                format: words.format,
            });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FaultTarget;
    use crate::fault_space::words::{Resources, words};
    use crate::testing::inst;
    use flipwave_isa::Lane;
    use std::collections::{HashMap, HashSet};

    /// Lane masks for each offset modulo a period.
    fn every(lanes: LaneMask, period: u8) -> Vec<Option<Lanes>> {
        let at = |offset| lanes.lanes().filter(move |lane| lane.0 % period == offset);
        let mask = |offset| at(offset).fold(0, |mask, lane| mask | 1 << lane.0);
        let masks = (0..period).map(mask).filter(|mask| *mask != 0);
        masks.map(|mask| Some(Lanes::Mask(LaneMask(mask)))).collect()
    }

    fn sites(text: &str, fault: &Fault) -> ExecutionSites {
        ExecutionSites::new(words(&inst(0, text), fault, &Resources::default(), None), fault)
    }

    /// Each number below the count is a different site, in the documented order; together they are all
    /// bits of all registers of all written lanes.
    #[test]
    fn numbers_and_sites_correspond_one_to_one() {
        let masks = [LaneMask::FULL, LaneMask::EMPTY, LaneMask(0x8000_0000_0000_0012)];
        for text in [
            "v_add_f64 v[4:5], v[0:1], v[2:3]",
            "v_add_co_u32_e32 v1, vcc, v2, v3",
            "s_and_saveexec_b64 s[0:1], vcc",
        ] {
            for model in [
                FaultModel::FlipOneBit,
                FaultModel::FlipAdjacentBits(2),
                FaultModel::FlipAdjacentBits(7),
                FaultModel::RandomValue,
                FaultModel::ZeroValue,
            ] {
                for (lanes, scope) in
                    masks.into_iter().flat_map(|mask| Scope::ALL.map(|scope| (mask, scope)))
                {
                    let fault = Fault { scope, ..Fault::transient(model.clone()) };
                    let sites = sites(text, &fault);
                    let mut expected = Vec::new();
                    for words in sites.words() {
                        let copies: Vec<Option<Lanes>> = match (words.first.is_per_lane(), scope) {
                            (false, _) => vec![None],
                            (true, Scope::Lane) => {
                                lanes.lanes().map(|lane| Some(Lanes::One(lane))).collect()
                            }
                            (true, _) if lanes == LaneMask::EMPTY => Vec::new(),
                            (true, Scope::ActiveLanes) => vec![Some(Lanes::Mask(lanes))],
                            (true, Scope::LanesEvery(period)) => every(lanes, period.get()),
                            (true, Scope::Wave) => vec![Some(Lanes::All)],
                            (true, Scope::Workgroup) => vec![Some(Lanes::Active)],
                        };
                        for lanes in copies {
                            let numbers = 0..model.sites(words.first.bits(), None);
                            let struck = |number| ExecutionSite {
                                place: words.first,
                                lanes,
                                number,
                                format: None,
                            };
                            expected.extend(numbers.map(struck));
                        }
                    }
                    let count = sites.count(lanes);
                    let found: Vec<ExecutionSite> =
                        (0..count).filter_map(|number| sites.get(lanes, number)).collect();
                    assert_eq!(found, expected, "{text} {model} {scope} {lanes}");
                    assert_eq!(count, expected.len() as u64);
                    assert_eq!(sites.get(lanes, count), None);
                }
            }
        }
    }

    #[test]
    fn both_halves_of_64_bit_results_are_hit() {
        let fault = Fault::transient(FaultModel::FlipOneBit);
        let sites = sites("v_add_f64 v[4:5], v[0:1], v[2:3]", &fault);
        let lanes = LaneMask(1);
        let hit: HashSet<String> = (0..sites.count(lanes))
            .filter_map(|number| sites.get(lanes, number))
            .map(|struck| format!("{}.{}", struck.place, struck.number))
            .collect();
        assert_eq!(hit.len(), 64);
        assert!(hit.contains("register=v4.0") && hit.contains("register=v5.31"));
    }

    #[test]
    fn words_of_memory_are_counted_without_being_listed() {
        let fault = Fault { target: FaultTarget::Lds, ..Fault::transient(FaultModel::FlipOneBit) };
        let resources = Resources { lds_bytes: 1 << 16, ..Resources::default() };
        let words = words(&inst(0, "s_nop 0"), &fault, &resources, None);
        let sites = ExecutionSites::new(words, &fault);
        assert_eq!(sites.count(LaneMask::EMPTY), 8 << 16);
        let last = sites.get(LaneMask::EMPTY, (8 << 16) - 1).unwrap();
        assert_eq!((last.place, last.lanes, last.number), (Place::Lds(0xfffc), None, 31));
        let fault = Fault::transient(FaultModel::FlipOneBit);
        let one = self::sites("v_mov_b32_e32 v0, v1", &fault);
        assert_eq!(one.get(LaneMask(0x30), 33).unwrap().lanes, Some(Lanes::One(Lane(5))));
    }

    /// Draws each site of an execution 1,000 times and counts the struck sites.
    fn drawn(text: &str, lanes: LaneMask, executor: Executor) -> (u64, HashMap<String, u32>) {
        let fault = Fault::transient(FaultModel::FlipOneBit);
        let words = words(&inst(0, text), &fault, &Resources::default(), None);
        let sites = ExecutionSites::of_executions(words, &fault, executor);
        let count = sites.count(lanes);
        let mut hits = HashMap::new();
        for index in 0..count * 1000 {
            let struck = sites.draw(lanes, index % count, &mut Stream::new(1, index)).unwrap();
            *hits.entry(struck.place.to_string()).or_default() += 1;
        }
        assert_eq!(sites.draw(lanes, count, &mut Stream::new(1, 0)), None);
        (count, hits)
    }

    /// The two words of a 64-bit result share its weight; all lanes share the word of a carry.
    #[test]
    fn each_thread_execution_is_one_site() {
        let lanes = LaneMask(0x8000_0000_0000_0012);
        let near = |hits: &HashMap<String, u32>, place: &str, expected: f64| {
            let deviation = expected.sqrt();
            let hits = f64::from(hits[&format!("register={place}")]);
            assert!((hits - expected).abs() < 4.0 * deviation, "{place}: {hits}, not {expected}");
        };
        let (count, hits) = drawn("v_mov_b32_e32 v0, v1", lanes, Executor::Lanes);
        assert_eq!((count, hits.len()), (3, 1));
        let (count, hits) = drawn("v_add_f64 v[4:5], v[0:1], v[2:3]", lanes, Executor::Lanes);
        assert_eq!((count, hits.len()), (3, 2));
        ["v4", "v5"].iter().for_each(|place| near(&hits, place, 1500.0));
        let (count, hits) = drawn("v_add_co_u32_e32 v1, vcc, v2, v3", lanes, Executor::Lanes);
        assert_eq!((count, hits.len()), (3, 3));
        ["v1", "vcc_lo", "vcc_hi"].iter().for_each(|place| near(&hits, place, 1000.0));
        // A scalar instruction executes once, and SCC weighs as much as a register.
        let (count, hits) = drawn("s_add_u32 s0, s1, s2", lanes, Executor::Wave);
        assert_eq!((count, hits.len()), (1, 2));
        ["s0", "scc"].iter().for_each(|place| near(&hits, place, 500.0));
        assert_eq!(drawn("s_nop 0", lanes, Executor::Wave).0, 0);
        assert_eq!(drawn("v_cmp_gt_f32_e32 vcc, v2, v3", LaneMask::EMPTY, Executor::Lanes).0, 0);
    }

    #[test]
    fn sum_equals_sum_of_counts() {
        let lanes = [LaneMask::FULL, LaneMask::EMPTY, LaneMask(0x12), LaneMask(1)];
        let executed = InstructionCount {
            executions: 4,
            lanes: lanes.iter().map(|mask| u64::from(mask.count())).sum(),
            without_lanes: 1,
        };
        for (text, executor) in [
            ("v_add_f64 v[4:5], v[0:1], v[2:3]", Executor::Lanes),
            ("v_cmp_gt_f32_e32 vcc, v2, v3", Executor::Lanes),
            ("s_add_u32 s0, s1, s2", Executor::Wave),
            ("s_nop 0", Executor::Wave),
        ] {
            let is_summed = |scope: &Scope| !matches!(scope, Scope::LanesEvery(_));
            for scope in Scope::ALL.into_iter().filter(is_summed) {
                let fault = Fault { scope, ..Fault::transient(FaultModel::FlipOneBit) };
                let words = words(&inst(0, text), &fault, &Resources::default(), None);
                let sites = ExecutionSites::of_executions(words, &fault, executor);
                let counts = lanes.map(|mask| sites.count(mask));
                let eligible = counts.iter().filter(|count| **count > 0).count() as u64;
                let expected = (eligible, counts.iter().sum());
                assert_eq!(sites.sum(&executed), expected, "{text} {scope}");
            }
        }
    }
}
