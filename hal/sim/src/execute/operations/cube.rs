//! Cube map coordinates. The axis with the greatest magnitude selects the face; in a tie z takes
//! precedence over y, and y over x.

use super::row::operations;
use super::sources;

operations! {
    /// Face and coordinates.
    COORDINATES { denormals: ByMode, rounds: Exact, nans: Settled, levels: plain_only, source: sources::STEPS }

    "v_cubeid_f32" (x: f32, y: f32, z: f32) -> f32 {
        match major(x, y, z) {
            Axis::Z => if z < 0.0 { 5.0 } else { 4.0 },
            Axis::Y => if y < 0.0 { 3.0 } else { 2.0 },
            Axis::X => if x < 0.0 { 1.0 } else { 0.0 },
        }
    }
    "v_cubesc_f32" (x: f32, y: f32, z: f32) -> f32 {
        match major(x, y, z) {
            Axis::Z => if z < 0.0 { -x } else { x },
            Axis::Y => x,
            Axis::X => if x < 0.0 { z } else { -z },
        }
    }
    "v_cubetc_f32" (x: f32, y: f32, z: f32) -> f32 {
        match major(x, y, z) {
            Axis::Y => if y < 0.0 { -z } else { z },
            Axis::Z | Axis::X => -y,
        }
    }
}

operations! {
    /// Twice the coordinate of the major axis.
    MAJOR { denormals: ByMode, rounds: ByMode, nans: Settled, levels: plain_only, source: sources::STEPS }

    "v_cubema_f32" (x: f32, y: f32, z: f32; context) -> f32 {
        let coordinate = match major(x, y, z) {
            Axis::Z => z,
            Axis::Y => y,
            Axis::X => x,
        };
        context.round.scaled(coordinate, 1)
    }
}

enum Axis {
    X,
    Y,
    Z,
}

fn major(x: f32, y: f32, z: f32) -> Axis {
    if z.abs() >= x.abs() && z.abs() >= y.abs() {
        Axis::Z
    } else if y.abs() >= x.abs() {
        Axis::Y
    } else {
        Axis::X
    }
}
