//! Control operations: branches, calls, barriers, traps, end of program.

use super::sync::SyncOperation;

/// A control operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Has no effect in a functional model: waits, priorities, cache control, hints.
    Nothing,
    /// Ends the wave.
    EndProgram,
    /// Waits for the other waves of the workgroup.
    Barrier,
    /// Jumps by a 64-bit distance in a register.
    AddPc,
    /// Calls the trap handler.
    Trap,
    /// Jumps by the immediate if the condition holds.
    Branch(Condition),
    /// Reads the PC.
    GetPc,
    /// Jumps to a register.
    SetPc,
    /// Jumps to a register and saves the return address.
    SwapPc,
    /// Jumps by the immediate and saves the return address.
    Call,
    /// Writes a hardware register.
    SetRegister,
    /// Sets the high bits of the vector register numbers.
    SetBanks,
    /// Takes both directions of a branch, one after the other: the lanes of the mask jump by the
    /// immediate.
    Fork,
    /// Like [`Control::Fork`], with the target in a register.
    ForkToRegister,
    /// Joins the directions of a fork.
    Join,
    /// Enables or disables skipping of vector instructions.
    SkipVectors,
    /// Ends the wave if the immediate's lowest bit is set.
    Kill,
    /// Halts the wave if the immediate's lowest bit is set.
    Halt,
    /// Halts the wave.
    HaltAlways,
    /// Global wave sync.
    Sync(SyncOperation),
    /// Illegal by definition of the ISA, such as the code after a program's end.
    Illegal {
        /// First word of the encoding.
        word: u32,
    },
    /// Operates on a barrier with separate signal and wait instructions.
    SplitBarrier(SplitBarrier),
    /// Starts a loop over the halves of a wave of 64 lanes.
    SubvectorLoopBegin,
    /// Repeats the loop for the other half, or ends it.
    SubvectorLoopEnd,
}

/// Operation on a split barrier (RDNA 4 ISA, "Barriers").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitBarrier {
    /// Signals that the wave has arrived.
    Signal,
    /// Signals, and sets SCC if the wave is the first to arrive.
    SignalIsFirst,
    /// Waits until all waves have arrived.
    Wait,
    /// Reads the number of waves, and of arrived waves.
    State,
    /// Sets the number of signals that complete a named barrier (gfx1250).
    Init,
    /// Selects the named barrier that the wave waits at (gfx1250).
    Join,
    /// Gives up membership in the named barrier that the wave has joined (gfx1250).
    Leave,
}

/// Condition of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Condition {
    Always,
    Scc(bool),
    VccZero(bool),
    ExecZero(bool),
}

/// Returns the control operation with a canonical name.
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
        "s_barrier_leave" => Control::SplitBarrier(SplitBarrier::Leave),
        "s_get_barrier_state" => Control::SplitBarrier(SplitBarrier::State),
        "s_trap" => Control::Trap,
        "s_branch" => Control::Branch(Condition::Always),
        "s_cbranch_scc0" => Control::Branch(Condition::Scc(false)),
        "s_cbranch_scc1" => Control::Branch(Condition::Scc(true)),
        "s_cbranch_vccz" => Control::Branch(Condition::VccZero(true)),
        "s_cbranch_vccnz" => Control::Branch(Condition::VccZero(false)),
        "s_cbranch_execz" => Control::Branch(Condition::ExecZero(true)),
        "s_cbranch_execnz" => Control::Branch(Condition::ExecZero(false)),
        // Never taken: no debugger is attached, so the conditional-debug flags are clear.
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
