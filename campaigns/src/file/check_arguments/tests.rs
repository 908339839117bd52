//! Tests of arguments: their bytes, and the positions of errors.

use super::*;
use crate::file::campaign::Campaign;
use crate::file::kernels::{BufferRole, Kernels};
use crate::file::location::FileError;
use crate::program::buffers::Init;
use flipwave_device::Address;
use std::path::Path;

/// A campaign without faults, whose kernel has these arguments.
fn text(arguments: &str) -> String {
    format!(
        "name: a\nworkload:\n  buffers:\n    - {{buffer: a, type: f32, count: 16}}\n  kernel: \
         {{source: a.cl, name: a, grid: 64, workgroup: 64, args: [\n    {arguments}\n  ]}}\n"
    )
}

fn parse(arguments: &str) -> Result<Campaign, FileError> {
    Campaign::parse(&text(arguments), Path::new("a.yaml"))
}

fn kernels(arguments: &str) -> Kernels {
    let campaign = parse(arguments).unwrap_or_else(|error| panic!("{arguments}: {error}"));
    campaign.kernels().expect("kernels").clone()
}

/// The bytes of the first argument. Buffer `i` is at the address 0x1000 * (i + 1).
fn bytes(arguments: &str) -> Vec<u8> {
    let kernels = kernels(arguments);
    match &kernels.launches[0].arguments[0] {
        Argument::Value(image) => image.with_addresses(&addresses(&kernels)),
        other => panic!("{other:?} is not a value"),
    }
}

fn addresses(kernels: &Kernels) -> Vec<Address> {
    let address =
        |pointer: &Pointer| Address(0x1000 * (pointer.buffer as u64 + 1) + pointer.offset);
    kernels.pointers.iter().map(address).collect()
}

#[track_caller]
fn refused(arguments: &str, at: &str, words: &[&str]) {
    let error = parse(arguments).expect_err(arguments).to_string();
    let all = text(arguments);
    let found = all
        .lines()
        .enumerate()
        .find_map(|(line, text)| Some(format!("a.yaml:{}:{}: ", line + 1, text.find(at)? + 1)));
    assert!(error.starts_with(&found.expect(at)), "{error}");
    for word in words {
        assert!(error.contains(word), "`{word}` is not in: {error}");
    }
}

