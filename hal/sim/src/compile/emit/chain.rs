//! Exits of a block: they count what was executed, and jump to the next block if it is known and
//! its entry guard accepts the wave; otherwise they return.

use super::emitter::Emitter;
use crate::compile::compiled::Resources;
use crate::compile::frame::offset;
use crate::compile::plan::writes_exec;
use crate::compile::value::Value;
use crate::instruction::{Flow, Shared};
use std::fmt::Write;

/// Index of the exit after the last instruction.
const NEXT: usize = 0;
const TARGET: usize = 1;

impl Emitter<'_> {
    /// Loads the values that the exits use.
    pub(super) fn begin_chain(&mut self) {
        let _ = write!(
            self.text,
            "  %executed.at = getelementptr i8, ptr %frame, i64 {}\n  \
             %operations.at = getelementptr i8, ptr %frame, i64 {}\n  \
             %current.at = getelementptr i8, ptr %frame, i64 {}\n  \
             %current = load ptr, ptr %current.at\n  \
             %active.count = call i64 @llvm.ctpop.i64(i64 %exec)\n  \
             %windows.at = getelementptr i8, ptr %frame, i64 {}\n  \
             %windows.all = load ptr, ptr %windows.at\n  \
             %windows.first.at = getelementptr i8, ptr %current, i64 {}\n  \
             %windows.first = load i64, ptr %windows.first.at\n  \
             %windows = getelementptr i8, ptr %windows.all, i64 %windows.first\n",
            offset::EXECUTED,
            offset::LANE_OPERATIONS,
            offset::CURRENT,
            offset::WINDOWS,
            offset::LINK_FIRST_WINDOW,
        );
    }

    /// Ends the block at its last instruction.
    pub(super) fn exit_to_next(&mut self) {
        self.count_instructions();
        self.emit_exit(NEXT);
    }

    /// Ends the block with a barrier at which the wave waits.
    pub(super) fn exit_to_barrier(&mut self) {
        self.count_instructions();
        self.return_to_caller(NEXT);
    }

    /// Ends the block with a branch that `condition` takes.
    pub(super) fn exit_on_branch(&mut self, condition: Value) {
        self.count_instructions();
        let _ = write!(self.text, "  br i1 {condition}, label %taken, label %passed\npassed:\n");
        self.emit_exit(NEXT);
        self.text.push_str("taken:\n");
        let [_, target] = self.source.exits();
        // If EXEC has changed, the block is entered again from the start.
        if target == self.source.start && !self.source.ops.iter().any(writes_exec) {
            let count = self.source.ops.len();
            let until = self.field(offset::UNTIL, "i64");
            let again = self.value(format_args!("add i64 %executed, {count}"));
            let has_room = self.value(format_args!("icmp ule i64 {again}, {until}"));
            let may_branch = self.has_executed_less(offset::BRANCH_FROM);
            let loops = self.value(format_args!("and i1 {has_room}, {may_branch}"));
            let loops = self.and_may_begin_run(loops, TARGET);
            let _ = write!(self.text, "  br i1 {loops}, label %top, label %done\ndone:\n");
        }
        self.emit_exit(TARGET);
    }

    /// Counts the instructions and lane operations of the block.
    fn count_instructions(&mut self) {
        let count = self.source.ops.len();
        let per_lane = self.source.ops.iter().filter(|op| op.per_lane).count();
        let _ = write!(
            self.text,
            "  %executed.before = load i64, ptr %executed.at\n  \
             %executed = add i64 %executed.before, {count}\n  \
             store i64 %executed, ptr %executed.at\n  \
             %operations.before = load i64, ptr %operations.at\n  \
             %operations.lanes = mul i64 %active.count, {per_lane}\n  \
             %operations.own = add i64 %operations.lanes, {}\n  \
             %operations = add i64 %operations.before, %operations.own\n  \
             store i64 %operations, ptr %operations.at\n",
            count - per_lane
        );
    }

    /// Tests whether the wave has executed fewer instructions than a field of the frame says.
    fn has_executed_less(&mut self, field: usize) -> Value {
        let from = self.field(field, "i64");
        self.value(format_args!("icmp ult i64 %executed, {from}"))
    }

    /// Adds to a condition that the wave may begin the run of LDS accesses at an exit.
    fn and_may_begin_run(&mut self, condition: Value, exit: usize) -> Value {
        let field = match self.source.next_runs[exit] {
            Shared::Nothing => return condition,
            Shared::Read => offset::READ_UNTIL,
            Shared::Write => offset::WRITE_UNTIL,
        };
        let until = self.field(field, "i64");
        let may_begin = self.value(format_args!("icmp ule i64 %executed, {until}"));
        self.value(format_args!("and i1 {condition}, {may_begin}"))
    }

    /// Jumps to the next block of an exit, or returns.
    fn emit_exit(&mut self, exit: usize) {
        let at = offset::LINK_NEXT + exit * size_of::<usize>();
        let pointer = self.after("%current", at);
        let next = self.value(format_args!("load atomic ptr, ptr {pointer} acquire, align 8"));
        let pointer = self.after(next, offset::LINK_REQUIRED_BUDGET);
        let budget = self.value(format_args!("load atomic i64, ptr {pointer} monotonic, align 8"));
        let end = self.value(format_args!("add i64 %executed, {budget}"));
        let until = self.field(offset::CHAIN_UNTIL, "i64");
        let mut may_enter = self.value(format_args!("icmp ule i64 {end}, {until}"));
        let turn = match self.source.flow() {
            Flow::Parts => Some(offset::BRANCH_FROM),
            Flow::LastOfPage => Some(offset::LEAVE_FROM),
            Flow::Inside | Flow::Waits => None,
        };
        if let Some(field) = turn {
            let has_turn = self.has_executed_less(field);
            may_enter = self.value(format_args!("and i1 {may_enter}, {has_turn}"));
        }
        let may_enter = self.and_may_begin_run(may_enter, exit);
        let available = self.field(offset::RESOURCES, "i64");
        let pointer = self.after(next, offset::LINK_RESOURCES);
        let required = self.value(format_args!("load i64, ptr {pointer}"));
        let guard_bits = Resources::GUARD_BITS as i64;
        let available = self.value(format_args!("or i64 {available}, {guard_bits}"));
        let left = self.value(format_args!("sub i64 {available}, {required}"));
        let left = self.value(format_args!("and i64 {left}, {guard_bits}"));
        let is_accepted = self.value(format_args!("icmp eq i64 {left}, {guard_bits}"));
        let may_enter = self.value(format_args!("and i1 {may_enter}, {is_accepted}"));
        let number = self.number();
        let _ = write!(
            self.text,
            "  br i1 {may_enter}, label %next{number}, label %back{number}\nnext{number}:\n"
        );
        self.log(next, number);
        let _ = write!(self.text, "enter{number}:\n  store ptr {next}, ptr %current.at\n");
        let pointer = self.after(next, offset::LINK_ENTRY);
        let entry = self.value(format_args!("load ptr, ptr {pointer}"));
        let _ = write!(
            self.text,
            "  %end{number} = musttail call i32 {entry}(ptr %frame)\n  ret i32 %end{number}\n\
             back{number}:\n"
        );
        self.return_to_caller(exit);
    }

    /// Returns to the caller at an exit.
    fn return_to_caller(&mut self, exit: usize) {
        let relative = self.source.exits()[exit].wrapping_sub(self.source.start) as i64;
        let pointer = self.after("%current", offset::LINK_START);
        let start = self.value(format_args!("load i64, ptr {pointer}"));
        let pc = self.value(format_args!("add i64 {start}, {relative}"));
        let pointer = self.after("%frame", offset::PC);
        let _ = write!(self.text, "  store i64 {pc}, ptr {pointer}\n  ret i32 0\n");
    }

    /// Logs the block if blocks are logged, and branches to `enter`; branches to `back` if a trait
    /// of the next block forbids entering it.
    fn log(&mut self, next: Value, number: u32) {
        let log = self.field(offset::LOG, "ptr");
        let logs = self.value(format_args!("icmp ne ptr {log}, null"));
        let _ = write!(
            self.text,
            "  br i1 {logs}, label %logs{number}, label %enter{number}\nlogs{number}:\n"
        );
        let stops = self.field(offset::STOP_TRAITS, "i32");
        let pointer = self.after(next, offset::LINK_TRAITS);
        let traits = self.value(format_args!("load i32, ptr {pointer}"));
        let met = self.value(format_args!("and i32 {traits}, {stops}"));
        let stops = self.value(format_args!("icmp ne i32 {met}, 0"));
        let _ = write!(
            self.text,
            "  br i1 {stops}, label %back{number}, label %log{number}\nlog{number}:\n"
        );
        let exec = self.value(format_args!("load i64, ptr %exec.at, align 4"));
        for (value, kind, at) in [
            ("%current".to_owned(), "ptr", offset::LOGGED_BLOCK),
            ("%executed".to_owned(), "i64", offset::LOGGED_EXECUTED),
            (exec.to_string(), "i64", offset::LOGGED_EXEC),
        ] {
            let pointer = self.after(log, at);
            let _ = writeln!(self.text, "  store {kind} {value}, ptr {pointer}");
        }
        let end = self.after(log, offset::LOGGED_SIZE);
        let pointer = self.after("%frame", offset::LOG);
        let _ = write!(self.text, "  store ptr {end}, ptr {pointer}\n  br label %enter{number}\n");
    }
}
