//! Code objects inside other files: offload bundles, compressed ones, and host programs that
//! carry bundles (clang's "Clang Offload Bundler" documentation).

use crate::bytes::{Content, array, slice};
use crate::compression::{Method, SIZE_LIMIT, decompress};
use crate::elf::Elf;
use crate::{CodeObject, CodeObjectError};
use flipwave_isa::{Setting, Target};
use object::Endianness;
use object::elf::{ELFMAG, EM_AMDGPU, FileHeader64, SHT_NOBITS};
use object::read::elf::{FileHeader, SectionHeader};
use std::borrow::Cow;

pub(crate) const BUNDLE_MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
const COMPRESSED_MAGIC: &[u8] = b"CCOB";

/// Where HIP programs have their bundles.
const FATBIN_SECTION: &[u8] = b".hip_fatbin\0";

/// A code object in a file that may hold several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleEntry {
    /// Number of the bundle within the file. A HIP program has a bundle for each source file
    /// with device code, and needs a code object of each.
    pub bundle: usize,
    /// What the bundle calls it, such as `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`.
    pub id: String,
    /// The target in the id; nothing for the host, and for processors that are not known.
    pub target: Option<Target>,
    /// The code object.
    pub bytes: Vec<u8>,
}

/// The one code object of a file that fits a target: the best fit, if several do. Without a
/// target there must be only one.
///
/// Takes a code object, an offload bundle, a compressed one, and a HIP program or object file.
pub fn open(bytes: &[u8], wanted: Option<&Target>) -> Result<CodeObject, CodeObjectError> {
    open_linked(bytes.to_vec(), wanted, |_| Err(CodeObjectError::NotLinked))
}

/// Like [`open`], where `link` makes a code object of a relocatable one, and the bytes are kept: a
/// code object is not copied.
///
/// # Errors
/// As [`open`], and what `link` gives.
pub fn open_linked<E: From<CodeObjectError>>(
    bytes: impl AsRef<[u8]> + Send + Sync + 'static,
    wanted: Option<&Target>,
    link: impl FnOnce(&[u8]) -> Result<Vec<u8>, E>,
) -> Result<CodeObject, E> {
    let content = Content::new(bytes);
    if Elf::is_relocatable(&content) {
        return Ok(open(&link(&content)?, wanted)?);
    }
    if Elf::is_for_gpu(&content) {
        let object = CodeObject::of_content(content)?;
        let fits = wanted.is_none_or(|wanted| fit(wanted, object.target()).is_some());
        return if fits { Ok(object) } else { Err(no_match(wanted, vec![id_of(&object)]).into()) };
    }
    let mut fitting = select(entries(&content)?, wanted)?;
    match (fitting.pop(), fitting.is_empty()) {
        (Some(entry), true) if Elf::is_relocatable(&entry.bytes) => {
            Ok(CodeObject::of(link(&entry.bytes)?)?)
        }
        (Some(entry), true) => Ok(CodeObject::of(entry.bytes)?),
        (last, _) => {
            fitting.extend(last);
            Err(CodeObjectError::SeveralCodeObjects { present: ids(&fitting) }.into())
        }
    }
}

/// Like [`open`], one code object from each bundle of the file that has one that fits.
pub fn open_all(bytes: &[u8], wanted: Option<&Target>) -> Result<Vec<CodeObject>, CodeObjectError> {
    select(entries(bytes)?, wanted)?.into_iter().map(|entry| CodeObject::of(entry.bytes)).collect()
}

/// All entries of a file, in its order, those for the host left out. A code object is a file
/// with one entry, named after its target.
pub fn entries(bytes: &[u8]) -> Result<Vec<BundleEntry>, CodeObjectError> {
    if is_bundle(bytes) {
        return bundles(bytes, 0, 0);
    }
    let host = FileHeader64::<Endianness>::parse(bytes).ok().and_then(|header| {
        let endian = header.endian().ok()?;
        (header.e_machine(endian) != EM_AMDGPU).then_some((header, endian))
    });
    if let Some((header, endian)) = host {
        return fatbin(bytes, header, endian);
    }
    if !bytes.starts_with(&ELFMAG) {
        let start = bytes.get(..4).unwrap_or(bytes);
        return Err(CodeObjectError::NotCodeObject {
            found: format!("the file begins with the bytes {start:02x?}"),
            expected: "an ELF file, an offload bundle (__CLANG_OFFLOAD_BUNDLE__) or a compressed \
                       one (CCOB)",
        });
    }
    let object = CodeObject::parse(bytes)?;
    let (id, target) = (id_of(&object), Some(object.target().clone()));
    Ok(vec![BundleEntry { bundle: 0, id, target, bytes: bytes.to_vec() }])
}

/// What a code object that stands alone is called.
fn id_of(object: &CodeObject) -> String {
    format!("amdgcn-amd-amdhsa--{}", object.target())
}

