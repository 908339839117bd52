//! Code objects in offload bundles, compressed bundles and host programs.

use crate::common::{Compiled, compile, llvm, run, source};
use flipwave_codeobj::{CodeObjectError, entries, open, open_all, replace_code_objects};
use flipwave_isa::Target;
use std::path::{Path, PathBuf};

fn target(name: &str) -> Target {
    name.parse().expect("a target")
}

/// Code objects of several targets, bundled by clang-offload-bundler.
struct Bundle {
    members: Vec<(String, Compiled)>,
    path: PathBuf,
}

impl Bundle {
    fn new(targets: &[&str], options: &[&str]) -> Bundle {
        let members: Vec<(String, Compiled)> = targets
            .iter()
            .map(|target| (target.to_string(), compile("kernels.cl", target, &[])))
            .collect();
        let path = members[0].1.sibling("bundle");
        let mut ids = "host-x86_64-unknown-linux-gnu".to_owned();
        let mut bundler = llvm("clang-offload-bundler");
        bundler.args(["-type=o", "-bundle-align=4096", "-input=/dev/null"]).args(options);
        for (target, member) in &members {
            ids += &format!(",hipv4-amdgcn-amd-amdhsa--{target}");
            bundler.arg(format!("-input={}", member.path().display()));
        }
        run(bundler.arg(format!("-targets={ids}")).arg(format!("-output={}", path.display())));
        Bundle { members, path }
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.path).expect("the bundle")
    }
}

const TARGETS: [&str; 4] =
    ["gfx906", "gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack+", "gfx1030"];

fn check(bundle: &Bundle) {
    let bytes = bundle.bytes();
    let entries = entries(&bytes).expect("entries");
    assert_eq!(entries.len(), bundle.members.len(), "the host entry is skipped");
    for (entry, (name, member)) in entries.iter().zip(&bundle.members) {
        assert_eq!(entry.id, format!("hipv4-amdgcn-amd-amdhsa--{name}"));
        assert_eq!(entry.target, Some(target(name)));
        assert!(entry.bytes == member.bytes, "{name}");
        let object = open(&bytes, Some(&target(name))).expect("a code object");
        assert!(object.bytes() == member.bytes, "{name}");
    }
}

#[test]
fn bundle_entries_equal_the_bundled_files() {
    check(&Bundle::new(&TARGETS, &[]));
}

#[test]
fn compressed_bundle_entries_equal_the_bundled_files() {
    let bundle = Bundle::new(&TARGETS, &["-compress"]);
    let bytes = bundle.bytes();
    assert!(bytes.starts_with(b"CCOB"));
    check(&bundle);
    // Wrong sizes in the header are errors.
    for (place, name) in [(8, "whole size"), (16, "decompressed size")] {
        for change in [-1, 1] {
            let mut changed = bytes.clone();
            let size = u32::from_le_bytes(changed[place..place + 4].try_into().unwrap());
            let size = size.checked_add_signed(change).unwrap();
            changed[place..place + 4].copy_from_slice(&size.to_le_bytes());
            assert!(entries(&changed).is_err(), "{name} off by {change}");
        }
    }
}

/// clang 22 writes only version 3 with Zstandard; the test constructs the other headers.
#[test]
fn every_compression_version_and_method_is_read() {
    let bundle = Bundle::new(&["gfx90a"], &[]);
    let plain = bundle.bytes();
    let zlib = {
        use std::io::Write;
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Default::default());
        encoder.write_all(&plain).unwrap();
        encoder.finish().unwrap()
    };
    let compressed = |version: u16| {
        let mut bytes = b"CCOB".to_vec();
        bytes.extend(version.to_le_bytes());
        bytes.extend(0u16.to_le_bytes());
        match version {
            1 => bytes.extend((plain.len() as u32).to_le_bytes()),
            2 => {
                bytes.extend((24 + zlib.len() as u32).to_le_bytes());
                bytes.extend((plain.len() as u32).to_le_bytes());
            }
            _ => {
                bytes.extend((32 + zlib.len() as u64).to_le_bytes());
                bytes.extend((plain.len() as u64).to_le_bytes());
            }
        }
        bytes.extend([0; 8]);
        bytes.extend(&zlib);
        bytes
    };
    let expected = entries(&plain).unwrap();
    for version in 1..=3 {
        assert_eq!(entries(&compressed(version)).expect("entries"), expected, "{version}");
    }
    let error = entries(&compressed(4)).expect_err("version 4");
    assert!(error.to_string().contains("version 1, 2 or 3; it has 4"), "{error}");
    // Version 1 does not have the compressed size; the next bundle must still be found.
    let twice = [compressed(1), compressed(1)].concat();
    assert_eq!(entries(&twice).expect("entries").len(), 2);
}

