//! Initial contents of buffers.

use crate::file::element::ElementType;
use crate::file::number::Number;
use crate::file::schema;
use crate::program::image::Image;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Initial content of a buffer. All numbers are in range of the element type.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// Zero bytes.
    Zeros,
    /// One number for all elements.
    Value(Number),
    /// Element `i` is `start + i * step`.
    Range {
        /// Element 0.
        start: Number,
        /// Difference between consecutive elements.
        step: Number,
    },
    /// Uniformly distributed random numbers: integers from `low` to `high`, inclusive; floating-point
    /// numbers from `low` up to `high`.
    Uniform {
        /// Lower bound.
        low: Number,
        /// Upper bound.
        high: Number,
    },
    /// The content of a file with little-endian elements.
    File(PathBuf),
    /// Pointers to buffers, or a struct.
    Image(Image),
}

impl Init {
    /// Validates the `init` key of a buffer with `count` elements.
    ///
    /// # Errors
    /// Returns the out-of-range number and the reason.
    pub(crate) fn new(
        init: Option<schema::Init>,
        element: ElementType,
        count: usize,
        directory: &Path,
    ) -> Result<Init, String> {
        let fits = |number| element.encode(number).map(|_| ());
        match init {
            None | Some(schema::Init::Zeros) => Ok(Init::Zeros),
            Some(schema::Init::Value(value)) => fits(value).map(|()| Init::Value(value)),
            Some(schema::Init::Range(schema::Range { start, step })) => {
                fits(range_element(start, step, 0))?;
                fits(range_element(start, step, count - 1))
                    .map_err(|error| format!("the last element: {error}"))?;
                Ok(Init::Range { start, step })
            }
            Some(schema::Init::Uniform(low, high)) => {
                fits(low)?;
                fits(high)?;
                let (min, max) = (low.as_f64(), high.as_f64());
                if !(min.is_finite() && max.is_finite() && min <= max) {
                    return Err(format!(
                        "uniform [{low}, {high}]: expected two finite numbers, the smaller first"
                    ));
                }
                Ok(Init::Uniform { low, high })
            }
            Some(schema::Init::File(path)) => Ok(Init::File(directory.join(path))),
            // Their pointers refer to other buffers, so `KernelsBuilder` validates them.
            Some(schema::Init::Pointers(_) | schema::Init::Struct(_)) => {
                Err("pointers and structs are not supported here".to_owned())
            }
        }
    }

    /// Returns the buffer's bytes. Each buffer name has its own random stream, so the content of a buffer
    /// does not depend on other buffers. Addresses in an image are zero.
    ///
    /// # Errors
    /// Returns the reason why the file cannot be used.
    pub(crate) fn bytes(
        &self,
        name: &str,
        element: ElementType,
        count: usize,
        seed: u64,
    ) -> Result<Vec<u8>, String> {
        let numbers = |number: &mut dyn FnMut(usize) -> Number| {
            let mut error = None;
            let bits = (0..count).map_while(|index| match element.encode(number(index)) {
                Ok(bits) => Some(bits),
                Err(reason) => {
                    error = Some(reason);
                    None
                }
            });
            let bytes = element.pack(bits);
            error.map_or(Ok(bytes), Err)
        };
        match self {
            Init::Zeros => {
                let size = element.bytes_of(count as u64).and_then(|size| size.try_into().ok());
                size.map(|size| vec![0; size])
                    .ok_or_else(|| "not a whole number of bytes".to_owned())
            }
            Init::Value(value) => numbers(&mut |_| *value),
            Init::Range { start, step } => {
                numbers(&mut |index| range_element(*start, *step, index))
            }
            Init::Uniform { low, high } => {
                let mut generator = stream(seed, name);
                numbers(&mut |_| uniform(element, *low, *high, &mut generator))
            }
            Init::File(path) => elements_of_file(path, element, count),
            Init::Image(image) => Ok(image.bytes().to_vec()),
        }
    }
}

/// Reads a regular file that contains exactly `count` elements.
///
/// # Errors
/// Returns the reason why the file cannot be used.
pub(crate) fn elements_of_file(
    path: &Path,
    element: ElementType,
    count: usize,
) -> Result<Vec<u8>, String> {
    let size = element.bytes_of(count as u64);
    let failed = |error| format!("cannot read {}: {error}", path.display());
    let found = flipwave_host::input::size(path).map_err(failed)?;
    let bytes = if size == Some(found) {
        flipwave_host::input::read(path, found).map_err(failed)?
    } else {
        Vec::new()
    };
    match size {
        Some(size) if bytes.len() as u64 == size => Ok(bytes),
        _ => Err(format!(
            "{} has {found} bytes; expected {count} elements of type {element}, {} bytes",
            path.display(),
            size.unwrap_or_default(),
        )),
    }
}

/// Computes element `index` of a range: exactly for integers, otherwise with one multiplication and one
/// addition in double precision.
fn range_element(start: Number, step: Number, index: usize) -> Number {
    match (start, step) {
        (Number::Integer(start), Number::Integer(step)) => {
            Number::Integer(start + step * index as i128)
        }
        _ => Number::Float(start.as_f64() + step.as_f64() * index as f64),
    }
}

/// Returns the random generator of a buffer's content.
fn stream(seed: u64, name: &str) -> ChaCha8Rng {
    let mut digest = Sha256::new();
    digest.update(b"flipwave buffer contents\0");
    digest.update(seed.to_le_bytes());
    digest.update(name.as_bytes());
    ChaCha8Rng::from_seed(digest.finalize().into())
}

