//! Compares accesses of all lanes at once with lane-by-lane accesses.

use super::{at_once, lane_by_lane};
use crate::dispatch::stall::Watching;
use crate::execute::lds;
use crate::instruction::{Op, Run};
use crate::memory::aperture::{PRIVATE, SHARED};
use crate::memory::{AddressSpace, Memory, Recording, TouchedRegions, WriteRecorder};
use crate::tests::bench::Bench;
use crate::tests::operations::Random;
use crate::wave::level::at_each_level;
use crate::wave::{Level, Row, RowIndex, Wave};
use flipwave_device::{Address, FaultCause};
use flipwave_isa::LaneMask;
use flipwave_machine::{FootprintBuilder, WrittenByte};
use std::collections::BTreeSet;

at_each_level! {
    /// Executes an access for all lanes at once; returns `false` if it cannot.
    pub fn all_lanes(wave: &mut Wave, op: &Op, memory: &mut dyn Memory, lds: &mut [u8]) -> bool =
        all_lanes_at_level;
}

#[inline(always)]
fn all_lanes_at_level(wave: &mut Wave, op: &Op, memory: &mut dyn Memory, lds: &mut [u8]) -> bool {
    match op.run {
        Run::VectorMemory(access) => at_once(wave, op, access, memory, lds),
        Run::Lds(access) => lds::at_once(wave, op, access, lds),
        _ => panic!("{} accesses no memory", op.inst.text),
    }
}

fn one_by_one(
    wave: &mut Wave,
    op: &Op,
    memory: &mut dyn Memory,
    lds: &mut [u8],
) -> Result<(), FaultCause> {
    match op.run {
        Run::VectorMemory(access) => lane_by_lane::execute(wave, op, access, memory, lds),
        Run::Lds(access) => lds::lane_by_lane(wave, op, access, lds),
        _ => panic!("{} accesses no memory", op.inst.text),
    }
}

const PAGE: u64 = 4096;
/// Start of two allocations without a gap.
const NEIGHBOURS: u64 = AddressSpace::START - (16 << 20);
/// Start of host memory.
const HOST: u64 = AddressSpace::START - (8 << 20);
const LDS: usize = 1024;
const CHUNK: u64 = 64 << 10;

/// State that an access may change.
struct Machine {
    wave: Wave,
    space: AddressSpace,
    lds: Vec<u8>,
    _host: Vec<u8>,
}

/// Kinds of memory observation.
#[derive(Clone, Copy, Debug)]
enum Observed {
    Not,
    Footprint,
    Written,
    Pages,
}

/// Observed accesses.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    footprint: FootprintBuilder,
    written: Vec<WrittenByte>,
    pages: BTreeSet<u64>,
}

impl Machine {
    fn new(wave: Wave) -> (Machine, Vec<u64>) {
        let mut space = AddressSpace::default();
        let code = space.allocate(2 * PAGE).unwrap().0;
        space.protect(Address(code + 1000)..Address(code + 1100));
        let sparse = space.reserve(3 * CHUNK, CHUNK).unwrap().0;
        space.allocate_at(Address(NEIGHBOURS), PAGE).unwrap();
        space.allocate_at(Address(NEIGHBOURS + PAGE), PAGE).unwrap();
        let host: Vec<u8> = vec![0; 2 * PAGE as usize];
        let range = Address(HOST)..Address(HOST + host.len() as u64);
        // SAFETY: the memory lives as long as the address space.
        unsafe { space.map_host(range, host.as_ptr() as u64).unwrap() };
        let mut random = Random(5);
        for (address, size) in space.allocations().collect::<Vec<_>>() {
            let bytes: Vec<u8> = (0..size).map(|_| random.next() as u8).collect();
            space.write(address, &bytes).unwrap();
        }
        let ends = [
            code,
            code + 1000,
            code + 1100,
            code + 2 * PAGE,
            sparse,
            sparse + CHUNK,
            sparse + 2 * CHUNK,
            sparse + 3 * CHUNK,
            NEIGHBOURS,
            NEIGHBOURS + PAGE,
            NEIGHBOURS + 2 * PAGE,
            HOST,
            HOST + 2 * PAGE,
        ];
        (
            Machine {
                wave,
                space,
                lds: (0..LDS).map(|_| random.next() as u8).collect(),
                _host: host,
            },
            ends.into(),
        )
    }

