use super::*;

#[test]
fn what_one_clone_writes_the_others_do_not_see() {
    let mut first = Bytes::Own(AlignedBytes::from(&[1, 2, 3][..]));
    first.share();
    let mut second = first.clone();
    second.make_writable()[1] = 9;
    first.make_writable()[2] = 7;
    assert_eq!((&*first, &*second), (&[1, 2, 7][..], &[1, 9, 3][..]));
}

#[test]
fn clones_share_what_they_do_not_write() {
    let mut first = Bytes::Own(AlignedBytes::new(4096));
    assert_ne!(first.as_ptr(), first.clone().as_ptr());
    first.share();
    assert_eq!(first.as_ptr(), first.clone().as_ptr());
}
