//! Text form of fault sites.

use super::fields::{Fields, decimal, hexadecimal};
use super::{Event, Lanes, Place, Site, SiteError, SumPlace, Unit, When};
use crate::fault::{Action, FaultFunction, FloatFormat, Intermittent, RelativeError};
use flipwave_arch::{Architecture, Lane, LaneMask, MatrixElement, Pc, SumPart};
use std::fmt;

/// Keys of changes of a number: a relative error, and a user's function.
const NUMBERS: [(FloatFormat, &str, &str); 6] = [
    (FloatFormat::F16, "relative_f16", "function_f16"),
    (FloatFormat::F16High, "relative_f16_high", "function_f16_high"),
    (FloatFormat::Bf16, "relative_bf16", "function_bf16"),
    (FloatFormat::Bf16High, "relative_bf16_high", "function_bf16_high"),
    (FloatFormat::F32, "relative_f32", "function_f32"),
    (FloatFormat::F64, "relative_f64", "function_f64"),
];

/// Keys of the parts of a matrix product's sum.
const SUM_PARTS: [(SumPart, &str); 3] = [
    (SumPart::Accumulator, "accumulator"),
    (SumPart::Product, "product"),
    (SumPart::PartialSum, "partial_sum"),
];

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.when {
            When::At(event) => write!(f, "{event}")?,
            When::Always(unit) => write!(f, "{unit}")?,
        }
        match self.lanes {
            None => {}
            Some(Lanes::One(lane)) => write!(f, " lane={lane}")?,
            Some(Lanes::Mask(mask)) => write!(f, " lanes={mask}")?,
            Some(Lanes::Active) => f.write_str(" lanes=active")?,
            Some(Lanes::All) => f.write_str(" lanes=all")?,
        }
        write!(f, " {} {}", self.place, self.action)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.workgroup;
        write!(f, "dispatch={} workgroup={x},{y},{z} wave=", self.dispatch)?;
        match self.wave {
            Some(wave) => write!(f, "{wave}")?,
            None => f.write_str("all")?,
        }
        write!(f, " pc={} occurrence={}", self.pc, self.occurrence)?;
        if let Some((Intermittent { window, rate }, key)) = self.intermittent {
            write!(f, " window={window} rate={rate:#010x} key={key:#010x}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unit { opcode, units, unit, simd, slot } = self;
        write!(f, "opcode={} units={units} unit={unit} simd={simd}", opcode.name())?;
        slot.map_or(Ok(()), |slot| write!(f, " slot={slot}"))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Register(register) => write!(f, "register={register}"),
            Place::Source(register) => write!(f, "source={register}"),
            Place::Lds(offset) => write!(f, "lds={offset:#x}"),
            Place::Scratch(offset) => write!(f, "scratch={offset:#x}"),
            Place::Memory { buffer, offset } => write!(f, "buffer={buffer} offset={offset:#x}"),
            Place::Encoding(word) => write!(f, "encoding={word}"),
            Place::Branch => f.write_str("branch=decision"),
            Place::ProgramCounter(word) => write!(f, "program_counter={word}"),
            Place::Destination(word) => write!(f, "destination={word}"),
            Place::Sum(place) => write!(f, "{place}"),
        }
    }
}

impl fmt::Display for SumPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SumPlace { part, element, step, word } = self;
        let MatrixElement { block, row, column } = element;
        let key = SUM_PARTS.iter().find(|(known, _)| known == part);
        write!(f, "{}={row},{column}", key.map_or("?", |(_, key)| key))?;
        if *block > 0 {
            write!(f, " block={block}")?;
        }
        if *part != SumPart::Accumulator {
            write!(f, " step={step}")?;
        }
        if *word > 0 { write!(f, " word={word}") } else { Ok(()) }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Flip(mask) => write!(f, "flip={mask:#010x}"),
            Action::Set(value) => write!(f, "set={value:#010x}"),
            Action::StuckAtZero(mask) => write!(f, "stuck_at_zero={mask:#010x}"),
            Action::StuckAtOne(mask) => write!(f, "stuck_at_one={mask:#010x}"),
            Action::Relative(format, error) => {
                let key = NUMBERS.iter().find(|(known, ..)| known == format);
                write!(f, "{}={error}", key.map_or("?", |(_, key, _)| key))
            }
            Action::Function { function, format, random } => {
                let key = match format {
                    Some(format) => NUMBERS.iter().find(|(known, ..)| known == format),
                    None => None,
                };
                let key = key.map_or("function", |(.., key)| key);
                write!(f, "{key}={} random={random:#018x}", function.name())
            }
        }
    }
}

