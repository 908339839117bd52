//! DWARF of moved code, read by LLVM's tools and by this crate.

use crate::common::change::{GAP, Moved, change, moved_code, shifted};
use crate::common::{
    Compiled, TARGETS, compile, llvm, run, run_without_warnings, symbolize, write,
};
use flipwave_codeobj::{CodeObject, Editor, MovedCode};
use flipwave_isa::Pc;

/// Code objects for every target and in every form of clang's debug information.
fn objects() -> Vec<Compiled> {
    let mut compiled: Vec<Compiled> =
        TARGETS.iter().map(|(target, _)| compile("kernels.cl", target, &["-g"])).collect();
    for options in [
        &["-g", "-O0"][..],
        &["-g", "-O3"],
        &["-gline-tables-only"],
        &["-gdwarf-2"],
        &["-gdwarf-3"],
        &["-gdwarf-4"],
        &["-gdwarf-4", "-O0"],
        &["-g", "-gz=zlib"],
        &["-g", "-gdwarf64"],
        &["-g", "-ffunction-sections"],
        &["-g", "-fdebug-types-section"],
        &["-g", "-gcolumn-info", "-gpubnames"],
    ] {
        compiled.push(compile("kernels.cl", "gfx90a", options));
    }
    compiled
}

#[test]
fn moved_instructions_keep_their_lines() {
    for compiled in objects() {
        let object = CodeObject::parse(&compiled.bytes).unwrap();
        let changed = change(&object);
        let text = changed.text().next().expect("code");
        let (_, moved) = shifted(&object, text.address);
        let old: Vec<u64> = moved.iter().map(|moved| moved.old.0).collect();
        let expected = symbolize(&compiled.path(), &old);
        assert!(expected.iter().flatten().count() > 50, "too few lines");
        let table = changed.lines().expect("a line table");
        let mut new = Vec::new();
        for (moved, expected) in moved.iter().zip(&expected) {
            for pc in moved.new.clone().step_by(4) {
                assert_eq!(table.lookup(Pc(pc)).as_ref(), expected.as_ref(), "{pc:#x}");
            }
            // The first and the last word of the new range.
            new.extend([(moved.new.start, expected), (moved.new.end - 4, expected)]);
        }
        let addresses: Vec<u64> = new.iter().map(|(pc, _)| *pc).collect();
        let found = symbolize(&write(&compiled, &changed), &addresses);
        for ((pc, expected), found) in new.iter().zip(&found) {
            assert_eq!(found, *expected, "{pc:#x}");
        }
    }
}

#[test]
fn llvm_verifies_updated_debug_information() {
    for compiled in objects() {
        let object = CodeObject::parse(&compiled.bytes).unwrap();
        let path = write(&compiled, &change(&object));
        let text = run(llvm("llvm-dwarfdump").arg("--verify").arg(&path));
        let errors = text.lines().filter(|line| line.contains("error:"));
        assert!(text.contains("No errors.") && errors.count() == 0, "{text}");
    }
}

/// Names, types, declarations and locations in a dump, without offsets and addresses.
fn without_offsets(dump: &str) -> Vec<String> {
    let kept = ["DW_TAG", "DW_AT_name", "DW_AT_decl_line", "DW_AT_type", "): DW_OP"];
    let mut lines: Vec<String> = dump
        .lines()
        .filter(|line| kept.iter().any(|kept| line.contains(kept)))
        .map(|line| {
            let words = line.split([' ', '\t', '(', ')', '[', ',']);
            let words = words.filter(|word| !word.is_empty() && !word.starts_with("0x"));
            words.collect::<Vec<_>>().join(" ")
        })
        .collect();
    // The writer moves base types to the front.
    lines.sort();
    lines
}

