//! A code object instrumented with a tool, and what its hooks recorded.

use super::cell::{Cell, Row};
use super::host::Writer;
use super::output::{MemberType, Output, OutputKind};
use super::stream::{self, LoadedStreams, TakenRecords};
use super::{CodeScope, HookVariables, Tool, ToolError};
use flipwave_device::Address;
use flipwave_hooks::flow::{Disassembly, InstIndex, Key};
use flipwave_hooks::hook::HookData;
use flipwave_hooks::rewrite::Refused;
use flipwave_isa::Pc;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The keys of a row.
type Keys = Vec<Arc<str>>;

/// A contribution of a row in memory to a row of the output.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    /// The instruction that it belongs to. Dispatches of kernels that do not reach it have no such row.
    pub at: InstIndex,
    /// Index of the row in memory.
    pub row: u32,
    pub keys: Keys,
}

/// A site of a stream.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub at: InstIndex,
    pub keys: Keys,
}

/// The hooks of a tool in a code object, and the meaning of the numbers in their memory.
#[derive(Clone, Debug)]
pub struct ToolCode {
    shown: Vec<Vec<Shown>>,
    sites: Vec<Vec<Site>>,
    /// The number of rows in memory, by output.
    used: Vec<u32>,
    /// The capacity of each stream in records.
    records: u32,
    /// The instructions whose hooks count in each row in memory, by output.
    users: Vec<BTreeMap<u32, Vec<InstIndex>>>,
    /// The hooks at each instruction.
    calls: BTreeMap<InstIndex, Vec<String>>,
    /// The instructions with refused hooks.
    refused: BTreeSet<InstIndex>,
}

/// The content of an output after a dispatch.
#[derive(Clone, Debug, Default)]
pub(super) struct Finding {
    /// The structures: summed rows, records, or values of a map.
    data: Vec<u8>,
    /// The keys of rows.
    keys: Vec<Keys>,
    /// The keys of a map.
    map_keys: Vec<u64>,
    /// The keys of rows that could not be counted.
    uncounted: Vec<Keys>,
    /// The cells of each site; `None` if the site could not be counted.
    sites: Vec<Option<Vec<Cell>>>,
    /// Records that did not fit.
    pub lost: u64,
}

impl ToolCode {
    pub(super) fn new(
        outputs: usize,
        shown: Vec<Vec<Shown>>,
        sites: Vec<Vec<Site>>,
        used: Vec<u32>,
        records: u32,
    ) -> ToolCode {
        let users = vec![BTreeMap::new(); outputs];
        let (calls, refused) = (BTreeMap::new(), BTreeSet::new());
        ToolCode { shown, sites, used, records, users, calls, refused }
    }

    /// Records that a hook at an instruction counts in a row in memory.
    pub(super) fn add_user(
        &mut self,
        output: usize,
        row: u32,
        at: InstIndex,
    ) -> Result<(), String> {
        let used = self.used.get(output).copied().unwrap_or(0);
        if row >= used {
            return Err(format!(
                "no row {row}: flipwave_new_row has returned {used} rows for this code"
            ));
        }
        self.users[output].entry(row).or_default().push(at);
        Ok(())
    }

    /// Records a hook at an instruction.
    pub(super) fn add_call(&mut self, at: InstIndex, hook: &str) {
        self.calls.entry(at).or_default().push(hook.to_owned());
    }

    /// The streams of a tool in loaded code, whose variables are `data`. `address_of` converts addresses of the
    /// code object to those in memory.
    ///
    /// # Errors
    /// Those of `address_of`.
    pub fn streams<E>(
        &self,
        tool: &Tool,
        data: &(Pc, HookData),
        address_of: impl Fn(Pc) -> Result<Address, E>,
    ) -> Result<LoadedStreams, E> {
        let (start, data) = data;
        let address_of = |name: &str| {
            let symbol = data.symbols.get(name)?;
            Some(address_of(Pc(start.0 + symbol.offset)))
        };
        self.streams_at(tool, address_of)
    }

    /// The streams of a tool whose variables are in memory. `address_of` returns the address of a variable;
    /// `None` if no hook uses it.
    ///
    /// # Errors
    /// Those of `address_of`.
    pub(super) fn streams_at<E>(
        &self,
        tool: &Tool,
        address_of: impl Fn(&str) -> Option<Result<Address, E>>,
    ) -> Result<LoadedStreams, E> {
        LoadedStreams::find(address_of, tool.outputs(), self.records.into())
    }