impl Site {
    /// Parses the form that `Display` writes, for a program of an instruction set; fields may be separated
    /// by any whitespace.
    ///
    /// # Errors
    /// [`SiteError`] with the invalid field.
    pub fn parse(text: &str, architecture: &dyn Architecture) -> Result<Site, SiteError> {
        let mut fields = Fields::of(text);
        let when = if fields.key() == Some("opcode") {
            When::Always(unit(&mut fields, architecture)?)
        } else {
            When::At(event(&mut fields)?)
        };
        let lanes = match fields.key() {
            Some("lane") => Some(Lanes::One(Lane(fields.number("lane")?))),
            Some("lanes") => {
                Some(fields.read("lanes", "active, all, or a mask of 64 bits or fewer", lanes)?)
            }
            _ => None,
        };
        let (place, action) = (place(&mut fields, architecture)?, action(&mut fields)?);
        fields.end()?;
        let site = Site { when, place, lanes, action };
        site.check()?;
        Ok(site)
    }
}

fn event(fields: &mut Fields<'_>) -> Result<Event, SiteError> {
    Ok(Event {
        dispatch: fields.number("dispatch")?,
        workgroup: fields.read("workgroup", "three numbers x,y,z", |text| {
            let parts: Option<Vec<u32>> = text.split(',').map(decimal).collect();
            parts?.try_into().ok()
        })?,
        wave: fields.read("wave", "a number or `all`", |text| match text {
            "all" => Some(None),
            number => decimal(number).map(Some),
        })?,
        pc: Pc(fields.hexadecimal("pc")?),
        occurrence: fields.number("occurrence")?,
        intermittent: match fields.key() {
            Some("window") => Some((
                Intermittent {
                    window: fields.read("window", "a number above 0", decimal)?,
                    rate: fields.hexadecimal("rate")?,
                },
                fields.hexadecimal("key")?,
            )),
            _ => None,
        },
    })
}

fn unit(fields: &mut Fields<'_>, architecture: &dyn Architecture) -> Result<Unit, SiteError> {
    Ok(Unit {
        opcode: fields
            .read("opcode", "the name of an operation", |name| architecture.operation(name))?,
        units: fields.read("units", "a number above 0", decimal)?,
        unit: fields.number("unit")?,
        simd: fields.number("simd")?,
        slot: match fields.key() {
            Some("slot") => Some(fields.number("slot")?),
            _ => None,
        },
    })
}

fn lanes(text: &str) -> Option<Lanes> {
    match text {
        "active" => Some(Lanes::Active),
        "all" => Some(Lanes::All),
        mask => hexadecimal(mask).map(|mask| Lanes::Mask(LaneMask(mask))),
    }
}

fn place(fields: &mut Fields<'_>, architecture: &dyn Architecture) -> Result<Place, SiteError> {
    let names = architecture.register_examples();
    let register = |text: &str| architecture.register(text);
    fn half(text: &str) -> Option<u8> {
        decimal(text).filter(|word| *word < 2)
    }
    Ok(match fields.key() {
        Some("register") => Place::Register(fields.read("register", names, register)?),
        Some("source") => Place::Source(fields.read("source", names, register)?),
        Some("lds") => Place::Lds(fields.hexadecimal("lds")?),
        Some("scratch") => Place::Scratch(fields.hexadecimal("scratch")?),
        Some("buffer") => Place::Memory {
            buffer: fields.number("buffer")?,
            offset: fields.hexadecimal("offset")?,
        },
        Some("encoding") => Place::Encoding(fields.number("encoding")?),
        Some("branch") => fields
            .read("branch", "`decision`", |text| (text == "decision").then_some(Place::Branch))?,
        Some("program_counter") => {
            Place::ProgramCounter(fields.read("program_counter", "0 or 1", half)?)
        }
        Some("destination") => Place::Destination(fields.number("destination")?),
        key => {
            let sum = SUM_PARTS.into_iter().find(|(_, name)| key == Some(name));
            if let Some((part, key)) = sum {
                return Ok(Place::Sum(sum_place(fields, part, key)?));
            }
            let expected = "register, source, lds, scratch, buffer, encoding, branch, \
                            program_counter, destination, product, partial_sum or accumulator";
            return Err(SiteError::Field { expected, found: fields.peek().to_owned() });
        }
    })
}

