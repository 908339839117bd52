//! Takes the records of streams while a kernel of the application runs, so that none is lost.

use flipwave_device::Address;
use flipwave_rocr::HsaError;
use flipwave_rocr::tools::{CopyEngine, Dispatch};
use flipwave_tools::{LoadedStreams, StreamMemory, TakenRecords};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks at the rings.
const PAUSE: Duration = Duration::from_micros(500);

/// Memory of a GPU before or while a kernel runs.
struct GpuMemory(CopyEngine);

impl StreamMemory for GpuMemory {
    type Error = HsaError;

    fn read(&mut self, address: Address, bytes: &mut [u8]) -> Result<(), HsaError> {
        self.0.read(address, bytes)
    }

    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), HsaError> {
        self.0.write(address, bytes)
    }
}

/// A thread that takes the records of a dispatch.
pub(super) struct RecordTaker {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Taken>,
}

/// Records that were taken, and the error that ended it.
#[derive(Default)]
pub(super) struct Taken {
    pub records: TakenRecords,
    pub error: Option<HsaError>,
}

impl RecordTaker {
    /// Makes the waves of a dispatch that is about to start wait for space in the rings, and starts to take
    /// their records.
    ///
    /// # Errors
    /// The memory cannot be written, or the thread cannot be started.
    pub fn start(streams: LoadedStreams, dispatch: &Dispatch) -> io::Result<RecordTaker> {
        let mut memory = GpuMemory(dispatch.copy_engine().map_err(io::Error::other)?);
        streams.set_waits(&mut memory, true).map_err(io::Error::other)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let name = "flipwave-records".to_owned();
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            let mut taken = Taken::default();
            while !stopped.load(Ordering::Acquire) {
                std::thread::park_timeout(PAUSE);
                if let Err(error) = streams.take(&mut memory, &mut taken.records) {
                    // Waves must not wait for ever. If this fails, too, they do.
                    let _ = streams.set_waits(&mut memory, false);
                    taken.error = Some(error);
                    break;
                }
            }
            taken
        })?;
        Ok(RecordTaker { stop, thread })
    }

    /// Ends the thread after the dispatch, and returns the records.
    pub fn finish(self) -> Taken {
        self.stop.store(true, Ordering::Release);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}
