use super::*;

#[test]
fn writes_of_a_clone_are_invisible_to_others() {
    let mut first = Bytes::Own(AlignedBytes::from(&[1, 2, 3][..]));
    first.share();
    let mut second = first.clone();
    second.make_writable()[1] = 9;
    first.make_writable()[2] = 7;
    assert_eq!((&*first, &*second), (&[1, 2, 7][..], &[1, 9, 3][..]));
}

#[test]
fn clones_share_unwritten_bytes() {
    let mut first = Bytes::Own(AlignedBytes::new(4096));
    assert_ne!(first.as_ptr(), first.clone().as_ptr());
    first.share();
    assert_eq!(first.as_ptr(), first.clone().as_ptr());
}