#[test]
fn generic_target_matches_without_code_for_the_processor() {
    let bundle = Bundle::new(&["gfx11-generic", "gfx1100", "gfx12-generic"], &[]);
    let bytes = bundle.bytes();
    for (wanted, expected) in [("gfx1100", 1), ("gfx1151", 0), ("gfx1201", 2)] {
        let object = open(&bytes, Some(&target(wanted))).expect("a code object");
        assert!(object.bytes() == bundle.members[expected].1.bytes, "{wanted}");
    }
    let error = open(&bytes, Some(&target("gfx1030"))).expect_err("no code for it");
    assert!(matches!(error, CodeObjectError::NoMatchingTarget { .. }), "{error}");
}

#[test]
fn host_program_contains_the_bundles_of_its_sources() {
    let bundle = Bundle::new(&["gfx90a", "gfx1030"], &[]);
    let host = |sections: &str| -> Vec<u8> {
        let path = |name: &str| bundle.members[0].1.sibling(name);
        let source = path("host.s");
        std::fs::write(&source, sections).unwrap();
        assemble_host(&source, &path("host.o"));
        std::fs::read(path("host.o")).unwrap()
    };
    let include = format!(".incbin \"{}\"\n", bundle.path.display());
    let section = ".section .hip_fatbin,\"a\",@progbits\n.p2align 12\n";
    let one = host(&format!("{section}{include}"));
    let object = open(&one, Some(&target("gfx1030"))).expect("a code object");
    assert!(object.bytes() == bundle.members[1].1.bytes);

    let two = host(&format!("{section}{include}.p2align 12\n{include}"));
    let numbers: Vec<usize> = entries(&two).unwrap().iter().map(|entry| entry.bundle).collect();
    assert_eq!(numbers, [0, 0, 1, 1]);
    assert_eq!(open_all(&two, Some(&target("gfx90a"))).unwrap().len(), 2);
    let error = open(&two, Some(&target("gfx90a"))).expect_err("two of them");
    assert!(matches!(error, CodeObjectError::SeveralCodeObjects { .. }), "{error}");

    let none = host(".text\n");
    let error = open(&none, None).expect_err("no device code");
    assert!(error.to_string().contains(".hip_fatbin"), "{error}");
}

/// Libraries contain code objects as arrays of bytes, without a bundle.
#[test]
fn code_objects_in_the_data_of_a_host_file_are_found() {
    let compiled = ["gfx90a", "gfx1030", "gfx90a"].map(|name| compile("kernels.cl", name, &[]));
    let host = |members: &[usize]| -> Vec<u8> {
        let path = |name: &str| compiled[0].sibling(name);
        let includes: String = members
            .iter()
            .map(|index| format!(".incbin \"{}\"\n.byte 1\n", compiled[*index].path().display()))
            .collect();
        std::fs::write(path("host.s"), format!(".section .rodata\n.long 1\n{includes}")).unwrap();
        assemble_host(&path("host.s"), &path("host.o"));
        std::fs::read(path("host.o")).unwrap()
    };
    let one = host(&[1]);
    assert!(open(&one, None).expect("the only one").bytes() == compiled[1].bytes);
    let two = host(&[0, 1]);
    for (index, name) in ["gfx90a", "gfx1030"].into_iter().enumerate() {
        let object = open(&two, Some(&target(name))).expect(name);
        assert!(object.bytes() == compiled[index].bytes, "{name}");
    }
    let three = host(&[0, 1, 2]);
    let error = open(&three, Some(&target("gfx90a"))).expect_err("two of them").to_string();
    let positions: Vec<usize> = error
        .split("at byte 0x")
        .skip(1)
        .map(|rest| rest.split(',').next().unwrap())
        .map(|digits| usize::from_str_radix(digits, 16).expect("a position"))
        .collect();
    assert_eq!(positions.len(), 2, "{error}");
    for position in positions {
        assert!(three[position..].starts_with(&compiled[0].bytes), "{position:#x}");
    }
    // Negative controls: a damaged machine number, and a file that is cut off.
    let start = one.windows(4).rposition(|part| part == b"\x7fELF").unwrap();
    let mut other_machine = one.clone();
    other_machine[start + 18] = 62;
    assert!(open(&other_machine, None).is_err());
    let mut cut = one.clone();
    // The offset of the section header table.
    cut[start + 0x28..start + 0x30].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(open(&cut, None).is_err());
}

