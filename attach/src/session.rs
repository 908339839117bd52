//! What the library is to do in the application, as the program that starts it says.

use flipwave_isa::Target;
use serde::{Deserialize, Serialize};

/// The environment variable that holds a session, as JSON.
pub const VARIABLE: &str = "FLIPWAVE_SESSION";

/// What the library is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The GPU, `gfx90a`.
    pub gpu: String,
    /// How many of them.
    pub gpus: u32,
}

impl Session {
    /// The session of this process.
    ///
    /// # Errors
    /// In words, if there is none or it cannot be read.
    pub fn of_process() -> Result<Session, String> {
        let text = std::env::var(VARIABLE).map_err(|_| {
            format!("{VARIABLE} is not set: start the application with flipwave exec")
        })?;
        serde_json::from_str(&text).map_err(|error| format!("{VARIABLE} cannot be read: {error}"))
    }

    /// The GPU's target.
    ///
    /// # Errors
    /// In words, if there is none of this name.
    pub fn target(&self) -> Result<Target, String> {
        self.gpu.parse().map_err(|error| format!("{error}"))
    }
}
