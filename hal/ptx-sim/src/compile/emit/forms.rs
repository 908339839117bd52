//! The forms of operations that are compiled, and their IR. This is the only place that decides: all other forms
//! are executed by the interpreter, also in compiled code.
//!
//! A form is compiled only if LLVM defines the bits of its results. Modifiers that are not named here leave a
//! form to the interpreter.

use super::Emitter;
use super::value::{Value, vector};
use crate::address::Windows;
use flipwave_ptx::{Class, Form, ScalarType};

/// IR of an operation.
pub(super) struct Lowering {
    /// Bits of the sources. Predicates have 1.
    pub sources: Vec<u32>,
    /// Bits of the results.
    pub results: Vec<u32>,
    /// Emits the operation.
    pub build: Build,
}

type Build = Box<dyn Fn(&mut Emitter<'_>, &[Value]) -> Vec<Value>>;

/// Returns `true` if a form is compiled.
#[cfg(test)]
pub fn is_compiled(form: &Form, sources: usize, results: usize) -> bool {
    lowering(form, sources, results).is_some()
}

/// The IR of a form with a number of operands; `None` if it is not compiled.
pub(super) fn lowering(form: &Form, sources: usize, results: usize) -> Option<Lowering> {
    let is_type = |name: &&str| ScalarType::parse(name).is_some();
    let modifiers: Vec<&str> = form.modifiers().filter(|name| !is_type(name)).collect();
    let kind = form.result()?;
    if !form.types.iter().all(|kind| is_supported(*kind)) {
        return None;
    }
    let request = Request { form, modifiers: &modifiers, kind, sources, results };
    match form.class()? {
        Class::Arithmetic if kind.is_float() => request.float(),
        Class::Arithmetic => request.integer(),
        Class::Logic => request.logic(),
        Class::Move => request.moved(),
        Class::Compare => request.comparison(),
        Class::Convert => request.conversion(),
        _ => None,
    }
}

fn is_supported(kind: ScalarType) -> bool {
    use ScalarType::{B8, B16, B32, B64, F32, F64, Pred, S8, S16, S32, S64, U8, U16, U32, U64};
    matches!(
        kind,
        B8 | B16 | B32 | B64 | U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64 | F32 | F64 | Pred
    )
}

/// A form and its operands.
struct Request<'a> {
    form: &'a Form,
    /// Modifiers that are not types.
    modifiers: &'a [&'a str],
    kind: ScalarType,
    sources: usize,
    results: usize,
}

/// Modifiers of an operation that rounds to nearest even.
#[derive(Clone, Copy)]
struct Nearest {
    flushes: bool,
}

