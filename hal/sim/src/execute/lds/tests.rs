use super::*;

#[test]
fn out_of_range_reads_return_zero_and_writes_are_dropped() {
    let mut lds = vec![7; 16];
    write(&mut lds, 13, &[1; 4]);
    assert_eq!(lds, vec![7; 16]);
    assert_eq!(read(&lds, 14, 4)[..4], [0; 4]);
    assert_eq!(read(&lds, u32::MAX, 4)[..4], [0; 4]);
    assert_eq!(read(&lds, 12, 4)[..4], [7; 4]);
}
