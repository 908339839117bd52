//! Validation of kernel arguments: scalars, arrays, structs and pointers.

use crate::file::check_launches::{KernelsBuilder, check_local_memory, reject_keys};
use crate::file::context::Context;
use crate::file::element::{ElementName, ElementType};
use crate::file::kernels::{Argument, Pointer};
use crate::file::location::{Field, FieldError, reject};
use crate::file::number::Number;
use crate::file::schema;
use crate::program::image::{Image, StructLayout};

/// A pointer to a buffer that is resolved when all buffers are known.
pub(super) struct PendingPointer {
    /// Name of the buffer.
    buffer: String,
    /// Distance from the start of the buffer, in bytes.
    offset: u64,
    /// Place of the pointer in the file.
    field: Field,
}

impl KernelsBuilder {
    /// Validates an argument of a launch.
    pub(super) fn check_argument(
        &mut self,
        argument: schema::Argument,
        context: Context<'_>,
        field: &Field,
    ) -> Result<Argument, FieldError> {
        if argument.offset.is_some() {
            let message = "requires a member of a struct; a pointer into a buffer is written \
                           `{pointer: NAME + BYTES}`";
            return reject(&field.key("offset"), message);
        }
        let kinds = kinds(&argument);
        match kinds[..] {
            ["buffer"] => self.check_buffer(argument, context, field).map(Argument::Buffer),
            ["pointer"] => {
                reject_keys(&argument, &[], "a pointer", field)?;
                let text = argument.pointer.unwrap_or_default();
                Ok(Argument::Pointer(self.add_pointer(&text, &field.key("pointer"))?))
            }
            ["local_memory"] => {
                reject_keys(&argument, &[], "local memory", field)?;
                let bytes = argument.local_memory.unwrap_or_default();
                Ok(Argument::LocalMemory(check_local_memory(bytes, field)?))
            }
            ["scalar" | "values" | "bytes" | "struct"] => {
                Ok(Argument::Value(self.check_value(argument, context, field)?))
            }
            _ => reject_kinds(&kinds, field),
        }
    }

    /// Validates a value: the content of an argument or of a member of a struct.
    fn check_value(
        &mut self,
        argument: schema::Argument,
        context: Context<'_>,
        field: &Field,
    ) -> Result<Image, FieldError> {
        let schema::Argument { element, size, .. } = argument;
        if let Some(value) = argument.scalar {
            reject_keys(&argument, &["type"], "a scalar", field)?;
            let example = "the scalar's `type`, for example `type: i32`";
            let element = element_of_value(element, example, context, field)?;
            return image(element, &[value]).or_else(|error| reject(&field.key("scalar"), error));
        }
        if let Some(values) = &argument.values {
            reject_keys(&argument, &["type"], "an array", field)?;
            let example = "the `type` of the array's elements, for example `type: f32`";
            let element = element_of_value(element, example, context, field)?;
            let field = field.key("values");
            if values.is_empty() {
                return reject(&field, "is empty; list at least one value");
            }
            return image(element, values).or_else(|error| reject(&field, error));
        }
        if let Some(digits) = &argument.bytes {
            reject_keys(&argument, &[], "an argument of bytes", field)?;
            let bytes = hexadecimal_bytes(digits);
            return bytes
                .map(Image::of_bytes)
                .or_else(|message| reject(&field.key("bytes"), message));
        }
        reject_keys(&argument, &["size"], "a struct", field)?;
        let members = argument.members.unwrap_or_default();
        self.check_struct(members, size, context, field, "struct")
    }

    /// Validates the `members` of a struct of `size` bytes, which are the value of `key` in `field`.
    pub(super) fn check_struct(
        &mut self,
        members: Vec<Option<schema::Argument>>,
        size: Option<u32>,
        context: Context<'_>,
        field: &Field,
        key: &str,
    ) -> Result<Image, FieldError> {
        let list = field.key(key);
        if members.is_empty() {
            return reject(&list, "is empty; list at least one member");
        }
        let mut layout = StructLayout::new();
        for (index, member) in members.into_iter().enumerate() {
            let field = list.index(index);
            let (offset, member) = match member {
                None => (None, Image::null()),
                Some(mut member) => {
                    let offset = member.offset.take();
                    (offset, self.check_member(member, context, &field)?)
                }
            };
            layout.add(&member, offset).or_else(|message| reject(&field, message))?;
        }
        layout.finish(size).or_else(|message| reject(&field.key("size"), message))
    }

