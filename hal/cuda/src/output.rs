//! Output of kernels: records that device functions have written, as text.

use flipwave_device::{Address, demangled_kernel};
use flipwave_machine::Machine;
use flipwave_ptx_sim::PtxGpu;
use std::ffi::{CString, c_char, c_int, c_longlong, c_void};
use std::io::Write;

/// Bytes for records, as in the device functions.
const CAPACITY: u64 = 1 << 20;
/// Bytes before the first record.
const HEADER: u64 = 16;
/// The longest string that is printed, and the longest text of one conversion, in bytes.
const MOST_BYTES: usize = 1 << 16;

/// Output of kernels since it was last taken.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Text for standard output.
    pub text: Vec<u8>,
    /// Messages of failed assertions.
    pub assertions: Vec<String>,
}

fn word(gpu: &PtxGpu, address: u64) -> u64 {
    let mut bytes = [0; 8];
    // Addresses are untrusted; memory that is not mapped is read as zeroes.
    if gpu.read(Address(address), &mut bytes).is_err() {
        return 0;
    }
    u64::from_le_bytes(bytes)
}

/// Reads a string that ends with a zero, or at the end of its allocation.
fn string(gpu: &PtxGpu, address: u64) -> Vec<u8> {
    let mut text = Vec::new();
    let mut byte = [0];
    while text.len() < MOST_BYTES {
        let at = Address(address.wrapping_add(text.len() as u64));
        if gpu.read(at, &mut byte).is_err() || byte == [0] {
            break;
        }
        text.push(byte[0]);
    }
    text
}

/// Reads the records at `start`, and empties the list.
pub fn take(gpu: &mut PtxGpu, start: Address) -> Output {
    let mut output = Output::default();
    let used = word(gpu, start.0).min(CAPACITY);
    if used == 0 {
        return output;
    }
    let (mut record, end) = (start.0 + HEADER, start.0 + HEADER + used);
    while record < end {
        let size = word(gpu, record);
        if size < HEADER || size > end - record {
            break;
        }
        let mut content = vec![0; size as usize];
        if gpu.read(Address(record), &mut content).is_err() {
            break;
        }
        match word(gpu, record + 8) {
            0 => output.assertions.extend(assertion(gpu, &content)),
            format => print(gpu, &string(gpu, format), &content[16..], &mut output.text),
        }
        record += size;
    }
    // Kernels wrote the list, so that it can be written.
    let _ = gpu.write(start, &vec![0; (HEADER + used) as usize]);
    output
}

/// The message of a failed assertion, in the words of CUDA's driver.
fn assertion(gpu: &PtxGpu, record: &[u8]) -> Option<String> {
    let address = |at: usize| Some(u64::from_le_bytes(*record.get(at..)?.first_chunk()?));
    let number = |at: usize| Some(u32::from_le_bytes(*record.get(at..)?.first_chunk()?));
    // A kernel that ended with a fault may have written a part of the record.
    address(16).filter(|message| *message != 0)?;
    let text = |at: usize| Some(String::from_utf8_lossy(&string(gpu, address(at)?)).into_owned());
    let (message, file, function) = (text(16)?, text(24)?, text(32)?);
    let position =
        |at: usize| Some(format!("[{},{},{}]", number(at)?, number(at + 4)?, number(at + 8)?));
    Some(format!(
        "{file}:{}: {}: block: {}, thread: {} Assertion `{message}` failed.",
        number(40)?,
        demangled_kernel(&function),
        position(44)?,
        position(56)?
    ))
}

/// Arguments in the layout of the compiler: each at a multiple of its size.
struct Arguments<'a> {
    bytes: &'a [u8],
    next: usize,
}

impl Arguments<'_> {
    /// The next argument of 4 or 8 bytes; 0 if there is none.
    fn take(&mut self, size: usize) -> u64 {
        let start = self.next.next_multiple_of(size);
        self.next = start + size;
        let mut word = [0; 8];
        if let Some(found) = self.bytes.get(start..start + size) {
            word[..size].copy_from_slice(found);
        }
        u64::from_le_bytes(word)
    }
}

/// A conversion specification whose width and precision are numbers.
#[derive(Default)]
struct Specification {
    flags: String,
    width: Option<i32>,
    precision: Option<i32>,
    /// `true` for arguments of 8 bytes.
    is_long: bool,
}

/// Formats a record as `printf` of C does.
fn print(gpu: &PtxGpu, format: &[u8], arguments: &[u8], text: &mut Vec<u8>) {
    let mut arguments = Arguments { bytes: arguments, next: 0 };
    let mut rest = format.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            text.push(byte);
            continue;
        }
        let mut specification = Specification::default();
        let mut has_point = false;
        for byte in rest.by_ref() {
            match byte {
                b'%' => {
                    text.push(b'%');
                    break;
                }
                b'-' | b'+' | b' ' | b'#' => specification.flags.push(byte.into()),
                b'0' if specification.width.is_none() && !has_point => {
                    specification.flags.push('0');
                }
                b'0'..=b'9' => {
                    let part = if has_point {
                        &mut specification.precision
                    } else {
                        &mut specification.width
                    };
                    let digit = i32::from(byte - b'0');
                    *part = Some(part.unwrap_or(0).saturating_mul(10).saturating_add(digit));
                }
                b'.' => {
                    has_point = true;
                    specification.precision = Some(0);
                }
                b'*' => {
                    let number = arguments.take(4) as i32;
                    if has_point {
                        specification.precision = Some(number);
                    } else {
                        if number < 0 {
                            specification.flags.push('-');
                        }
                        specification.width = Some(number.saturating_abs());
                    }
                }
                b'l' | b'j' | b'z' | b't' => specification.is_long = true,
                b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'c' => {
                    let value = arguments.take(if specification.is_long { 8 } else { 4 });
                    let is_signed = matches!(byte, b'd' | b'i') && !specification.is_long;
                    let value = if is_signed { i64::from(value as i32) } else { value as i64 };
                    text.extend(specification.integer(byte, value));
                    break;
                }
                b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' => {
                    let value = f64::from_bits(arguments.take(8));
                    text.extend(specification.float(byte, value));
                    break;
                }
                b'p' => {
                    let value = arguments.take(8);
                    text.extend(specification.integer(b'p', value as i64));
                    break;
                }
                b's' => {
                    let address = arguments.take(8);
                    let found =
                        if address == 0 { b"(null)".to_vec() } else { string(gpu, address) };
                    text.extend(specification.string(&found));
                    break;
                }
                b'h' => {}
                _ => break,
            }
        }
    }
}

