//! Helpers shared by the tests.

use flipwave_isa::Isa;

/// The decoder of a target.
pub fn isa(target: &str) -> Isa {
    Isa::new(&target.parse().expect("a target")).expect("a decodable target")
}

/// The decoder of a target for a wave size.
pub fn isa_with_wave_size(target: &str, wave_size: u8) -> Isa {
    Isa::with_wave_size(&target.parse().expect("a target"), wave_size).expect("a decodable target")
}
