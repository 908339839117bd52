/* The fault to inject and the values struck. The host writes `fault` before a dispatch and reads
 * `waves` after it.
 *
 * Macros: WAVES is the number of waves with state in `waves`; WORDS is the number of words of a value;
 * GIVEN(variable) reads a variable that does not change during a dispatch. */

#if WORDS == 2
typedef uint64_t value_t;
#else
typedef uint32_t value_t;
#endif

struct fault {
    /* The change of a value, as encoded for `faulty`. */
    uint64_t change;
    /* Struck lanes, bit i for lane i; only active lanes of the instruction if `is_active` is not 0. */
    uint64_t lanes;
    uint64_t is_active;
    /* For faults in memory: the address in device memory, or the offset in LDS or scratch memory. */
    uint64_t place;
};

struct wave {
    /* Executions of the instruction so far. */
    uint64_t executions;
    /* Number of struck words. */
    uint64_t words;
    /* Values of the first struck word before and after the fault. */
    uint64_t before;
    uint64_t after;
    /* EXEC before the instruction. */
    uint64_t exec;
    /* Lanes whose register must be restored after the instruction. */
    uint64_t borrowed;
};

struct fault fault;
struct wave waves[WAVES];

/* Returns the value of a lane after the fault. */
static value_t faulty(value_t value, uint32_t lane);

/* Records that the fault changed `before` to `after` in `lanes` of a wave. */
static void note(struct wave *state, uint64_t lanes, value_t before, value_t after)
{
    if (lanes == 0)
        return;
    uint64_t words = flipwave_uniform_64(state->words);
    if (words == 0) {
        uint32_t first = __builtin_ctzll(lanes);
        state->before = flipwave_read_lane_64(before, first);
        state->after = flipwave_read_lane_64(after, first);
    }
    state->words = words + __builtin_popcountll(lanes);
}

/* The struck lanes, for an instruction that runs on `exec`. */
static uint64_t lanes_struck(uint64_t exec)
{
    return GIVEN(fault).is_active ? GIVEN(fault).lanes & exec : GIVEN(fault).lanes;
}

/* Applies the fault to the value in `lanes` and records it. */
static value_t strike(struct wave *state, uint64_t lanes, value_t value)
{
    value_t after = faulty(value, flipwave_lane());
    note(state, lanes, value, after);
    return lanes >> flipwave_lane() & 1 ? after : value;
}