/// A lowering with sources of given sizes and one result.
fn simple(
    sources: &[u32],
    result: u32,
    build: impl Fn(&mut Emitter<'_>, &[Value]) -> Value + 'static,
) -> Option<Lowering> {
    let build: Build = Box::new(move |emitter, operands| vec![build(emitter, operands)]);
    Some(Lowering { sources: sources.to_vec(), results: vec![result], build })
}

impl Request<'_> {
    /// Types that are all the same.
    fn has_one_type(&self) -> bool {
        self.form.types.iter().all(|kind| *kind == self.kind)
    }

    fn integer(&self) -> Option<Lowering> {
        let (bits, is_signed) = (self.kind.bits(), self.kind.is_signed());
        if !self.has_one_type() || self.kind == ScalarType::Pred || bits < 16 {
            return None;
        }
        let two = [bits; 2];
        match (self.form.opcode(), self.modifiers) {
            ("add", []) => simple(&two, bits, |to, values| to.binary("add", values[0], values[1])),
            ("sub", []) => simple(&two, bits, |to, values| to.binary("sub", values[0], values[1])),
            ("mul", [half]) => {
                let (result, half) = product(half, bits)?;
                simple(&two, result, move |to, values| to.product(half, is_signed, values))
            }
            ("mad", [half]) => {
                let (result, half) = product(half, bits)?;
                simple(&[bits, bits, result], result, move |to, values| {
                    let product = to.product(half, is_signed, values);
                    to.binary("add", product, values[2])
                })
            }
            ("min" | "max", []) => {
                let sign = if is_signed { "s" } else { "u" };
                let name = format!("{sign}{}", self.form.opcode());
                simple(&two, bits, move |to, values| to.intrinsic(&name, bits, values, ""))
            }
            ("abs", []) if is_signed => simple(&[bits], bits, move |to, values| {
                to.intrinsic("abs", bits, values, ", i1 false")
            }),
            ("popc", []) if bits >= 32 => simple(&[bits], 32, move |to, values| {
                let count = to.intrinsic("ctpop", bits, values, "");
                to.resized(count, 32, false)
            }),
            ("clz", []) if bits >= 32 => simple(&[bits], 32, move |to, values| {
                let count = to.intrinsic("ctlz", bits, values, ", i1 false");
                to.resized(count, 32, false)
            }),
            ("neg", []) => simple(&[bits], bits, move |to, values| {
                to.binary("sub", Value::Constant { value: 0, bits }, values[0])
            }),
            _ => None,
        }
    }

    fn logic(&self) -> Option<Lowering> {
        let (bits, is_signed) = (self.kind.bits(), self.kind.is_signed());
        let bits = if self.kind == ScalarType::Pred { 1 } else { bits };
        if !self.has_one_type() || !matches!(bits, 1 | 16 | 32 | 64) {
            return None;
        }
        match (self.form.opcode(), self.modifiers) {
            (name @ ("and" | "or" | "xor"), []) => {
                let name = name.to_owned();
                simple(&[bits; 2], bits, move |to, values| to.binary(&name, values[0], values[1]))
            }
            ("not", []) => simple(&[bits], bits, move |to, values| {
                to.binary("xor", values[0], Value::Constant { value: u64::MAX, bits })
            }),
            ("shl", []) if bits > 1 => {
                simple(&[bits, 32], bits, |to, values| to.shifted("shl", values[0], values[1]))
            }
            ("shr", []) if bits > 1 && is_signed => simple(&[bits, 32], bits, move |to, values| {
                let most = Value::Constant { value: u64::from(bits) - 1, bits: 32 };
                let amount = to.intrinsic("umin", 32, &[values[1], most], "");
                let amount = to.resized(amount, bits, false);
                to.binary("ashr", values[0], amount)
            }),
            ("shr", []) if bits > 1 => {
                simple(&[bits, 32], bits, |to, values| to.shifted("lshr", values[0], values[1]))
            }
            ("brev", []) if bits >= 32 => simple(&[bits], bits, move |to, values| {
                to.intrinsic("bitreverse", bits, values, "")
            }),
            ("shf", [direction @ ("l" | "r"), "wrap"]) if bits == 32 => {
                let name = format!("fsh{direction}");
                simple(&[32; 3], 32, move |to, values| {
                    to.intrinsic(&name, 32, &[values[1], values[0], values[2]], "")
                })
            }
            _ => None,
        }
    }

    fn moved(&self) -> Option<Lowering> {
        let bits = if self.kind == ScalarType::Pred { 1 } else { self.kind.bits() };
        match (self.form.opcode(), self.modifiers) {
            // Vectors: two words and one value.
            ("mov", []) if bits == 64 && self.sources == 2 && self.results == 1 => {
                simple(&[32; 2], 64, |to, values| to.joined(values[0], values[1]))
            }
            ("mov", []) if bits == 64 && self.sources == 1 && self.results == 2 => {
                let build: Build = Box::new(|to, values| {
                    let (low, high) = to.split(values[0]);
                    vec![low, high]
                });
                Some(Lowering { sources: vec![64], results: vec![32; 2], build })
            }
            ("mov", [])
                if self.sources == 1 && self.results == 1 && matches!(bits, 1 | 16 | 32 | 64) =>
            {
                simple(&[bits], bits, |_, values| values[0])
            }
            ("selp", []) if matches!(bits, 16 | 32 | 64) && self.has_one_type() => {
                simple(&[bits, bits, 1], bits, |to, values| {
                    to.select(values[2], values[0], values[1])
                })
            }
            ("cvta", rest) if bits == 64 => {
                let space = self.form.space?;
                let is_to = match rest {
                    [name] if *name == space.name() => false,
                    ["to", name] if *name == space.name() => true,
                    _ => return None,
                };
                let base = Windows::base(space);
                let value = if is_to { base.wrapping_neg() } else { base };
                simple(&[64], 64, move |to, values| {
                    to.binary("add", values[0], Value::Constant { value, bits: 64 })
                })
            }
            _ => None,
        }
    }

    /// The modifiers of an operation that rounds to nearest even, among others.
    fn nearest<'m>(&'m self, others: &mut Vec<&'m str>) -> Option<Nearest> {
        let mut nearest = Nearest { flushes: false };
        for name in self.modifiers {
            match *name {
                "rn" => {}
                "ftz"
                    if self.form.source() == Some(ScalarType::F32)
                        || self.kind == ScalarType::F32 =>
                {
                    nearest.flushes = true;
                }
                name => others.push(name),
            }
        }
        Some(nearest)
    }

    fn float(&self) -> Option<Lowering> {
        let bits = self.kind.bits();
        if !self.has_one_type() {
            return None;
        }
        let mut others = Vec::new();
        let nearest = self.nearest(&mut others)?;
        let two = [bits; 2];
        // Quotients and roots of numbers in single precision that are computed in double precision and
        // rounded again are rounded correctly, because double precision has more than twice the bits.
        let is_single = bits == 32;
        match (self.form.opcode(), &others[..]) {
            (name @ ("add" | "sub" | "mul"), []) => {
                let name = format!("f{name}");
                simple(&two, bits, move |to, values| {
                    to.rounded(nearest, values, |to, values| {
                        to.float_binary(&name, values[0], values[1])
                    })
                })
            }
            ("div", ["approx" | "full"]) if is_single => self.division(nearest),
            ("div", []) => self.division(nearest),
            ("rcp", ["approx"]) if is_single => self.reciprocal(nearest),
            ("rcp", []) => self.reciprocal(nearest),
            ("sqrt", ["approx"]) if is_single => self.root(nearest),
            ("sqrt", []) => self.root(nearest),
            ("fma" | "mad", []) => simple(&[bits; 3], bits, move |to, values| {
                to.rounded(nearest, values, |to, values| to.float_intrinsic("fma", bits, values))
            }),
            ("abs", []) => simple(&[bits], bits, move |to, values| {
                let value = to.flushed(nearest, values[0]);
                to.binary("and", value, Value::Constant { value: !sign(bits), bits })
            }),
            ("neg", []) => simple(&[bits], bits, move |to, values| {
                let value = to.flushed(nearest, values[0]);
                to.binary("xor", value, Value::Constant { value: sign(bits), bits })
            }),
            ("copysign", []) => simple(&two, bits, move |to, values| {
                let sign_of =
                    to.binary("and", values[0], Value::Constant { value: sign(bits), bits });
                let rest =
                    to.binary("and", values[1], Value::Constant { value: !sign(bits), bits });
                to.binary("or", sign_of, rest)
            }),
            (name @ ("min" | "max"), []) if !self.modifiers.contains(&"rn") => {
                let is_max = name == "max";
                simple(&two, bits, move |to, values| to.extremum(nearest, is_max, values))
            }
            _ => None,
        }
    }

    fn division(&self, nearest: Nearest) -> Option<Lowering> {
        let bits = self.kind.bits();
        simple(&[bits; 2], bits, move |to, values| {
            to.rounded(nearest, values, |to, values| to.float_binary("fdiv", values[0], values[1]))
        })
    }

    fn reciprocal(&self, nearest: Nearest) -> Option<Lowering> {
        let bits = self.kind.bits();
        let value = if bits == 32 { 0x3f80_0000 } else { 0x3ff0_0000_0000_0000 };
        simple(&[bits], bits, move |to, values| {
            to.rounded(nearest, values, |to, values| {
                to.float_binary("fdiv", Value::Constant { value, bits }, values[0])
            })
        })
    }

    fn root(&self, nearest: Nearest) -> Option<Lowering> {
        let bits = self.kind.bits();
        simple(&[bits], bits, move |to, values| {
            to.rounded(nearest, values, |to, values| to.float_intrinsic("sqrt", bits, values))
        })
    }

    fn comparison(&self) -> Option<Lowering> {
        if self.form.opcode() != "setp" {
            return None;
        }
        let kind = self.form.source()?;
        let (bits, is_float) = (kind.bits(), kind.is_float());
        let [name, rest @ ..] = self.modifiers else { return None };
        let (mut combined, mut nearest) = (None, Nearest { flushes: false });
        for modifier in rest {
            match *modifier {
                "and" | "or" | "xor" if combined.is_none() => {
                    combined = Some((*modifier).to_owned())
                }
                "ftz" if kind == ScalarType::F32 => nearest.flushes = true,
                _ => return None,
            }
        }
        if bits < 16 || kind == ScalarType::Pred {
            return None;
        }
        let code = if is_float { float_order(name)? } else { integer_order(name, kind)? };
        let mut sources = vec![bits; 2];
        sources.extend(combined.is_some().then_some(1));
        let code = code.to_owned();
        let build: Build = Box::new(move |to, values| {
            let value = if is_float {
                let [a, b] = [values[0], values[1]].map(|value| to.flushed(nearest, value));
                to.float_compare(&code, a, b)
            } else {
                to.compare(&code, values[0], values[1])
            };
            let inverse = to.binary("xor", value, Value::Constant { value: 1, bits: 1 });
            match &combined {
                Some(name) => {
                    [value, inverse].map(|value| to.binary(name, value, values[2])).to_vec()
                }
                None => vec![value, inverse],
            }
        });
        Some(Lowering { sources, results: vec![1; 2], build })
    }

    fn conversion(&self) -> Option<Lowering> {
        let [to_kind, from_kind] = self.form.types[..] else { return None };
        if self.form.opcode() != "cvt" || [to_kind, from_kind].contains(&ScalarType::Pred) {
            return None;
        }
        let (to_bits, from_bits) = (to_kind.bits(), from_kind.bits());
        let is_signed = from_kind.is_signed();
        let mut others = Vec::new();
        let nearest = self.nearest(&mut others)?;
        let has_rounding = self.modifiers.contains(&"rn");
        match (to_kind.is_float(), from_kind.is_float(), &others[..]) {
            (false, false, []) if !has_rounding => {
                // The register may be wider than the type: the sign of the result is extended.
                let to_signed = to_kind.is_signed();
                simple(&[from_bits], 64, move |to, values| {
                    let value = to.resized(values[0], to_bits, is_signed);
                    to.resized(value, 64, to_signed)
                })
            }
            (true, false, []) if has_rounding && from_bits >= 32 => {
                let cast = if is_signed { "sitofp" } else { "uitofp" };
                simple(&[from_bits], to_bits, move |to, values| {
                    let value = to.cast(cast, values[0], float(to_bits));
                    to.bits_of(value, to_bits)
                })
            }
            (false, true, [rounding]) if to_bits >= 32 && !has_rounding => {
                let round = integral(rounding)?;
                let cast = if to_kind.is_signed() { "fptosi" } else { "fptoui" };
                // A NaN is zero for LLVM.
                let is_wide = to_bits == 64 || from_bits == 64;
                let nan = Value::Constant { value: 1 << (to_bits - 1), bits: to_bits };
                simple(&[from_bits], to_bits, move |to, values| {
                    let value = to.flushed(nearest, values[0]);
                    let value = to.float_intrinsic(round, from_bits, &[value]);
                    let number = to.saturated(cast, value, from_bits, to_bits);
                    if !is_wide {
                        return number;
                    }
                    let is_nan = to.float_compare("uno", value, value);
                    to.select(is_nan, nan, number)
                })
            }
            (true, true, [rounding]) if to_bits == from_bits && !has_rounding => {
                let round = integral(rounding)?;
                simple(&[from_bits], to_bits, move |to, values| {
                    to.rounded(nearest, values, |to, values| {
                        to.float_intrinsic(round, from_bits, values)
                    })
                })
            }
            (true, true, []) if !has_rounding && (from_bits, to_bits) == (32, 64) => {
                simple(&[32], 64, move |to, values| {
                    let value = to.flushed(nearest, values[0]);
                    let value = to.as_float(value);
                    let value = to.cast_float("fpext", &value, 32, 64);
                    to.bits_of(value, 64)
                })
            }
            (true, true, []) if has_rounding && (from_bits, to_bits) == (64, 32) => {
                simple(&[64], 32, move |to, values| {
                    let value = to.as_float(values[0]);
                    let value = to.cast_float("fptrunc", &value, 64, 32);
                    let value = to.bits_of(value, 32);
                    let value = to.flushed(nearest, value);
                    let is_nan = to.float_compare("uno", value, value);
                    to.select(is_nan, Value::Constant { value: nan(32), bits: 32 }, value)
                })
            }
            _ => None,
        }
    }
}

