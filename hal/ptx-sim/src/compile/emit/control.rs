//! Control flow between blocks.

use super::Emitter;
use crate::compile::frame::offset;
use crate::program::Op;
use flipwave_ptx::INSTRUCTION_BYTES;

impl Emitter<'_> {
    /// The end of a block with a number of instructions without guards.
    pub(super) fn end_block(&mut self, number: usize, unguarded: usize) {
        let instructions = self.region[number].instructions.clone();
        self.flush();
        let executed = self.field("i64", offset::EXECUTED);
        let executed = self.scalar(format_args!("add i64 {executed}, {}", instructions.len()));
        self.store_field(&format!("i64 {executed}"), offset::EXECUTED);
        let operations = self.field("i64", offset::LANE_OPERATIONS);
        let added = self.scalar(format_args!("mul i64 %lane.count, {unguarded}"));
        let mut operations = self.scalar(format_args!("add i64 {operations}, {added}"));
        for count in std::mem::take(&mut self.guarded) {
            operations = self.scalar(format_args!("add i64 {operations}, {count}"));
        }
        self.store_field(&format!("i64 {operations}"), offset::LANE_OPERATIONS);
        let next = instructions.end;
        let last = &self.program.steps[next - 1];
        let guard = self.guard.take();
        let (Op::Branch { target, .. }, guard) = (&last.op, guard) else {
            return self.continue_at(next, &executed);
        };
        let target = (target / u64::from(INSTRUCTION_BYTES)) as usize;
        let Some(guard) = guard else { return self.continue_at(target, &executed) };
        let taken = self.scalar(format_args!("bitcast <32 x i1> {guard} to i32"));
        let number = self.name();
        let all = self.scalar(format_args!("icmp eq i32 {taken}, %active.bits"));
        self.line(format_args!("br i1 {all}, label %all{number}, label %some{number}"));
        self.begin(format!("all{number}"));
        self.continue_at(target, &executed);
        self.begin(format!("some{number}"));
        let none = self.scalar(format_args!("icmp eq i32 {taken}, 0"));
        self.line(format_args!("br i1 {none}, label %none{number}, label %diverged{number}"));
        self.begin(format!("none{number}"));
        self.continue_at(next, &executed);
        self.begin(format!("diverged{number}"));
        self.store_field(&format!("i32 {taken}"), offset::TAKEN);
        self.line(format_args!("ret i32 1"));
    }

    /// Continues at an instruction: in the region, if a block begins there, which may be executed.
    fn continue_at(&mut self, at: usize, executed: &str) {
        let target = self.region.iter().position(|block| block.instructions.start == at);
        if let Some(block) = target {
            let length = self.region[block].instructions.len();
            let [limit, turn, until, stop] =
                [offset::LIMIT, offset::TURN, offset::UNTIL, offset::STOP]
                    .map(|at| self.field("i64", at));
            let end = self.scalar(format_args!("add i64 {executed}, {length}"));
            let conditions = [
                self.scalar(format_args!("icmp ule i64 {end}, {limit}")),
                self.scalar(format_args!("icmp ult i64 {executed}, {turn}")),
                self.scalar(format_args!("icmp ne i64 {until}, {at}")),
                self.scalar(format_args!("icmp ne i64 {stop}, {at}")),
            ];
            let [mut all, rest @ ..] = conditions;
            for condition in rest {
                all = self.scalar(format_args!("and i1 {all}, {condition}"));
            }
            let leave = format!("leave{}", self.name());
            self.line(format_args!("br i1 {all}, label %block{block}, label %{leave}"));
            self.begin(leave);
        }
        self.store_field(&format!("i64 {at}"), offset::NEXT);
        self.line(format_args!("ret i32 0"));
    }
}
