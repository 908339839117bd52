//! Edited code objects, read by LLVM's tools and by this crate.

use crate::common::change::{GAP, Moved, change, moved_code, shifted};
use crate::common::{
    Compiled, TARGETS, assemble, compile, llvm, run, run_without_warnings, source, write,
};
use flipwave_codeobj::{
    CodeObject, DataSymbol, Definition, Descriptor, Editor, MetadataChange, MovedCode, Rsrc3,
    WriteError,
};
use flipwave_isa::{Isa, Pc};
use std::path::Path;
use std::process::Command;

fn readelf(path: &Path) -> String {
    run_without_warnings(llvm("llvm-readelf").arg("-aW").arg(path))
}

fn objects() -> Vec<(Compiled, CodeObject)> {
    let mut compiled: Vec<Compiled> =
        TARGETS.iter().map(|(target, _)| compile("kernels.cl", target, &["-g"])).collect();
    for options in [
        &["-O0"][..],
        &["-Wl,--no-rosegment"],
        &["-Wl,-z,max-page-size=65536"],
        &["-Wl,--hash-style=sysv"],
        &["-Wl,--hash-style=gnu"],
        &["-Wl,-soname=kernels.so"],
        &["-mcode-object-version=4"],
    ] {
        compiled.push(compile("kernels.cl", "gfx90a", options));
    }
    compiled.push(compile("relocations.s", "gfx90a", &["-Wl,--unresolved-symbols=ignore-all"]));
    compiled
        .into_iter()
        .map(|compiled| {
            let object = CodeObject::parse(&compiled.bytes).expect("a code object");
            (compiled, object)
        })
        .collect()
}

#[test]
fn llvm_reads_edited_code_objects() {
    for (compiled, object) in objects() {
        let path = write(&compiled, &change(&object));
        let text = readelf(&path);
        assert_eq!(text.matches("hook_counters").count(), 2, "in both tables:\n{text}");
        run_without_warnings(llvm("llvm-objdump").args(["-d", "--no-show-raw-insn"]).arg(&path));
        let copied = compiled.sibling("copied.co");
        run_without_warnings(llvm("llvm-objcopy").arg(&path).arg(&copied));
        let copied = std::fs::read(copied).expect("a copy");
        CodeObject::parse(&copied).expect("llvm-objcopy's output is a code object");
    }
}

/// The hash tables contain every symbol, and a linker resolves references to the new ones.
#[test]
fn new_symbols_are_found_by_name() {
    let compiled = compile("kernels.cl", "gfx90a", &["-Wl,--hash-style=both"]);
    let path = write(&compiled, &change(&CodeObject::parse(&compiled.bytes).unwrap()));
    let text = run_without_warnings(llvm("llvm-readelf").arg("--hash-symbols").arg(&path));
    for name in ["hook_counters", "hook_constants", "saxpy", "saxpy.kd"] {
        let lines = text.lines().filter(|line| line.split(' ').any(|word| word == name));
        assert_eq!(lines.count(), 2, "{name} in each hash table:\n{text}");
    }
    let user = compiled.sibling("user.s");
    std::fs::write(&user, ".data\n.globl user\nuser: .quad hook_counters\n").unwrap();
    let object = compiled.sibling("user.o");
    let mut clang = llvm("clang");
    clang.args(["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-c", "-x", "assembler"]);
    run(clang.arg(&user).arg("-o").arg(&object));
    let mut lld = Command::new("ld.lld-22");
    lld.args(["-shared", "-z", "defs"]).arg(&object).arg(&path);
    run_without_warnings(lld.arg("-o").arg(compiled.sibling("linked.co")));
}

