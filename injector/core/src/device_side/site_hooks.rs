//! Hooks of a site in code that someone else loads and runs: the tools library in an application.

use super::found::{WAVE_BYTES, WAVES, found_in};
use super::launch::LaunchShape;
use super::orders::orders;
use super::place_of;
use super::refusal::Refusal;
use super::rewriting::Rewriting;
use crate::inject::injection::Struck;
use crate::site::{Place, Site, Unit};
use flipwave_codeobj::CodeObject;
use flipwave_device::Address;
use flipwave_isa::{Pc, Target};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A code object with the hooks of a site in it.
#[derive(Clone, Debug)]
pub struct HookedCode {
    /// The code object without.
    pub original: CodeObject,
    /// The code object with them.
    pub object: CodeObject,
    /// The kernel that it has, where it has no more than the original's one: to be loaded beside that.
    pub kernel: Option<Arc<str>>,
    /// By kernel, the symbol of the descriptor of its version with hooks, where the code object has
    /// both. A kernel that is not listed has hooks under its own name.
    pub versions: BTreeMap<Arc<str>, String>,
    /// The hooks.
    pub hooks: SiteHooks,
}

/// What is to be known of the hooks of a site to run them: where their variables are, and what has
/// to be in those. Passed between processes of one build during one run, so it has no version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteHooks {
    /// The ELF virtual address of the variables.
    start: u64,
    /// What is in them at first, but for the zeros after.
    bytes: Vec<u8>,
    /// Bytes of all of them.
    size: u64,
    /// Where each is, from the start.
    variables: BTreeMap<String, Range<u64>>,
}

/// Why a site cannot be given to hooks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// The hooks cannot do it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The place is not there.
    #[error("the dispatch has no {0}")]
    NoPlace(Place),
    /// The hooks are of another kind of site.
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
        // Where both versions cannot be there, all dispatches run with hooks, which strike
        // nothing in most of them.
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

    /// The variables, when the hooks of an event are to strike nothing.
    pub fn idle(&self) -> Vec<u8> {
        let mut all = self.bytes.clone();
        all.resize(self.size as usize, 0);
        all
    }

    /// The variables before a dispatch of this shape that the fault at `site` is in, on a device of
    /// this target. The program's data have numbers, whose addresses `buffer` gives.
    ///
    /// # Errors
    /// [`OrderError`].
    pub fn armed(
        &self,
        site: &Site,
        shape: &LaunchShape,
        target: &Target,
        buffer: impl FnOnce(u32) -> Option<Address>,
    ) -> Result<Vec<u8>, OrderError> {
        let place = place_of(site, shape, buffer).ok_or(OrderError::NoPlace(site.place))?;
        let waves = self.variable(WAVES)?.len() / WAVE_BYTES;
        if site.event().is_none() && shape.waves() > waves as u64 {
            let (waves, most) = (shape.waves(), waves as u64);
            return Err(Refusal::Waves { waves, most }.into());
        }
        let mut all = self.idle();
        for (name, bytes) in orders(site, shape, Unit::simds(target), place)? {
            let range = self.variable(name)?;
            let room = all.get_mut(range).filter(|room| room.len() == bytes.len());
            room.ok_or(OrderError::NoVariable(name))?.copy_from_slice(&bytes);
        }
        Ok(all)
    }

    /// What a dispatch has struck that has left these variables.
    pub fn struck(&self, variables: &[u8]) -> Option<Struck> {
        let waves = variables.get(self.variable(WAVES).ok()?)?;
        let (numbers, _) = waves.as_chunks();
        found_in(&numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect::<Vec<_>>())
    }

    fn variable(&self, name: &'static str) -> Result<Range<usize>, OrderError> {
        let range = self.variables.get(name).ok_or(OrderError::NoVariable(name))?;
        Ok(range.start as usize..range.end as usize)
    }
}
