//! Reading of code objects compiled by clang, compared with LLVM's readers.

use crate::common::{Compiled, TARGETS, compile, llvm, run};
use flipwave_codeobj::{Argument, CodeObject, CodeObjectError, Definition, SymbolKind};
use flipwave_isa::{Pc, Setting};
use serde_json::Value as Json;
use serde_yaml::Value as Yaml;

fn kernels(processor: &str, version: u8) -> (Compiled, CodeObject) {
    let compiled =
        compile("kernels.cl", processor, &["-g", &format!("-mcode-object-version={version}")]);
    let object = CodeObject::parse(&compiled.bytes).expect("a code object");
    (compiled, object)
}

/// The metadata as printed by llvm-readelf.
fn note(compiled: &Compiled) -> Yaml {
    let text = run(llvm("llvm-readelf").arg("--notes").arg(compiled.path()));
    let start = text.find("---\n").expect("a document") + 4;
    let end = text.find("\n...").expect("the document's end");
    serde_yaml::from_str(&text[start..end]).expect("YAML")
}

/// The JSON output of llvm-readobj.
fn readobj(compiled: &Compiled, options: &[&str]) -> Json {
    let text =
        run(llvm("llvm-readobj").arg("--elf-output-style=JSON").args(options).arg(compiled.path()));
    let mut document: Json = serde_json::from_str(&text).expect("JSON");
    document[0].take()
}

fn number(value: &Yaml, key: &str) -> Option<u32> {
    value.get(key).map(|value| value.as_u64().expect("a number") as u32)
}

fn text(value: &Yaml, key: &str) -> Option<String> {
    value.get(key).map(|value| value.as_str().expect("a string").to_owned())
}

fn flag(value: &Yaml, key: &str) -> bool {
    value.get(key).is_some_and(|value| value.as_bool().expect("a boolean"))
}

#[test]
fn metadata_equals_llvm_readelf() {
    for (processor, version) in TARGETS {
        let (compiled, object) = kernels(processor, version);
        let note = note(&compiled);
        assert_eq!(object.metadata().expect("a note").target, text(&note, "amdhsa.target"));
        let expected = note["amdhsa.kernels"].as_sequence().expect("kernels");
        assert_eq!(object.kernels().len(), expected.len());
        assert_eq!(expected.len(), 3);
        for (kernel, expected) in object.kernels().iter().zip(expected) {
            let metadata = &kernel.metadata;
            let has = |key| number(expected, key);
            assert_eq!(Some(kernel.name.to_string()), text(expected, ".name"));
            assert_eq!(Some(kernel.symbol.to_string()), text(expected, ".symbol"));
            assert_eq!(metadata.language, text(expected, ".language"));
            assert_eq!(Some(metadata.kernarg_segment_size), has(".kernarg_segment_size"));
            assert_eq!(Some(metadata.kernarg_segment_align), has(".kernarg_segment_align"));
            assert_eq!(Some(metadata.group_segment_fixed_size), has(".group_segment_fixed_size"));
            assert_eq!(
                Some(metadata.private_segment_fixed_size),
                has(".private_segment_fixed_size")
            );
            assert_eq!(Some(metadata.wavefront_size), has(".wavefront_size"));
            assert_eq!(metadata.max_flat_workgroup_size, has(".max_flat_workgroup_size"));
            assert_eq!(metadata.sgpr_count, has(".sgpr_count"));
            assert_eq!(metadata.vgpr_count, has(".vgpr_count"));
            assert_eq!(metadata.agpr_count, has(".agpr_count"));
            assert_eq!(metadata.sgpr_spill_count, has(".sgpr_spill_count"));
            assert_eq!(metadata.vgpr_spill_count, has(".vgpr_spill_count"));
            assert_eq!(metadata.uses_dynamic_stack, flag(expected, ".uses_dynamic_stack"));
            let arguments = expected[".args"].as_sequence().expect("arguments");
            let arguments: Vec<Argument> = arguments.iter().map(argument).collect();
            assert_eq!(kernel.arguments(), arguments, "{processor} {}", kernel.name);
        }
        let required: Vec<_> =
            object.kernels().iter().map(|kernel| kernel.metadata.reqd_workgroup_size).collect();
        assert_eq!(required, [None, Some([64, 2, 1]), None]);
    }
}

fn argument(value: &Yaml) -> Argument {
    Argument {
        name: text(value, ".name"),
        type_name: text(value, ".type_name"),
        offset: number(value, ".offset").expect("an offset"),
        size: number(value, ".size").expect("a size"),
        kind: flipwave_codeobj::ArgumentKind::from_name(
            &text(value, ".value_kind").expect("a kind"),
        ),
        address_space: text(value, ".address_space"),
        access: text(value, ".access"),
        actual_access: text(value, ".actual_access"),
        pointee_align: number(value, ".pointee_align"),
        is_const: flag(value, ".is_const"),
        is_restrict: flag(value, ".is_restrict"),
        is_volatile: flag(value, ".is_volatile"),
        is_pipe: flag(value, ".is_pipe"),
    }
}

