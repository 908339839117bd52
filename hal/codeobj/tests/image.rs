//! Memory images: segments in their places, relocations applied.

mod common;

use common::{compile, llvm, run};
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
fn relocations_are_applied() {
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
    assert_eq!(word(2), 0, "an undefined weak symbol is zero");
    assert_eq!(word(3), BASE + address("device"));
    assert_eq!(word(4), 0x1122_3344_5566_7788);
    let kinds: Vec<_> = object.relocations().iter().map(|relocation| relocation.kind).collect();
    assert!(kinds.contains(&RelocationKind::Abs64), "{kinds:?}");
    assert!(kinds.contains(&RelocationKind::Relative64), "{kinds:?}");
}

#[test]
fn the_rest_of_the_image_is_the_file() {
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
fn an_undefined_symbol_is_named() {
    let object = object();
    let error = object.load_image(BASE).expect_err("`outside` is nowhere");
    assert!(matches!(&error, CodeObjectError::UndefinedSymbol { name, .. } if name == "outside"));
    assert!(error.to_string().contains("undefined symbol `outside`"), "{error}");
}

#[test]
fn a_base_without_room_is_refused() {
    let error = object().load_image_with(u64::MAX - 8, |_| Some(0)).expect_err("no room");
    assert!(matches!(error, CodeObjectError::TooLarge { what: "load address", .. }), "{error}");
}