    /// Marks the instructions whose hooks the engine refused.
    pub fn set_refused(&mut self, program: &Disassembly, refused: &[Refused]) {
        self.refused = refused.iter().filter_map(|refused| program.at(refused.pc)).collect();
    }

    /// Marks instructions, by number, whose hooks cannot be inserted.
    pub(super) fn set_refused_at(&mut self, refused: impl Iterator<Item = usize>) {
        self.refused = refused.map(InstIndex::new).collect();
    }

    /// The hooks at an instruction.
    pub fn hooks_at(&self, at: InstIndex) -> &[String] {
        self.calls.get(&at).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns `true` if the engine refused a hook at an instruction.
    pub fn is_refused(&self, at: InstIndex) -> bool {
        self.refused.contains(&at)
    }

    /// The content of all outputs after a dispatch. `taken` has the records that were taken while it ran.
    pub(super) fn findings(
        &self,
        tool: &Tool,
        scope: &dyn CodeScope,
        variables: &dyn HookVariables,
        taken: &mut TakenRecords,
    ) -> Result<Vec<Finding>, ToolError> {
        let mut one = |(index, output): (usize, &Output)| {
            let bytes = match output.kind {
                OutputKind::Rows => &[],
                _ => variables.bytes(&output.name)?,
            };
            Ok(match output.kind {
                OutputKind::Table | OutputKind::Histogram => self.sums(index, output, scope, bytes),
                OutputKind::Map => map(output, bytes),
                OutputKind::Stream => self.stream(index, output, bytes, taken),
                OutputKind::Rows => Finding::default(),
                OutputKind::Detector => detections(output, bytes),
            })
        };
        tool.outputs().iter().enumerate().map(&mut one).collect()
    }

    /// Adds up the rows in memory.
    fn sums(&self, index: usize, output: &Output, scope: &dyn CodeScope, bytes: &[u8]) -> Finding {
        struct Sum<'k> {
            keys: &'k Keys,
            numbers: Vec<u64>,
            is_counted: bool,
        }
        let width = output.size / 8;
        let (numbers, _) = bytes.as_chunks();
        let mut sums: Vec<Sum<'_>> = Vec::new();
        let mut indices: HashMap<&Keys, usize> = HashMap::new();
        for Shown { at, row, keys } in &self.shown[index] {
            if !scope.contains(*at) {
                continue;
            }
            let number = *indices.entry(keys).or_insert_with(|| {
                sums.push(Sum { keys, numbers: vec![0; width], is_counted: true });
                sums.len() - 1
            });
            let sum = &mut sums[number];
            let users = self.users[index].get(row).map(Vec::as_slice).unwrap_or_default();
            sum.is_counted &= !users.iter().any(|user| self.refused.contains(user));
            let row = *row as usize * width;
            let added = numbers.get(row..row + width).unwrap_or_default();
            for (sum, number) in sum.numbers.iter_mut().zip(added) {
                *sum = sum.wrapping_add(u64::from_le_bytes(*number));
            }
        }
        if output.kind == OutputKind::Histogram {
            sums.retain(|sum| !sum.is_counted || sum.numbers.iter().any(|number| *number > 0));
            sums.sort_by(|a, b| compare_keys(a.keys, b.keys));
        }
        let mut finding = Finding::default();
        for sum in sums {
            if sum.is_counted {
                finding.keys.push(sum.keys.clone());
                finding.data.extend(sum.numbers.iter().flat_map(|number| number.to_le_bytes()));
            } else {
                finding.uncounted.push(sum.keys.clone());
            }
        }
        finding
    }

    fn stream(
        &self,
        index: usize,
        output: &Output,
        bytes: &[u8],
        taken: &mut TakenRecords,
    ) -> Finding {
        let sites = self.sites[index].iter().map(|site| {
            let cells = || site.keys.iter().map(|key| Cell::Text(Arc::clone(key))).collect();
            (!self.refused.contains(&site.at)).then(cells)
        });
        let mut data = taken.take(&output.name);
        let lost = stream::take_rest(bytes, output.size, self.records.into(), &mut data);
        Finding { data, sites: sites.collect(), lost, ..Finding::default() }
    }

