use super::*;

#[test]
fn returned_slots_are_taken_before_unused_ones() {
    let mut slots = Slots::all(3);
    assert_eq!([slots.take(), slots.take()], [Some(0), Some(1)]);
    slots.give_back(0);
    assert_eq!([slots.take(), slots.take(), slots.take()], [Some(0), Some(2), None]);
    let mut odd = Slots::part(1, 2, 4);
    assert_eq!([odd.take(), odd.take(), odd.take()], [Some(1), Some(3), None]);
    let mut one = Slots::one(7);
    assert_eq!([one.take(), one.take()], [Some(7), None]);
}