#[test]
fn entries_differ_only_in_addresses() {
    let compiled = compile("kernels.cl", "gfx90a", &["-g", "-O1"]);
    let object = CodeObject::parse(&compiled.bytes).unwrap();
    let changed = change(&object);
    let path = write(&compiled, &changed);
    let dump = |path: &std::path::Path| {
        run_without_warnings(llvm("llvm-dwarfdump").arg("--debug-info").arg(path))
    };
    let (before, after) = (dump(&compiled.path()), dump(&path));
    // Every function covers its symbol's range, including the inserted no-operations.
    let mut functions = 0;
    for entry in after.split("DW_TAG_subprogram").skip(1) {
        let entry_only = entry.split("DW_TAG").next().unwrap_or_default();
        let value = |name: &str| {
            let text = entry_only.split_once(name)?.1;
            let text = text.split_once('(')?.1.split_once(')')?.0;
            Some(text.split('"').nth(1).unwrap_or(text).to_owned())
        };
        if !entry_only.contains("DW_AT_low_pc") {
            continue;
        }
        let number = |text: String| u64::from_str_radix(&text[2..], 16).expect("a number");
        let low = number(value("DW_AT_low_pc").expect("a start"));
        let high = number(value("DW_AT_high_pc").expect("an end"));
        let name = value("DW_AT_abstract_origin").or_else(|| value("DW_AT_name"));
        let name = name.expect("a name");
        let symbol = changed.symbols().iter().find(|symbol| *symbol.name == *name).expect(&name);
        assert_eq!((low, high), (symbol.address, symbol.address + symbol.size), "{name}");
        functions += 1;
    }
    // One function, three kernels, and the kernels once more as functions.
    assert_eq!(functions, 7);
    let frames = run_without_warnings(llvm("llvm-dwarfdump").arg("--debug-frame").arg(&path));
    for name in ["saxpy", "reduce", "spill", "twice"] {
        let symbol = changed.symbols().iter().find(|symbol| &*symbol.name == name).expect(name);
        let end = symbol.address + symbol.size;
        let expected = format!("pc={:08x}...{end:08x}", symbol.address);
        assert!(frames.contains(&expected), "{name} at {expected} in\n{frames}");
    }
    assert!(before.contains("): DW_OP"), "no location lists");
    assert_eq!(without_offsets(&after), without_offsets(&before));
}

/// Negative control of the comparison of lines.
#[test]
fn wrong_new_addresses_change_the_lines() {
    let compiled = compile("kernels.cl", "gfx90a", &["-g"]);
    let object = CodeObject::parse(&compiled.bytes).unwrap();
    let mut editor = Editor::new(&object);
    let address = editor.free_address();
    let (bytes, moved) = shifted(&object, address);
    let end = address + bytes.len() as u64;
    // Every instruction is claimed to be one gap after its actual address.
    let wrong = moved.iter().map(|moved| {
        let [start, at_end] = [moved.new.start, moved.new.end].map(|pc| end.min(pc + GAP as u64));
        Moved { old: moved.old, new: start..at_end }
    });
    editor.move_text(address, bytes, moved_code(&wrong.collect::<Vec<_>>())).unwrap();
    let written = editor.finish().expect("the editor does not check the addresses");
    let (old, new) = (object.lines().unwrap(), written.object.lines().unwrap());
    let differ =
        moved.iter().filter(|moved| new.lookup(Pc(moved.new.start)) != old.lookup(moved.old));
    assert!(differ.count() > moved.len() / 10);
}

#[test]
fn invalid_debug_information_is_removed_with_a_reason() {
    let compiled = compile("kernels.cl", "gfx90a", &["-g"]);
    let object = CodeObject::parse(&compiled.bytes).unwrap();
    // The first unit's version, after its length.
    let version = object.section(".debug_info").unwrap().file_offset() as usize + 4;
    let mut damaged = compiled.bytes.clone();
    damaged[version] = 77;
    let object = CodeObject::parse(&damaged).unwrap();
    let mut editor = Editor::new(&object);
    let (bytes, moved) = shifted(&object, editor.free_address());
    editor.move_text(editor.free_address(), bytes, moved_code(&moved)).unwrap();
    let written = editor.finish().expect("the code does not depend on debug information");
    let reason = written.debug_lost.expect("a reason");
    assert!(reason.contains("77"), "{reason}");
    assert!(written.object.section(".debug_line").is_none());
    assert!(written.object.lines().unwrap().is_empty());
}