#[test]
fn values_are_little_endian_and_laid_out_as_in_c() {
    let members = "{scalar: 1, type: u8}, {scalar: 0x1234, type: u32}, {bytes: 'a b c d'}, \
                   {values: [1, 2], type: i16}, null, {struct: [{scalar: 7, type: u8}]}";
    let expected = [1, 0, 0, 0, 0x34, 0x12, 0, 0, 0xab, 0xcd, 1, 0, 2, 0];
    let mut expected = expected.to_vec();
    expected.extend([0; 10]);
    expected.extend([7, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes(&format!("{{struct: [{members}]}}")), expected);
    assert_eq!(bytes("{values: [1.0, -2], type: f32}"), [0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]);
    assert_eq!(bytes("{bytes: 00ff10}"), [0, 255, 16]);
    let placed = "{struct: [{scalar: 1, type: u8, offset: 3}, {scalar: 2, type: u8}], size: 6}";
    assert_eq!(bytes(placed), [0, 0, 0, 1, 2, 0]);
}

#[test]
fn pointers_refer_to_buffers_defined_anywhere() {
    let members = "{pointer: a + 0x10}, {pointer: later}, {buffer: inner, type: u8, count: 1}";
    let found = bytes(&format!("{{struct: [{members}]}}, {{buffer: later, type: u8, count: 4}}"));
    let words: Vec<u64> = found
        .chunks_exact(8)
        .map(|raw| u64::from_le_bytes(raw.try_into().expect("8 bytes")))
        .collect();
    // The struct defines `inner`, and the next argument defines `later`.
    assert_eq!(words, [0x1010, 0x3000, 0x2000]);
    let kernels = kernels("{pointer: a + 64}, {pointer: a}");
    let arguments = &kernels.launches[0].arguments;
    assert_eq!(arguments[..], [Argument::Pointer(0), Argument::Pointer(1)]);
    let pointers = [64, 0].map(|offset| Pointer { buffer: 0, offset });
    assert_eq!(kernels.pointers, pointers);
}

#[test]
fn buffers_hold_pointers_and_structs() {
    let kernels = kernels(
        "{buffer: table, init: {pointers: [a, null, table + 8]}},
         {buffer: structs, init: {struct: [{struct: [{pointer: a}, {scalar: 3, type: u8}]}, \
         {struct: [null, {scalar: 4, type: u8}]}]}}",
    );
    let content = |index: usize| {
        let buffer = &kernels.buffers[index];
        let mut content = buffer.contents(0).expect("a content");
        let Init::Image(image) = &buffer.init else { panic!("no image") };
        image.write_addresses(&addresses(&kernels), &mut content);
        content
    };
    let table: Vec<u8> = [0x1000u64, 0, 0x2008].map(u64::to_le_bytes).concat();
    assert_eq!(content(1), table);
    assert_eq!((kernels.buffers[1].element, kernels.buffers[1].count), (ElementType::U64, 3));
    let structs: Vec<u8> = [0x1000u64, 3, 0, 4].map(u64::to_le_bytes).concat();
    assert_eq!(content(2), structs);
    assert_eq!((kernels.buffers[2].element, kernels.buffers[2].count), (ElementType::U8, 32));
    assert!(kernels.buffers.iter().all(|buffer| buffer.role == BufferRole::Data));
}

#[test]
fn invalid_values_are_rejected_with_their_position() {
    for (arguments, at, words) in [
        ("{values: [], type: f32}", "[]", &["args[0].values", "at least one"][..]),
        ("{values: [1, 300], type: u8}", "[1, 300]", &["300 does not fit"]),
        ("{values: [1]}", "{values", &["missing", "type: f32"]),
        ("{values: [1], type: u4}", "u4", &["whole bytes"]),
        ("{bytes: 0g}", "0g", &["`g` is not a hexadecimal digit"]),
        ("{bytes: abc}", "abc", &["3 hexadecimal digits"]),
        ("{bytes: ''}", "''", &["0 hexadecimal digits"]),
        ("{struct: []}", "[]", &["args[0].struct", "at least one member"]),
        ("{struct: [{}]}", "{}", &["args[0].struct[0]", "exactly one"]),
        ("{scalar: 1, bytes: '00'}", "{scalar", &["found scalar and bytes"]),
        ("{struct: [{local_memory: 4}]}", "4}", &["not in a struct"]),
        ("{struct: [null], type: u8}", "u8", &["does not support `type`"]),
        ("{struct: [null], size: 7}", "7}", &["size", "expected 8"]),
        ("{scalar: 1, type: u8, offset: 4}", "4}", &["requires a member of a struct"]),
        (
            "{struct: [null, {scalar: 1, type: u8, offset: 7}]}",
            "{scalar",
            &["struct[1]", "overlap"],
        ),
        ("{pointer: b}", "b}", &["no buffer `b`", "are: a", "`buffers`"]),
        ("{pointer: a + 65}", "a + 65", &["65 bytes is outside buffer `a`", "64 bytes"]),
        ("{pointer: ' + 8'}", "' + 8'", &["NAME + BYTES"]),
        ("{buffer: t, init: {pointers: []}}", "[]", &["init.pointers", "at least one"]),
        ("{buffer: t, init: {pointers: [a, b]}}", "b]", &["init.pointers[1]", "no buffer"]),
        (
            "{buffer: t, type: u64, count: 2, init: {pointers: [a]}}",
            "{pointers",
            &["8 bytes", "2 elements of type u64"],
        ),
        ("{buffer: t, size: 4, type: u8, count: 1}", "4, type", &["`count`"]),
        (
            "{buffer: t, init: {struct: [{buffer: t, type: u8, count: 1}]}}",
            "t, init",
            &["defined in itself"],
        ),
    ] {
        refused(arguments, at, words);
    }
}

#[test]
fn faults_require_an_output() {
    let without = text("{pointer: a}");
    assert!(Campaign::parse(&without, Path::new("a.yaml")).is_ok());
    let faults = format!("{without}faults: {{model: flip_one_bit, count: 1}}\n");
    let error = Campaign::parse(&faults, Path::new("a.yaml")).expect_err("no output");
    assert!(error.to_string().contains("no buffer is an output"), "{error}");
    let with = faults.replacen("count: 16", "count: 16, output: true", 1);
    assert!(Campaign::parse(&with, Path::new("a.yaml")).is_ok());
}

#[test]
fn buffers_of_the_workload_must_be_buffers_and_require_kernels() {
    let text = text("null").replace("{buffer: a, type: f32, count: 16}", "{scalar: 1, type: u8}");
    let error = Campaign::parse(&text, Path::new("a.yaml")).expect_err("a scalar").to_string();
    assert!(error.contains("workload.buffers[0]") && error.contains("`buffer`"), "{error}");
    let capture = "name: a\nworkload:\n  capture: {file: a}\n  buffers: [{buffer: a, type: u8, \
                   count: 1}]\n";
    let error = Campaign::parse(capture, Path::new("a.yaml")).expect_err("a capture").to_string();
    assert!(error.contains("workload.buffers") && error.contains("kernels"), "{error}");
}
