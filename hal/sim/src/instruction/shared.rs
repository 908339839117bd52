//! Accesses to LDS as the order of waves depends on them.

use super::Run;
use super::lds::LdsAccess;
use super::tensor::Direction;
use super::vector_memory::Transfer;

/// Access of an instruction to LDS. Atomic operations count as none: they are made for waves that come
/// in any order. Flat accesses count whether or not their addresses are in LDS, since the order of waves
/// must not depend on how an address is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shared {
    /// No access.
    #[default]
    Nothing,
    /// Reads LDS.
    Read,
    /// Writes LDS.
    Write,
}

impl Shared {
    /// The access of an operation.
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