/// Bundles in the sections of a host file.
fn fatbin(
    bytes: &[u8],
    header: &FileHeader64<Endianness>,
    endian: Endianness,
) -> Result<Vec<BundleEntry>, CodeObjectError> {
    let malformed = |_| {
        let offset = header.e_shoff(endian);
        CodeObjectError::malformed("section header table", offset, "entries inside the file")
    };
    let sections = header.section_headers(endian, bytes).map_err(malformed)?;
    let names = header.section_strings_index(endian, bytes).map_err(malformed)?;
    let names = match sections.get(names.0) {
        Some(names) => {
            slice(bytes, "section names", names.sh_offset(endian), names.sh_size(endian))?
        }
        None => &[],
    };
    let mut entries: Vec<BundleEntry> = Vec::new();
    let mut total = 0u64;
    for section in sections {
        let name = names.get(section.sh_name(endian) as usize..).unwrap_or_default();
        if !name.starts_with(FATBIN_SECTION) || section.sh_type(endian) == SHT_NOBITS {
            continue;
        }
        let (offset, size) = (section.sh_offset(endian), section.sh_size(endian));
        let contents = slice(bytes, "section .hip_fatbin", offset, size)?;
        total += size;
        if total > bytes.len() as u64 {
            let expected = "no overlap with others";
            return Err(CodeObjectError::malformed("section .hip_fatbin", offset, expected));
        }
        let next = entries.last().map_or(0, |entry| entry.bundle + 1);
        entries.extend(bundles(contents, offset, next)?);
    }
    if entries.is_empty() {
        return Err(CodeObjectError::NotCodeObject {
            found: "a host program without device code".to_owned(),
            expected: "an offload bundle in a section .hip_fatbin",
        });
    }
    Ok(entries)
}

/// Bundles that stand one after the other with zeros between them. `start` is the offset of
/// `data` in the file, `first` the number of the first bundle.
fn bundles(data: &[u8], start: u64, first: usize) -> Result<Vec<BundleEntry>, CodeObjectError> {
    let mut found = Vec::new();
    let mut number = first;
    each_bundle(data, start, |entries| {
        for RawEntry { id, contents } in entries.into_iter().filter(|entry| !entry.is_host()) {
            let (target, bytes) = (target_of(&id), contents.to_vec());
            found.push(BundleEntry { bundle: number, id, target, bytes });
        }
        number += 1;
    })?;
    Ok(found)
}

/// An entry of a bundle, those for the host included.
pub(crate) struct RawEntry<'a> {
    pub(crate) id: String,
    pub(crate) contents: &'a [u8],
}

impl RawEntry<'_> {
    pub(crate) fn is_host(&self) -> bool {
        self.id.split('-').next() == Some("host")
    }
}

