//! Compares outputs of a faulty run with those of the golden run.
//!
//! An element is correct if it has the same bits, if both elements are NaN (with any payloads), or
//! if it is within the tolerance. A NaN instead of a number, a number instead of a NaN, and an
//! infinity instead of any other value are wrong with every tolerance, and have infinite errors.
//! With `exact`, -0.0 instead of 0.0 is wrong, with error 0.

use crate::file::element::{ElementType, Value};
use crate::file::schema;
use crate::outputs::extents::{Extents, WrongBox};
use flipwave_analysis::ErrorShape;
use flipwave_injector::Output;

/// Limits of the difference between an element and the golden one. An element is correct if it
/// satisfies any of the limits; without limits, it must be exact.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance {
    /// Limit of |element - golden|.
    pub absolute: Option<f64>,
    /// Limit of |element - golden| / |golden|.
    pub relative: Option<f64>,
    /// Limit in units in the last place: the count of numbers of the type between the two, plus
    /// one.
    pub ulp: Option<u64>,
}

/// Format and role of an output.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputFormat {
    /// Type of the elements.
    pub element: ElementType,
    /// Dimensions of the output, if declared.
    pub extents: Option<Extents>,
    /// Role of the output.
    pub role: OutputRole,
}

/// Role of an output.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputRole {
    /// Results, compared with this tolerance.
    Result(Tolerance),
    /// Result of a check in the program, in the buffer with this name.
    Detector(String),
}

impl Tolerance {
    /// Checks a tolerance in a campaign file for elements of type `element`.
    ///
    /// # Errors
    /// A message with the invalid limit and the expected values.
    pub(crate) fn new(
        tolerance: &schema::Tolerance,
        element: ElementType,
    ) -> Result<Tolerance, String> {
        let &schema::Tolerance { exact, absolute, relative, ulp } = tolerance;
        let has_limits = absolute.is_some() || relative.is_some() || ulp.is_some();
        if exact == Some(true) && has_limits {
            return Err("`exact: true` cannot be combined with a limit".to_owned());
        }
        if exact != Some(true) && !has_limits {
            return Err(
                "expected `exact: true`, or a limit: `absolute`, `relative` or `ulp`".to_owned()
            );
        }
        for (key, limit) in [("absolute", absolute), ("relative", relative)] {
            if let Some(limit) = limit
                && !(limit.is_finite() && limit >= 0.0)
            {
                return Err(format!(
                    "invalid limit {key}: {limit:?}; expected a number of at least 0"
                ));
            }
        }
        if ulp.is_some() && !element.is_float() {
            return Err(format!("`ulp` is only for floating-point outputs; this one is {element}"));
        }
        Ok(Tolerance { absolute, relative, ulp })
    }
}

/// Differences of an output from the golden one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Difference {
    /// Number of elements outside the tolerance.
    pub elements_wrong: u64,
    /// Largest |element - golden|, including elements within the tolerance.
    pub max_abs_error: f64,
    /// Largest |element - golden| / |golden|, including elements within the tolerance; infinite if
    /// golden is 0 and the element is not.
    pub max_rel_error: f64,
    /// Spatial pattern of the elements outside the tolerance, for outputs with dimensions.
    pub shape: Option<ErrorShape>,
    /// Number of elements that are NaN while golden is not.
    pub nan: u64,
    /// Number of elements that are infinite while golden is not.
    pub inf: u64,
}

impl Difference {
    /// Combines the differences of two outputs.
    pub(crate) fn and(self, next: Difference) -> Difference {
        Difference {
            elements_wrong: self.elements_wrong + next.elements_wrong,
            max_abs_error: self.max_abs_error.max(next.max_abs_error),
            max_rel_error: self.max_rel_error.max(next.max_rel_error),
            shape: match (self.shape, next.shape) {
                (Some(_), Some(_)) => Some(ErrorShape::Several),
                (shape, next) => shape.or(next),
            },
            nan: self.nan + next.nan,
            inf: self.inf + next.inf,
        }
    }
}

/// Compares two outputs of the same size element by element.
pub fn compare(
    element: ElementType,
    tolerance: &Tolerance,
    golden: &[u8],
    faulty: &[u8],
) -> Difference {
    compare_elements(element, tolerance, differing(golden, faulty), |_| {})
}

