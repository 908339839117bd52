//! The control operations: branches, calls, barriers, traps, the end.

use super::sync::SyncOperation;

/// A control operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Nothing a functional model shows: waits, priorities, cache control, hints.
    Nothing,
    /// The wave ends.
    EndProgram,
    /// Waits for the other waves of the workgroup.
    Barrier,
    /// Jumps by a 64-bit distance.
    AddPc,
    /// Calls the trap handler.
    Trap,
    /// Jumps by the immediate if the condition holds.
    Branch(Condition),
    /// Reads the PC.
    GetPc,
    /// Jumps to a register.
    SetPc,
    /// Jumps to a register and keeps the return address.
    SwapPc,
    /// Jumps by the immediate and keeps the return address.
    Call,
    /// Writes a hardware register.
    SetRegister,
    /// Sets the high bits of the numbers of vector registers.
    SetBanks,
    /// Goes both ways of a branch, one after the other: the lanes of the mask jump by the
    /// immediate.
    Fork,
    /// The same, the target being in a register.
    ForkToRegister,
    /// Where the ways of a fork come together.
    Join,
    /// Makes vector instructions be skipped, or not.
    SkipVectors,
    /// Ends the wave if the immediate's lowest bit is set.
    Kill,
    /// Halts the wave if the immediate's lowest bit is set.
    Halt,
    /// Halts the wave.
    HaltAlways,
    /// Global wave sync.
    Sync(SyncOperation),
    /// What the ISA defines as illegal to execute, such as what stands after a program's end.
    Illegal {
        /// The first word of its encoding.
        word: u32,
    },
    /// Takes part in a barrier whose signal and wait are instructions of their own.
    SplitBarrier(SplitBarrier),
    /// Begins a loop over the halves of a wave of 64 lanes.
    SubvectorLoopBegin,
    /// Goes back for the other half, or ends the loop.
    SubvectorLoopEnd,
}

/// What an instruction does with the barrier of the workgroup (RDNA 4 ISA, "Barriers").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitBarrier {
    /// Says that the wave has arrived.
    Signal,
    /// The same; SCC says whether it is the first to arrive.
    SignalIsFirst,
    /// Waits until all waves have arrived.
    Wait,
    /// Reads how many waves there are, and how many have arrived.
    State,
    /// Sets how many signals complete a named barrier (gfx1250).
    Init,
    /// Makes a named barrier the one that the wave waits at (gfx1250).
    Join,
}

/// When a branch is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Condition {
    Always,
    Scc(bool),
    VccZero(bool),
    ExecZero(bool),
}

