//! Hooks of a site in code that another component loads and runs: the tools library in an application.

use super::refusal::Refusal;
use super::rewriting::Rewriting;
use flipwave_arch::{Architecture, Pc};
use flipwave_codeobj::CodeObject;
use flipwave_device::Address;
use flipwave_injector::hooks::{LaunchShape, WAVE_BYTES, WAVES, found_in, orders, place_of};
use flipwave_injector::{InjectedChange, Place, Site};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A code object with the hooks of a site.
#[derive(Clone, Debug)]
pub struct HookedCode {
    /// The original code object.
    pub original: CodeObject,
    /// The code object with hooks.
    pub object: CodeObject,
    /// The only kernel of `object`, if the others were omitted; then it must be loaded in addition to
    /// the original.
    pub kernel: Option<Arc<str>>,
    /// For each kernel, the symbol of the descriptor of its version with hooks, if `object` contains
    /// both versions. Kernels that are not listed have hooks under their original name.
    pub versions: BTreeMap<Arc<str>, String>,
    /// The hooks.
    pub hooks: SiteHooks,
}

/// Data needed to run the hooks of a site: the location of their variables and the required values.
/// Passed between processes of one build during one run, so it has no version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteHooks {
    /// ELF virtual address of the variables.
    start: u64,
    /// Initial contents of the variables, without trailing zeros.
    bytes: Vec<u8>,
    /// Size of all variables in bytes.
    size: u64,
    /// Offset range of each variable.
    variables: BTreeMap<String, Range<u64>>,
}

/// Errors returned when hooks cannot be prepared for a site.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// Hooks cannot strike the site.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The place does not exist.
    #[error("the dispatch has no {0}")]
    NoPlace(Place),
    /// The hooks belong to a different kind of site.
    #[error("the hooks have no variable `{0}`")]
    NoVariable(&'static str),
}

impl HookedCode {
    pub(super) fn new(original: &CodeObject, rewriting: &Rewriting) -> HookedCode {
        let Rewriting { program, rewritten, kernel, data: (start, data), .. } = rewriting;
        let variables = data.symbols.iter().map(|(name, symbol)| {
            (name.clone(), symbol.offset..symbol.offset.saturating_add(symbol.size))
        });
        let hooks = SiteHooks {
            start: start.0,
            bytes: data.bytes.clone(),
            size: data.size(),
            variables: variables.collect(),
        };
        // If both versions do not fit, all dispatches run with hooks, which mostly strike nothing.
        let both = kernel.is_none().then(|| rewritten.beside(original, program).ok()).flatten();
        let (object, versions) = match both {
            Some(both) => (both.object, both.rewritten),
            None => (rewritten.object.clone(), BTreeMap::new()),
        };
        HookedCode { original: original.clone(), object, kernel: kernel.clone(), versions, hooks }
    }
}

impl SiteHooks {
    /// The ELF virtual address of the hooks' variables.
    pub fn address(&self) -> Pc {
        Pc(self.start)
    }

    /// Contents of the variables for dispatches in which the hooks of an event strike nothing.
    pub fn idle(&self) -> Vec<u8> {
        let mut all = self.bytes.clone();
        all.resize(self.size as usize, 0);
        all
    }

    /// Contents of the variables for a dispatch of this shape that contains `site`, on a device with
    /// this instruction set. `buffer` returns the address of the program's buffer with an index.
    ///
    /// # Errors
    /// [`OrderError`].
    pub fn armed(
        &self,
        site: &Site,
        shape: &LaunchShape,
        architecture: &dyn Architecture,
        buffer: impl FnOnce(u32) -> Option<Address>,
    ) -> Result<Vec<u8>, OrderError> {
        let place = place_of(site, shape, buffer).ok_or(OrderError::NoPlace(site.place))?;
        let waves = self.variable(WAVES)?.len() / WAVE_BYTES;
        if site.event().is_none() && shape.waves() > waves as u64 {
            let (waves, most) = (shape.waves(), waves as u64);
            return Err(Refusal::Waves { waves, most }.into());
        }
        let mut all = self.idle();
        let orders = orders(site, shape, architecture.simds(), place).map_err(Refusal::from)?;
        for (name, bytes) in orders {
            let range = self.variable(name)?;
            let room = all.get_mut(range).filter(|room| room.len() == bytes.len());
            room.ok_or(OrderError::NoVariable(name))?.copy_from_slice(&bytes);
        }
        Ok(all)
    }

    /// The values struck in a dispatch that has left these contents of the variables.
    pub fn struck(&self, variables: &[u8]) -> Option<InjectedChange> {
        let waves = variables.get(self.variable(WAVES).ok()?)?;
        let (numbers, _) = waves.as_chunks();
        found_in(&numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect::<Vec<_>>())
    }

    fn variable(&self, name: &'static str) -> Result<Range<usize>, OrderError> {
        let range = self.variables.get(name).ok_or(OrderError::NoVariable(name))?;
        Ok(range.start as usize..range.end as usize)
    }
}
