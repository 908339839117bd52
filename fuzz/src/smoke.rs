//! Calls each fuzzed function with valid and damaged inputs, as a test of the fuzzers.

use crate::choices::{Choices, random_bytes};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// A damaged seed, determined by `number`: with flipped bits, or removed, duplicated or replaced parts.
fn damaged(seeds: &[Vec<u8>], number: u64) -> Vec<u8> {
    let random = random_bytes(number, 256);
    let mut choices = Choices::new(&random);
    let mut bytes = seeds[choices.below(seeds.len())].clone();
    for _ in 0..1 + choices.below(4) {
        if bytes.is_empty() {
            break;
        }
        let start = choices.below(bytes.len());
        let end = (start + 1 + choices.below(24)).min(bytes.len());
        match choices.below(6) {
            0 => bytes[start] ^= 1 << choices.below(8),
            1 => bytes[start] = choices.pick(b"\0\x01\xff\x7f:-[]{}'\"9 \n"),
            2 => drop(bytes.drain(start..end)),
            3 => {
                let part = bytes[start..end].to_vec();
                let at = choices.below(bytes.len());
                bytes.splice(at..at, part);
            }
            4 => bytes.truncate(start),
            _ => {
                let donor = &seeds[choices.below(seeds.len())];
                let from = choices.below(donor.len().max(1)).min(donor.len());
                let to = (from + end - start).min(donor.len());
                bytes.splice(start..end, donor[from..to].iter().copied());
            }
        }
    }
    bytes
}

/// Calls `target` with seeds, damaged seeds, and random bytes.
fn smoke(seeds: &[Vec<u8>], count: u64, target: impl Fn(&[u8])) {
    seeds.iter().for_each(|seed| target(seed));
    for number in 0..count {
        for bytes in [damaged(seeds, number), random_bytes(number, 64)] {
            let result = catch_unwind(AssertUnwindSafe(|| target(&bytes)));
            assert!(result.is_ok(), "{number}: {:?}", String::from_utf8_lossy(&bytes));
        }
    }
}

#[test]
fn damaged_sites_do_not_panic() {
    let at = "dispatch=1 workgroup=0,0,0 wave=0 pc=0x40 occurrence=0";
    let seeds = [
        format!("{at} lane=17 register=v4 flip=0x00000400"),
        format!("{at} window=100 rate=0x80000000 key=0x00001234 register=m0 set=0x00000001"),
        format!("{at} lanes=active register=a0 relative_f64=-0.25"),
        format!("{at} buffer=3 offset=0x100000000 stuck_at_zero=0x00000001"),
        "opcode=v_fma_f32 units=104 unit=103 simd=3 slot=15 destination=1 \
         stuck_at_one=0x00000001"
            .to_owned(),
    ];
    smoke(&seeds.map(String::into_bytes), 2000, crate::site);
}

#[test]
fn damaged_campaigns_do_not_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/campaigns");
    let files = std::fs::read_dir(folder).expect("the examples");
    let mut paths: Vec<_> = files.map(|file| file.expect("an example").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "yaml"));
    paths.sort();
    let seeds: Vec<Vec<u8>> =
        paths.iter().map(|path| std::fs::read(path).expect("an example")).collect();
    smoke(&seeds, 1000, crate::campaign);
}

#[test]
fn damaged_code_objects_do_not_panic() {
    let kernel = |number| {
        let bytes = random_bytes(number, 400);
        let machine = flipwave_tests::MACHINES[number as usize];
        let kernel = crate::rewriter::Kernel::new(machine, 20, &mut Choices::new(&bytes));
        kernel.object.bytes().to_vec()
    };
    smoke(&[kernel(0), kernel(3), kernel(6)], 300, crate::code_object);
}

#[test]
fn damaged_notes_do_not_panic() {
    smoke(&[crate::metadata::note()], 500, crate::metadata);
}

#[test]
fn damaged_captures_do_not_panic() {
    let mut raw = vec![0];
    raw.extend(crate::capture::seed());
    smoke(&[raw, random_bytes(7, 200)], 100, crate::capture);
}

#[test]
fn damaged_ptx_does_not_panic() {
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.global .align 4 .u32 a[2] = {1, b};\n\
                .extern .shared .b8 b[];\n.visible .entry k(.param .u64 p)\n{\n.reg .pred %p<2>;\n\
                .reg .b32 %r<4>;\n.reg .b64 %d<3>;\nld.param.u64 %d1, [p];\nL: setp.lt.s32 %p1, %r1, \
                0x10;\n@!%p1 bra L;\nst.global.v2.b32 [%d1+-8], {%r1, %r2};\nret;\n}\n";
    smoke(&[text.as_bytes().to_vec()], 3000, crate::ptx);
}

/// A fat binary with one entry of PTX for sm_80. `flags` are those of its compression, `size` that of the text.
fn fat_binary(flags: u64, content: &[u8], size: usize) -> Vec<u8> {
    let padded = content.len().next_multiple_of(8);
    let mut bytes = 0xba55_ed50u32.to_le_bytes().to_vec();
    bytes.extend([1, 0, 16, 0]);
    bytes.extend((64 + padded as u64).to_le_bytes());
    let mut entry = [0; 64];
    entry[..8].copy_from_slice(&[1, 0, 1, 1, 64, 0, 0, 0]);
    entry[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
    if flags != 0 {
        entry[16..20].copy_from_slice(&(content.len() as u32).to_le_bytes());
    }
    entry[28] = 80;
    entry[40..48].copy_from_slice(&flags.to_le_bytes());
    entry[56..].copy_from_slice(&(size as u64).to_le_bytes());
    bytes.extend(entry);
    bytes.extend(content);
    bytes.resize(80 + padded, 0);
    bytes
}

#[test]
fn damaged_fat_binaries_do_not_panic() {
    let text = b".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { ret; }\n";
    // A block of literals of LZ4, and a raw block of Zstandard.
    let lz4 = [&[0xf0, text.len() as u8 - 15][..], text].concat();
    let block = ((text.len() as u32) << 3 | 1).to_le_bytes();
    let zstd = [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, text.len() as u8], &block[..3], &text[..]].concat();
    let seeds =
        [(0, &text[..], 0), (0x2000, &lz4, text.len()), (0x8000, &zstd, text.len())].map(|seed| {
            let (flags, content, size) = seed;
            fat_binary(flags, content, size)
        });
    for seed in &seeds {
        assert!(flipwave_cuda::Image::read(seed, 90).is_ok());
    }
    smoke(&seeds, 2000, crate::fat_binary);
}