    /// Validates a member of a struct.
    fn check_member(
        &mut self,
        member: schema::Argument,
        context: Context<'_>,
        field: &Field,
    ) -> Result<Image, FieldError> {
        let kinds = kinds(&member);
        match kinds[..] {
            ["buffer"] => {
                let index = self.check_buffer(member, context, field)?;
                let buffer = self.buffers[index].name.clone();
                self.pointers.push(PendingPointer { buffer, offset: 0, field: field.clone() });
                Ok(Image::of_pointer(self.pointers.len() - 1))
            }
            ["pointer"] => {
                reject_keys(&member, &[], "a pointer", field)?;
                let text = member.pointer.unwrap_or_default();
                self.add_pointer(&text, &field.key("pointer")).map(Image::of_pointer)
            }
            ["local_memory"] => {
                let message = "local memory is passed as an argument, not in a struct";
                reject(&field.key("local_memory"), message)
            }
            ["scalar" | "values" | "bytes" | "struct"] => self.check_value(member, context, field),
            _ => reject_kinds(&kinds, field),
        }
    }

    /// Validates the addresses in a buffer, which are the value of `pointers` in `field`.
    pub(super) fn check_pointers(
        &mut self,
        pointers: &[Option<String>],
        field: &Field,
    ) -> Result<Image, FieldError> {
        let list = field.key("pointers");
        if pointers.is_empty() {
            return reject(&list, "is empty; list at least one pointer");
        }
        let mut layout = StructLayout::new();
        for (index, pointer) in pointers.iter().enumerate() {
            let field = list.index(index);
            let pointer = match pointer {
                None => Image::null(),
                Some(text) => Image::of_pointer(self.add_pointer(text, &field)?),
            };
            layout.add(&pointer, None).or_else(|message| reject(&list, message))?;
        }
        layout.finish(None).or_else(|message| reject(&list, message))
    }

    /// Adds the pointer `NAME` or `NAME + BYTES`, and returns its index.
    fn add_pointer(&mut self, text: &str, field: &Field) -> Result<usize, FieldError> {
        let offset = text.rsplit_once('+').and_then(|(name, offset)| {
            let offset = offset.trim();
            let number = match offset.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => offset.parse(),
            };
            Some((name.trim(), number.ok()?))
        });
        let (buffer, offset) = offset.unwrap_or((text.trim(), 0));
        if buffer.is_empty() {
            let message = format!("invalid pointer `{text}`; expected NAME or NAME + BYTES");
            return reject(field, message);
        }
        let (buffer, field) = (buffer.to_owned(), field.clone());
        self.pointers.push(PendingPointer { buffer, offset, field });
        Ok(self.pointers.len() - 1)
    }

    /// Returns the pointers of all arguments and buffers, by index, once all buffers are known.
    pub(super) fn resolve_pointers(&mut self) -> Result<Vec<Pointer>, FieldError> {
        let mut resolved = Vec::new();
        for PendingPointer { buffer: name, offset, field } in std::mem::take(&mut self.pointers) {
            let Some(index) = self.buffers.iter().position(|buffer| buffer.name == name) else {
                let names: Vec<&str> =
                    self.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
                let message = format!(
                    "no buffer `{name}`; the buffers are: {}. Define it as an argument, or in `buffers` \
                     of the workload",
                    names.join(", ")
                );
                return reject(&field, message);
            };
            let buffer = &self.buffers[index];
            let bytes = buffer.element.bytes_of(buffer.count as u64).unwrap_or_default();
            if offset > bytes {
                let message =
                    format!("{offset} bytes is outside buffer `{name}`, which has {bytes} bytes");
                return reject(&field, message);
            }
            resolved.push(Pointer { buffer: index, offset });
        }
        Ok(resolved)
    }
}