#[test]
fn bundles_without_code_for_amd_and_bitcode_are_named() {
    let compiled = compile("kernels.cl", "gfx90a", &[]);
    let path = |name: &str| compiled.sibling(name);
    let bundle = |id: &str, content: &[u8]| -> Vec<u8> {
        std::fs::write(path("member"), content).unwrap();
        run(llvm("clang-offload-bundler")
            .args(["-type=o", "-input=/dev/null"])
            .arg(format!("-input={}", path("member").display()))
            .arg(format!("-targets=host-x86_64-unknown-linux-gnu,{id}"))
            .arg(format!("-output={}", path("bundle").display())));
        std::fs::read(path("bundle")).unwrap()
    };
    let message = |bytes: &[u8]| open(bytes, None).expect_err("no code object").to_string();
    let spirv = "hip-spirv64-amd-amdhsa--amdgcnspirv";
    let found = message(&bundle(spirv, b"\x03\x02\x23\x07"));
    assert!(found.contains("no code for AMD GPUs") && found.contains("amdgcnspirv"), "{found}");
    let found = message(&bundle("hipv4-amdgcn-amd-amdhsa--gfx90a", b"BC\xc0\xde"));
    assert!(found.contains("LLVM bitcode") && found.contains("compile it"), "{found}");
    assert!(message(b"BC\xc0\xde0123").contains("LLVM bitcode"));
    // Negative control.
    assert!(open(&bundle("hipv4-amdgcn-amd-amdhsa--gfx90a", &compiled.bytes), None).is_ok());
}

#[test]
fn hip_object_file_of_clang_opens() {
    for options in [&[][..], &["--offload-compress"]] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let output = directory.path().join("program.o");
        run(llvm("clang++")
            .args(["-x", "hip", "-nogpuinc", "-nogpulib", "-O2", "-c"])
            .args(["--offload-arch=gfx90a:xnack+", "--offload-arch=gfx1030"])
            .args(options)
            .arg(source("program.hip"))
            .arg("-o")
            .arg(&output));
        let bytes = std::fs::read(output).unwrap();
        for name in ["gfx90a:xnack+", "gfx1030"] {
            let object = open(&bytes, Some(&target(name))).expect("a code object");
            assert_eq!(*object.target(), target(name));
            let add = object.kernel("_Z3addPi").expect("the kernel");
            assert_eq!(add.arguments()[0].size, 8);
        }
    }
}

fn assemble_host(source: &Path, output: &Path) {
    run(llvm("clang")
        .args(["-target", "x86_64-linux-gnu", "-c", "-x", "assembler"])
        .arg(source)
        .arg("-o")
        .arg(output));
}

#[test]
fn target_selects_the_entry() {
    let bytes = Bundle::new(&TARGETS, &[]).bytes();
    let opened = |name: &str| open(&bytes, Some(&target(name))).map(|o| o.target().to_string());
    assert_eq!(opened("gfx1030").unwrap(), "gfx1030");
    // An unspecified setting matches both entries; the first one is opened.
    assert_eq!(opened("gfx90a").unwrap(), "gfx90a:sramecc+:xnack-");
    assert_eq!(opened("gfx90a:xnack+").unwrap(), "gfx90a:sramecc+:xnack+");
    assert_eq!(opened("gfx906:xnack+").unwrap(), "gfx906");
    for wrong in ["gfx1100", "gfx90a:sramecc-"] {
        let error = opened(wrong).expect_err(wrong);
        assert!(matches!(error, CodeObjectError::NoMatchingTarget { .. }));
        let message = error.to_string();
        assert!(message.contains(wrong), "{message}");
        assert!(TARGETS.iter().all(|target| message.contains(target)), "{message}");
    }
    let error = open(&bytes, None).expect_err("four of them");
    assert!(matches!(error, CodeObjectError::SeveralCodeObjects { .. }), "{error}");
}

