use super::*;

fn lanes(all: impl IntoIterator<Item = u8>, address: impl Fn(u64) -> u64) -> Vec<FaultingLane> {
    let lane = |lane: u8| FaultingLane { lane: Lane(lane), address: Address(address(lane.into())) };
    all.into_iter().map(lane).collect()
}

fn text(lanes: Vec<FaultingLane>) -> String {
    FaultContext { exec: LaneMask(u64::MAX), lanes, ..FaultContext::default() }.lanes_text()
}

#[test]
fn lanes_with_a_stride_are_one_range() {
    let strided = |lane| 0x10 + 4 * lane;
    assert_eq!(
        text(lanes((0..32).chain([40]), strided)),
        "lanes 0-31, 40 (33 of 64 active): addresses 0x10 .. 0xb0, stride 4"
    );
    assert_eq!(
        text(lanes(0..3, |lane| 0x100 - 8 * lane)),
        "lanes 0-2 (3 of 64 active): addresses 0x100 .. 0xf0, stride -8"
    );
    // Two values prove no stride.
    assert_eq!(
        text(lanes([0, 40], strided)),
        "lanes 0, 40 (2 of 64 active): addresses lane 0: 0x10, lane 40: 0xb0"
    );
}

#[test]
fn equal_addresses_are_printed_once() {
    assert_eq!(text(lanes([7], |_| 0)), "lane 7 (1 of 64 active): address 0x0");
    let same = text(lanes([1, 3], |_| 0x20));
    assert_eq!(same, "lanes 1, 3 (2 of 64 active): address 0x20 in all these lanes");
}

#[test]
fn irregular_values_are_counted_beyond_sixteen() {
    let irregular = (0..64).filter(|lane| lane % 2 == 0 && *lane != 6);
    let text = text(lanes(irregular, |lane| lane * lane));
    assert!(text.starts_with("lanes 0, 2, 4, 8, "), "{text}");
    assert!(text.contains(", 32 and 15 more ranges (31 of 64 active)"), "{text}");
    assert!(text.ends_with("lane 32: 0x400 and 15 more lanes"), "{text}");
}

#[test]
fn lanes_at_a_distance_are_one_range() {
    let third = text(lanes((1..64).step_by(3), |lane| 4 * lane));
    assert!(third.starts_with("lanes 1-61 in steps of 3 (21 of 64 active): "), "{third}");
    let two = text(lanes([1, 4], |lane| 4 * lane));
    assert!(two.starts_with("lanes 1, 4 (2 of 64 active): "), "{two}");
}

#[test]
fn registers_are_numbers_up_to_64_bits() {
    let bits = |words: &[u32]| Bits { words: words.into() }.to_string();
    assert_eq!(bits(&[0x2a]), "0x0000002a");
    assert_eq!(bits(&[0xdead_beef, 0x7f00]), "0x00007f00deadbeef");
    assert_eq!(bits(&[1, 2, 3]), "{0x00000001, 0x00000002, 0x00000003}");
}

fn frame(function: &str, file: &str) -> CallFrame {
    let line = SourceLine { file: file.into(), line: 3, column: 0 };
    CallFrame {
        function: Some(function.into()),
        offset: None,
        pc: Pc(0x100),
        line: Some(line),
        entry: FrameEntry::Called,
    }
}

#[test]
fn fault_is_attributed_to_the_innermost_user_function() {
    let frames = vec![
        frame("__builtin_wrapper", "a.hip"),
        frame("check(int)", "/usr/include/hip/amd_detail/assert.h"),
        frame("user(int)", "b.hip"),
        frame("kernel(int*)", "c.hip"),
    ];
    let context = FaultContext { frames, ..FaultContext::default() };
    assert_eq!(&*context.line().expect("a line").file, "b.hip");
    // Without user functions, the innermost frame is the best answer.
    let frames = vec![frame("__a", "x.h"), frame("__b", "y.h")];
    let context = FaultContext { frames, ..FaultContext::default() };
    assert_eq!(&*context.line().expect("a line").file, "x.h");
}

#[test]
fn long_chains_are_bounded() {
    let frames = vec![frame("recursive(int)", "a.hip"); 40];
    let unknown = ChainEnd::UnknownCaller("no symbol".into());
    let context = FaultContext { frames, chain_end: unknown, ..FaultContext::default() };
    let text = context.to_string();
    assert_eq!(text.matches("recursive").count(), MAX_FRAMES, "{text}");
    assert!(text.contains("and 8 more frames"), "{text}");
    assert!(text.ends_with("called from an unknown function: no symbol"), "{text}");
}

#[test]
fn control_characters_of_names_are_escaped() {
    let text = frame("two\nlines\u{1b}", "a.hip").to_string();
    assert_eq!(text, "0x100 in two\\nlines\\u{1b} at a.hip:3");
}
