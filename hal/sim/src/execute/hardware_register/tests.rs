use super::*;
use crate::wave::Level;

/// `hwreg(id, offset, width)` as the assembler encodes it.
fn hwreg(id: u32, offset: u32, width: u32) -> u32 {
    id | offset << 6 | (width - 1) << 11
}

#[test]
fn setreg_writes_only_the_selected_field_of_mode() {
    let mut wave = Wave::new(Level::Plain);
    wave.mode = Mode(0x3f0);
    write(&mut wave, hwreg(1, 4, 2), 0);
    assert_eq!(wave.mode.0, 0x3c0);
    assert_eq!(read(&wave, hwreg(1, 6, 2)), 3);
    write(&mut wave, hwreg(1, 0, 32), 0xffff_ffff);
    assert_eq!(wave.mode.0, 0xffff_ffff);
}

#[test]
fn setreg_ignores_registers_other_than_mode() {
    let mut wave = Wave::new(Level::Plain);
    write(&mut wave, hwreg(2, 0, 32), 0xffff_ffff);
    assert_eq!(wave.mode.0, 0);
}

#[test]
fn the_clock_has_two_words_on_gfx12_and_twenty_bits_before() {
    let of = |processor: &str, id: u32| {
        let target = processor.parse().expect("a target");
        let mut wave = Wave::new(Level::Plain);
        wave.machine = crate::wave::Machine::new(&target, 32);
        wave.executed = 0x1_2345_6789;
        read(&wave, hwreg(id, 0, 32))
    };
    assert_eq!([of("gfx1100", 29), of("gfx1100", 30)], [0x5_6789, 0]);
    assert_eq!([of("gfx1201", 29), of("gfx1201", 30)], [0x2345_6789, 1]);
}
