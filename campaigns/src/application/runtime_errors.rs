//! Recognizes errors of AMD's runtime and of CUDA in the output of a program.

use regex_lite::Regex;
use std::sync::LazyLock;

/// Patterns of the messages, with their sources.
const MESSAGES: [&str; 9] = [
    // ROCr, Runtime::VMFaultHandler: "Memory access fault by GPU node-1 (Agent handle: 0x...) on
    // address 0x.... Reason: Unknown." Then it aborts.
    r"Memory access fault by GPU node",
    // ROCr from 5.3 on, Runtime::HwExceptionHandler: "HW Exception by GPU node-1 (...)".
    r"HW Exception by GPU node",
    // ROCr, hsa_status_string, and the queue's error handler: "Queue error -
    // HSA_STATUS_ERROR_MEMORY_FAULT".
    r"HSA_STATUS_ERROR",
    // HIP's error log, for example of Device::callbackQueue: ":0:rocdevice.cpp :2652: 1 us: ...
    // aborting with error : 0x29". The first number is the level: 0 none, 1 error.
    r"(?m)^:[01]:\w+\.[ch]pp\s*:\d+",
    // HIP, hipGetErrorName and hipGetErrorString, which programs print when a call fails.
    r"\bhipError[A-Z]\w+",
    // HIP's device library, __assert_fail: "file.hip:3: kernel: Device-side assertion `x' failed."
    r"Device-side assertion",
    // CUDA, cudaGetErrorName and cuGetErrorName, which programs print when a call fails.
    r"\bcudaError[A-Z]\w+",
    r"\bCUDA_ERROR_[A-Z]\w+",
    // CUDA, assert in a kernel: "file.cu:3: kernel: block: [0,0,0], thread: [1,0,0] Assertion `x' failed."
    r"block: \[\d+,\d+,\d+\], thread: \[\d+,\d+,\d+\] Assertion",
];

static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    MESSAGES.iter().map(|text| Regex::new(text).expect("a regular expression")).collect()
});

/// Returns the first line of `faulty` with a runtime error whose pattern does not match `golden`.
pub(super) fn find(golden: &[u8], faulty: &[u8]) -> Option<String> {
    let (golden, faulty) = (String::from_utf8_lossy(golden), String::from_utf8_lossy(faulty));
    let new = PATTERNS.iter().filter(|pattern| !pattern.is_match(&golden));
    let place = new.filter_map(|pattern| pattern.find(&faulty)).map(|found| found.start()).min()?;
    let start = faulty[..place].rfind('\n').map_or(0, |end| end + 1);
    faulty[start..].lines().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<String> {
        find(b"", text.as_bytes())
    }

    #[test]
    fn runtime_errors_are_recognized() {
        for line in [
            "Memory access fault by GPU node-1 (Agent handle: 0x5581) on address 0x7f00. Reason: Unknown.",
            "HW Exception by GPU node-1 (Agent handle: 0x5581) reason :GPU Hang",
            "Queue error - HSA_STATUS_ERROR_MEMORY_FAULT",
            ":0:rocdevice.cpp            :2652: 123 us: 99   : [tid:0x7f] Device::callbackQueue \
             aborting with error : 0x29",
            "error: 'hipErrorIllegalAddress'(700) at a.hip:12",
            "a.hip:3: void kernel(int): Device-side assertion `x < 4' failed.",
            "cudaErrorIllegalAddress: an illegal memory access was encountered",
            "line 5: CUDA_ERROR_LAUNCH_FAILED",
            "a.cu:3: k(int): block: [0,0,0], thread: [12,0,0] Assertion `x < 4` failed.",
        ] {
            assert_eq!(found(&format!("start\n{line}\nend\n")).as_deref(), Some(line));
        }
    }

    #[test]
    fn other_text_is_not_an_error() {
        for text in [
            "hipSuccess",
            "myhipErrorX",
            "hipError",
            ":3:hip.cpp :1: trace",
            "fault",
            "cudaSuccess",
            "",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn errors_of_the_golden_run_are_ignored() {
        let golden = b"expected: hipErrorInvalidValue\n";
        assert_eq!(find(golden, golden), None);
        let faulty = "expected: hipErrorInvalidValue\nHSA_STATUS_ERROR: generic\n";
        assert_eq!(find(golden, faulty.as_bytes()).as_deref(), Some("HSA_STATUS_ERROR: generic"));
    }
}
