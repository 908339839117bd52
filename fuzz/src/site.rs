//! Fuzzes the text form of fault sites.

use crate::choices::Choices;
use flipwave_arch::{Lane, LaneMask, MatrixElement, OperationName, Pc, SumPart};
use flipwave_injector::{
    Action, Event, FloatFormat, Intermittent, Lanes, Place, RelativeError, Site, SumPlace, Unit,
    When,
};
use flipwave_isa::Register;
use flipwave_sim::Amdgpu;
use std::num::{NonZeroU32, NonZeroU64};

/// The instruction set of all sites.
fn architecture() -> Amdgpu {
    Amdgpu::new("gfx90a".parse().unwrap_or_else(|error| panic!("{error}")))
}

/// Parses bytes as a site, and derives a site from them. Writing and parsing a site must give the same
/// site.
pub fn site(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        match Site::parse(text, &architecture()) {
            Ok(site) => assert_round_trip(&site),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    let site = random_site(&mut Choices::new(bytes));
    if let Some(site) = site.filter(|site| site.check().is_ok()) {
        assert_round_trip(&site);
    }
}

fn assert_round_trip(site: &Site) {
    let text = site.to_string();
    let read =
        Site::parse(&text, &architecture()).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(read, *site, "{text}");
    assert_eq!(read.to_string(), text);
    assert!(!text.contains('\n'));
}

/// A random site, unless the bytes give an invalid field.
fn random_site(choices: &mut Choices<'_>) -> Option<Site> {
    let when =
        if choices.chance(70) { When::At(event(choices)?) } else { When::Always(unit(choices)?) };
    let lanes = match choices.below(5) {
        0 => None,
        1 => Some(Lanes::One(Lane(choices.below(256) as u8))),
        2 => Some(Lanes::Mask(LaneMask(choices.wide()))),
        3 => Some(Lanes::Active),
        _ => Some(Lanes::All),
    };
    let place = match choices.below(10) {
        0 => Place::Register(register(choices)?.into()),
        1 => Place::Source(register(choices)?.into()),
        2 => Place::Lds(choices.word()),
        3 => Place::Scratch(choices.word()),
        4 => Place::Memory { buffer: choices.word(), offset: choices.wide() },
        5 => Place::Encoding(choices.below(256) as u8),
        6 => Place::Branch,
        7 => Place::ProgramCounter(choices.below(256) as u8),
        8 => Place::Sum(sum_place(choices)),
        _ => Place::Destination(choices.below(256) as u8),
    };
    Some(Site { when, place, lanes, action: action(choices)? })
}

fn sum_place(choices: &mut Choices<'_>) -> SumPlace {
    let part = choices.pick(&[SumPart::Accumulator, SumPart::Product, SumPart::PartialSum]);
    let mut byte = || choices.below(256) as u8;
    let element = MatrixElement { block: byte(), row: byte(), column: byte() };
    let (step, word) = (byte(), choices.below(3) as u8);
    SumPlace { part, element, step, word }
}

fn event(choices: &mut Choices<'_>) -> Option<Event> {
    let intermittent = match choices.below(2) {
        0 => None,
        _ => {
            let window = NonZeroU64::new(choices.wide())?;
            Some((Intermittent { window, rate: choices.word() }, choices.word()))
        }
    };
    Some(Event {
        dispatch: choices.word(),
        workgroup: [choices.word(), choices.word(), choices.word()],
        wave: choices.chance(70).then(|| choices.word()),
        pc: Pc(choices.wide()),
        occurrence: choices.wide(),
        intermittent,
    })
}

fn unit(choices: &mut Choices<'_>) -> Option<Unit> {
    Some(Unit {
        opcode: OperationName::interned(choices.pick(&[
            "v_add_f32",
            "s_add_u32",
            "global_load_dword",
        ])),
        units: NonZeroU32::new(choices.word())?,
        unit: choices.word(),
        simd: choices.below(256) as u8,
        slot: choices.chance(50).then(|| choices.below(256) as u8),
    })
}

fn register(choices: &mut Choices<'_>) -> Option<Register> {
    let number = choices.below(256);
    let special =
        ["vcc_lo", "vcc_hi", "exec_lo", "exec_hi", "scc", "m0", "mode", "flat_scratch_lo"];
    let name = match choices.below(4) {
        0 => format!("v{number}"),
        1 => format!("s{number}"),
        2 => format!("a{number}"),
        _ => choices.pick(&special).to_owned(),
    };
    name.parse().ok()
}

fn action(choices: &mut Choices<'_>) -> Option<Action> {
    let word = choices.word();
    Some(match choices.below(5) {
        0 => Action::Flip(word),
        1 => Action::Set(word),
        2 => Action::StuckAtZero(word),
        3 => Action::StuckAtOne(word),
        _ => {
            let format = choices.pick(&[
                FloatFormat::F16,
                FloatFormat::F16High,
                FloatFormat::Bf16,
                FloatFormat::Bf16High,
                FloatFormat::F32,
                FloatFormat::F64,
            ]);
            Action::Relative(format, RelativeError::new(f64::from_bits(choices.wide()))?)
        }
    })
}
