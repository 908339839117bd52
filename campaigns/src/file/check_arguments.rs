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

    /// Validates the type, the number of elements and the content of a buffer. Returns the image of pointers
    /// or of a struct; other contents are validated by [`Init::new`](crate::program::buffers::Init::new).
    pub(super) fn check_content(
        &mut self,
        argument: &schema::Argument,
        name: &str,
        context: Context<'_>,
        field: &Field,
    ) -> Result<(ElementType, u64, Option<Image>), FieldError> {
        let at = field.key("init");
        let (image, default) = match &argument.init {
            Some(schema::Init::Pointers(pointers)) => {
                (Some(self.check_pointers(pointers, &at)?), ElementType::U64)
            }
            Some(schema::Init::Struct(members)) => {
                let image = self.check_struct(members.clone(), None, context, &at, "struct")?;
                (Some(image), ElementType::U8)
            }
            _ => (None, ElementType::U8),
        };
        let written = argument.element.map(|written| written.on(context.target));
        let Some(image) = image else {
            return match (written, argument.count) {
                (Some(element), Some(count)) => Ok((element, count, None)),
                _ => reject(
                    field,
                    format!("missing: `type` and `count` at the first use of buffer `{name}`"),
                ),
            };
        };
        let element = written.unwrap_or(default);
        let all = element.elements_in(image.size() as u64).unwrap_or_default();
        let count = argument.count.unwrap_or(all);
        if element.bytes_of(count) != Some(image.size() as u64) {
            let message = format!(
                "has {} bytes, but the buffer has {count} elements of type {element}; leave out `type` and \
                 `count`, or change them",
                image.size()
            );
            return reject(&at, message);
        }
        Ok((element, count, Some(image)))
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
mod tests;
