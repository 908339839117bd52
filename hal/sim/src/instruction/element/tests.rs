use super::*;

#[test]
fn part_loads_keep_the_other_bits_of_the_register() {
    let extend = |name, loaded| Element::named(name).unwrap().extend(loaded, 0xaaaa_bbbb);
    assert_eq!(extend("ubyte", 0xff), 0xff);
    assert_eq!(extend("sbyte", 0xff), 0xffff_ffff);
    assert_eq!(extend("i8_d16", 0xff), 0xaaaa_ffff);
    assert_eq!(extend("short_d16_hi", 0x1234), 0x1234_bbbb);
    assert_eq!(Element::named("b16_d16_hi").unwrap().part(0x1234_5678), 0x1234);
}

#[test]
fn whole_register_loads_clear_the_other_bits() {
    let extend = |name, loaded| {
        Element::named(name).unwrap().in_whole_registers().extend(loaded, 0xaaaa_bbbb)
    };
    assert_eq!(extend("sbyte", 0xff), 0xffff_ffff);
    assert_eq!(extend("i8_d16", 0xff), 0xffff);
    assert_eq!(extend("i8_d16_hi", 0xff), 0xffff_0000);
    assert_eq!(extend("short_d16", 0x1234), 0x1234);
    assert_eq!(extend("short_d16_hi", 0x1234), 0x1234_0000);
}