/// Draws a number from `low` to `high`. Does not use the distributions of a library, so that library
/// updates cannot change the content for a seed.
fn uniform(element: ElementType, low: Number, high: Number, generator: &mut ChaCha8Rng) -> Number {
    let random = generator.next_u64();
    match (element.is_float(), low, high) {
        (false, Number::Integer(low), Number::Integer(high)) => {
            // The high half of random * width; the bias is less than width / 2^64.
            let width = (high - low + 1) as u128;
            Number::Integer(low + ((u128::from(random) * width) >> 64) as i128)
        }
        _ => {
            let (low, high) = (low.as_f64(), high.as_f64());
            // 53 random bits: every multiple of 2^-53 in [0, 1).
            let unit = (random >> 11) as f64 / (1u64 << 53) as f64;
            Number::Float(low * (1.0 - unit) + high * unit)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uniform_f32(name: &str, count: usize, seed: u64) -> Vec<f32> {
        let init = Init::Uniform { low: Number::Float(-1.0), high: Number::Integer(1) };
        init.bytes(name, ElementType::F32, count, seed)
            .expect("bytes")
            .chunks_exact(4)
            .map(|raw| f32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]))
            .collect()
    }

    #[test]
    fn random_content_depends_on_seed_and_name_only() {
        assert_eq!(uniform_f32("a", 100, 1), uniform_f32("a", 100, 1));
        assert_eq!(uniform_f32("a", 100, 1)[..10], uniform_f32("a", 10, 1));
        assert_ne!(uniform_f32("a", 100, 1), uniform_f32("b", 100, 1));
        assert_ne!(uniform_f32("a", 100, 1), uniform_f32("a", 100, 2));
    }

    #[test]
    fn random_content_is_stable_across_versions() {
        let init = Init::Uniform { low: Number::Integer(0), high: Number::Integer(255) };
        let bytes = init.bytes("a", ElementType::U8, 8, 42).expect("bytes");
        assert_eq!(bytes, [25, 161, 165, 10, 139, 233, 139, 134]);
    }

    #[test]
    fn uniform_numbers_cover_their_interval() {
        let numbers = uniform_f32("a", 10_000, 7);
        assert!(numbers.iter().all(|number| (-1.0..=1.0).contains(number)));
        let mean = numbers.iter().sum::<f32>() / numbers.len() as f32;
        assert!(mean.abs() < 0.03, "mean {mean}");

        let init = Init::Uniform { low: Number::Integer(-1), high: Number::Integer(1) };
        let bytes = init.bytes("a", ElementType::I8, 3000, 7).expect("bytes");
        for value in [-1i8, 0, 1] {
            let share = bytes.iter().filter(|&&byte| byte as i8 == value).count();
            assert!((900..1100).contains(&share), "{value}: {share} of 3000");
        }
    }

    #[test]
    fn the_full_range_of_64_bits_can_be_drawn() {
        let (low, high) = (Number::Integer(i64::MIN.into()), Number::Integer(i64::MAX.into()));
        let bytes = Init::Uniform { low, high }.bytes("a", ElementType::I64, 100, 7);
        let negative = bytes.expect("bytes").chunks(8).filter(|raw| raw[7] >= 0x80).count();
        assert!((30..70).contains(&negative), "{negative} of 100 are negative");
    }

    #[test]
    fn ranges_count_up() {
        let init = Init::Range { start: Number::Integer(-1), step: Number::Integer(2) };
        let bytes = init.bytes("a", ElementType::I8, 3, 0).expect("bytes");
        assert_eq!(bytes, [255, 1, 3]);
    }

    #[test]
    fn out_of_range_numbers_are_rejected() {
        let check = |init, count| Init::new(Some(init), ElementType::U8, count, Path::new(""));
        let range = schema::Range { start: Number::Integer(0), step: Number::Integer(1) };
        assert!(check(schema::Init::Range(range.clone()), 256).is_ok());
        let error = check(schema::Init::Range(range), 257).expect_err("256 is no u8");
        assert!(error.contains("256"), "{error}");
        assert!(check(schema::Init::Value(Number::Integer(-1)), 1).is_err());
        let backwards = schema::Init::Uniform(Number::Integer(2), Number::Integer(1));
        assert!(check(backwards, 1).is_err());
    }

    #[test]
    fn file_must_have_the_size_of_the_buffer() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("data.bin");
        std::fs::write(&path, [1, 0, 2, 0]).expect("written");
        let init = Init::File(path);
        assert_eq!(init.bytes("a", ElementType::U16, 2, 0), Ok(vec![1, 0, 2, 0]));
        let error = init.bytes("a", ElementType::U16, 3, 0).expect_err("too short");
        assert!(error.contains("4 bytes") && error.contains("6"), "{error}");
    }

    #[test]
    fn irregular_files_are_rejected_before_reading() {
        let directory = tempfile::tempdir().expect("a directory");
        let pipe = directory.path().join("pipe");
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).expect("a pipe");
        let files = ["/dev/zero", "/dev/null", "/dev"].map(PathBuf::from);
        for file in files.into_iter().chain([pipe]) {
            let error = Init::File(file).bytes("a", ElementType::U8, 4, 0).expect_err("no file");
            assert!(error.contains("regular file"), "{error}");
        }
        // A file that is much larger than the buffer.
        let sparse = directory.path().join("sparse");
        let file = std::fs::File::create(&sparse).expect("created");
        file.set_len(1 << 42).expect("grown");
        let error = Init::File(sparse).bytes("a", ElementType::U8, 4, 0).expect_err("too long");
        assert!(error.contains("4398046511104 bytes"), "{error}");
    }
}
