//! What the tests share.

use flipwave_isa::Isa;

/// The decoder of a target by name.
pub fn isa(target: &str) -> Isa {
    Isa::new(&target.parse().expect("a target")).expect("a decodable target")
}

/// The decoder of a target by name, for waves of a size.
pub fn isa_of_waves(target: &str, wave_size: u8) -> Isa {
    Isa::with_wave_size(&target.parse().expect("a target"), wave_size).expect("a decodable target")
}