fn sum_place(
    fields: &mut Fields<'_>,
    part: SumPart,
    key: &'static str,
) -> Result<SumPlace, SiteError> {
    let [row, column] = fields.read(key, "a row and a column from 0 to 255", |text| {
        let parts: Option<Vec<u8>> = text.split(',').map(decimal).collect();
        parts?.try_into().ok()
    })?;
    let block = match fields.key() {
        Some("block") => fields.number("block")?,
        _ => 0,
    };
    let step = match part {
        SumPart::Accumulator => 0,
        _ => fields.number("step")?,
    };
    let word = match fields.key() {
        Some("word") => fields.number("word")?,
        _ => 0,
    };
    Ok(SumPlace { part, element: MatrixElement { block, row, column }, step, word })
}

fn action(fields: &mut Fields<'_>) -> Result<Action, SiteError> {
    const EXPECTED: &str =
        "flip, set, stuck_at_zero, stuck_at_one, relative_FORMAT, function or function_FORMAT";
    Ok(match fields.key() {
        Some("flip") => Action::Flip(fields.hexadecimal("flip")?),
        Some("set") => Action::Set(fields.hexadecimal("set")?),
        Some("stuck_at_zero") => Action::StuckAtZero(fields.hexadecimal("stuck_at_zero")?),
        Some("stuck_at_one") => Action::StuckAtOne(fields.hexadecimal("stuck_at_one")?),
        key => {
            let relative = NUMBERS.iter().find(|(_, name, _)| key == Some(name));
            if let Some((format, name, _)) = relative {
                let error = |text: &str| text.parse().ok().and_then(RelativeError::new);
                return Ok(Action::Relative(*format, fields.read(name, "a number", error)?));
            }
            let of_number = NUMBERS.iter().find(|(.., name)| key == Some(name));
            let (format, name) = match of_number {
                Some((format, _, name)) => (Some(*format), *name),
                None => (None, "function"),
            };
            if key != Some(name) {
                let found = fields.peek().to_owned();
                return Err(SiteError::Field { expected: EXPECTED, found });
            }
            let text = fields.value(name)?;
            let function = FaultFunction::find(text)
                .ok_or_else(|| SiteError::UnknownFunction { name: text.to_owned() })?;
            Action::Function { function, format, random: fields.hexadecimal("random")? }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{parse, register, site};

    const TEXT: &str = "dispatch=0 workgroup=3,1,0 wave=2 pc=0x1a9c occurrence=5 lane=17 \
                        register=v4 flip=0x00000400";

    #[test]
    fn text_round_trips() {
        let at = "dispatch=1 workgroup=0,0,0 wave=0 pc=0x40 occurrence=0";
        let mut texts = vec![
            TEXT.to_owned(),
            "dispatch=4294967295 workgroup=0,0,4294967295 wave=15 pc=0xffffffffffffffff \
             occurrence=18446744073709551615 lane=63 register=a255 flip=0xffffffff"
                .to_owned(),
            "opcode=v_fma_f32 units=104 unit=103 simd=3 slot=15 destination=1 \
             stuck_at_one=0x00000001"
                .to_owned(),
            "opcode=s_add_u32 units=1 unit=0 simd=0 destination=0 relative_bf16=1e300".to_owned(),
        ];
        texts.extend(
            [
                "register=exec_hi set=0xdeadbeef",
                "register=scc flip=0x00000001",
                "lanes=0x00000000ffffffff source=v255 stuck_at_zero=0x80000000",
                "lanes=active register=a0 relative_f64=-0.25",
                "lanes=all scratch=0x10 flip=0x00000001",
                "lane=0 register=v1 relative_f16_high=0.5",
                "lds=0x0 flip=0x00000001",
                "buffer=3 offset=0x100000000 set=0x00000000",
                "encoding=1 flip=0x80000000",
                "branch=decision flip=0x00000001",
                "program_counter=1 set=0xffffffff",
                "product=3,7 step=5 flip=0x00000400",
                "partial_sum=31,0 block=1 step=127 relative_f32=0.5",
                "accumulator=0,255 block=15 word=1 set=0x00000000",
            ]
            .map(|rest| format!("{at} {rest}")),
        );
        let window = "window=100 rate=0x80000000 key=0x00001234";
        texts.push(format!("{at} {window} register=m0 flip=0x00000001"));
        texts.push(
            "dispatch=1 workgroup=0,0,0 wave=all pc=0x40 occurrence=0 lanes=active register=v0 \
             set=0x00000000"
                .to_owned(),
        );
        for text in texts {
            let site = site(&text);
            assert_eq!(site.to_string(), text);
            assert_eq!(parse(&site.to_string()), Ok(site));
        }
    }

    #[test]
    fn every_floating_point_format_round_trips() {
        for (format, ..) in NUMBERS {
            let error = RelativeError::new(0.125).unwrap();
            let text = Action::Relative(format, error).to_string();
            assert_eq!(action(&mut Fields::of(&text)), Ok(Action::Relative(format, error)));
        }
    }

    #[test]
    fn text_has_the_documented_meaning() {
        let site = site(TEXT);
        let expected = Site {
            when: When::At(Event {
                dispatch: 0,
                workgroup: [3, 1, 0],
                wave: Some(2),
                pc: Pc(0x1a9c),
                occurrence: 5,
                intermittent: None,
            }),
            place: Place::Register(register("v4")),
            lanes: Some(Lanes::One(Lane(17))),
            action: Action::Flip(0x400),
        };
        assert_eq!(site, expected);
    }

    #[test]
    fn invalid_text_is_rejected_with_the_reason() {
        for (from, to, message) in [
            ("dispatch=0 ", "", "`dispatch`, found `workgroup=3,1,0`"),
            ("dispatch=0", "dispatch=+0", "`dispatch=+0`"),
            ("dispatch=0", "dispatch=", "`dispatch=`"),
            ("dispatch=0", "dispatch=4294967296", "expected a number"),
            ("3,1,0", "3,1", "expected three numbers"),
            ("3,1,0", "3,1,-0", "expected three numbers"),
            ("wave=2 ", "wave=2 wave=2 ", "`pc`, found `wave=2`"),
            ("wave=2 ", "wave=every ", "a number or `all`"),
            ("0x1a9c", "1a9c", "hexadecimal"),
            ("0x1a9c", "0x", "hexadecimal"),
            ("0x1a9c", "0x+1", "hexadecimal"),
            ("occurrence=5", "occurrence=5 window=0 rate=0x0 key=0x0", "above 0"),
            ("occurrence=5", "occurrence=5 window=9", "`rate`, found `lane=17`"),
            ("lane=17", "lane=64", "lane 64 does not exist"),
            ("lane=17", "lane=256", "expected a number"),
            ("lane=17", "lanes=none", "active, all, or a mask"),
            ("lane=17", "lanes=0x0", "at least one lane"),
            ("lane=17 ", "", "each lane has its own register=v4"),
            ("register=v4", "register=s4", "register=s4 is shared by the whole wave"),
            ("register=v4", "register=v1024", "expected a register"),
            ("register=v4", "flags=3", "register, source, lds"),
            ("lane=17 register=v4", "lds=0x3", "multiple of 4"),
            ("lane=17 register=v4", "destination=0", "for permanent faults"),
            ("lane=17 register=v4", "branch=taken", "`decision`"),
            ("lane=17 register=v4", "program_counter=2", "0 or 1"),
            ("flip=0x00000400", "flip=0x00000000", "at least one bit"),
            ("flip=0x00000400", "flip=0x100000000", "`flip=0x100000000`: expected a hex"),
            ("flip=0x00000400", "flip=0x100000000", "32 bits or fewer"),
            ("flip=0x00000400", "flip=0x10000000000000000", "32 bits or fewer"),
            ("flip=0x00000400", "flip=2^64", "`flip=2^64`: expected a hexadecimal"),
            ("flip=0x00000400", "set=0x1ffffffff", "32 bits or fewer"),
            ("pc=0x1a9c", "pc=0x10000000000000000", "64 bits or fewer"),
            ("lane=17", "lanes=0x1ffffffffffffffff", "a mask of 64 bits or fewer"),
            ("lane=17 register=v4", "encoding=256", "from 0 to 255"),
            ("occurrence=5", "occurrence=18446744073709551616", "to 18446744073709551615"),
            (
                "flip=0x00000400",
                "",
                "relative_FORMAT, function or function_FORMAT`, found `the end`",
            ),
            ("flip=0x00000400", "xor=0x00000400", "found `xor=0x00000400`"),
            ("flip=0x00000400", "relative_f32=much", "a number"),
            ("flip=0x00000400", "relative_f32=inf", "a number"),
            ("0x00000400", "0x00000400 more", "`nothing more`, found `more`"),
            ("lane=17 register=v4", "register=scc", "does not fit register=scc"),
        ] {
            let text = TEXT.replacen(from, to, 1);
            assert_ne!(text, TEXT);
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}\n{error}");
        }
        let permanent = "opcode=v_fma_f32 units=4 unit=3 simd=0 slot=0 destination=0 flip=0x1";
        for (from, to, message) in [
            ("v_fma_f32", "", "the name of an operation"),
            ("units=4", "units=0", "above 0"),
            ("unit=3", "unit=4", "unit 4 does not exist"),
            ("destination=0", "lane=0 register=v0", "expected `destination`, not register=v0"),
        ] {
            let error = parse(&permanent.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
