//! Line tables compared with llvm-symbolizer at every instruction address.

use crate::common::{Compiled, TARGETS, compile, llvm, run, symbolize};
use flipwave_codeobj::CodeObject;
use flipwave_isa::Pc;

fn compare(compiled: &Compiled) {
    let object = CodeObject::parse(&compiled.bytes).expect("a code object");
    let table = object.lines().expect("a line table");
    assert!(!table.is_empty());
    let text = object.text().next().expect("code");
    let addresses: Vec<u64> = (text.address - 8..text.address + text.size + 8).step_by(4).collect();
    let mut with_line = 0;
    for (address, expected) in addresses.iter().zip(symbolize(&compiled.path(), &addresses)) {
        let found = table.lookup(Pc(*address));
        with_line += usize::from(found.is_some());
        assert_eq!(found, expected, "{address:#x}");
    }
    assert!(with_line > 100, "only {with_line} instructions with a line");
    // Ranges agree with lookups.
    for (code, line) in table.ranges() {
        for address in (code.start.0..code.end.0).step_by(4) {
            assert_eq!(table.lookup(Pc(address)).as_ref(), Some(&line));
        }
    }
}

#[test]
fn lines_equal_llvm_on_every_target() {
    for (processor, _) in TARGETS {
        compare(&compile("kernels.cl", processor, &["-g"]));
    }
}

#[test]
fn lines_equal_llvm_in_every_dwarf_form() {
    for options in [
        &["-gdwarf-4"][..],
        &["-gdwarf-5"],
        &["-gdwarf-2"],
        &["-gline-tables-only"],
        &["-g", "-gz=zlib"],
        &["-gdwarf-4", "-gz=zstd"],
        &["-gdwarf-4", "-fdebug-prefix-map=/=relative/"],
        &["-gdwarf-5", "-fdebug-prefix-map=/=relative/"],
    ] {
        let compiled = compile("kernels.cl", "gfx90a", options);
        let sections =
            run(llvm("llvm-readelf").args(["--sections", "--wide"]).arg(compiled.path()));
        let section = sections.lines().find(|line| line.contains(".debug_line ")).unwrap();
        let compressed = section.split_whitespace().any(|word| word == "C");
        assert_eq!(compressed, options.concat().contains("-gz"), "{section}");
        compare(&compiled);
    }
}

/// Negative control of the comparisons: another line advance in the file changes the table.
#[test]
fn changed_line_program_changes_the_table() {
    let compiled = compile("kernels.cl", "gfx90a", &["-gdwarf-4"]);
    let object = CodeObject::parse(&compiled.bytes).unwrap();
    let table = object.lines().unwrap();
    let section = object.section(".debug_line").unwrap();
    let mut changed = compiled.bytes.clone();
    // The byte `line_base` after the DWARF 4 header's fixed fields.
    let line_base = section.file_offset() as usize + 13;
    changed[line_base] = changed[line_base].wrapping_add(1);
    let changed = CodeObject::parse(&changed).unwrap().lines().unwrap();
    assert!(table.ranges().ne(changed.ranges()));
}

#[test]
fn line_table_without_debug_information_is_empty() {
    let compiled = compile("kernels.cl", "gfx90a", &[]);
    let table = CodeObject::parse(&compiled.bytes).unwrap().lines().expect("an empty table");
    assert!(table.is_empty());
    assert_eq!(table.lookup(Pc(0x1f00)), None);
}