/// Compares two outputs of the same size, and determines the shape of the wrong elements if
/// `extents` are given.
pub(crate) fn compare_with_extents(
    element: ElementType,
    tolerance: &Tolerance,
    extents: Option<Extents>,
    golden: &[u8],
    faulty: &[u8],
) -> Difference {
    compare_blocks(element, tolerance, extents, differing(golden, faulty))
}

/// Compares two outputs of a workload, and determines the shape of the wrong elements if `extents`
/// are given.
pub(crate) fn compare_outputs(
    element: ElementType,
    tolerance: &Tolerance,
    extents: Option<Extents>,
    golden: &Output,
    faulty: &Output,
) -> Difference {
    compare_blocks(element, tolerance, extents, golden.differing(faulty))
}

fn compare_blocks<'a>(
    element: ElementType,
    tolerance: &Tolerance,
    extents: Option<Extents>,
    differing: impl Iterator<Item = Block<'a>>,
) -> Difference {
    let Some(extents) = extents else {
        return compare_elements(element, tolerance, differing, |_| {});
    };
    let mut wrong = WrongBox::new(extents);
    let difference = compare_elements(element, tolerance, differing, |index| wrong.add(index));
    Difference { shape: wrong.shape(), ..difference }
}

/// Index of the first wrong element.
pub(crate) fn first_wrong(
    element: ElementType,
    tolerance: &Tolerance,
    golden: &[u8],
    faulty: &[u8],
) -> Option<u64> {
    let mut first = None;
    compare_elements(element, tolerance, differing(golden, faulty), |index| {
        first.get_or_insert(index);
    });
    first
}

/// Number and contents of a block of two outputs. Equal blocks are skipped; each contains a whole
/// number of elements of any type.
type Block<'a> = (usize, [&'a [u8]; 2]);

/// Iterates over the blocks that differ.
fn differing<'a>(golden: &'a [u8], faulty: &'a [u8]) -> impl Iterator<Item = Block<'a>> {
    let blocks = golden.chunks(Output::BLOCK).zip(faulty.chunks(Output::BLOCK));
    let numbered = blocks.map(|(golden, faulty)| [golden, faulty]).enumerate();
    numbered.filter(|(_, [golden, faulty])| golden != faulty)
}

/// Compares blocks element by element, and calls `take` with the index of each wrong element.
fn compare_elements<'a>(
    element: ElementType,
    tolerance: &Tolerance,
    differing: impl Iterator<Item = Block<'a>>,
    mut take: impl FnMut(u64),
) -> Difference {
    let mut difference = Difference::default();
    let (size, in_unit) = (element.unit(), element.elements_of_unit() as u64);
    let units = differing.flat_map(|(block, [golden, faulty])| {
        let first = (block * (Output::BLOCK / size)) as u64;
        (first..).zip(golden.chunks_exact(size).zip(faulty.chunks_exact(size)))
    });
    let units = units.filter(|(_, (golden, faulty))| golden != faulty);
    let elements = units.flat_map(|(unit, (golden, faulty))| {
        (unit * in_unit..).zip(element.unpack(golden).zip(element.unpack(faulty)))
    });
    for (index, (golden, faulty)) in elements {
        if golden == faulty {
            continue;
        }
        let (golden, faulty) = (element.decode(golden), element.decode(faulty));
        let error = golden.error(faulty);
        if !error.is_within(tolerance) {
            difference.elements_wrong += 1;
            take(index);
        }
        difference.nan += u64::from(faulty.is_nan() && !golden.is_nan());
        difference.inf += u64::from(faulty.is_infinite() && !golden.is_infinite());
        difference.max_abs_error = difference.max_abs_error.max(error.absolute);
        difference.max_rel_error = difference.max_rel_error.max(error.relative);
    }
    difference
}

/// Returns `true` if an output is within the tolerance of its format. Detectors have no tolerance.
pub(crate) fn is_correct(format: &OutputFormat, golden: &Output, faulty: &Output) -> bool {
    match &format.role {
        OutputRole::Result(tolerance) => {
            let difference = compare_outputs(format.element, tolerance, None, golden, faulty);
            difference.elements_wrong == 0
        }
        OutputRole::Detector(_) => golden == faulty,
    }
}

