//! Code objects inside other files: offload bundles, compressed bundles, and host programs that
//! embed bundles (clang's "Clang Offload Bundler" documentation).

use crate::bytes::{Content, array, slice};
use crate::compression::{Method, SIZE_LIMIT, decompress};
use crate::elf::Elf;
use crate::embedded::embedded;
use crate::format::describe;
use crate::{CodeObject, CodeObjectError};
use flipwave_isa::{Setting, Target};
use object::Endianness;
use object::elf::{ELFMAG, EM_AMDGPU, FileHeader64, SHT_NOBITS};
use object::read::elf::{FileHeader, SectionHeader};
use std::borrow::Cow;

pub(crate) const BUNDLE_MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
const COMPRESSED_MAGIC: &[u8] = b"CCOB";

/// Name of the section with the bundles of a HIP program.
const FATBIN_SECTION: &[u8] = b".hip_fatbin\0";

/// A code object in a file that may contain several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleEntry {
    /// Index of the bundle within the file. A HIP program has one bundle per source file with
    /// device code, and needs a code object from each.
    pub bundle: usize,
    /// The entry id, such as `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`.
    pub id: String,
    /// The target in the id; `None` if the processor is unknown.
    pub target: Option<Target>,
    /// The code object.
    pub bytes: Vec<u8>,
}

/// Opens the code object that matches `wanted`. If several entries of a bundle match, the best match
/// is opened. Without a target the file must contain a single code object.
///
/// Accepts code objects, offload bundles, compressed bundles, HIP programs and HIP object files, and host
/// files that contain code objects as data.
///
/// # Errors
/// [`CodeObjectError`] if the file is invalid, or if no code object or more than one matches.
pub fn open(bytes: &[u8], wanted: Option<&Target>) -> Result<CodeObject, CodeObjectError> {
    open_linked(bytes.to_vec(), wanted, |_| Err(CodeObjectError::NotLinked))
}

/// Like [`open`], but calls `link` to link relocatable objects, and does not copy the bytes of a
/// code object.
///
/// # Errors
/// As [`open`], and the errors of `link`.
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
        let object = CodeObject::from_content(content)?;
        return if wanted.is_none_or(|wanted| match_quality(wanted, object.target()).is_some()) {
            Ok(object)
        } else {
            Err(no_match(wanted, vec![standalone_id(&object)]).into())
        };
    }
    let mut matching = select(entries(&content)?, wanted)?;
    match (matching.pop(), matching.is_empty()) {
        (Some(entry), true) if Elf::is_relocatable(&entry.bytes) => {
            Ok(CodeObject::from_bytes(link(&entry.bytes)?)?)
        }
        (Some(entry), true) => Ok(CodeObject::from_bytes(entry.bytes)?),
        (last, _) => {
            matching.extend(last);
            Err(CodeObjectError::SeveralCodeObjects { present: ids(&matching) }.into())
        }
    }
}

/// Like [`open`], but opens one code object from each bundle of the file that has a match.
///
/// # Errors
/// [`CodeObjectError`] if the file is invalid or no code object matches.
pub fn open_all(bytes: &[u8], wanted: Option<&Target>) -> Result<Vec<CodeObject>, CodeObjectError> {
    let selected = select(entries(bytes)?, wanted)?;
    selected.into_iter().map(|entry| CodeObject::from_bytes(entry.bytes)).collect()
}

/// Lists all device entries of a file in file order. A code object counts as a file with one entry,
/// whose id is derived from the target.
///
/// # Errors
/// [`CodeObjectError`] if the file is invalid or contains no device code.
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
        return Err(CodeObjectError::NotCodeObject {
            found: describe(bytes),
            expected: "an ELF file, an offload bundle (__CLANG_OFFLOAD_BUNDLE__) or a compressed \
                       bundle (CCOB)",
        });
    }
    let object = CodeObject::parse(bytes)?;
    let (id, target) = (standalone_id(&object), Some(object.target().clone()));
    Ok(vec![BundleEntry { bundle: 0, id, target, bytes: bytes.to_vec() }])
}

/// Entry id of a code object outside a bundle.
fn standalone_id(object: &CodeObject) -> String {
    format!("amdgcn-amd-amdhsa--{}", object.target())
}

/// Entries of the bundles in the sections of a host file.
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
    // A file without sections has no names of sections.
    let names = match sections {
        [] => None,
        _ => sections.get(header.section_strings_index(endian, bytes).map_err(malformed)?.0),
    };
    let names = match names {
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
            let expected = "no overlap with other sections";
            return Err(CodeObjectError::malformed("section .hip_fatbin", offset, expected));
        }
        let next = entries.last().map_or(0, |entry| entry.bundle + 1);
        entries.extend(bundles(contents, offset, next)?);
    }
    if entries.is_empty() {
        entries = embedded(bytes);
    }
    if entries.is_empty() {
        return Err(CodeObjectError::NotCodeObject {
            found: "a host program without device code".to_owned(),
            expected: "an offload bundle in a section .hip_fatbin, or code objects in its data",
        });
    }
    Ok(entries)
}