#[test]
fn code_object_is_a_file_with_one_entry() {
    let compiled = compile("kernels.cl", "gfx90a:xnack-", &[]);
    let only = entries(&compiled.bytes).unwrap();
    assert_eq!(only.len(), 1);
    assert_eq!(only[0].id, "amdgcn-amd-amdhsa--gfx90a:xnack-");
    assert!(open(&compiled.bytes, None).is_ok());
    assert!(open(&compiled.bytes, Some(&target("gfx90a"))).is_ok());
    let error = open(&compiled.bytes, Some(&target("gfx90a:xnack+"))).expect_err("xnack");
    assert!(error.to_string().contains("gfx90a:xnack-"), "{error}");
}

/// The entry of a target as extracted by clang-offload-bundler.
fn unbundled(path: &Path, target: &str) -> Vec<u8> {
    let output = path.with_extension("unbundled");
    run(llvm("clang-offload-bundler")
        .args(["-type=o", "-unbundle"])
        .arg(format!("-targets=hipv4-amdgcn-amd-amdhsa--{target}"))
        .arg(format!("-input={}", path.display()))
        .arg(format!("-output={}", output.display())));
    std::fs::read(output).expect("the extracted entry")
}

#[test]
fn bundler_extracts_replaced_code_objects() {
    for options in [&[][..], &["-compress"]] {
        let bundle = Bundle::new(&TARGETS, options);
        // Larger than the old code object and not a multiple of the page size.
        let replacement = [&bundle.members[1].1.bytes[..], &[0x5a; 12345]].concat();
        let mut visited = Vec::new();
        let replaced = replace_code_objects(&bundle.bytes(), |entry| {
            visited.push(entry.id.clone());
            (entry.target == Some(target(TARGETS[1]))).then(|| replacement.clone())
        })
        .expect("a bundle");
        let ids: Vec<String> =
            TARGETS.iter().map(|target| format!("hipv4-amdgcn-amd-amdhsa--{target}")).collect();
        assert_eq!(visited, ids);
        let path = bundle.path.with_extension("replaced");
        std::fs::write(&path, &replaced).expect("the new bundle");
        let list = |path: &Path| {
            let input = format!("-input={}", path.display());
            run(llvm("clang-offload-bundler").args(["-type=o", "-list"]).arg(input))
        };
        assert_eq!(list(&path), list(&bundle.path));
        for (index, (name, member)) in bundle.members.iter().enumerate() {
            let expected = if index == 1 { &replacement } else { &member.bytes };
            assert!(unbundled(&path, name) == *expected, "{name}");
        }
        // Loaders map the contents, so they must be page-aligned.
        let starts = entries(&replaced).expect("entries").into_iter().map(|entry| {
            let found = replaced.windows(entry.bytes.len()).position(|part| part == entry.bytes);
            found.expect("the contents")
        });
        assert!(starts.into_iter().all(|start| start % 4096 == 0));
    }
}

#[test]
fn replacement_keeps_separate_bundles() {
    let bundle = Bundle::new(&["gfx90a", "gfx1030"], &[]);
    let mut file = bundle.bytes();
    file.resize(file.len().next_multiple_of(4096), 0);
    let file = [&file[..], &file].concat();
    let replaced = replace_code_objects(&file, |entry| {
        (entry.bundle == 1).then(|| format!("{} of {}", entry.id, entry.bundle).into_bytes())
    })
    .expect("bundles");
    let (old, new) = (entries(&file).unwrap(), entries(&replaced).unwrap());
    assert_eq!(new.len(), 4);
    assert_eq!(new[..2], old[..2]);
    assert_eq!(new[3].bytes, b"hipv4-amdgcn-amd-amdhsa--gfx1030 of 1");
}

#[test]
fn host_programs_are_rejected_for_replacement() {
    let compiled = compile("kernels.cl", "gfx90a", &[]);
    let replaced = replace_code_objects(&compiled.bytes, |_| Some(b"other".to_vec()));
    assert_eq!(replaced.expect("a code object"), b"other");
    let kept = replace_code_objects(&compiled.bytes, |_| None).expect("a code object");
    assert!(kept == compiled.bytes);
    let program = compiled.sibling("program.o");
    let bundle = Bundle::new(&["gfx90a"], &[]);
    let text = format!(".section .hip_fatbin,\"a\"\n.incbin \"{}\"\n", bundle.path.display());
    std::fs::write(compiled.sibling("program.s"), text).expect("the source");
    assemble_host(&compiled.sibling("program.s"), &program);
    let program = std::fs::read(program).expect("the program");
    assert_eq!(entries(&program).expect("entries").len(), 1);
    let error = replace_code_objects(&program, |_| None).expect_err("a program for the host");
    assert!(error.to_string().contains("a program for the host"), "{error}");
}