/// Returns `true` if all elements of an output are NaN.
pub(crate) fn is_all_nan(element: ElementType, output: &[u8]) -> bool {
    values(element, output).all(Value::is_nan)
}

/// Returns `true` if an output contains numbers, and the tolerance accepts any number of the type
/// instead of each of them. All errors grow with the distance, so testing the smallest and the
/// largest number is sufficient.
pub(crate) fn accepts_everything(
    element: ElementType,
    tolerance: &Tolerance,
    output: &[u8],
) -> bool {
    if *tolerance == Tolerance::default() {
        return false;
    }
    let ends = element.ends().map(|bits| element.decode(bits));
    let mut numbers = values(element, output).filter(|value| value.is_finite()).peekable();
    numbers.peek().is_some()
        && numbers.all(|number| ends.into_iter().all(|end| number.error(end).is_within(tolerance)))
}

/// The elements of an output.
fn values(element: ElementType, output: &[u8]) -> impl Iterator<Item = Value> {
    let units = output.chunks_exact(element.unit()).flat_map(move |unit| element.unpack(unit));
    units.map(move |bits| element.decode(bits))
}

impl Value {
    fn is_nan(self) -> bool {
        matches!(self, Value::Float { value, .. } if value.is_nan())
    }

    fn is_infinite(self) -> bool {
        matches!(self, Value::Float { value, .. } if value.is_infinite())
    }

    fn is_finite(self) -> bool {
        match self {
            Value::Integer(_) => true,
            Value::Float { value, .. } => value.is_finite(),
        }
    }

    /// Error of `faulty`, an element of the same type with other bits, relative to this golden one.
    fn error(self, faulty: Value) -> ElementError {
        match (self, faulty) {
            (Value::Integer(golden), Value::Integer(faulty)) => {
                let absolute = golden.abs_diff(faulty) as f64;
                let relative = absolute / golden.unsigned_abs() as f64;
                ElementError { exact: false, absolute, relative, ulp: u64::MAX }
            }
            (
                Value::Float { value: golden, rank: golden_rank },
                Value::Float { value: faulty, rank: faulty_rank },
            ) => {
                if golden.is_nan() && faulty.is_nan() {
                    return ElementError { exact: true, absolute: 0.0, relative: 0.0, ulp: 0 };
                }
                if !(golden.is_finite() && faulty.is_finite()) {
                    return ElementError::INFINITE;
                }
                let absolute = (faulty - golden).abs();
                let relative = if absolute == 0.0 { 0.0 } else { absolute / golden.abs() };
                let ulp = golden_rank.abs_diff(faulty_rank);
                ElementError { exact: false, absolute, relative, ulp }
            }
            _ => ElementError::INFINITE,
        }
    }
}

/// Error of an element by every measure.
struct ElementError {
    exact: bool,
    absolute: f64,
    relative: f64,
    ulp: u64,
}

impl ElementError {
    const INFINITE: ElementError = ElementError {
        exact: false,
        absolute: f64::INFINITY,
        relative: f64::INFINITY,
        ulp: u64::MAX,
    };