/// Moves one function and displaces an instruction of another, while all old code is kept.
#[test]
fn kept_code_keeps_its_lines_and_added_code_has_lines_of_its_instructions() {
    for options in [&["-g"][..], &["-g", "-gdwarf-4"], &["-g", "-ffunction-sections"]] {
        let compiled = compile("kernels.cl", "gfx90a", options);
        let object = CodeObject::parse(&compiled.bytes).unwrap();
        let mut editor = Editor::new(&object);
        let address = editor.free_address();
        let (_, all) = shifted(&object, address);
        let symbol = |object: &CodeObject, name: &str| {
            let symbols = object.symbols().iter();
            symbols.filter(|symbol| &*symbol.name == name).map(|s| (s.address, s.size)).next()
        };
        let (reduce, size) = symbol(&object, "reduce").expect("a function");
        let (saxpy, _) = symbol(&object, "saxpy").expect("a function");
        let mut bytes = object.bytes_at(Pc(reduce), size as usize).expect("code").to_vec();
        let mut moved = MovedCode::default();
        for Moved { old, new } in &all {
            // Without the code inserted before the first instruction.
            let length = (new.end - new.start) % GAP as u64;
            if (reduce..reduce + size).contains(&old.0) {
                let start = address + old.0 - reduce;
                moved.new_addresses.insert(*old, Pc(start));
                moved.runs.push((start..start + length, *old));
            }
        }
        // The third instruction of `saxpy`, in two runs after the moved function.
        let mut in_saxpy = all.iter().filter(|moved| moved.old.0 > saxpy);
        let displaced = in_saxpy.nth(1).expect("an instruction").old;
        let start = address + size;
        moved.runs.extend([(start..start + 8, displaced), (start + 16..start + 24, displaced)]);
        bytes.extend([0; 24]);
        let runs = moved.runs.clone();
        editor.add_text(address, bytes, moved).expect("more code");
        let written = editor.finish().expect("a code object");
        assert_eq!(written.debug_lost, None);
        let changed = written.object;
        assert_eq!(symbol(&changed, "reduce"), Some((address, size)));
        assert_eq!(symbol(&changed, "saxpy"), symbol(&object, "saxpy"));
        assert_eq!(changed.kernel("reduce").unwrap().entry(), Pc(address));
        assert_eq!(changed.kernel("saxpy").unwrap().entry(), Pc(saxpy));
        let (old, new) = (object.lines().unwrap(), changed.lines().unwrap());
        let text = object.text().next().unwrap();
        for pc in (text.address..text.address + text.size).step_by(4) {
            assert_eq!(new.lookup(Pc(pc)), old.lookup(Pc(pc)), "{pc:#x}");
        }
        for (run, instruction) in &runs {
            for pc in run.clone().step_by(4) {
                assert_eq!(new.lookup(Pc(pc)), old.lookup(*instruction), "{pc:#x}");
            }
        }
        assert_eq!(new.lookup(Pc(start + 8)), None, "the gap belongs to no instruction");
        let path = write(&compiled, &changed);
        let addresses: Vec<u64> = runs.iter().map(|(run, _)| run.start).collect();
        let instructions: Vec<u64> = runs.iter().map(|(_, instruction)| instruction.0).collect();
        assert_eq!(symbolize(&path, &addresses), symbolize(&compiled.path(), &instructions));
        let text = run(llvm("llvm-dwarfdump").arg("--verify").arg(&path));
        assert!(text.contains("No errors."), "{text}");
    }
}