    /// Runs `body` on the observed memory.
    fn observe<T>(
        &mut self,
        observed: Observed,
        seen: &mut Seen,
        run: impl FnOnce(&mut Wave, &mut dyn Memory, &mut [u8]) -> T,
    ) -> T {
        let Machine { wave, space, lds, .. } = self;
        let wave_base = wave.scalar_pair(wave.machine.flat_scratch);
        match observed {
            Observed::Not => run(wave, space, lds),
            Observed::Footprint => {
                let mut touched = TouchedRegions::default();
                let private = [(); 2].map(|()| wave_base..wave_base + 4096);
                let footprint = &mut seen.footprint;
                let mut memory = Recording::new(space, footprint, &mut touched, private);
                run(wave, &mut memory, lds)
            }
            Observed::Written => {
                let mut memory = WriteRecorder::new(space);
                let result = run(wave, &mut memory, lds);
                seen.written.extend(memory.take_written());
                result
            }
            Observed::Pages => {
                let mut memory = Watching::new(space, &mut seen.pages);
                let result = run(wave, &mut memory, lds);
                seen.written.extend(memory.take_written());
                result
            }
        }
    }

    fn assert_same(&mut self, other: &mut Machine, what: &str) {
        for (row, (found, wanted)) in
            self.wave.rows.iter().zip(other.wave.rows.iter()).enumerate().take(32)
        {
            assert_eq!(found, wanted, "v{row} after {what}");
        }
        assert!(self.lds == other.lds, "LDS after {what}");
        for (address, size) in self.space.allocations().collect::<Vec<_>>() {
            let [mut found, mut wanted] = [(); 2].map(|()| vec![0; size as usize]);
            self.space.read(address, &mut found).unwrap();
            other.space.read(address, &mut wanted).unwrap();
            let differs = found.iter().zip(&wanted).position(|(a, b)| a != b);
            assert_eq!(differs, None, "memory at {address} after {what}");
        }
    }
}

/// Offsets of the lanes from a base: consecutive, equal, strided, random, or mixed.
fn offsets(random: &mut Random) -> Vec<u64> {
    let step = random.choose(&[0, 0, 1, 2, 4, 4, 4, 8, 12, 16, 3, 20, 256, u64::MAX - 3]);
    let first =
        random.choose(&[0, 0, 4, 64, 256, 1]) as i64 * random.choose(&[1, 1, u64::MAX]) as i64;
    let reach = random.choose(&[2, 64, 300, 70_000]);
    let align = random.choose(&[0, 3, 3, 7]);
    let kind = random.next() % 8;
    let other = random.next() % 64;
    let lane_offset = |random: &mut Random, lane: u64| {
        let stepped = (first as u64).wrapping_add(step.wrapping_mul(lane));
        match kind {
            0 | 1 => (random.next() % reach) & !align,
            2 if lane == other => random.next() % reach,
            3 if lane >= other => stepped.wrapping_add(1 << 13),
            _ => stepped,
        }
    };
    (0..64).map(|lane| lane_offset(random, lane)).collect()
}

fn exec(random: &mut Random) -> LaneMask {
    let any = random.next();
    LaneMask(match random.next() % 8 {
        0 => any,
        1 => any & random.next() & random.next(),
        2 => u64::MAX >> (any % 64),
        3 => u64::MAX << (any % 64),
        4 => 1 << (any % 64),
        _ => u64::MAX,
    })
}