/// Gives `visit` the entries of each bundle in `data`, which lies at `start` of the file.
pub(crate) fn each_bundle(
    data: &[u8],
    start: u64,
    mut visit: impl FnMut(Vec<RawEntry<'_>>),
) -> Result<(), CodeObjectError> {
    let mut position = 0;
    let mut total = 0u64;
    while let Some(rest) = data.get(position..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(&[0]) {
            position += rest.iter().take_while(|byte| **byte == 0).count();
            continue;
        }
        let offset = start + position as u64;
        let (bundle, length) = decompressed(rest, offset)?;
        total = total.saturating_add(if length.is_some() { bundle.len() as u64 } else { 0 });
        if total > SIZE_LIMIT {
            let what = "decompressed bundles";
            return Err(CodeObjectError::TooLarge {
                what,
                unit: "bytes",
                size: total,
                limit: SIZE_LIMIT,
            });
        }
        let (entries, bundle_length) = bundle_entries(&bundle, offset)?;
        visit(entries);
        // A bundle has at least its magic, so this always moves on.
        position += length.unwrap_or(bundle_length);
    }
    Ok(())
}

/// The bundle at the start of `data`, and the length of its compressed form if it had one.
fn decompressed(
    data: &[u8],
    offset: u64,
) -> Result<(Cow<'_, [u8]>, Option<usize>), CodeObjectError> {
    if !data.starts_with(COMPRESSED_MAGIC) {
        return Ok((Cow::Borrowed(data), None));
    }
    let what = "compressed bundle";
    let short = || CodeObjectError::malformed(what, offset, "a complete header");
    let half = |at| array(data, at).map(u16::from_le_bytes).ok_or_else(short);
    let word = |at| array(data, at).map(u32::from_le_bytes).map(u64::from).ok_or_else(short);
    let long = |at| array(data, at).map(u64::from_le_bytes).ok_or_else(short);
    // After the magic: version, method, whole size (not in version 1), decompressed size, and
    // eight bytes of a hash.
    let (header, size, decompressed_size) = match half(4)? {
        1 => (20, None, word(8)?),
        2 => (24, Some(word(8)?), word(12)?),
        3 => (32, Some(long(8)?), long(16)?),
        version => {
            let expected = format!("version 1, 2 or 3; it has {version}");
            return Err(CodeObjectError::malformed(what, offset, expected));
        }
    };
    let method = match half(6)? {
        0 => Method::Zlib,
        1 => Method::Zstandard,
        method => {
            let expected = format!("method 0 (zlib) or 1 (Zstandard); it has {method}");
            return Err(CodeObjectError::malformed(what, offset, expected));
        }
    };
    let whole = match size {
        Some(size) => slice(data, what, 0, size).map_err(|_| {
            let expected = format!("{size:#x} bytes where {:#x} are left", data.len());
            CodeObjectError::malformed(what, offset, expected)
        })?,
        None => data,
    };
    let compressed = whole.get(header..).ok_or_else(short)?;
    let (bundle, used) = decompress(method, compressed, decompressed_size, offset + header as u64)?;
    let length = if size.is_some() { whole.len() } else { header + used };
    Ok((Cow::Owned(bundle), Some(length)))
}

/// The entries of the bundle that `data` begins with, and the bundle's length.
fn bundle_entries(data: &[u8], offset: u64) -> Result<(Vec<RawEntry<'_>>, usize), CodeObjectError> {
    let what = "offload bundle";
    let malformed = |expected: &str| CodeObjectError::malformed(what, offset, expected);
    if !data.starts_with(BUNDLE_MAGIC) {
        return Err(malformed("__CLANG_OFFLOAD_BUNDLE__ or CCOB"));
    }
    let number = |at: usize| {
        array(data, at).map(u64::from_le_bytes).ok_or_else(|| malformed("a complete header"))
    };
    let count = number(BUNDLE_MAGIC.len())?;
    let mut position = BUNDLE_MAGIC.len() + 8;
    let mut end = position;
    let mut total = 0u64;
    let mut entries = Vec::new();
    // A wrong count ends at the end of the data.
    for _ in 0..count {
        let (start, size, id_size) =
            (number(position)?, number(position + 8)?, number(position + 16)?);
        let inside = |_| malformed("every entry inside the file");
        position += 24;
        let id = slice(data, what, position as u64, id_size).map_err(inside)?;
        position += id.len();
        let contents = slice(data, what, start, size).map_err(inside)?;
        total = total.saturating_add(size);
        if total > data.len() as u64 {
            return Err(malformed("entries that do not overlap"));
        }
        end = end.max(position).max(start as usize + contents.len());
        entries.push(RawEntry { id: String::from_utf8_lossy(id).into_owned(), contents });
    }
    Ok((entries, end))
}

/// Whether a file is one of bundles and nothing else.
pub(crate) fn is_bundle(file: &[u8]) -> bool {
    file.starts_with(BUNDLE_MAGIC) || file.starts_with(COMPRESSED_MAGIC)
}

/// The target in an entry id: `kind-triple-target`, where the triple may have three or four
/// parts and the target contains no `-` but in feature settings.
fn target_of(id: &str) -> Option<Target> {
    let start = id.rfind("-gfx")?;
    id.get(start + 1..)?.parse().ok()
}

/// The entries that fit a target, the best one of each bundle; all without a target.
fn select(
    entries: Vec<BundleEntry>,
    wanted: Option<&Target>,
) -> Result<Vec<BundleEntry>, CodeObjectError> {
    let present = ids(&entries);
    let mut chosen: Vec<((bool, usize), BundleEntry)> = Vec::new();
    for entry in entries {
        let fit = match (wanted, &entry.target) {
            (None, _) => Some((true, 0)),
            (Some(wanted), Some(target)) => fit(wanted, target),
            (Some(_), None) => None,
        };
        let Some(fit) = fit else { continue };
        match chosen.last_mut() {
            Some((best, last)) if wanted.is_some() && last.bundle == entry.bundle => {
                if fit > *best {
                    (*best, *last) = (fit, entry);
                }
            }
            _ => chosen.push((fit, entry)),
        }
    }
    if chosen.is_empty() {
        return Err(no_match(wanted, present));
    }
    Ok(chosen.into_iter().map(|(_, entry)| entry).collect())
}

fn no_match(wanted: Option<&Target>, present: Vec<String>) -> CodeObjectError {
    let wanted = wanted.map_or("any target".to_owned(), Target::to_string);
    CodeObjectError::NoMatchingTarget { wanted, present }
}

/// Whether code for `target` is for the processor of `wanted` alone, and how many feature settings are
/// the same, if it runs there.
fn fit(wanted: &Target, target: &Target) -> Option<(bool, usize)> {
    let settings = [(wanted.xnack, target.xnack), (wanted.sramecc, target.sramecc)];
    let fits = wanted.runs_code_for(target)
        && settings
            .iter()
            .all(|(wanted, has)| wanted == has || *wanted == Setting::Any || *has == Setting::Any);
    let is_own = wanted.processor() == target.processor();
    fits.then(|| (is_own, settings.iter().filter(|(wanted, has)| wanted == has).count()))
}

fn ids(entries: &[BundleEntry]) -> Vec<String> {
    entries.iter().map(|entry| entry.id.clone()).collect()
}