/// AMD's code object manager, which the runtime uses, reads the new metadata and symbols. The one in
/// Debian 12 supports version 4.
#[test]
fn amd_code_object_manager_reads_edited_code_objects() {
    let compiled = compile("kernels.cl", "gfx90a", &["-mcode-object-version=4"]);
    let object = CodeObject::parse(&compiled.bytes).unwrap();
    let changed = change(&object);
    let program = compiled.sibling("metadata");
    run(llvm("clang").arg(source("metadata.c")).arg("-o").arg(&program).arg("-lamd_comgr"));
    let read = |object: &CodeObject| {
        let text = run_without_warnings(Command::new(&program).arg(write(&compiled, object)));
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let expected = |object: &CodeObject| {
        let kernels = object.kernels().iter().map(|kernel| {
            let (metadata, count) = (&kernel.metadata, |count: Option<u32>| count.unwrap_or(0));
            let (vgprs, sgprs) = (count(metadata.vgpr_count), count(metadata.sgpr_count));
            let scratch = metadata.private_segment_fixed_size;
            format!("kernel {} {vgprs} {sgprs} {scratch}", kernel.name)
        });
        // The program prints the symbols of the dynamic table.
        let symbols = object.symbols().iter().filter(|symbol| {
            let local = ["_DYNAMIC", "twice", "table"];
            symbol.global && !local.contains(&&*symbol.name)
        });
        let symbols = symbols
            .map(|symbol| format!("symbol {} {} {}", symbol.name, symbol.address, symbol.size));
        let mut lines: Vec<String> = kernels.chain(symbols).collect();
        lines.sort();
        lines
    };
    let (before, after) = (read(&object), read(&changed));
    assert_eq!(before, expected(&object));
    assert_eq!(after, expected(&changed));
    assert_eq!(after.len(), before.len() + 2, "two new symbols");
    assert!(after.iter().any(|line| line.starts_with("kernel saxpy 100000 ")), "{after:?}");
}

/// Address and size of a symbol.
fn place(object: &CodeObject, name: &str) -> (u64, u64) {
    let symbol = object.symbols().iter().find(|symbol| &*symbol.name == name).expect(name);
    (symbol.address, symbol.size)
}

#[test]
fn references_to_moved_code_are_updated() {
    for (_, object) in objects() {
        let changed = change(&object);
        let (old, new) = (object.text().next().unwrap(), changed.text().next().unwrap());
        let segment = changed.segment_at(Pc(old.address));
        assert!(segment.is_none_or(|segment| !segment.executable), "the old code is executable");
        for symbol in object.symbols() {
            let (address, size) = place(&changed, &symbol.name);
            let is_code = symbol.definition == Definition::Address
                && (old.address..old.address + old.size).contains(&symbol.address);
            if !is_code {
                let moved_tables = ["_DYNAMIC"];
                assert!(moved_tables.contains(&&*symbol.name) || address == symbol.address);
                continue;
            }
            assert!((new.address..new.address + new.size).contains(&address), "{symbol:?}");
            // The no-operations, then the function's old bytes.
            let bytes = changed.bytes_at(Pc(address), size as usize).expect("code");
            let before = object.bytes_at(Pc(symbol.address), symbol.size as usize);
            assert_eq!(&bytes[GAP..], before.expect("code"), "{symbol:?}");
        }
        for (kernel, before) in changed.kernels().iter().zip(object.kernels()) {
            assert_eq!(kernel.name, before.name);
            let function = kernel.symbol.strip_suffix(".kd").unwrap();
            assert_eq!(kernel.entry().0, place(&changed, function).0);
            assert_eq!(kernel.descriptor.address, before.descriptor.address);
        }
    }
}

#[test]
fn unchanged_contents_keep_their_bytes_and_addresses() {
    for (_, object) in objects() {
        let changed = change(&object);
        assert_eq!((changed.version(), changed.target()), (object.version(), object.target()));
        let descriptors: Vec<u64> =
            object.kernels().iter().map(|kernel| kernel.descriptor.address).collect();
        for name in [".rodata", ".data", ".bss", ".dynamic", ".rela.dyn", ".comment", ".got"] {
            let (Some(old), Some(new)) = (object.section(name), changed.section(name)) else {
                assert!(object.section(name).is_none(), "{name} is missing");
                continue;
            };
            assert_eq!((old.address, old.size), (new.address, new.size), "{name}");
            if [".dynamic", ".rela.dyn"].contains(&name) {
                continue;
            }
            for (place, (old, new)) in (old.address..).zip(old.bytes().iter().zip(new.bytes())) {
                let in_descriptor =
                    descriptors.iter().any(|start| (*start..start + 64).contains(&place));
                assert!(old == new || in_descriptor, "{name} at {place:#x}");
            }
        }
    }
}

#[test]
fn descriptors_and_metadata_have_the_requested_values() {
    for (_, object) in objects() {
        let changed = change(&object);
        for (kernel, before) in changed.kernels().iter().zip(object.kernels()) {
            let mut expected: Descriptor = before.descriptor.clone();
            expected.private_segment_fixed_size += 0x1_2340;
            expected.entry = kernel.descriptor.entry;
            expected.rsrc1.vgprs = match (&expected.rsrc3, expected.wavefront_size()) {
                (Rsrc3::Gfx90a { .. }, _) | (_, 32) => 128,
                _ => 124,
            };
            assert_eq!(kernel.descriptor, expected);
            let mut expected = before.metadata.clone();
            expected.vgpr_count = Some(100_000);
            expected.private_segment_fixed_size = 0x1_2340;
            expected.uses_dynamic_stack = true;
            assert_eq!(kernel.metadata, expected);
        }
        assert_eq!(changed.metadata().is_some(), object.metadata().is_some());
    }
}

/// Code addresses in data, which the loader relocates, are the new addresses.
#[test]
fn relocations_to_moved_code_are_updated() {
    let text = ".text\n.p2align 8\nfirst: s_nop 1\ns_endpgm\n.type second,@function\n\
        second: s_endpgm\n.size second, .-second\n.globl third\n.type third,@function\n\
        third: s_nop 2\ninside: s_endpgm\n.size third, .-third\n\
        .data\n.globl pointers\npointers: .quad second, third, inside, third + 4, pointers\n";
    let object = CodeObject::parse(&assemble(text, "gfx90a").bytes).unwrap();
    let changed = change(&object);
    let pointer = |object: &CodeObject, index: u64| {
        let image = object.load_image(0x10_0000).expect("an image");
        let start = (0x10_0000 + place(object, "pointers").0 + 8 * index - image.address) as usize;
        u64::from_le_bytes(image.bytes[start..start + 8].try_into().unwrap()) - 0x10_0000
    };
    assert_eq!(pointer(&changed, 0), place(&changed, "second").0);
    assert_eq!(pointer(&changed, 1), place(&changed, "third").0);
    let inside = place(&changed, "third").0 + GAP as u64 + 4;
    assert_eq!((pointer(&changed, 2), pointer(&changed, 3)), (inside, inside));
    assert_eq!(pointer(&changed, 4), place(&object, "pointers").0);
    // A reference to code without a new address is an error.
    let mut editor = Editor::new(&object);
    let (bytes, mut moved) = shifted(&object, editor.free_address());
    moved.retain(|moved| moved.old.0 != place(&object, "third").0 + 4);
    editor.move_text(editor.free_address(), bytes, moved_code(&moved)).unwrap();
    let error = editor.finish().expect_err("an instruction without a new address");
    assert!(matches!(error, WriteError::NotMoved { .. }), "{error}");
}

#[test]
fn patched_and_added_code_leaves_the_rest_unchanged() {
    let compiled = compile("kernels.cl", "gfx90a", &["-g"]);
    let object = CodeObject::parse(&compiled.bytes).unwrap();
    let isa = Isa::new(object.target()).unwrap();
    let mut editor = Editor::new(&object);
    let address = editor.free_address();
    let trampoline = isa.assemble("s_nop 7\ns_endpgm").unwrap();
    editor.add_text(address, trampoline.clone(), MovedCode::default()).unwrap();
    let entry = object.kernel("saxpy").unwrap().entry();
    let patch = isa.assemble("s_endpgm").unwrap();
    editor.patch(entry.0, patch.clone()).unwrap();
    let changed = editor.finish().expect("a code object").object;
    assert_eq!(changed.bytes_at(entry, 4), Some(&*patch));
    assert_eq!(changed.bytes_at(Pc(address), 8), Some(&*trampoline));
    assert!(changed.segment_at(Pc(address)).unwrap().executable);
    let text = object.text().next().unwrap();
    let mut expected = text.bytes().to_vec();
    expected[(entry.0 - text.address) as usize..][..4].copy_from_slice(&patch);
    assert!(changed.text().next().unwrap().bytes() == expected, "only the patch differs");
    assert_eq!(changed.symbols(), object.symbols());
    readelf(&write(&compiled, &changed));
}

#[test]
fn editing_is_deterministic() {
    let compiled = compile("kernels.cl", "gfx90a", &["-g"]);
    let object = CodeObject::parse(&compiled.bytes).unwrap();
    assert_eq!(change(&object).bytes(), change(&object).bytes());
}

#[test]
fn edited_code_object_can_be_edited_again() {
    for (compiled, object) in objects() {
        let mut editor = Editor::new(&object);
        let symbols = vec![DataSymbol { name: "earlier".to_owned(), offset: 0, size: 4 }];
        let data = editor.add_data(vec![1, 2, 3, 4], 0, 4, symbols).unwrap();
        let once = editor.finish().expect("a code object").object;
        let twice = change(&once);
        assert_eq!(twice.bytes_at(Pc(data), 4), Some(&[1, 2, 3, 4][..]));
        assert_eq!(place(&twice, "earlier"), (data, 4));
        readelf(&write(&compiled, &twice));
    }
}

#[test]
fn invalid_requests_are_rejected() {
    let compiled = compile("kernels.cl", "gfx90a", &[]);
    let object = CodeObject::parse(&compiled.bytes).unwrap();
    let mut editor = Editor::new(&object);
    let outside = |offset, size| DataSymbol { name: "x".to_owned(), offset, size };
    let free = editor.free_address();
    let errors = [
        editor.add_data(vec![0; 4], 4, 3, Vec::new()).expect_err("not a power of two"),
        editor.add_data(vec![0; 4], 4, 4, vec![outside(1, 8)]).expect_err("outside"),
        editor.add_data(vec![0; 4], u64::MAX, 4, Vec::new()).expect_err("no room"),
        editor.add_text(free + 1, vec![0; 4], MovedCode::default()).expect_err("misaligned"),
        editor.add_text(free - 4096, vec![0; 4], MovedCode::default()).expect_err("occupied"),
        editor
            .move_text(free, vec![0; 4], moved_code(&[Moved { old: Pc(0), new: free..free + 8 }]))
            .expect_err("an instruction after the code"),
        editor.patch(free, vec![0; 4]).expect_err("no section"),
        editor.set_metadata(3, MetadataChange::default()).expect_err("three kernels"),
    ];
    let texts: Vec<String> = errors.iter().map(WriteError::to_string).collect();
    for (text, expected) in texts.iter().zip([
        "a power of two",
        "symbol `x`",
        "address space",
        "start of a page",
        "start of a page",
        "a run inside",
        "a patch",
        "kernel number 3",
    ]) {
        assert!(text.contains(expected), "{text}");
    }
    // Rejected requests have no effect.
    assert_eq!(editor.free_address(), free);
    let mut descriptor = object.kernels()[0].descriptor.clone();
    descriptor.rsrc1.vgprs = 513;
    editor.set_descriptor(0, descriptor).unwrap();
    let error = editor.finish().expect_err("too many registers");
    assert!(error.to_string().contains("VGPRs of 513"), "{error}");
}

/// Keys, their order and their encoding stay as written by the compiler.
#[test]
fn note_differs_only_in_changed_values() {
    for (compiled, object) in objects() {
        let written = |change: MetadataChange| {
            let mut editor = Editor::new(&object);
            for kernel in 0..object.kernels().len() {
                editor.set_metadata(kernel, change).expect("a kernel");
            }
            editor.finish().expect("a code object").object
        };
        let same = written(MetadataChange::default());
        let note = |object: &CodeObject| object.section(".note").map(|note| note.bytes().to_vec());
        assert!(note(&same) == note(&object), "an empty change has an effect");
        if object.metadata().is_none() {
            continue;
        }
        let change = MetadataChange { sgpr_count: Some(70_000), ..MetadataChange::default() };
        let changed = write(&compiled, &written(change));
        let lines = |path: &Path| -> Vec<String> {
            let text = run_without_warnings(llvm("llvm-readelf").arg("--notes").arg(path));
            text.lines().filter(|line| !line.contains("File:")).map(str::to_owned).collect()
        };
        let (before, after) = (lines(&compiled.path()), lines(&changed));
        assert_eq!(before.len(), after.len());
        let differ = before.iter().zip(&after).filter(|(before, after)| before != after);
        let differ: Vec<&str> = differ.map(|(_, after)| after.trim()).collect();
        // The size of the note, and one line per kernel.
        let counts = differ.iter().filter(|line| **line == ".sgpr_count:     70000").count();
        assert_eq!(counts, object.kernels().len(), "{differ:?}");
        assert!(differ.len() <= counts + 1, "{differ:?}");
    }
}