/// Sets the address registers to mapped memory.
fn prepare(wave: &mut Wave, ends: &[u64], random: &mut Random) {
    let (end, other) = (random.choose(ends), random.choose(ends));
    let back = random.choose(&[0, 64, 256, 512, 1024, 4096, 70_000]);
    let space = random.next() % 8;
    let base = match space {
        0 => SHARED + random.choose(&[0, 512, LDS as u64]),
        1 => PRIVATE + random.choose(&[0, 64, 1024]),
        _ => end,
    }
    .wrapping_sub(back);
    let (lanes, mixed) = (offsets(random), random.next().is_multiple_of(4));
    let address = |random: &mut Random, lane: usize| {
        let base = if mixed && random.next().is_multiple_of(2) { other } else { base };
        base.wrapping_add(lanes[lane])
    };
    let addresses: Vec<u64> = (0..64).map(|lane| address(random, lane)).collect();
    let row = |word: &dyn Fn(usize) -> u32| Row(std::array::from_fn(word));
    // v[0:1] are addresses, v2 and v3 offsets and record indices, v4 LDS addresses, v[8:15] data.
    *wave.row_mut(RowIndex(0)) = row(&|lane| addresses[lane] as u32);
    *wave.row_mut(RowIndex(1)) = row(&|lane| (addresses[lane] >> 32) as u32);
    *wave.row_mut(RowIndex(2)) = row(&|lane| lanes[lane] as u32);
    let records = random.choose(&[1, 3, 64]);
    let record = random.choose(&[0, 1, 1]) as u32;
    let jump = random.next() % records;
    *wave.row_mut(RowIndex(3)) = row(&|lane| (lane as u64 + jump) as u32 * record);
    let in_lds = random.choose(&[0, 0, 512, LDS as u64 - 256]) as u32;
    *wave.row_mut(RowIndex(4)) = row(&|lane| in_lds.wrapping_add(lanes[lane] as u32));
    for index in 8..32 {
        let seed = random.next();
        *wave.row_mut(RowIndex(index)) =
            Row(std::array::from_fn(|lane| (Random(seed ^ lane as u64).next() >> 17) as u32));
    }
    let stride = random.choose(&[0, 4, 16, 64, 1024]) as u32;
    let swizzle = random.choose(&[0, 1]) as u32;
    let thread = random.choose(&[0, 1]) as u32;
    let chosen = random.next() as u32;
    let size = random.choose(&[u32::MAX.into(), u32::MAX.into(), 64, 200, 4096, 0]) as u32;
    let scalars = [
        (2, base as u32),
        (3, (base >> 32) as u32),
        (4, base as u32),
        (5, (base >> 32) as u32 & 0xffff | stride << 16 | swizzle << 31),
        (6, size),
        (7, chosen & 0x3060_0000 | thread << 23),
        (8, random.choose(&[0, 0, 4, 64]) as u32),
    ];
    for (index, word) in scalars {
        wave.write_scalar(crate::wave::ScalarIndex(index), word);
    }
    wave.write_scalar_pair(wave.machine.flat_scratch, end.wrapping_sub(back));
    wave.set_exec(exec(random));
}

/// Assembly of the tested instructions.
fn texts() -> Vec<String> {
    let mut texts = Vec::new();
    let spaces = [
        ("global", "v[0:1], DATA, off"),
        ("global", "v2, DATA, s[2:3] offset:8"),
        ("flat", "v[0:1], DATA"),
        ("scratch", "v2, DATA, off"),
        ("scratch", "v2, DATA, off offset:5"),
        ("buffer", "DATA, off, s[4:7], s8 offset:12"),
        ("buffer", "DATA, v2, s[4:7], s8 offen offset:4"),
        ("buffer", "DATA, v3, s[4:7], s8 idxen"),
        ("buffer", "DATA, v[2:3], s[4:7], 0 idxen offen"),
    ];
    let loads = [
        ("ubyte", "v20"),
        ("sbyte", "v20"),
        ("ushort", "v20"),
        ("sshort", "v20"),
        ("ubyte_d16", "v20"),
        ("sbyte_d16_hi", "v20"),
        ("short_d16_hi", "v20"),
        ("dword", "v20"),
        ("dword", "v2"),
        ("dwordx2", "v[20:21]"),
        ("dwordx2", "v[0:1]"),
        ("dwordx3", "v[20:22]"),
        ("dwordx4", "v[20:23]"),
    ];
    let stores = [
        ("byte", "v8"),
        ("byte_d16_hi", "v8"),
        ("short", "v8"),
        ("short_d16_hi", "v8"),
        ("dword", "v8"),
        ("dwordx2", "v[8:9]"),
        ("dwordx3", "v[8:10]"),
        ("dwordx4", "v[8:11]"),
    ];
    let atomics = [
        ("add", 1, 1),
        ("umax", 1, 1),
        ("swap", 1, 1),
        ("cmpswap", 2, 1),
        ("add_x2", 2, 2),
        ("cmpswap_x2", 4, 2),
    ];
    for (space, operands) in spaces {
        // Loads have the data operand first.
        let load = |data: &str| match space {
            "buffer" => operands.replace("DATA", data),
            _ => format!("{data}, {}", operands.replace(" DATA,", "").replace(", DATA", "")),
        };
        for (name, data) in loads {
            texts.push(format!("{space}_load_{name} {}", load(data)));
        }
        for (name, data) in stores {
            texts.push(format!("{space}_store_{name} {}", operands.replace("DATA", data)));
        }
        if space == "scratch" {
            continue;
        }
        for (name, words, returned) in atomics {
            let data = match words {
                1 => "v8".to_string(),
                words => format!("v[8:{}]", 7 + words),
            };
            let plain = operands.replace("DATA", &data);
            texts.push(format!("{space}_atomic_{name} {plain}"));
            let destination = if returned == 1 { "v20, " } else { "v[20:21], " };
            let destination = if space == "buffer" { "" } else { destination };
            texts.push(format!("{space}_atomic_{name} {destination}{plain} glc"));
        }
    }
    let lds = [
        "ds_read_b32 v20, v4 offset:4",
        "ds_read_b64 v[20:21], v4",
        "ds_read_b96 v[20:22], v4",
        "ds_read_b128 v[20:23], v4",
        "ds_read_u8 v20, v4 offset:3",
        "ds_read_i8 v20, v4",
        "ds_read_u16 v20, v4",
        "ds_read_u8_d16_hi v20, v4",
        "ds_read_u16_d16 v20, v4",
        "ds_read2_b32 v[20:21], v4 offset0:1 offset1:5",
        "ds_read2_b64 v[20:23], v4 offset0:1 offset1:3",
        "ds_read2st64_b32 v[20:21], v4 offset1:1",
        "ds_write_b32 v4, v8",
        "ds_write_b64 v4, v[8:9]",
        "ds_write_b96 v4, v[8:10]",
        "ds_write_b128 v4, v[8:11]",
        "ds_write_b8 v4, v8",
        "ds_write_b16 v4, v8",
        "ds_write_b16_d16_hi v4, v8",
        "ds_write2_b32 v4, v8, v9 offset0:1 offset1:5",
        "ds_write2_b64 v4, v[8:9], v[10:11] offset1:1",
        "ds_add_u32 v4, v8",
        "ds_add_rtn_u32 v20, v4, v8",
        "ds_max_rtn_i32 v20, v4, v8",
        "ds_add_rtn_u64 v[20:21], v4, v[8:9]",
        "ds_cmpst_rtn_b32 v20, v4, v8, v9",
        "ds_cmpst_rtn_b64 v[20:21], v4, v[8:9], v[10:11]",
        "ds_mskor_b32 v4, v8, v9",
    ];
    texts.extend(lds.map(str::to_owned));
    texts
}

