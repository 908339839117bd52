//! LDS accesses that affect the order of waves.

use super::Run;
use super::lds::LdsAccess;
use super::tensor::Direction;
use super::vector_memory::Transfer;

/// Kind of LDS access of an instruction. Atomic operations count as no access: they are meant for
/// waves in any order. Flat accesses count even if their addresses are not in LDS, since the order
/// of waves must not depend on how an address is determined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shared {
    /// Neither reads nor writes LDS.
    #[default]
    Nothing,
    /// Reads LDS.
    Read,
    /// Writes LDS.
    Write,
}

impl Shared {
    /// Returns the access of an operation.
    pub fn of(run: Run) -> Shared {
        match run {
            Run::Lds(access) => Shared::of_lds(access),
            Run::LdsDirect => Shared::Read,
            Run::Tensor(Direction::ToLds) => Shared::Write,
            Run::Tensor(Direction::FromLds) => Shared::Read,
            Run::VectorMemory(access) => match access.transfer {
                Transfer::LoadToLds(_) | Transfer::LoadFormatToLds(_) => Shared::Write,
                Transfer::StoreFromLds(_) => Shared::Read,
                Transfer::Load(_) if access.space.is_flat() => Shared::Read,
                Transfer::Store(_) if access.space.is_flat() => Shared::Write,
                _ => Shared::Nothing,
            },
            _ => Shared::Nothing,
        }
    }

    fn of_lds(access: LdsAccess) -> Shared {
        match access {
            LdsAccess::Read(_)
            | LdsAccess::ReadExchanged(_)
            | LdsAccess::ReadTransposed { .. }
            | LdsAccess::Read2 { .. }
            | LdsAccess::ReadByThread => Shared::Read,
            LdsAccess::Write(_) | LdsAccess::Write2 { .. } | LdsAccess::WriteByThread => {
                Shared::Write
            }
            LdsAccess::Atomic { .. }
            | LdsAccess::Exchange2 { .. }
            | LdsAccess::ExchangeIf
            | LdsAccess::Count { .. }
            | LdsAccess::Permute
            | LdsAccess::BackwardPermute
            | LdsAccess::BackwardPermuteAny
            | LdsAccess::Swizzle => Shared::Nothing,
        }
    }
}
