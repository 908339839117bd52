use super::*;

#[test]
fn registers_start_zeroed_at_an_aligned_address() {
    let mut all: Vec<Rows> = (0..8).map(|_| Rows::zeroed()).collect();
    for (number, rows) in (1..).zip(&mut all) {
        assert!(std::ptr::from_ref(&rows[0]).is_aligned());
        assert!(rows.iter().all(|row| *row == Row::ZERO));
        rows[RowIndex::COUNT - 1] = Row::splat(number);
    }
    let last = all.iter().map(|rows| rows[RowIndex::COUNT - 1].0[63]);
    assert_eq!(last.collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8]);
}