/// Half of a product.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Low,
    High,
    Wide,
}

/// The size of the result of a product, and its half.
fn product(half: &str, bits: u32) -> Option<(u32, Half)> {
    match half {
        "lo" => Some((bits, Half::Low)),
        "hi" if bits <= 32 => Some((bits, Half::High)),
        "wide" if bits <= 32 => Some((2 * bits, Half::Wide)),
        _ => None,
    }
}

fn sign(bits: u32) -> u64 {
    1 << (bits - 1)
}

/// The NaN that operations return.
fn nan(bits: u32) -> u64 {
    if bits == 32 { 0x7fff_ffff } else { 0xfff8_0000_0000_0000 }
}

fn float(bits: u32) -> &'static str {
    if bits == 32 { "<32 x float>" } else { "<32 x double>" }
}

/// Rounding to an integral number.
fn integral(name: &str) -> Option<&'static str> {
    match name {
        "rni" => Some("roundeven"),
        "rzi" => Some("trunc"),
        "rmi" => Some("floor"),
        "rpi" => Some("ceil"),
        _ => None,
    }
}

fn float_order(name: &str) -> Option<&'static str> {
    Some(match name {
        "eq" => "oeq",
        "ne" => "one",
        "lt" | "lo" => "olt",
        "le" | "ls" => "ole",
        "gt" | "hi" => "ogt",
        "ge" | "hs" => "oge",
        "equ" => "ueq",
        "neu" => "une",
        "ltu" => "ult",
        "leu" => "ule",
        "gtu" => "ugt",
        "geu" => "uge",
        "num" => "ord",
        "nan" => "uno",
        _ => return None,
    })
}

