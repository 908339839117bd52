//! Random cross-lane moves.

use super::{pair_words, row, scalar_pair};
use crate::compile::testing::{Exchange, Plan};
use crate::execute::operations::find_whole;
use crate::instruction::lane_move::LaneMove;
use crate::instruction::lds::LdsAccess;
use crate::instruction::{Adapt, Op, Run, Word};
use crate::tests::bench::op;
use crate::tests::operations::Random;
use crate::wave::Machine;
use flipwave_isa::{Dpp, DppControl};

/// Returns a move of the first source's words.
pub fn lane_move(random: &mut Random, machine: Machine) -> LaneMove {
    let bits = random.next();
    let any = (bits & 15) as u8;
    let some = 1 + (bits & 15) as u8 % 15;
    let order = std::array::from_fn(|_| (random.next() & 7) as u8);
    let of_all = [
        DppControl::QuadPerm([0, 2, 4, 6].map(|shift| (bits >> 32 >> shift & 3) as u8)),
        DppControl::RowShiftLeft(some),
        DppControl::RowShiftRight(some),
        DppControl::RowRotateRight(some),
        DppControl::RowMirror,
        DppControl::RowHalfMirror,
        DppControl::RowShare(any),
    ];
    let of_64 = [
        DppControl::WaveShiftLeft,
        DppControl::WaveRotateLeft,
        DppControl::WaveShiftRight,
        DppControl::WaveRotateRight,
        DppControl::RowBroadcast15,
        DppControl::RowBroadcast31,
        DppControl::RowNewBroadcast(any),
    ];
    let of_32 = [DppControl::RowXmask(any), DppControl::Dpp8(order)];
    let others = if machine.lanes == 64 { &of_64[..] } else { &of_32 };
    let choice = random.next() as usize % (of_all.len() + others.len());
    let mask = |bits: u64| if bits & 0x30 == 0 { (bits & 15) as u8 } else { 15 };
    LaneMove::of(&Dpp {
        control: of_all.get(choice).copied().unwrap_or_else(|| others[choice - of_all.len()]),
        row_mask: mask(bits >> 8),
        bank_mask: mask(bits >> 16),
        bound_control: bits & 1 << 24 != 0,
        fetch_inactive: bits & 1 << 25 != 0,
    })
}

/// Returns an instruction that only moves words between lanes.
pub fn exchange(random: &mut Random, machine: Machine) -> (Op, Plan) {
    let named = [
        ("v_permlane16_b32", Exchange::BySelects { distance: 0 }),
        ("v_permlanex16_b32", Exchange::BySelects { distance: 16 }),
        ("v_permlane16_var_b32", Exchange::BySelectOfLane { distance: 0 }),
        ("v_permlanex16_var_b32", Exchange::BySelectOfLane { distance: 16 }),
        ("v_permlane64_b32", Exchange::ByHalves),
    ];
    let fetch_inactive = random.next() & 1 != 0;
    let choice = random.next() as usize % 8;
    let count = if machine.lanes == 64 { named.len() } else { named.len() - 1 };
    let (run, exchange) = match named[..count].get(choice) {
        Some((name, exchange)) => {
            (Run::Whole(find_whole(name, machine).expect("a row").function), *exchange)
        }
        None if choice == 7 => (Run::Lds(LdsAccess::Swizzle), Exchange::Fixed),
        None if fetch_inactive => {
            (Run::Lds(LdsAccess::BackwardPermuteAny), Exchange::ByAddress { fetch_inactive })
        }
        None => (Run::Lds(LdsAccess::BackwardPermute), Exchange::ByAddress { fetch_inactive }),
    };
    let mut op = op(run);
    op.destination = row(random);
    for source in &mut op.sources {
        source.words = [Word::Row(row(random)); 2];
    }
    op.immediate = (random.next() & 0xff) as i64;
    op.inst_mut().modifiers.op_sel = Some((random.next() & 3) as u8);
    match exchange {
        Exchange::BySelects { .. } => {
            for source in &mut op.sources[1..3] {
                source.words = match random.next() & 1 {
                    0 => pair_words(scalar_pair(random)),
                    _ => [Word::Constant(random.next() as u32); 2],
                };
            }
        }
        Exchange::BySelectOfLane { .. } if random.next() & 1 == 0 => {
            op.sources[1].words = pair_words(scalar_pair(random));
        }
        Exchange::Fixed => {
            let lane_move = Some(LaneMove::swizzle(random.next() as u16));
            op.adapt = Some(Box::new(Adapt { lane_move, ..Adapt::default() }));
        }
        _ => {}
    }
    op.per_lane = true;
    (op, Plan::Exchange(exchange))
}
