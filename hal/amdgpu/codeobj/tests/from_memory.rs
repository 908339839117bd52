//! Code objects reconstructed from loaded memory.

use crate::common::{assemble, compile, llvm, run};
use flipwave_codeobj::CodeObject;
use flipwave_isa::Pc;

/// The memory of a loaded code object, followed by unrelated bytes.
fn in_memory(object: &CodeObject, base: u64) -> Vec<u8> {
    let image = object.load_image_with(base, |_| Some(0)).expect("an image");
    assert_eq!(image.address, base, "the image begins with the headers");
    [image.bytes, vec![0xee; 5000]].concat()
}

#[test]
fn loaded_code_object_has_the_kernels_of_its_file() {
    for processor in ["gfx90a", "gfx1100"] {
        let compiled = compile("kernels.cl", processor, &["-g"]);
        let object = CodeObject::parse(&compiled.bytes).expect("a code object");
        let loaded = CodeObject::from_memory(in_memory(&object, 0x4d_0000_0000)).expect("another");
        assert!(!object.kernels().is_empty());
        assert_eq!(loaded.kernels(), object.kernels());
        assert_eq!(loaded.metadata(), object.metadata());
        assert_eq!(loaded.target(), object.target());
        assert_eq!(loaded.span(), object.span());
        let kernel_code = |object: &CodeObject| {
            let code = object.kernels().iter().map(|kernel| {
                object.bytes_at(kernel.entry(), kernel.code_size as usize).map(<[u8]>::to_vec)
            });
            code.collect::<Option<Vec<_>>>().expect("the kernels' code")
        };
        assert_eq!(kernel_code(&loaded), kernel_code(&object));
        assert_eq!(loaded.text().count(), object.text().count());
        // LLVM also reads the file.
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("loaded.co");
        std::fs::write(&file, loaded.bytes()).expect("written");
        let printed = run(llvm("llvm-readelf").args(["--dyn-syms"]).arg(&file));
        let all = object.kernels().iter().all(|kernel| printed.contains(&*kernel.symbol));
        assert!(all, "{printed}");
    }
}

#[test]
fn relocated_fields_keep_their_loaded_values() {
    let compiled = compile("relocations.s", "gfx90a", &["-Wl,--unresolved-symbols=ignore-all"]);
    let object = CodeObject::parse(&compiled.bytes).expect("a code object");
    assert!(!object.relocations().is_empty());
    let image = in_memory(&object, 0x1000_0000);
    let loaded = CodeObject::from_memory(image.clone()).expect("another");
    assert!(loaded.relocations().is_empty());
    let place = object.relocations()[0].place;
    let word = loaded.bytes_at(Pc(place), 8).expect("the relocated field");
    assert_eq!(word, &image[place as usize..][..8]);
    assert_ne!(Some(word), object.bytes_at(Pc(place), 8));
}

#[test]
fn truncated_or_damaged_memory_is_rejected_without_panic() {
    let text = ".text\n.globl f\n.p2align 8\n.type f,@function\nf: s_endpgm\n.size f, .-f\n";
    let object = CodeObject::parse(&assemble(text, "gfx90a").bytes).expect("a code object");
    let image = in_memory(&object, 0x1000);
    let segments = object.segments().iter();
    let end = segments.map(|segment| segment.address + segment.bytes().len() as u64).max();
    for length in 0..image.len() {
        let part = CodeObject::from_memory(image[..length].to_vec());
        assert_eq!(part.is_ok(), length as u64 >= end.unwrap_or(0), "{length} bytes");
    }
    assert!(CodeObject::from_memory(vec![0; 4096]).is_err());
    // Damaged words do not cause a panic.
    for place in (0..object.segments()[0].bytes().len()).step_by(4) {
        for wrong in [0, 0xffff_ffffu32, 0x8000_0000] {
            let mut image = image.clone();
            image[place..place + 4].copy_from_slice(&wrong.to_le_bytes());
            let _ = CodeObject::from_memory(image);
        }
    }
}