/// Returns the present keys that state the kind of an argument.
fn kinds(argument: &schema::Argument) -> Vec<&'static str> {
    let all = [
        ("buffer", argument.buffer.is_some()),
        ("scalar", argument.scalar.is_some()),
        ("local_memory", argument.local_memory.is_some()),
        ("pointer", argument.pointer.is_some()),
        ("struct", argument.members.is_some()),
        ("values", argument.values.is_some()),
        ("bytes", argument.bytes.is_some()),
    ];
    all.into_iter().filter(|(_, is_present)| *is_present).map(|(key, _)| key).collect()
}

/// Rejects an argument that does not have exactly one kind.
fn reject_kinds<T>(kinds: &[&str], field: &Field) -> Result<T, FieldError> {
    let found = match kinds {
        [] => String::new(),
        kinds => format!(", found {}", kinds.join(" and ")),
    };
    let message = format!(
        "expected exactly one of `buffer` (a name), `scalar` (a value), `values` (an array), `struct` (its \
         members), `bytes` (hexadecimal digits), `pointer` (a name) and `local_memory` (bytes){found}; or \
         `null` in place of the mapping, for a null pointer"
    );
    reject(field, message)
}

/// Returns the type of a value passed to a kernel.
fn element_of_value(
    name: Option<ElementName>,
    example: &str,
    context: Context<'_>,
    field: &Field,
) -> Result<ElementType, FieldError> {
    let Some(name) = name else {
        return reject(field, format!("missing: {example}"));
    };
    let element = name.on(context.target);
    if element.elements_of_unit() > 1 {
        let message = format!("{element} is smaller than a byte; expected a type of whole bytes");
        return reject(&field.key("type"), message);
    }
    Ok(element)
}

/// Returns the image of consecutive numbers of a type.
///
/// # Errors
/// Returns the reason why the type cannot represent a number.
fn image(element: ElementType, numbers: &[Number]) -> Result<Image, String> {
    let bits: Result<Vec<u64>, String> =
        numbers.iter().map(|number| element.encode(*number)).collect();
    Ok(Image::aligned(element.pack(bits?), element.unit()))
}

