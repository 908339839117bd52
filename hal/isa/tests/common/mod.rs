//! What the tests share.

use flipwave_isa::Isa;

/// The decoder of a target by name.
pub fn isa(target: &str) -> Isa {
    Isa::new(&target.parse().expect("a target")).expect("a decodable target")
}