/// Entries of consecutive bundles separated by zeros. `start` is the offset of `data` in the file,
/// `first` the index of the first bundle.
fn bundles(data: &[u8], start: u64, first: usize) -> Result<Vec<BundleEntry>, CodeObjectError> {
    let mut found = Vec::new();
    let mut bundle = first;
    each_bundle(data, start, |entries| {
        for RawEntry { id, contents } in entries.into_iter().filter(|entry| !entry.is_host()) {
            let (target, bytes) = (target_of(&id), contents.to_vec());
            found.push(BundleEntry { bundle, id, target, bytes });
        }
        bundle += 1;
    })?;
    Ok(found)
}

/// A bundle entry for the host or a device.
pub(crate) struct RawEntry<'a> {
    pub(crate) id: String,
    pub(crate) contents: &'a [u8],
}

impl RawEntry<'_> {
    pub(crate) fn is_host(&self) -> bool {
        self.id.split('-').next() == Some("host")
    }
}

/// Calls `visit` with the entries of each bundle in `data`, which is at offset `start` of the file.
pub(crate) fn each_bundle(
    data: &[u8],
    start: u64,
    mut visit: impl FnMut(Vec<RawEntry<'_>>),
) -> Result<(), CodeObjectError> {
    let mut position = 0;
    let mut total = 0u64;
    while let Some(remaining) = data.get(position..).filter(|remaining| !remaining.is_empty()) {
        if remaining.starts_with(&[0]) {
            position += remaining.iter().take_while(|byte| **byte == 0).count();
            continue;
        }
        let offset = start + position as u64;
        let (bundle, compressed_length) = decompressed(remaining, offset)?;
        if compressed_length.is_some() {
            total = total.saturating_add(bundle.len() as u64);
        }
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
        // A bundle is at least as long as its magic, so the loop terminates.
        position += compressed_length.unwrap_or(bundle_length);
    }
    Ok(())
}

/// Returns the bundle at the start of `data`, decompressed if necessary, and the length of the
/// compressed form if there was one.
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
    // After the magic: version, method, total size (not in version 1), decompressed size, and an
    // eight-byte hash.
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
            let expected =
                format!("a size of at most the remaining {:#x} bytes, not {size:#x}", data.len());
            CodeObjectError::malformed(what, offset, expected)
        })?,
        None => data,
    };
    let compressed = whole.get(header..).ok_or_else(short)?;
    let (bundle, used) = decompress(method, compressed, decompressed_size, offset + header as u64)?;
    let length = if size.is_some() { whole.len() } else { header + used };
    Ok((Cow::Owned(bundle), Some(length)))
}

/// Returns the entries of the bundle at the start of `data`, and the bundle's length in bytes.
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
    // An excessive count fails at the end of the data.
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

/// Returns `true` if a file starts with a bundle.
pub(crate) fn is_bundle(file: &[u8]) -> bool {
    file.starts_with(BUNDLE_MAGIC) || file.starts_with(COMPRESSED_MAGIC)
}

/// Parses the target in an entry id, `kind-triple-target`. The triple may have three or four
/// components, and the target contains `-` only in feature settings.
fn target_of(id: &str) -> Option<Target> {
    let start = id.rfind("-gfx")?;
    id.get(start + 1..)?.parse().ok()
}

/// Returns `true` if the id of an entry names a processor of AMD. Bundles also contain code for other
/// vendors, and SPIR-V for processors that are chosen when the program runs.
fn is_for_amd(entry: &BundleEntry) -> bool {
    entry.id.contains("amdgcn") && entry.id.contains("-gfx")
}

/// Selects the best match of each bundle, or all entries without a target.
fn select(
    entries: Vec<BundleEntry>,
    wanted: Option<&Target>,
) -> Result<Vec<BundleEntry>, CodeObjectError> {
    let present = ids(&entries);
    if !entries.iter().any(is_for_amd) {
        return Err(CodeObjectError::NoAmdCode { present });
    }
    let mut chosen: Vec<(MatchQuality, BundleEntry)> = Vec::new();
    for entry in entries {
        let quality = match (wanted, &entry.target) {
            (None, _) => Some(MatchQuality { same_processor: true, same_settings: 0 }),
            (Some(wanted), Some(target)) => match_quality(wanted, target),
            (Some(_), None) => None,
        };
        let Some(quality) = quality else { continue };
        match chosen.last_mut() {
            Some((best, last)) if wanted.is_some() && last.bundle == entry.bundle => {
                if quality > *best {
                    (*best, *last) = (quality, entry);
                }
            }
            _ => chosen.push((quality, entry)),
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

/// Quality of a match between code and the requested target. Better matches compare greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MatchQuality {
    /// The code is for the requested processor, not for a generic target.
    same_processor: bool,
    /// Number of equal feature settings.
    same_settings: usize,
}

/// Returns the match quality of code for `target` on `wanted`, or `None` if the code does not run
/// there.
fn match_quality(wanted: &Target, target: &Target) -> Option<MatchQuality> {
    let settings = [(wanted.xnack, target.xnack), (wanted.sramecc, target.sramecc)];
    let runs = wanted.runs_code_for(target)
        && settings
            .iter()
            .all(|(wanted, has)| wanted == has || *wanted == Setting::Any || *has == Setting::Any);
    let same_settings = settings.iter().filter(|(wanted, has)| wanted == has).count();
    let same_processor = wanted.processor() == target.processor();
    runs.then_some(MatchQuality { same_processor, same_settings })
}

fn ids(entries: &[BundleEntry]) -> Vec<String> {
    entries.iter().map(|entry| entry.id.clone()).collect()
}