/// An order of integers; `lo`, `ls`, `hi` and `hs` are those of the type, too.
fn integer_order(name: &str, kind: ScalarType) -> Option<&'static str> {
    let is_signed = kind.is_signed();
    Some(match name {
        "eq" => "eq",
        "ne" => "ne",
        "lt" | "lo" => {
            if is_signed {
                "slt"
            } else {
                "ult"
            }
        }
        "le" | "ls" => {
            if is_signed {
                "sle"
            } else {
                "ule"
            }
        }
        "gt" | "hi" => {
            if is_signed {
                "sgt"
            } else {
                "ugt"
            }
        }
        "ge" | "hs" => {
            if is_signed {
                "sge"
            } else {
                "uge"
            }
        }
        _ => return None,
    })
}

/// Operations that forms are made of.
impl Emitter<'_> {
    fn binary(&mut self, name: &str, a: Value, b: Value) -> Value {
        let kind = vector(a.bits());
        self.value(a.bits(), format_args!("{name} {kind} {a}, {b}"))
    }

    fn compare(&mut self, code: &str, a: Value, b: Value) -> Value {
        let kind = vector(a.bits());
        self.value(1, format_args!("icmp {code} {kind} {a}, {b}"))
    }

    fn select(&mut self, condition: Value, a: Value, b: Value) -> Value {
        let kind = vector(a.bits());
        self.value(a.bits(), format_args!("select <32 x i1> {condition}, {kind} {a}, {kind} {b}"))
    }

    /// Calls an intrinsic function of integers with operands of one type.
    fn intrinsic(&mut self, name: &str, bits: u32, operands: &[Value], rest: &str) -> Value {
        let kind = vector(bits);
        let operands: Vec<String> =
            operands.iter().map(|operand| format!("{kind} {operand}")).collect();
        let operands = operands.join(", ");
        self.value(bits, format_args!("call {kind} @llvm.{name}.v32i{bits}({operands}{rest})"))
    }

    fn product(&mut self, half: Half, is_signed: bool, values: &[Value]) -> Value {
        let bits = values[0].bits();
        if half == Half::Low {
            return self.binary("mul", values[0], values[1]);
        }
        let wide = [values[0], values[1]].map(|value| self.resized(value, 2 * bits, is_signed));
        let product = self.binary("mul", wide[0], wide[1]);
        if half == Half::Wide {
            return product;
        }
        let amount = Value::Constant { value: bits.into(), bits: 2 * bits };
        let high = self.binary("lshr", product, amount);
        self.resized(high, bits, false)
    }

    /// Shifts; the result is zero for amounts beyond the number of bits.
    fn shifted(&mut self, name: &str, value: Value, amount: Value) -> Value {
        let bits = value.bits();
        let limit = Value::Constant { value: bits.into(), bits: 32 };
        let is_inside = self.compare("ult", amount, limit);
        let amount = self.resized(amount, bits, false);
        let shifted = self.binary(name, value, amount);
        self.select(is_inside, shifted, Value::Constant { value: 0, bits })
    }

    /// The bits of an integer vector as numbers.
    fn as_float(&mut self, value: Value) -> String {
        let (kind, float) = (vector(value.bits()), float(value.bits()));
        self.scalar(format_args!("bitcast {kind} {value} to {float}"))
    }

    fn bits_of(&mut self, float_value: String, bits: u32) -> Value {
        let (kind, float) = (vector(bits), float(bits));
        self.value(bits, format_args!("bitcast {float} {float_value} to {kind}"))
    }

    fn cast(&mut self, name: &str, value: Value, to: &str) -> String {
        let kind = vector(value.bits());
        self.scalar(format_args!("{name} {kind} {value} to {to}"))
    }

    fn cast_float(&mut self, name: &str, value: &str, from: u32, to: u32) -> String {
        self.scalar(format_args!("{name} {} {value} to {}", float(from), float(to)))
    }

    fn float_binary(&mut self, name: &str, a: Value, b: Value) -> Value {
        let bits = a.bits();
        let [a, b] = [a, b].map(|value| self.as_float(value));
        let result = self.scalar(format_args!("{name} {} {a}, {b}", float(bits)));
        self.bits_of(result, bits)
    }

    fn float_compare(&mut self, code: &str, a: Value, b: Value) -> Value {
        let kind = float(a.bits());
        let [a, b] = [a, b].map(|value| self.as_float(value));
        self.value(1, format_args!("fcmp {code} {kind} {a}, {b}"))
    }

    /// Calls an intrinsic function of numbers.
    fn float_intrinsic(&mut self, name: &str, bits: u32, operands: &[Value]) -> Value {
        let kind = float(bits);
        let operands: Vec<String> = operands
            .iter()
            .map(|operand| {
                let operand = self.as_float(*operand);
                format!("{kind} {operand}")
            })
            .collect();
        let operands = operands.join(", ");
        let result = self.scalar(format_args!("call {kind} @llvm.{name}.v32f{bits}({operands})"));
        self.bits_of(result, bits)
    }

    /// Converts a number to the nearest integer of a type.
    fn saturated(&mut self, cast: &str, value: Value, from: u32, to: u32) -> Value {
        let (kind, operand) = (vector(to), self.as_float(value));
        self.value(
            to,
            format_args!(
                "call {kind} @llvm.{cast}.sat.v32i{to}.v32f{from}({} {operand})",
                float(from)
            ),
        )
    }

    /// Replaces subnormal numbers by zeroes, if the form flushes them.
    fn flushed(&mut self, nearest: Nearest, value: Value) -> Value {
        if !nearest.flushes || value.bits() != 32 {
            return value;
        }
        let constant = |value| Value::Constant { value, bits: 32 };
        let exponent = self.binary("and", value, constant(0x7f80_0000));
        let is_small = self.compare("eq", exponent, constant(0));
        let zero = self.binary("and", value, constant(sign(32)));
        self.select(is_small, zero, value)
    }

    /// An operation that rounds to nearest even, with the NaNs of PTX: in single precision always the same one,
    /// in double precision that of the first operand that is one.
    fn rounded(
        &mut self,
        nearest: Nearest,
        operands: &[Value],
        operation: impl Fn(&mut Self, &[Value]) -> Value,
    ) -> Value {
        let bits = operands[0].bits();
        let operands: Vec<Value> =
            operands.iter().map(|value| self.flushed(nearest, *value)).collect();
        let result = operation(self, &operands);
        let is_nan = self.float_compare("uno", result, result);
        let canonical = Value::Constant { value: nan(bits), bits };
        let number = self.flushed(nearest, result);
        if bits == 32 {
            return self.select(is_nan, canonical, number);
        }
        self.with_nans(&operands, number, is_nan, canonical)
    }

    /// A result in double precision with the NaNs of its operands, which few results are.
    fn with_nans(
        &mut self,
        operands: &[Value],
        number: Value,
        is_nan: Value,
        mut canonical: Value,
    ) -> Value {
        let bits = number.bits();
        let active = self.value(1, format_args!("and <32 x i1> {is_nan}, %active"));
        let active = self.scalar(format_args!("bitcast <32 x i1> {active} to i32"));
        let has_nans = self.scalar(format_args!("icmp ne i32 {active}, 0"));
        let (name, before) = (self.name(), self.label.clone());
        self.line(format_args!(
            "br i1 {has_nans}, label %nans{name}, label %numbers{name}, !prof !0"
        ));
        self.begin(format!("nans{name}"));
        for operand in operands.iter().rev() {
            let is_nan = self.float_compare("uno", *operand, *operand);
            let quiet = self.binary("or", *operand, Value::Constant { value: 1 << 51, bits });
            canonical = self.select(is_nan, quiet, canonical);
        }
        let with_nans = self.select(is_nan, canonical, number);
        self.line(format_args!("br label %numbers{name}"));
        self.begin(format!("numbers{name}"));
        let kind = vector(bits);
        self.value(
            bits,
            format_args!("phi {kind} [ {number}, %{before} ], [ {with_nans}, %nans{name} ]"),
        )
    }

    /// The least or greatest number; -0 is less than 0, and numbers win over NaNs.
    fn extremum(&mut self, nearest: Nearest, is_max: bool, values: &[Value]) -> Value {
        let bits = values[0].bits();
        let [a, b] = [values[0], values[1]].map(|value| self.flushed(nearest, value));
        let key = |to: &mut Self, value: Value| {
            let last = Value::Constant { value: u64::from(bits) - 1, bits };
            let fill = to.binary("ashr", value, last);
            let rest = to.binary("and", fill, Value::Constant { value: !sign(bits), bits });
            to.binary("xor", value, rest)
        };
        let keys = [key(self, a), key(self, b)];
        let a_wins = self.compare(if is_max { "sgt" } else { "slt" }, keys[0], keys[1]);
        let best = self.select(a_wins, a, b);
        let [a_nan, b_nan] = [a, b].map(|value| self.float_compare("uno", value, value));
        let canonical = Value::Constant { value: nan(bits), bits };
        let without_a = self.select(b_nan, canonical, b);
        let without_b = self.select(b_nan, a, best);
        self.select(a_nan, without_a, without_b)
    }
}