/// Returns the bytes of a text with two hexadecimal digits per byte. Spaces and line breaks are ignored.
///
/// # Errors
/// Returns the reason why the text is invalid.
fn hexadecimal_bytes(text: &str) -> Result<Vec<u8>, String> {
    let mut digits = Vec::new();
    for character in text.chars().filter(|character| !character.is_whitespace()) {
        let Some(digit) = character.to_digit(16) else {
            return Err(format!(
                "`{character}` is not a hexadecimal digit; expected two digits per byte, for example \
                 `0a 00 ff`"
            ));
        };
        digits.push(digit as u8);
    }
    if digits.is_empty() || digits.len() % 2 == 1 {
        let count = digits.len();
        return Err(format!("{count} hexadecimal digits; expected two per byte"));
    }
    Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::campaign::Campaign;
    use crate::file::kernels::{BufferRole, Kernels};
    use crate::file::location::FileError;
    use crate::program::buffers::Init;
    use flipwave_device::Address;
    use std::path::Path;

    /// A campaign without faults, whose kernel has these arguments.
    fn text(arguments: &str) -> String {
        format!(
            "name: a\nworkload:\n  buffers:\n    - {{buffer: a, type: f32, count: 16}}\n  kernel: \
             {{source: a.cl, name: a, grid: 64, workgroup: 64, args: [\n    {arguments}\n  ]}}\n"
        )
    }

    fn parse(arguments: &str) -> Result<Campaign, FileError> {
        Campaign::parse(&text(arguments), Path::new("a.yaml"))
    }

    fn kernels(arguments: &str) -> Kernels {
        let campaign = parse(arguments).unwrap_or_else(|error| panic!("{arguments}: {error}"));
        campaign.kernels().expect("kernels").clone()
    }

    /// The bytes of the first argument. Buffer `i` is at the address 0x1000 * (i + 1).
    fn bytes(arguments: &str) -> Vec<u8> {
        let kernels = kernels(arguments);
        match &kernels.launches[0].arguments[0] {
            Argument::Value(image) => image.with_addresses(&addresses(&kernels)),
            other => panic!("{other:?} is not a value"),
        }
    }

    fn addresses(kernels: &Kernels) -> Vec<Address> {
        let address =
            |pointer: &Pointer| Address(0x1000 * (pointer.buffer as u64 + 1) + pointer.offset);
        kernels.pointers.iter().map(address).collect()
    }

    #[track_caller]
    fn refused(arguments: &str, at: &str, words: &[&str]) {
        let error = parse(arguments).expect_err(arguments).to_string();
        let all = text(arguments);
        let found = all
            .lines()
            .enumerate()
            .find_map(|(line, text)| Some(format!("a.yaml:{}:{}: ", line + 1, text.find(at)? + 1)));
        assert!(error.starts_with(&found.expect(at)), "{error}");
        for word in words {
            assert!(error.contains(word), "`{word}` is not in: {error}");
        }
    }

    #[test]
    fn values_are_little_endian_and_laid_out_as_in_c() {
        let members = "{scalar: 1, type: u8}, {scalar: 0x1234, type: u32}, {bytes: 'a b c d'}, \
                       {values: [1, 2], type: i16}, null, {struct: [{scalar: 7, type: u8}]}";
        let expected = [1, 0, 0, 0, 0x34, 0x12, 0, 0, 0xab, 0xcd, 1, 0, 2, 0];
        let mut expected = expected.to_vec();
        expected.extend([0; 10]);
        expected.extend([7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(&format!("{{struct: [{members}]}}")), expected);
        assert_eq!(bytes("{values: [1.0, -2], type: f32}"), [0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]);
        assert_eq!(bytes("{bytes: 00ff10}"), [0, 255, 16]);
        let placed = "{struct: [{scalar: 1, type: u8, offset: 3}, {scalar: 2, type: u8}], size: 6}";
        assert_eq!(bytes(placed), [0, 0, 0, 1, 2, 0]);
    }

    #[test]
    fn pointers_refer_to_buffers_defined_anywhere() {
        let members = "{pointer: a + 0x10}, {pointer: later}, {buffer: inner, type: u8, count: 1}";
        let found =
            bytes(&format!("{{struct: [{members}]}}, {{buffer: later, type: u8, count: 4}}"));
        let words: Vec<u64> = found
            .chunks_exact(8)
            .map(|raw| u64::from_le_bytes(raw.try_into().expect("8 bytes")))
            .collect();
        // The struct defines `inner`, and the next argument defines `later`.
        assert_eq!(words, [0x1010, 0x3000, 0x2000]);
        let kernels = kernels("{pointer: a + 64}, {pointer: a}");
        let arguments = &kernels.launches[0].arguments;
        assert_eq!(arguments[..], [Argument::Pointer(0), Argument::Pointer(1)]);
        let pointers = [64, 0].map(|offset| Pointer { buffer: 0, offset });
        assert_eq!(kernels.pointers, pointers);
    }

    #[test]
    fn buffers_hold_pointers_and_structs() {
        let kernels = kernels(
            "{buffer: table, init: {pointers: [a, null, table + 8]}},
             {buffer: structs, init: {struct: [{struct: [{pointer: a}, {scalar: 3, type: u8}]}, \
             {struct: [null, {scalar: 4, type: u8}]}]}}",
        );
        let content = |index: usize| {
            let buffer = &kernels.buffers[index];
            let mut content = buffer.contents(0).expect("a content");
            let Init::Image(image) = &buffer.init else { panic!("no image") };
            image.write_addresses(&addresses(&kernels), &mut content);
            content
        };
        let table: Vec<u8> = [0x1000u64, 0, 0x2008].map(u64::to_le_bytes).concat();
        assert_eq!(content(1), table);
        assert_eq!((kernels.buffers[1].element, kernels.buffers[1].count), (ElementType::U64, 3));
        let structs: Vec<u8> = [0x1000u64, 3, 0, 4].map(u64::to_le_bytes).concat();
        assert_eq!(content(2), structs);
        assert_eq!((kernels.buffers[2].element, kernels.buffers[2].count), (ElementType::U8, 32));
        assert!(kernels.buffers.iter().all(|buffer| buffer.role == BufferRole::Data));
    }

    #[test]
    fn invalid_values_are_rejected_with_their_position() {
        for (arguments, at, words) in [
            ("{values: [], type: f32}", "[]", &["args[0].values", "at least one"][..]),
            ("{values: [1, 300], type: u8}", "[1, 300]", &["300 does not fit"]),
            ("{values: [1]}", "{values", &["missing", "type: f32"]),
            ("{values: [1], type: u4}", "u4", &["whole bytes"]),
            ("{bytes: 0g}", "0g", &["`g` is not a hexadecimal digit"]),
            ("{bytes: abc}", "abc", &["3 hexadecimal digits"]),
            ("{bytes: ''}", "''", &["0 hexadecimal digits"]),
            ("{struct: []}", "[]", &["args[0].struct", "at least one member"]),
            ("{struct: [{}]}", "{}", &["args[0].struct[0]", "exactly one"]),
            ("{scalar: 1, bytes: '00'}", "{scalar", &["found scalar and bytes"]),
            ("{struct: [{local_memory: 4}]}", "4}", &["not in a struct"]),
            ("{struct: [null], type: u8}", "u8", &["does not support `type`"]),
            ("{struct: [null], size: 7}", "7}", &["size", "expected 8"]),
            ("{scalar: 1, type: u8, offset: 4}", "4}", &["requires a member of a struct"]),
            (
                "{struct: [null, {scalar: 1, type: u8, offset: 7}]}",
                "{scalar",
                &["struct[1]", "overlap"],
            ),
            ("{pointer: b}", "b}", &["no buffer `b`", "are: a", "`buffers`"]),
            ("{pointer: a + 65}", "a + 65", &["65 bytes is outside buffer `a`", "64 bytes"]),
            ("{pointer: ' + 8'}", "' + 8'", &["NAME + BYTES"]),
            ("{buffer: t, init: {pointers: []}}", "[]", &["init.pointers", "at least one"]),
            ("{buffer: t, init: {pointers: [a, b]}}", "b]", &["init.pointers[1]", "no buffer"]),
            (
                "{buffer: t, type: u64, count: 2, init: {pointers: [a]}}",
                "{pointers",
                &["8 bytes", "2 elements of type u64"],
            ),
            ("{buffer: t, size: 4, type: u8, count: 1}", "4, type", &["`count`"]),
            (
                "{buffer: t, init: {struct: [{buffer: t, type: u8, count: 1}]}}",
                "t, init",
                &["defined in itself"],
            ),
        ] {
            refused(arguments, at, words);
        }
    }

    #[test]
    fn faults_require_an_output() {
        let without = text("{pointer: a}");
        assert!(Campaign::parse(&without, Path::new("a.yaml")).is_ok());
        let faults = format!("{without}faults: {{model: flip_one_bit, count: 1}}\n");
        let error = Campaign::parse(&faults, Path::new("a.yaml")).expect_err("no output");
        assert!(error.to_string().contains("no buffer is an output"), "{error}");
        let with = faults.replacen("count: 16", "count: 16, output: true", 1);
        assert!(Campaign::parse(&with, Path::new("a.yaml")).is_ok());
    }

    #[test]
    fn buffers_of_the_workload_must_be_buffers_and_require_kernels() {
        let text =
            text("null").replace("{buffer: a, type: f32, count: 16}", "{scalar: 1, type: u8}");
        let error = Campaign::parse(&text, Path::new("a.yaml")).expect_err("a scalar").to_string();
        assert!(error.contains("workload.buffers[0]") && error.contains("`buffer`"), "{error}");
        let capture = "name: a\nworkload:\n  capture: {file: a}\n  buffers: [{buffer: a, type: u8, \
                       count: 1}]\n";
        let error =
            Campaign::parse(capture, Path::new("a.yaml")).expect_err("a capture").to_string();
        assert!(error.contains("workload.buffers") && error.contains("kernels"), "{error}");
    }
}