/// Negative control of the comparison: another number in the file changes the metadata.
#[test]
fn changed_note_changes_the_metadata() {
    let (compiled, object) = kernels("gfx90a", 5);
    let key = b".wavefront_size";
    let place = compiled.bytes.windows(key.len()).position(|bytes| bytes == key).unwrap();
    let mut changed = compiled.bytes.clone();
    assert_eq!(changed[place + key.len()], 64);
    changed[place + key.len()] = 32;
    let changed = CodeObject::parse(&changed).expect("a code object");
    assert_ne!(changed.kernels(), object.kernels());
    assert_eq!(changed.kernels()[0].metadata.wavefront_size, 32);
}

/// Unknown kinds are read as `Other`.
#[test]
fn all_argument_kinds_of_clang_are_known() {
    let (_, object) = kernels("gfx90a", 5);
    let arguments: Vec<&Argument> =
        object.kernels().iter().flat_map(|kernel| kernel.arguments()).collect();
    assert!(arguments.iter().any(|argument| argument.kind.name() == "hidden_block_count_x"));
    assert!(arguments.iter().any(|argument| argument.kind.is_hidden()));
    for argument in arguments {
        assert!(
            !matches!(argument.kind, flipwave_codeobj::ArgumentKind::Other(_)),
            "{}",
            argument.kind
        );
    }
}

#[test]
fn target_and_version_equal_the_compiler_options() {
    for (processor, version) in TARGETS {
        let (_, object) = kernels(processor, version);
        assert_eq!(object.target().to_string(), processor);
        assert_eq!(object.version(), version);
    }
    let with_features = |processor| {
        let compiled = compile("kernels.cl", processor, &[]);
        CodeObject::parse(&compiled.bytes).expect("a code object").target().clone()
    };
    let target = with_features("gfx90a:sramecc+:xnack-");
    assert_eq!((target.sramecc, target.xnack), (Setting::On, Setting::Off));
    let target = with_features("gfx906:xnack+");
    assert_eq!((target.sramecc, target.xnack), (Setting::Any, Setting::On));
}

/// LLVM 22 no longer writes version 3; the test patches the two header fields that differ.
#[test]
fn version_3_has_one_bit_per_feature() {
    let compiled = compile("kernels.cl", "gfx90a", &["-mcode-object-version=4"]);
    let with_header = |abi_version: u8, flags: u32| {
        let mut bytes = compiled.bytes.clone();
        bytes[8] = abi_version;
        bytes[0x30..0x34].copy_from_slice(&flags.to_le_bytes());
        CodeObject::parse(&bytes)
    };
    let object = with_header(1, 0x13f).expect("a code object");
    assert_eq!(object.version(), 3);
    assert_eq!(object.target().to_string(), "gfx90a:sramecc-:xnack+");
    let object = with_header(1, 0x23f).expect("a code object");
    assert_eq!(object.target().to_string(), "gfx90a:sramecc+:xnack-");
    let object = with_header(1, 0x36).expect("a code object");
    assert_eq!(object.target().to_string(), "gfx1030", "it has neither feature");
    let error = with_header(0, 0x3f).expect_err("version 2");
    assert!(error.to_string().contains("ABI version 0"), "{error}");
    let error = with_header(2, 0xfe).expect_err("an unknown processor");
    assert_eq!(error, CodeObjectError::UnknownProcessor { machine: 0xfe });
    assert!(error.to_string().contains("gfx90a"), "{error}");
}

#[test]
fn symbols_equal_llvm_readobj() {
    for (processor, version) in TARGETS {
        let (compiled, object) = kernels(processor, version);
        let document = readobj(&compiled, &["--symbols"]);
        let expected: Vec<(String, u64, u64)> = document["Symbols"]
            .as_array()
            .expect("symbols")
            .iter()
            .map(|symbol| &symbol["Symbol"])
            .filter(|symbol| symbol["Name"]["Name"] != "")
            .map(|symbol| {
                let number = |key: &str| symbol[key].as_u64().expect("a number");
                let name = symbol["Name"]["Name"].as_str().expect("a name").to_owned();
                (name, number("Value"), number("Size"))
            })
            .collect();
        let symbols: Vec<_> = object
            .symbols()
            .iter()
            .map(|symbol| (symbol.name.to_string(), symbol.address, symbol.size))
            .collect();
        assert_eq!(symbols, expected);
        let count = |kind| object.symbols().iter().filter(|symbol| symbol.kind == kind).count();
        assert_eq!(count(SymbolKind::KernelDescriptor), 3);
        // One function, three kernels, and the kernels once more as functions.
        assert_eq!(count(SymbolKind::Function), 7);
        let local = object.symbols().iter().find(|symbol| &*symbol.name == "reduce.dynamic");
        assert!(local.is_none_or(|symbol| symbol.definition == Definition::Undefined));
    }
}

