//! Differences after a dispatch.

use super::bytes::{Memory, WrongByte};
use super::story::Story;
use super::{Gone, Spread, Step, What, found};
use crate::Buffer;
use flipwave_device::{Address, DeviceError};
use flipwave_machine::Simulator;

/// Differences between the two runs after a dispatch.
pub struct Left {
    pub memory: Memory,
    /// The last step of the dispatch.
    pub step: Option<Step>,
}

impl Left {
    /// The differences as numbers.
    pub fn spread(&self) -> Spread {
        let (memory_bytes, _) = self.memory.wrong();
        Spread { memory_bytes, ..Spread::default() }
    }

    /// Records the wrong memory of `faulty`, unless it is already recorded.
    ///
    /// # Errors
    /// None for the device of the faulty run.
    pub fn record(
        &self,
        faulty: &Simulator,
        outputs: &[Buffer],
        story: &mut Story,
    ) -> Result<(), DeviceError> {
        let Some(step) = &self.step else { return Ok(()) };
        let spread = self.spread();
        for (place, golden) in self.memory.bytes() {
            let mut now = [0];
            faulty.read_pages(Address(place), &mut now)?;
            let [faulty] = now;
            let wrong = found::wrong(&WrongByte { place, golden, faulty });
            let is_recorded = |what: &What| matches!(what, What::Escape { .. } | What::Missing(_));
            if !story.has(is_recorded) {
                story.record(What::Missing(wrong), spread, step);
            }
            if let Some(output) = found::output_at(place, outputs) {
                story.record(output, spread, step);
                break;
            }
        }
        story.sample(spread, step);
        Ok(())
    }

    /// Compares the memory of both runs after the host has changed it, records the resulting
    /// differences, and returns them.
    ///
    /// # Errors
    /// [`DeviceError`] if the devices have different allocations.
    pub fn change(
        self,
        golden: &Simulator,
        faulty: &Simulator,
        outputs: &[Buffer],
        story: &mut Story,
    ) -> Result<Memory, DeviceError> {
        let was_wrong = !self.spread().is_none();
        let now = Left { memory: Memory::between(golden, faulty)?, ..self };
        now.record(faulty, outputs, story)?;
        if let Some(step) = &now.step
            && was_wrong
            && now.spread().is_none()
        {
            story.record(What::Gone(Gone::Changed), Spread::default(), step);
        }
        Ok(now.memory)
    }
}