/// The control operation of a canonical name.
pub fn find(name: &str) -> Option<Control> {
    Some(match name {
        "s_nop"
        | "s_waitcnt"
        | "s_waitcnt_vmcnt"
        | "s_waitcnt_expcnt"
        | "s_waitcnt_lgkmcnt"
        | "s_sleep"
        | "s_setprio"
        | "s_icache_inv"
        | "s_wakeup"
        | "s_atc_probe"
        | "s_atc_probe_buffer"
        | "s_dcache_discard"
        | "s_dcache_discard_x2"
        | "s_incperflevel"
        | "s_decperflevel"
        | "s_ttracedata"
        | "s_dcache_inv"
        | "s_dcache_inv_vol"
        | "s_dcache_wb"
        | "s_dcache_wb_vol"
        | "buffer_wbinvl1"
        | "buffer_wbinvl1_vol"
        | "buffer_wbl2"
        | "buffer_invl2"
        | "v_nop"
        | "v_clrexcp"
        | "v_pipeflush"
        | "ds_nop"
        | "s_sendmsg"
        // gfx10 and later.
        | "s_waitcnt_vscnt"
        | "s_waitcnt_depctr"
        | "s_wait_idle"
        | "s_wait_event"
        | "s_delay_alu"
        | "s_clause"
        | "s_inst_prefetch"
        | "s_version"
        | "s_gl1_inv"
        | "s_ttracedata_imm"
        | "buffer_gl0_inv"
        | "buffer_gl1_inv"
        // gfx12.
        | "s_wait_loadcnt"
        | "s_wait_storecnt"
        | "s_wait_samplecnt"
        | "s_wait_bvhcnt"
        | "s_wait_expcnt"
        | "s_wait_dscnt"
        | "s_wait_kmcnt"
        | "s_wait_loadcnt_dscnt"
        | "s_wait_storecnt_dscnt"
        | "s_wait_alu"
        // gfx1250.
        | "s_wait_asynccnt"
        | "s_wait_tensorcnt"
        | "s_wait_xcnt"
        | "s_monitor_sleep"
        | "s_setprio_inc_wg"
        | "s_wakeup_barrier"
        | "global_prefetch_b8"
        | "flat_prefetch_b8"
        | "s_sleep_var"
        | "s_prefetch_inst"
        | "s_prefetch_inst_pc_rel"
        | "s_prefetch_data"
        | "s_prefetch_data_pc_rel"
        | "s_buffer_prefetch_data"
        | "global_wb"
        | "global_inv"
        | "global_wbinv"
        // gfx940.
        | "buffer_inv" => Control::Nothing,
        "s_endpgm" | "s_endpgm_saved" => Control::EndProgram,
        "s_setkill" => Control::Kill,
        "s_sethalt" => Control::Halt,
        "s_sendmsghalt" => Control::HaltAlways,
        "s_barrier" => Control::Barrier,
        "s_barrier_signal" => Control::SplitBarrier(SplitBarrier::Signal),
        "s_barrier_signal_isfirst" => Control::SplitBarrier(SplitBarrier::SignalIsFirst),
        "s_barrier_wait" => Control::SplitBarrier(SplitBarrier::Wait),
        "s_barrier_init" => Control::SplitBarrier(SplitBarrier::Init),
        "s_barrier_join" => Control::SplitBarrier(SplitBarrier::Join),
        "s_get_barrier_state" => Control::SplitBarrier(SplitBarrier::State),
        "s_trap" => Control::Trap,
        "s_branch" => Control::Branch(Condition::Always),
        "s_cbranch_scc0" => Control::Branch(Condition::Scc(false)),
        "s_cbranch_scc1" => Control::Branch(Condition::Scc(true)),
        "s_cbranch_vccz" => Control::Branch(Condition::VccZero(true)),
        "s_cbranch_vccnz" => Control::Branch(Condition::VccZero(false)),
        "s_cbranch_execz" => Control::Branch(Condition::ExecZero(true)),
        "s_cbranch_execnz" => Control::Branch(Condition::ExecZero(false)),
        // No debugger is attached: the conditional-debug flags are clear.
        "s_cbranch_cdbgsys"
        | "s_cbranch_cdbguser"
        | "s_cbranch_cdbgsys_or_user"
        | "s_cbranch_cdbgsys_and_user" => Control::Nothing,
        "s_getpc_b64" => Control::GetPc,
        "s_add_pc_i64" => Control::AddPc,
        "s_setpc_b64" => Control::SetPc,
        "s_swappc_b64" => Control::SwapPc,
        "s_call_b64" => Control::Call,
        "s_setreg_b32" | "s_setreg_imm32_b32" | "s_round_mode" | "s_denorm_mode" => {
            Control::SetRegister
        }
        "s_set_vgpr_msb" => Control::SetBanks,
        "s_cbranch_i_fork" => Control::Fork,
        "s_cbranch_g_fork" => Control::ForkToRegister,
        "s_cbranch_join" => Control::Join,
        "s_setvskip" => Control::SkipVectors,
        "s_code_end" => Control::Illegal { word: 0xbf9f_0000 },
        "v_illegal" => Control::Illegal { word: 0 },
        "s_subvector_loop_begin" => Control::SubvectorLoopBegin,
        "s_subvector_loop_end" => Control::SubvectorLoopEnd,
        _ => return SyncOperation::find(name).map(Control::Sync),
    })
}