#[test]
fn code_equals_llvm_objdump() {
    for (processor, version) in TARGETS {
        let (compiled, object) = kernels(processor, version);
        let disassembly = run(llvm("llvm-objdump").arg("-d").arg(compiled.path()));
        let mut function = String::new();
        let mut instructions = 0;
        for line in disassembly.lines() {
            if let Some((_, name)) = line.strip_suffix(">:").and_then(|line| line.split_once('<')) {
                function = name.to_owned();
            }
            let Some((_, comment)) = line.split_once("// ") else { continue };
            let (address, words) = comment.split_once(": ").expect("an address");
            let pc = Pc(u64::from_str_radix(address, 16).expect("an address"));
            let words: Vec<u8> = words
                .split_whitespace()
                .map_while(|word| u32::from_str_radix(word, 16).ok())
                .flat_map(u32::to_le_bytes)
                .collect();
            assert_eq!(object.bytes_at(pc, words.len()), Some(&words[..]));
            // objdump also prints the padding between functions.
            if let Some(symbol) = object.function_at(pc) {
                assert_eq!(*symbol.name, function);
                instructions += 1;
            }
        }
        let bytes: u64 = object
            .symbols()
            .iter()
            .filter(|symbol| symbol.kind == SymbolKind::Function)
            .map(|symbol| symbol.size)
            .sum();
        assert!(instructions >= bytes / 12, "{instructions} instructions in {bytes} bytes");
        for kernel in object.kernels() {
            let symbol = object.function_at(kernel.entry()).expect("the kernel's function");
            assert_eq!(symbol.name, kernel.name);
            assert_eq!((symbol.address, symbol.size), (kernel.entry().0, kernel.code_size));
        }
        let text: Vec<_> = object.text().collect();
        assert_eq!(text.len(), 1);
        assert_eq!(
            object.bytes_at(Pc(text[0].address), text[0].bytes().len()),
            Some(text[0].bytes())
        );
        assert_eq!(object.function_at(Pc(0)), None);
        assert_eq!(object.bytes_at(Pc(text[0].address), usize::MAX), None);
    }
}

#[test]
fn segments_equal_llvm_readobj() {
    let (compiled, object) = kernels("gfx90a", 5);
    let document = readobj(&compiled, &["--program-headers"]);
    let expected: Vec<_> = document["ProgramHeaders"]
        .as_array()
        .expect("program headers")
        .iter()
        .map(|header| &header["ProgramHeader"])
        .filter(|header| header["Type"]["Name"] == "PT_LOAD")
        .map(|header| {
            let number = |key: &str| header[key].as_u64().expect("a number");
            let flags = header["Flags"]["Value"].as_u64().expect("flags");
            let (address, size) = (number("VirtualAddress"), number("MemSize"));
            (address, size, number("FileSize"), number("Offset"), flags)
        })
        .collect();
    let segments: Vec<_> = object
        .segments()
        .iter()
        .map(|segment| {
            let flags = u64::from(segment.readable) * 4
                + u64::from(segment.writable) * 2
                + u64::from(segment.executable);
            let file_size = segment.bytes().len() as u64;
            (segment.address, segment.memory_size, file_size, segment.file_offset(), flags)
        })
        .collect();
    assert_eq!(segments, expected);
}

#[test]
fn stripped_code_object_keeps_its_kernels() {
    let (compiled, object) = kernels("gfx90a", 5);
    let stripped = compiled.sibling("stripped.co");
    run(llvm("llvm-strip").arg(compiled.path()).arg("-o").arg(&stripped));
    let stripped = CodeObject::parse(&std::fs::read(stripped).unwrap()).expect("a code object");
    assert_eq!(stripped.kernels(), object.kernels());
    assert!(stripped.symbols().len() < object.symbols().len());
    assert!(stripped.lines().expect("no lines").is_empty());
}

#[test]
fn errors_name_the_structure_and_its_offset() {
    let (compiled, _) = kernels("gfx90a", 5);
    let error = |bytes: &[u8]| CodeObject::parse(bytes).expect_err("an error").to_string();
    assert!(error(b"").contains("begins with the bytes []"));
    assert!(error(b"#!/bin/sh\n").contains("expected an ELF file"));
    assert!(error(&compiled.bytes[..40]).contains("64-bit little-endian"));
    let mut other_machine = compiled.bytes.clone();
    other_machine[0x12] = 62;
    assert!(error(&other_machine).contains("machine is 62"));
    let cut = &compiled.bytes[..compiled.bytes.len() / 2];
    assert!(error(cut).contains("section header table at byte 0x"), "{}", error(cut));
    // A size in the note that is not a number.
    let key = b".kernarg_segment_size";
    let place = compiled.bytes.windows(key.len()).position(|bytes| bytes == key).unwrap();
    let mut wrong = compiled.bytes.clone();
    wrong[place + key.len()] = 0xc0;
    let message = error(&wrong);
    assert!(message.contains("metadata note at byte 0x"), "{message}");
}
