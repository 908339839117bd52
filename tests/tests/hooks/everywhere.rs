//! Hooks before and after every instruction do not change the program's behaviour.

use flipwave_codeobj::CodeObject;
use flipwave_hooks::hook::{Argument, Mask};
use flipwave_hooks::rewrite::{HookCall, Instrumentation, Report, Rewritten, Selection, When};
use flipwave_tests::{
    MACHINES, Once, assert_lockstep, cases, clean, examples, gpu, hook_compiler, hook_source,
    instrument, rewritten_levels, workload,
};
use std::sync::Arc;

/// Hooks that clobber everything they are allowed to.
const TOUCH: &str = r#"
uint64_t counter;

#if FLIPWAVE_LANES == 64
#define VCC "vcc"
#else
#define VCC "vcc_lo"
#endif

/* Lane masks, branches, SCC, VCC, M0. */
void touch(uint32_t seed)
{
    uint32_t value = flipwave_lane() * seed;
    asm volatile("s_mov_b32 m0, %0\n\ts_cmp_lg_u32 %0, 0" : : "s"(flipwave_uniform(seed)) : "scc");
    if (value & 4)
        asm volatile("v_mul_lo_u32 %0, %0, %0" : "+v"(value));
    asm volatile("v_cmp_eq_u32 " VCC ", %0, %0" : : "v"(value) : "vcc");
}

/* Memory, once per wave. */
void count(uint64_t *counter)
{
    flipwave_count(counter, 1);
}

void nothing(void)
{
#ifdef LONG
    asm volatile(".rept 2000\n\ts_nop 0\n\t.endr");
#endif
}
"#;

/// Requests hooks before and after every instruction.
pub fn touch(instrumentation: &mut Instrumentation<'_>) {
    touch_one_in(1, "", instrumentation);
}

/// Requests hooks before and after one of `one_in` instructions. `more` is prepended to the hooks' source.
/// Returns the number of hooks.
pub fn touch_one_in(one_in: usize, more: &str, instrumentation: &mut Instrumentation<'_>) -> usize {
    let source = hook_source("touch.c", &format!("{more}{TOUCH}"), instrumentation);
    let source = instrumentation.add_source(source);
    let call = |function: &str, arguments, mask| HookCall {
        source,
        function: function.to_owned(),
        arguments,
        results: Vec::new(),
        mask,
    };
    let sites: Vec<_> =
        instrumentation.select(&Selection::default()).into_iter().step_by(one_in).collect();
    for at in sites.iter().copied() {
        for when in [When::Before, When::After] {
            let seed = vec![Argument::Constant(u64::from(at.0) & 0xffff)];
            instrumentation.call(at, when, call("touch", seed, Mask::Guest));
            instrumentation.call(at, when, call("nothing", Vec::new(), Mask::Guest));
        }
        let counter = vec![Argument::Data { symbol: "counter".to_owned(), offset: 0 }];
        instrumentation.call(at, When::Before, call("count", counter, Mask::Single));
    }
    5 * sites.len()
}

/// Asserts that hooks are missing only after instructions that do not return control.
fn assert_complete(report: &Report) {
    assert!(report.placed > 0);
    assert!(report.proof.is_some(), "not checked");
    for refused in &report.refused {
        assert_eq!(refused.when, When::After, "{refused:?}");
        assert_eq!(refused.reason, "the instruction has no known successor", "{refused:?}");
    }
}

/// Adds hooks at every instruction of a code object.
pub fn touched(object: &CodeObject) -> Arc<Rewritten> {
    static TOUCHED: Once<Vec<u8>, Arc<Rewritten>> = Once::new();
    TOUCHED.get(object.bytes().to_vec(), || {
        let mut instrumentation =
            Instrumentation::new(object).unwrap_or_else(|error| panic!("{error}"));
        touch(&mut instrumentation);
        let new = instrumentation.rewrite(hook_compiler());
        let new = new.unwrap_or_else(|error| panic!("{error}"));
        assert_complete(&new.report);
        Arc::new(new)
    })
}

#[test]
fn examples_run_in_lockstep_with_hooks_everywhere_without_violations() {
    for file in cases(examples(), 3) {
        for level in rewritten_levels().iter().copied() {
            println!("{} {level}", file.display());
            let workload = workload(MACHINES[0], &file, &[level]);
            let golden = workload.golden().unwrap_or_else(|error| panic!("{error}"));
            let instrumented = instrument(&workload, touch);
            for (_, new) in instrumented.rewritten.values() {
                assert_complete(&new.report);
            }
            assert_eq!(clean(&instrumented.workload).outputs, golden.outputs);
            assert_lockstep(gpu(&instrumented.original.device).clone(), instrumented.twins());
        }
    }
}
