//! Modules: PTX text from the application, and the device functions that it expects of the driver.

use crate::fat_binary::{self, FatBinaryError};
use flipwave_device::{Address, DeviceError};
use flipwave_ptx::{ItemKind, Module};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The device functions, see the comments there.
const DEVICE_FUNCTIONS: &str = include_str!("device_functions.ptx");

/// The variable with the output of kernels.
pub const OUTPUT: &str = "__flipwave_output";

/// Begins a comment with the address of a variable.
const PLACED: &str = "\n// flipwave: variable ";

/// A module of the application, before it is loaded.
pub struct Image {
    /// The text.
    pub text: String,
    /// The module, with device functions.
    pub module: Module,
    /// Names of the variables in managed memory.
    pub managed: Vec<String>,
}

/// Errors returned when loading an image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The image is machine code.
    #[error("the image is machine code (SASS); only PTX can be executed")]
    MachineCode,
    /// The container has no PTX for the device.
    #[error(transparent)]
    FatBinary(#[from] FatBinaryError),
    /// The text is not a module.
    #[error("cannot load PTX: {0}")]
    Text(String),
}

impl Image {
    /// Reads an image: PTX, a fat binary, or machine code, which is refused. `target` is the number of the
    /// device's architecture, such as 90.
    ///
    /// # Errors
    /// [`ImageError`].
    pub fn read(bytes: &[u8], target: u32) -> Result<Image, ImageError> {
        if bytes.starts_with(b"\x7fELF") {
            return Err(ImageError::MachineCode);
        }
        let is_container =
            bytes.first_chunk().is_some_and(|header| fat_binary::container_bytes(header).is_some());
        let text = if is_container { fat_binary::ptx(bytes, target)? } else { bytes.to_vec() };
        let text = String::from_utf8(text)
            .map_err(|_| ImageError::Text("the text is not UTF-8".to_owned()))?;
        let (module, _) = module_of(&text).map_err(|error| ImageError::Text(error.to_string()))?;
        let managed = module
            .variables()
            .filter(|declaration| {
                declaration.attributes.iter().any(|found| &*found.name == "managed")
            })
            .flat_map(|declaration| &declaration.declarators)
            .map(|declarator| declarator.name.to_string())
            .collect();
        Ok(Image { text, module, managed })
    }

    /// The text with comments for the addresses of variables, which [`module_of`] reads.
    pub fn text_with<'a>(&self, variables: impl Iterator<Item = (&'a str, Address)>) -> String {
        let mut text = self.text.clone();
        for (name, address) in variables {
            // Writing to a string cannot fail.
            let _ = write!(text, "{PLACED}{name} at {:#x}", address.0);
        }
        text
    }
}

/// Parses a module, adds the device functions that it expects of the driver, and returns the addresses of its
/// variables if the text names them.
///
/// # Errors
/// [`DeviceError::Load`].
pub fn module_of(text: &str) -> Result<(Module, BTreeMap<String, Address>), DeviceError> {
    let parse =
        |text| flipwave_ptx::parse(text).map_err(|error| DeviceError::Load(error.to_string()));
    let mut module = parse(text)?;
    let defined: BTreeSet<String> = module
        .functions()
        .filter(|function| function.body.is_some())
        .map(|function| function.name.to_string())
        .collect();
    let declared: BTreeSet<String> =
        module.functions().map(|function| function.name.to_string()).collect();
    let needs = |name: &str| declared.contains(name) && !defined.contains(name);
    let [prints, asserts, allocates] = ["vprintf", "__assertfail", "malloc"].map(needs);
    if prints || asserts || allocates || needs("free") {
        let library = parse(DEVICE_FUNCTIONS)?;
        module.items.extend(library.items.into_iter().filter(|item| match &item.kind {
            ItemKind::Function(function) => match &*function.name {
                "__flipwave_reserve" => prints || asserts,
                name => needs(name),
            },
            ItemKind::Variable(declaration) => {
                let is_output =
                    declaration.declarators.iter().any(|declarator| &*declarator.name == OUTPUT);
                if is_output { prints || asserts } else { allocates }
            }
            _ => false,
        }));
    }
    let placed = text.split(PLACED).skip(1).filter_map(|line| {
        let (name, address) = line.lines().next()?.split_once(" at 0x")?;
        Some((name.to_owned(), Address(u64::from_str_radix(address, 16).ok()?)))
    });
    Ok((module, placed.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = ".version 7.8\n.target sm_90\n.address_size 64\n";

    #[test]
    fn device_functions_are_added_only_if_needed() {
        let names = |text: &str| {
            let (module, _) = module_of(&format!("{HEADER}{text}")).expect("a module");
            let code = flipwave_ptx::resolve(&module).expect("code");
            let functions: Vec<String> =
                code.functions.iter().map(|function| function.name.to_string()).collect();
            functions.join(" ")
        };
        assert_eq!(names(".entry k() { ret; }"), "k");
        let declaration = ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n";
        assert_eq!(names(declaration), "__flipwave_reserve vprintf");
        assert_eq!(names(".extern .func free (.param .b64 a);"), "free");
        let own = format!(
            "{declaration}.func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b) {{ ret; }}"
        );
        assert_eq!(names(&own), "vprintf");
    }

    #[test]
    fn addresses_of_variables_are_kept_in_the_text() {
        let text =
            format!("{HEADER}.visible .global .attribute(.managed) .align 4 .u32 counter;\n");
        let image = Image::read(text.as_bytes(), 90).expect("an image");
        assert_eq!(image.managed, ["counter"]);
        let placed = BTreeMap::from([("counter".to_owned(), Address(0x7fff_0000))]);
        let variables = placed.iter().map(|(name, address)| (&**name, *address));
        let (_, found) = module_of(&image.text_with(variables)).expect("a module");
        assert_eq!(found, placed);
    }

    #[test]
    fn machine_code_is_refused() {
        assert!(matches!(Image::read(b"\x7fELF\x02", 90), Err(ImageError::MachineCode)));
        assert!(matches!(Image::read(b"nothing", 90), Err(ImageError::Text(_))));
    }
}