    /// Rows for what could not be counted in a dispatch.
    pub(super) fn not_counted(
        &self,
        tool: &Tool,
        index: usize,
        scope: &dyn CodeScope,
        finding: &Finding,
    ) -> Vec<Row> {
        let output = &tool.outputs()[index];
        let has_site = output.members.iter().any(|member| member.kind == MemberType::Site);
        match output.kind {
            OutputKind::Table | OutputKind::Histogram => {
                finding.uncounted.iter().map(|keys| uncounted_row(output, keys)).collect()
            }
            OutputKind::Stream if has_site => {
                let sites = self.sites[index].iter();
                let refused =
                    sites.filter(|site| self.refused.contains(&site.at) && scope.contains(site.at));
                refused.map(|site| uncounted_row(output, &site.keys)).collect()
            }
            // It is unknown which rows are missing.
            OutputKind::Stream | OutputKind::Map | OutputKind::Rows | OutputKind::Detector => {
                let is_incomplete = self.refused.iter().any(|at| scope.contains(*at));
                is_incomplete.then(|| uncounted_dispatch(tool)).into_iter().collect()
            }
        }
    }
}

/// Reads the counter of a detector, which is one row without keys.
fn detections(output: &Output, bytes: &[u8]) -> Finding {
    let data = bytes.get(..output.size).unwrap_or_default().to_vec();
    Finding { data, keys: vec![Keys::new()], ..Finding::default() }
}

/// Size of the header of a map in bytes.
const HEADER: usize = 16;

/// Reads a map: the header with the number of lost keys, the keys, and the values.
fn map(output: &Output, bytes: &[u8]) -> Finding {
    let mut finding = Finding::default();
    let (words, _) = bytes.as_chunks();
    let word = |index: usize| words.get(index).map_or(0, |bytes| u64::from_le_bytes(*bytes));
    finding.lost = word(0);
    let capacity = bytes.len().saturating_sub(HEADER + output.size) / (8 + output.size);
    let mut found: Vec<(u64, usize)> =
        (0..capacity).filter_map(|index| Some((word(2 + index).checked_sub(1)?, index))).collect();
    if word(1) != 0 {
        found.push((u64::MAX, capacity));
    }
    found.sort_unstable();
    let values = HEADER + 8 * capacity;
    for (key, index) in found {
        let start = values + index * output.size;
        finding.map_keys.push(key);
        finding.data.extend(bytes.get(start..start + output.size).unwrap_or_default());
    }
    finding
}

impl Finding {
    /// The rows of the output.
    pub fn rows(&self, output: &Output) -> Vec<Row> {
        let structures = self.data.chunks_exact(output.size.max(1));
        let mut rows = Vec::with_capacity(structures.len());
        for (index, bytes) in structures.enumerate() {
            let mut row = Row::with_capacity(output.keys.len() + output.members.len());
            if let Some(keys) = self.keys.get(index) {
                row.extend(keys.iter().map(|key| Cell::Text(Arc::clone(key))));
            }
            row.extend(self.map_keys.get(index).map(|key| Cell::Unsigned(*key)));
            let mut is_counted = true;
            for member in &output.members {
                if member.kind != MemberType::Site {
                    row.push(member.cell(bytes));
                    continue;
                }
                match self.sites.get(member.value(bytes) as usize) {
                    Some(Some(cells)) => row.extend(cells.iter().cloned()),
                    // A hook that was not inserted at all elements, or a number that is no site.
                    _ => is_counted = false,
                }
            }
            if is_counted {
                rows.push(row);
            }
        }
        rows
    }

    /// Writes the content for `flipwave_finish`.
    pub fn write(&self, writer: &mut Writer, output: &Output) {
        writer.wide((self.data.len() / output.size.max(1)) as u64);
        writer.bytes(&self.data);
        self.map_keys.iter().for_each(|key| writer.wide(*key));
        self.keys.iter().flatten().for_each(|key| writer.text(key));
    }
}

/// Orders keys: numbers by their value, other texts alphabetically.
fn compare_keys(a: &Keys, b: &Keys) -> Ordering {
    let each = a.iter().zip(b).map(|(a, b)| match (a.parse::<u64>(), b.parse::<u64>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        _ => a.cmp(b),
    });
    each.fold(Ordering::Equal, Ordering::then)
}

/// A row of an output with keys and unknown numbers.
fn uncounted_row(output: &Output, keys: &Keys) -> Row {
    let keys: Vec<Cell> = keys.iter().map(|key| Cell::Text(Arc::clone(key))).collect();
    let mut row = Row::new();
    let has_site = output.members.iter().any(|member| member.kind == MemberType::Site);
    if !has_site {
        row.extend(keys.iter().cloned());
    }
    for member in &output.members {
        match member.kind {
            MemberType::Site => row.extend(keys.iter().cloned()),
            _ => row.push(Cell::NotCounted),
        }
    }
    row
}

/// A row with unknown content, for a dispatch that could not be counted at all.
pub fn uncounted_dispatch(tool: &Tool) -> Row {
    vec![Cell::NotCounted; tool.columns().len()]
}