/// Share of accesses that were made for all lanes at once.
fn compare(processor: &str, lanes: u8, seed: u64) -> f64 {
    const ROUNDS: usize = 100;
    let bench = Bench::with_lanes(processor, lanes);
    let best = bench.wave.level;
    let levels = [Level::Plain, Level::Avx2, Level::Avx512];
    let levels = &levels[..=best as usize];
    let (mut fast, ends) = Machine::new(bench.wave.clone());
    let (mut slow, _) = Machine::new(bench.wave.clone());
    let mut random = Random(seed);
    let (mut done, mut all) = (0, 0);
    for text in texts() {
        let op = bench.op(&text);
        for round in 0..ROUNDS {
            let case = random.next();
            prepare(&mut fast.wave, &ends, &mut Random(case));
            prepare(&mut slow.wave, &ends, &mut Random(case));
            if fast.wave.exec() == LaneMask::EMPTY {
                continue;
            }
            fast.wave.level = levels[random.next() as usize % levels.len()];
            let observed = match random.next() % 8 {
                0 => Observed::Footprint,
                1 => Observed::Written,
                2 => Observed::Pages,
                _ => Observed::Not,
            };
            let what = format!("{text} with {observed:?}, round {round}, case {case:#x}");
            let [mut seen, mut wanted_seen] = [(); 2].map(|()| Seen::default());
            // A refused access must leave everything unchanged, except that the first of two stores
            // of one instruction may have been made; it is repeated.
            let before = (fast.lds.clone(), fast.wave.clone());
            let (is_done, found) = fast.observe(observed, &mut seen, |wave, memory, lds| {
                if all_lanes(wave, &op, memory, lds) {
                    return (true, Ok(()));
                }
                if !text.starts_with("ds_write2") {
                    assert_eq!(before.0, lds, "LDS before {what}");
                }
                let rows = wave.rows.iter().zip(before.1.rows.iter()).take(32);
                rows.for_each(|(row, before)| assert_eq!(row, before, "{what} one by one"));
                (false, one_by_one(wave, &op, memory, lds))
            });
            let wanted = slow.observe(observed, &mut wanted_seen, |wave, memory, lds| {
                one_by_one(wave, &op, memory, lds)
            });
            assert_eq!(found, wanted, "{what}");
            fast.assert_same(&mut slow, &what);
            assert_eq!(seen, wanted_seen, "seen after {what}");
            (done, all) = (done + usize::from(is_done), all + 1);
        }
    }
    done as f64 / all as f64
}

#[test]
fn whole_wave_accesses_equal_lane_by_lane_accesses() {
    for (processor, lanes) in [("gfx90a", 64), ("gfx1030", 32), ("gfx1030", 64)] {
        let share = compare(processor, lanes, 1);
        assert!((0.2..0.9).contains(&share), "{share} at once on {processor}");
    }
}