impl Specification {
    /// The specification as text; width and precision are limited.
    fn text(&self, length: &str, conversion: u8) -> CString {
        let limited = |number: Option<i32>| number.map(|number| number.min(MOST_BYTES as i32 / 2));
        let width = limited(self.width).map_or(String::new(), |width| width.to_string());
        let precision = limited(self.precision).filter(|precision| *precision >= 0);
        let precision = precision.map_or(String::new(), |precision| format!(".{precision}"));
        let mut flags = self.flags.clone();
        flags.truncate(8);
        let text = format!("%{flags}{width}{precision}{length}{}", char::from(conversion));
        CString::new(text).unwrap_or_default()
    }

    fn integer(&self, conversion: u8, value: i64) -> Vec<u8> {
        let length = if matches!(conversion, b'p' | b'c') { "" } else { "ll" };
        let format = self.text(length, conversion);
        // SAFETY: one argument of the type that the format names.
        formatted(|buffer, size| unsafe {
            match conversion {
                b'p' => libc::snprintf(buffer, size, format.as_ptr(), value as *const c_void),
                b'c' => libc::snprintf(buffer, size, format.as_ptr(), value as c_int),
                _ => libc::snprintf(buffer, size, format.as_ptr(), value as c_longlong),
            }
        })
    }

    fn float(&self, conversion: u8, value: f64) -> Vec<u8> {
        let format = self.text("", conversion);
        // SAFETY: one argument of the type that the format names.
        formatted(|buffer, size| unsafe { libc::snprintf(buffer, size, format.as_ptr(), value) })
    }

    fn string(&self, value: &[u8]) -> Vec<u8> {
        let format = self.text("", b's');
        let value = CString::new(value).unwrap_or_default();
        // SAFETY: one argument of the type that the format names.
        formatted(|buffer, size| unsafe {
            libc::snprintf(buffer, size, format.as_ptr(), value.as_ptr())
        })
    }
}

/// The text that `print` writes to a buffer of a size.
fn formatted(print: impl Fn(*mut c_char, usize) -> c_int) -> Vec<u8> {
    let mut buffer = vec![0u8; 2 * MOST_BYTES];
    let length = print(buffer.as_mut_ptr().cast(), buffer.len());
    buffer.truncate(usize::try_from(length).unwrap_or(0).min(2 * MOST_BYTES - 1));
    buffer
}

unsafe extern "C" {
    /// The C library's standard output.
    static stdout: *mut libc::FILE;
}

/// Writes output: text through the C library, in order with the application's own, and messages to standard
/// error.
pub fn write(output: &Output) {
    if !output.text.is_empty() {
        // SAFETY: the C library's stream; the bytes are valid.
        unsafe { libc::fwrite(output.text.as_ptr().cast(), 1, output.text.len(), stdout) };
    }
    for message in &output.assertions {
        // Standard error may be closed.
        let _ = writeln!(std::io::stderr(), "{message}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flipwave_ptx::Ptx;

    fn gpu() -> PtxGpu {
        PtxGpu::new(Ptx::new("sm_90").expect("a target"))
    }

    fn printed(format: &str, arguments: &[u8]) -> String {
        let mut text = Vec::new();
        print(&gpu(), format.as_bytes(), arguments, &mut text);
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn conversions_are_those_of_c() {
        let mut arguments = (-5i32).to_le_bytes().to_vec();
        arguments.extend([0; 4]);
        arguments.extend((1u64 << 40).to_le_bytes());
        arguments.extend(1.5f64.to_le_bytes());
        arguments.extend(65u32.to_le_bytes());
        assert_eq!(printed("%4d|%lld|%.2f|%c|100%%", &arguments), "  -5|1099511627776|1.50|A|100%");
        let mut starred = 6i32.to_le_bytes().to_vec();
        starred.extend(255u32.to_le_bytes());
        assert_eq!(printed("%*x.", &starred), "    ff.");
        assert_eq!(printed("%s %u %", &[]), "(null) 0 ");
        assert_eq!(printed("%999999999d", &1u32.to_le_bytes()).len(), MOST_BYTES / 2);
        assert_eq!(printed("%n%q", &[]), "");
    }

    #[test]
    fn damaged_records_are_ignored() {
        let mut gpu = gpu();
        let start = gpu.allocate(HEADER + CAPACITY).expect("memory");
        for (used, size) in [(u64::MAX, u64::MAX), (8, 16), (64, 3), (1 << 20, 1 << 21)] {
            gpu.write(start, &used.to_le_bytes()).expect("written");
            gpu.write(Address(start.0 + HEADER), &size.to_le_bytes()).expect("written");
            assert_eq!(take(&mut gpu, start), Output::default());
            assert_eq!(word(&gpu, start.0), 0);
        }
    }
}
