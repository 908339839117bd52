//! Observers read the state of a wave and can change it.

use flipwave_codeobj::CodeObject;
use flipwave_device::{
    AccessKind, Address, ArgumentValue, Completion, Device, DeviceFault, FaultCause, WaveId,
};
use flipwave_injector::{Program, Workload};
use flipwave_isa::{Inst, Isa, Lane, LaneMask, Pc};
use flipwave_sim::{Executed, Observer, Watch, WaveState};
use flipwave_tests::{
    Assembly, Machine, TestProgram, assemble, compile_for, gfx90a, gpu, gpu_mut, machines,
    to_values,
};

/// Time of an observer's call, relative to the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Before,
    After,
}

/// Calls a function at every instruction of every wave.
struct Each<F>(F);

impl<F: FnMut(When, &Inst, &mut WaveState<'_>)> Observer for Each<F> {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn before(&mut self, inst: &Inst, _: WaveId, state: &mut WaveState<'_>) {
        self.0(When::Before, inst, state);
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        self.0(When::After, executed.inst, state);
        Watch::On
    }
}

/// A kernel of a few instructions, and its buffer of 64 words with all bits set.
struct Small {
    kernel: Assembly,
    workload: Workload,
    buffer: Address,
}

impl Small {
    fn new(instructions: &str) -> Small {
        let kernel = assemble(instructions);
        let mut program = TestProgram::new(&kernel.code_object);
        let argument = program.output(&[u32::MAX; 64]);
        let ArgumentValue::Buffer(buffer) = argument else { unreachable!("a buffer") };
        program.launch("planted", [64, 1, 1], [64, 1, 1], &[argument]);
        Small { kernel, workload: program.workload(), buffer }
    }

