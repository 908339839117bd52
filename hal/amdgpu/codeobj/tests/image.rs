//! Memory images: contents of segments, applied relocations.

use crate::common::{compile, llvm, run};
use flipwave_codeobj::{CodeObject, CodeObjectError, RelocationKind};

const BASE: u64 = 0x7f12_3450_0000;
const OUTSIDE: u64 = 0xaaaa_bbbb_cccc_0000;

fn object() -> CodeObject {
    let compiled = compile("relocations.s", "gfx90a", &["-Wl,--unresolved-symbols=ignore-all"]);
    let expected = run(llvm("llvm-readelf").arg("-r").arg(compiled.path()));
    let object = CodeObject::parse(&compiled.bytes).expect("a code object");
    for relocation in object.relocations() {
        let line = format!("{:016x}", relocation.place);
        let line = expected.lines().find(|text| text.starts_with(&line)).expect("the relocation");
        assert!(line.contains(&relocation.kind.to_string()), "{line}");
    }
    object
}

#[test]
fn image_has_relocated_values() {
    let object = object();
    let address = |name: &str| {
        let symbol = object.symbols().iter().find(|symbol| &*symbol.name == name);
        symbol.expect("a symbol").address
    };
    let image = object
        .load_image_with(BASE, |name| (name == "outside").then_some(OUTSIDE))
        .expect("an image");
    assert_eq!(image.address, BASE + object.segments()[0].address);
    let word = |index: u64| {
        let place = (address("words") + 8 * index + BASE - image.address) as usize;
        u64::from_le_bytes(image.bytes[place..place + 8].try_into().unwrap())
    };
    assert_eq!(word(0), BASE + address("words") + 32 + 16);
    assert_eq!(word(1), OUTSIDE + 5);
    assert_eq!(word(2), 0, "an undefined weak symbol has the value zero");
    assert_eq!(word(3), BASE + address("device"));
    assert_eq!(word(4), 0x1122_3344_5566_7788);
    let kinds: Vec<_> = object.relocations().iter().map(|relocation| relocation.kind).collect();
    assert!(kinds.contains(&RelocationKind::Abs64), "{kinds:?}");
    assert!(kinds.contains(&RelocationKind::Relative64), "{kinds:?}");
}

#[test]
fn bytes_without_relocations_equal_the_file() {
    let object = object();
    let resolve = |_: &str| Some(OUTSIDE);
    let image = object.load_image_with(BASE, resolve).expect("an image");
    let mut expected = vec![0; image.bytes.len()];
    for segment in object.segments() {
        let start = (BASE + segment.address - image.address) as usize;
        expected[start..start + segment.bytes().len()].copy_from_slice(segment.bytes());
    }
    let relocated: Vec<usize> = object
        .relocations()
        .iter()
        .map(|relocation| (BASE + relocation.place - image.address) as usize)
        .flat_map(|start| start..start + 8)
        .collect();
    for (place, (found, expected)) in image.bytes.iter().zip(&expected).enumerate() {
        assert!(found == expected || relocated.contains(&place), "byte {place:#x}");
    }
}

#[test]
fn error_names_undefined_symbol() {
    let object = object();
    let error = object.load_image(BASE).expect_err("`outside` is undefined");
    assert!(matches!(&error, CodeObjectError::UndefinedSymbol { name, .. } if name == "outside"));
    assert!(error.to_string().contains("undefined symbol `outside`"), "{error}");
}

#[test]
fn base_address_that_overflows_is_rejected() {
    let error = object().load_image_with(u64::MAX - 8, |_| Some(0)).expect_err("no room");
    assert!(matches!(error, CodeObjectError::TooLarge { what: "load address", .. }), "{error}");
}

/// The static linker emits only two relocation types for this source; the test patches the type of
/// one relocation. The formulas are from AMDGPUUsage, "Relocation Records".
#[test]
fn every_relocation_type_computes_its_value() {
    let original = object();
    let table = original.section(".rela.dyn").expect("the relocations").file_offset() as usize;
    let entry = original
        .relocations()
        .iter()
        .position(|relocation| {
            relocation.symbol.as_ref().is_some_and(|symbol| &*symbol.name == "outside")
        })
        .expect("the relocation");
    let place = original.relocations()[entry].place;
    let relocated = |number: u8, distance: i64| {
        let mut bytes = original.bytes().to_vec();
        bytes[table + 24 * entry + 8] = number;
        let object = CodeObject::parse(&bytes).expect("a code object");
        let symbol = (BASE + place).wrapping_add_signed(distance - 5);
        let image = object.load_image_with(BASE, |_| Some(symbol))?;
        let start = (BASE + place - image.address) as usize;
        let size = object.relocations()[entry].kind.size() as usize;
        let before = original.load_image_with(BASE, |_| Some(symbol))?.bytes;
        assert_eq!(image.bytes[start + size..], {
            // A narrower relocation leaves the remaining bytes of the field as in the file: zero.
            let mut expected = before[start + size..].to_vec();
            expected[..8 - size].fill(0);
            expected
        });
        let mut value = [0; 8];
        value[..size].copy_from_slice(&image.bytes[start..start + size]);
        Ok::<u64, CodeObjectError>(u64::from_le_bytes(value))
    };
    let near = 0x1234_5670;
    let sum = BASE + place + near as u64;
    assert_eq!(relocated(1, near), Ok(sum & 0xffff_ffff));
    assert_eq!(relocated(2, near), Ok(sum >> 32));
    assert_eq!(relocated(3, near), Ok(sum));
    assert_eq!(relocated(4, near), Ok(near as u64));
    assert_eq!(relocated(4, -near), Ok(-near as u64 & 0xffff_ffff));
    assert_eq!(relocated(5, -near), Ok(-near as u64));
    assert_eq!(relocated(10, -near), Ok(-near as u64 & 0xffff_ffff));
    assert_eq!(relocated(11, -near), Ok(0xffff_ffff));
    assert_eq!(relocated(14, 0x404), Ok(0x100));
    assert_eq!(relocated(14, -0x3fc), Ok(0xff00));
    for (number, distance) in [(4, 1 << 31), (6, near), (14, 0x40_0000), (14, 0x406)] {
        let error = relocated(number, distance).expect_err("out of range");
        assert!(error.to_string().contains("cannot hold"), "{error}");
    }
    let mut unknown = original.bytes().to_vec();
    unknown[table + 24 * entry + 8] = 7;
    let error = CodeObject::parse(&unknown).expect_err("a relocation for the static linker");
    assert!(error.to_string().contains("type 7"), "{error}");
}