    fn is_within(&self, tolerance: &Tolerance) -> bool {
        // A difference of finite numbers that overflows is infinite and therefore outside every
        // limit.
        self.exact
            || tolerance.absolute.is_some_and(|limit| self.absolute <= limit)
            || tolerance.relative.is_some_and(|limit| self.relative <= limit)
            || tolerance.ulp.is_some_and(|limit| self.ulp <= limit && self.ulp != u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: Tolerance = Tolerance { absolute: None, relative: None, ulp: None };

    fn f32s(numbers: &[f32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn compare_f32(tolerance: Tolerance, golden: &[f32], faulty: &[f32]) -> Difference {
        compare(ElementType::F32, &tolerance, &f32s(golden), &f32s(faulty))
    }

    #[test]
    fn exact_comparison_counts_all_different_bit_patterns() {
        assert_eq!(compare_f32(EXACT, &[1.0, 2.0], &[1.0, 2.0]), Difference::default());
        let difference = compare_f32(EXACT, &[1.0, 2.0, 4.0], &[1.0, 3.0, 8.0]);
        assert_eq!(
            difference,
            Difference {
                elements_wrong: 2,
                max_abs_error: 4.0,
                max_rel_error: 1.0,
                ..Difference::default()
            }
        );
        let zero = compare_f32(EXACT, &[0.0], &[-0.0]);
        assert_eq!(zero, Difference { elements_wrong: 1, ..Difference::default() });
    }

    #[test]
    fn nan_equals_only_nan() {
        let loose = Tolerance { absolute: Some(1e300), relative: Some(1e300), ulp: Some(1 << 40) };
        let other_nan = f32::from_bits(f32::NAN.to_bits() | 1);
        for tolerance in [EXACT, loose] {
            assert_eq!(compare_f32(tolerance, &[f32::NAN], &[other_nan]), Difference::default());
            for (golden, faulty) in [(1.0, f32::NAN), (f32::NAN, 1.0), (f32::NAN, f32::INFINITY)] {
                let difference = compare_f32(tolerance, &[golden], &[faulty]);
                assert_eq!(difference.elements_wrong, 1);
                assert_eq!(difference.max_abs_error, f64::INFINITY);
                assert_eq!(difference.max_rel_error, f64::INFINITY);
            }
        }
    }

    #[test]
    fn nan_and_infinities_of_the_golden_run_do_not_count() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let golden = [1.0, nan, inf, 1.0, inf, nan, 2.0];
        let faulty = [nan, 1.0, 1.0, -inf, -inf, inf, 3.0];
        let difference = compare_f32(EXACT, &golden, &faulty);
        assert_eq!((difference.nan, difference.inf), (1, 2));
        let back = compare_f32(EXACT, &faulty, &golden);
        assert_eq!((back.nan, back.inf), (2, 1));
        let integers = compare(ElementType::U32, &EXACT, &f32s(&golden), &f32s(&faulty));
        assert_eq!((integers.nan, integers.inf), (0, 0), "integers");
    }

    /// Uses elements in several blocks.
    #[test]
    fn shape_depends_on_elements_outside_the_tolerance() {
        let extents = Extents::new(&[3, 4096]).expect("dimensions");
        let golden = vec![1.0; 3 * 4096];
        let shape_of = |wrong: &[usize]| {
            let mut faulty = golden.clone();
            // Within the tolerance.
            faulty[17] = 1.25;
            wrong.iter().for_each(|index| faulty[*index] = 9.0);
            let tolerance = Tolerance { absolute: Some(0.5), ..EXACT };
            let (golden, faulty) = (f32s(&golden), f32s(&faulty));
            let difference =
                compare_with_extents(ElementType::F32, &tolerance, Some(extents), &golden, &faulty);
            difference.shape
        };
        assert_eq!(shape_of(&[]), None);
        assert_eq!(shape_of(&[4095]), Some(ErrorShape::Single));
        assert_eq!(shape_of(&[4096, 8191]), Some(ErrorShape::Row));
        assert_eq!(shape_of(&[3, 4096 + 3]), Some(ErrorShape::Column));
        assert_eq!(shape_of(&[0, 4096 + 4095]), Some(ErrorShape::Random));
    }

    #[test]
    fn shapes_in_several_outputs_combine_to_several() {
        let difference = |shape| Difference { shape, ..Difference::default() };
        let (row, none) = (difference(Some(ErrorShape::Row)), difference(None));
        assert_eq!(row.and(none).shape, Some(ErrorShape::Row));
        assert_eq!(none.and(row).shape, Some(ErrorShape::Row));
        assert_eq!(none.and(none).shape, None);
        assert_eq!(row.and(row).shape, Some(ErrorShape::Several));
    }

    #[test]
    fn infinities_equal_only_themselves() {
        let loose = Tolerance { absolute: Some(1e300), relative: Some(1e300), ulp: Some(10) };
        for faulty in [f32::MAX, f32::NEG_INFINITY] {
            assert_eq!(compare_f32(loose, &[f32::INFINITY], &[faulty]).elements_wrong, 1);
            assert_eq!(compare_f32(loose, &[faulty], &[f32::INFINITY]).elements_wrong, 1);
        }
        assert_eq!(compare_f32(EXACT, &[f32::INFINITY], &[f32::INFINITY]).elements_wrong, 0);
    }

    #[test]
    fn errors_include_tolerated_elements() {
        let tolerance = Tolerance { absolute: Some(0.5), ..EXACT };
        let difference = compare_f32(tolerance, &[1.0, 1.0], &[1.5, 1.75]);
        assert_eq!(
            difference,
            Difference {
                elements_wrong: 1,
                max_abs_error: 0.75,
                max_rel_error: 0.75,
                ..Difference::default()
            }
        );
    }

    #[test]
    fn relative_errors_of_zero_are_infinite() {
        let tolerance = Tolerance { relative: Some(1e-3), ..EXACT };
        let difference = compare_f32(tolerance, &[0.0, 1000.0], &[1e-30, 1000.5]);
        assert_eq!(difference.elements_wrong, 1);
        assert_eq!(difference.max_rel_error, f64::INFINITY);
        // Satisfying one of the limits is sufficient.
        let either = Tolerance { absolute: Some(1e-20), ..tolerance };
        assert_eq!(compare_f32(either, &[0.0], &[1e-30]).elements_wrong, 0);
    }

    #[test]
    fn ulp_distance_is_continuous_across_zero() {
        let ulp = |limit| Tolerance { ulp: Some(limit), ..EXACT };
        let next = f32::from_bits(1.0f32.to_bits() + 1);
        assert_eq!(compare_f32(ulp(1), &[1.0], &[next]).elements_wrong, 0);
        assert_eq!(compare_f32(ulp(0), &[1.0], &[next]).elements_wrong, 1);
        let tiny = f32::from_bits(1);
        assert_eq!(compare_f32(ulp(2), &[tiny], &[-tiny]).elements_wrong, 0);
        assert_eq!(compare_f32(ulp(1), &[tiny], &[-tiny]).elements_wrong, 1);
        assert_eq!(compare_f32(ulp(0), &[0.0], &[-0.0]).elements_wrong, 0);
        let half = compare(ElementType::F16, &ulp(1), &[0x00, 0x3c], &[0x02, 0x3c]);
        assert_eq!(half.elements_wrong, 1);
    }

    #[test]
    fn integers_are_compared_exactly() {
        let bytes = |number: u64| number.to_le_bytes();
        let one_off = compare(ElementType::U64, &EXACT, &bytes(u64::MAX), &bytes(u64::MAX - 1));
        assert_eq!((one_off.elements_wrong, one_off.max_abs_error), (1, 1.0));
        let signed = compare(ElementType::I8, &EXACT, &[0xff], &[0x7f]);
        assert_eq!((signed.max_abs_error, signed.max_rel_error), (128.0, 128.0));
        let unsigned = compare(ElementType::U8, &EXACT, &[0xff], &[0x7f]);
        assert_eq!(unsigned.max_abs_error, 128.0);
        assert!(unsigned.max_rel_error < 1.0);
    }

    #[test]
    fn outputs_without_numbers_do_not_accept_everything() {
        let all = Tolerance { absolute: Some(f64::MAX), ..EXACT };
        let accepts = |values: &[f32]| {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            accepts_everything(ElementType::F32, &all, &bytes)
        };
        assert!(accepts(&[1.0, f32::INFINITY, f32::NAN]));
        for without_numbers in [&[][..], &[f32::NAN], &[f32::INFINITY, f32::NEG_INFINITY]] {
            assert!(!accepts(without_numbers), "{without_numbers:?}");
        }
    }

    #[test]
    fn invalid_limits_are_rejected() {
        let none = schema::Tolerance { exact: None, absolute: None, relative: None, ulp: None };
        let check = |tolerance: &schema::Tolerance, element| Tolerance::new(tolerance, element);
        assert!(check(&none, ElementType::F32).is_err());
        let exact = schema::Tolerance { exact: Some(true), ..none };
        assert_eq!(check(&exact, ElementType::F32), Ok(EXACT));
        for absolute in [f64::NAN, -1.0, f64::INFINITY] {
            let tolerance = schema::Tolerance {
                exact: None,
                absolute: Some(absolute),
                relative: None,
                ulp: None,
            };
            assert!(check(&tolerance, ElementType::F32).is_err(), "{absolute}");
        }
        let ulp = schema::Tolerance { exact: None, absolute: None, relative: None, ulp: Some(4) };
        assert!(check(&ulp, ElementType::F32).is_ok());
        assert!(check(&ulp, ElementType::I32).is_err());
    }
}
