use super::*;
use crate::memory::{AddressSpace, write_bytes};
use flipwave_device::AccessKind;

#[test]
fn each_written_byte_is_reported_once_with_old_and_new_value() {
    let mut space = AddressSpace::default();
    let address = space.allocate(64).unwrap();
    space.write(address, &[1, 2, 3, 4]).unwrap();
    let mut recorder = WriteRecorder::new(&mut space);
    write_bytes(&mut recorder, address.0 + 1, &[2, 9], AccessKind::Write, None).unwrap();
    recorder.readable(address.0, 4).unwrap();
    let byte = |offset: u64, before, after| {
        let address = Address(address.0 + offset);
        WrittenByte { address, before, after }
    };
    assert_eq!(recorder.take_written(), [byte(1, 2, 2), byte(2, 3, 9)]);
    assert_eq!(recorder.take_written(), []);
    for value in [7, 8] {
        write_bytes(&mut recorder, address.0 + 3, &[value], AccessKind::Write, None).unwrap();
    }
    assert_eq!(recorder.take_written(), [byte(3, 4, 8)]);
}