    /// Runs the kernel. Returns the final content of the buffer, or the device fault.
    fn run(
        &self,
        observe: impl FnMut(When, &Inst, &mut WaveState<'_>),
    ) -> Result<Vec<u32>, DeviceFault> {
        let Workload { mut device, program: Program { dispatches, .. }, .. } =
            self.workload.clone();
        match gpu_mut(&mut device)
            .dispatch_observed(&dispatches[0], &mut Each(observe))
            .expect("a dispatch")
        {
            Completion::Completed(_) => {
                let mut bytes = vec![0; 256];
                device.read(self.buffer, &mut bytes).expect("the buffer");
                Ok(to_values(&bytes))
            }
            Completion::Faulted(fault) => Err(fault),
        }
    }

    /// Runs the kernel and calls a function once, at a label.
    fn run_with(
        &self,
        when: When,
        label: &str,
        mut act: impl FnMut(&mut WaveState<'_>),
    ) -> Result<Vec<u32>, DeviceFault> {
        let at = self.kernel.label(label);
        self.run(|now, inst, state| {
            if (now, inst.pc) == (when, at) {
                act(state);
            }
        })
    }
}

/// A kernel that computes and stores 7 if nothing is changed.
const STORES: &str = "
    s_mov_b32 s4, 0
first: v_mov_b32 v2, 7
second: v_add_u32 v2, 1, v2
third: v_add_u32 v2, 2, v2
stores: global_store_dword v1, v2, s[2:3]
";

#[test]
fn observer_receives_every_instruction_with_its_address() {
    let small = Small::new(STORES);
    let mut count = 0;
    let mut next = None;
    let stored = small.run(|when, inst, state| {
        assert_eq!((state.exec(), state.wave_lanes()), (LaneMask::FULL, 64));
        match when {
            When::Before => assert_eq!(state.pc(), inst.pc),
            When::After => {
                count += 1;
                assert_eq!(state.pc(), Pc(inst.pc.0 + u64::from(inst.size)));
            }
        }
        assert!(next.is_none_or(|next| next == inst.pc) || when == When::After);
        next = (when == When::After).then(|| state.pc());
        assert_eq!(state.executed(), count);
        let pc = state.pc();
        state.set_pc(pc);
    });
    assert_eq!(stored, Ok(vec![10; 64]));
    assert_eq!(count, 9);
}

#[test]
fn second_module_has_separate_addresses() {
    let small = Small::new(STORES);
    let Workload { mut device, program: Program { mut dispatches, .. }, .. } =
        small.workload.clone();
    let object = CodeObject::parse(&small.kernel.code_object).expect("a code object");
    dispatches[0].module = gpu_mut(&mut device).load(&object).expect("a code object that loads");
    let mut observer = Each(|when, inst: &Inst, state: &mut WaveState<'_>| {
        if when == When::Before {
            assert_eq!(state.pc(), inst.pc);
        } else if inst.pc == small.kernel.label("first") {
            state.set_pc(small.kernel.label("third"));
        }
    });
    let end =
        gpu_mut(&mut device).dispatch_observed(&dispatches[0], &mut observer).expect("a dispatch");
    assert!(matches!(end, Completion::Completed(_)), "{end:?}");
    let mut bytes = [0; 4];
    device.read(small.buffer, &mut bytes).expect("the buffer");
    assert_eq!(u32::from_le_bytes(bytes), 9);
}

#[test]
fn wave_continues_at_a_changed_pc() {
    let small = Small::new(STORES);
    let third = small.kernel.label("third");
    // The jump skips `second`, whether before or at its execution.
    for (when, label) in [(When::After, "first"), (When::Before, "second")] {
        assert_eq!(small.run_with(when, label, |state| state.set_pc(third)), Ok(vec![9; 64]));
    }
    // The two lowest bits of the PC are ignored.
    let odd = Pc(third.0 | 3);
    assert_eq!(small.run_with(When::After, "first", |state| state.set_pc(odd)), Ok(vec![9; 64]));
    assert_eq!(small.run_with(When::After, "first", |_| {}), Ok(vec![10; 64]));
}

#[test]
fn invalid_pc_faults_like_a_wild_jump() {
    let small = Small::new(STORES);
    let wild = |bit: u32| {
        let outcome = small.run_with(When::After, "first", |state| {
            let pc = state.pc();
            state.set_pc(Pc(pc.0 ^ 1 << bit));
        });
        outcome.expect_err("no code there")
    };
    for bit in [40, 62, 63] {
        let fault = wild(bit);
        let pc = fault.place.pc;
        let jump = Small::new(&format!(
            "s_mov_b32 s4, {:#x}\n s_mov_b32 s5, {:#x}\n s_setpc_b64 s[4:5]",
            pc.0 as u32,
            pc.0 >> 32
        ));
        assert_eq!(jump.run(|_, _, _| {}).expect_err("no code there"), fault);
        let (address, access) = (Address(pc.0), AccessKind::Fetch);
        assert_eq!(fault.cause, FaultCause::MemoryViolation { address, access, lane: None });
    }
}

fn encoded(text: &str) -> Vec<u8> {
    let isa = Isa::new(&gfx90a()).expect("the target");
    isa.assemble(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn replacement_instruction_is_executed_once() {
    let small = Small::new(STORES);
    let run = |bytes: &[u8]| {
        small.run_with(When::Before, "second", |state| state.replace_instruction(bytes))
    };
    assert_eq!(run(&encoded("v_add_u32 v2, 1, v2")), Ok(vec![10; 64]));
    assert_eq!(run(&encoded("v_add_u32 v2, 5, v2")), Ok(vec![14; 64]));
    // A longer instruction also replaces the following word.
    assert_eq!(run(&encoded("v_add_u32 v2, 0x12345, v2")), Ok(vec![0x12345 + 7; 64]));
    // A literal that is not given is read from memory.
    let first = &encoded("v_add_u32 v2, 0x12345, v2")[..4];
    let literal: [u8; 4] = encoded("v_add_u32 v2, 2, v2").try_into().expect("one word");
    assert_eq!(run(first), Ok(vec![u32::from_le_bytes(literal) + 7; 64]));
    // After a shorter instruction, the rest of the old one is executed; here, there is none.
    assert_eq!(run(&encoded("s_nop 0")), Ok(vec![9; 64]));
}

#[test]
fn replacement_does_not_affect_later_iterations() {
    let small = Small::new(
        "s_mov_b32 s4, 3
         v_mov_b32 v2, 0
         again: v_add_u32 v2, 1, v2
         s_sub_u32 s4, s4, 1
         s_cmp_lg_u32 s4, 0
         s_cbranch_scc1 again
         global_store_dword v1, v2, s[2:3]",
    );
    let mut times = 0;
    let mut shown = Vec::new();
    let again = small.kernel.label("again");
    let stored = small.run(|when, inst, state| {
        if inst.pc == again && when == When::Before {
            times += 1;
            if times == 2 {
                state.replace_instruction(&encoded("v_add_u32 v2, 10, v2"));
            }
        } else if inst.pc == again {
            shown.push(inst.text.clone());
        }
    });
    assert_eq!(stored, Ok(vec![12; 64]));
    let original = "v_add_u32_e32 v2, 1, v2";
    assert_eq!(shown, [original, "v_add_u32_e32 v2, 10, v2", original]);
}

#[test]
fn invalid_replacement_faults_at_its_address() {
    let small = Small::new(STORES);
    let word = 0xffff_ffffu32;
    let fault = small
        .run_with(When::Before, "second", |state| state.replace_instruction(&word.to_le_bytes()))
        .expect_err("no instruction");
    assert_eq!(fault.cause, FaultCause::IllegalInstruction { word });
    assert_eq!(fault.place.pc, small.kernel.label("second"));
}

#[test]
fn observer_accesses_lds_of_the_workgroup() {
    let small = Small::new(
        ".set lds_bytes, 64
         v_mov_b32 v2, 5
         v_mov_b32 v3, 0
         writes: ds_write_b32 v3, v2 offset:60
         s_waitcnt lgkmcnt(0)
         ds_read_b32 v2, v3 offset:60
         s_waitcnt lgkmcnt(0)
         global_store_dword v1, v2, s[2:3]",
    );
    let stored = small.run_with(When::After, "writes", |state| {
        assert_eq!((state.lds_bytes(), state.read_lds(60)), (64, Some(5)));
        for outside in [1, 58, 64, u32::MAX - 3] {
            assert_eq!((state.read_lds(outside), state.write_lds(outside, 1)), (None, false));
        }
        assert!(state.write_lds(60, 6));
    });
    assert_eq!(stored, Ok(vec![6; 64]));
}

#[test]
fn observer_accesses_only_allocated_device_memory() {
    let small = Small::new("last: s_nop 0");
    let buffer = small.buffer;
    let Workload { device, program: Program { dispatches, .. }, .. } = &small.workload;
    let code = small.kernel.label("last");
    let code = gpu(device).address_of(dispatches[0].module, code.0).expect("the module's");
    let stored = small.run_with(When::Before, "last", |state| {
        assert_eq!(state.read_memory(buffer), Some(u32::MAX));
        assert!(state.write_memory(Address(buffer.0 + 4), 9));
        let word = encoded("s_nop 0").try_into().map(u32::from_le_bytes);
        assert_eq!(state.read_memory(code), word.ok());
        assert!(!state.write_memory(code, 0));
        assert_eq!(
            (state.read_memory(Address(8)), state.write_memory(Address(8), 0)),
            (None, false)
        );
    });
    assert_eq!(stored.map(|words| words[..3].to_vec()), Ok(vec![u32::MAX, 9, u32::MAX]));
}

/// Number of waves in which every lane's array is found at the lane's private addresses, and number of
/// waves in which it is found at those of the next lane.
fn arrays_found(machine: Machine) -> [usize; 2] {
    let mut program = TestProgram::new(&compile_for(machine, "private.cl", &["-O1"]));
    let out = program.output(&[0u32; 512]);
    program.launch("keeps", [512, 1, 1], [128, 1, 1], &[out]);
    let Workload { mut device, program: Program { dispatches, .. }, .. } = program.workload();
    let mut found = [0; 2];
    let mut observer = Each(|when, inst: &Inst, state: &mut WaveState<'_>| {
        if when == When::After || inst.operation.name() != "s_endpgm" {
            return;
        }
        let lanes = state.wave_lanes();
        assert_eq!(state.private_address(Lane(lanes), 0), None);
        assert_eq!(state.private_address(Lane(0), state.private_bytes()), None);
        let mut word = |lane: u8, offset: u32| {
            let address = state.private_address(Lane(lane % lanes), offset)?;
            state.read_memory(address)
        };
        let offsets = (0..1024).step_by(4);
        let start = offsets.into_iter().find(|start| {
            let first = word(0, *start);
            first.is_some_and(|first| first & 0xff == 0 && word(0, start + 4) == Some(first + 1))
        });
        let start = start.expect("the first lane's array");
        let first = word(0, start).expect("its first element");
        for (beside, count) in found.iter_mut().enumerate() {
            let is_there = (0..lanes).all(|lane| {
                let at = lane + beside as u8;
                (0..8).all(|n| word(at, start + 4 * n) == Some(first + (u32::from(lane) << 8) + n))
            });
            *count += usize::from(is_there);
        }
    });
    gpu_mut(&mut device).dispatch_observed(&dispatches[0], &mut observer).expect("a dispatch");
    found
}

#[test]
fn private_memory_layout_agrees_with_stores_on_every_machine() {
    for machine in machines() {
        let waves = 512 / machine.lanes;
        assert_eq!(arrays_found(machine), [waves, 0], "{machine}");
    }
}
