/* What a fault does, and what it has struck. The host writes `fault` before a dispatch and reads
 * `waves` after it.
 *
 * Macros: WAVES, of how many waves something may be struck; WORDS, how many words a value has. */

#if WORDS == 2
typedef uint64_t value_t;
#else
typedef uint32_t value_t;
#endif

/* A variable that does not change during a dispatch: it is read by scalar loads. */
#define GIVEN(variable) \
    (*(const __attribute__((address_space(4))) __typeof__(variable) *)(uintptr_t)&(variable))

struct fault {
    /* What happens to a value, in the terms of `faulty`. */
    uint64_t change;
    /* The lanes that are struck, bit i for lane i; only those of them that the instruction runs
     * on, where `is_active` is not 0. */
    uint64_t lanes;
    uint64_t is_active;
    /* Of what is no register: its address in device memory, or its offset in LDS. */
    uint64_t place;
};

struct wave {
    /* Executions of the instruction so far. */
    uint64_t executions;
    /* Places struck. */
    uint64_t words;
    /* The first of them. */
    uint64_t before;
    uint64_t after;
    /* EXEC before the instruction. */
    uint64_t exec;
    /* Lanes whose register is to be given back after the instruction. */
    uint64_t borrowed;
};

struct fault fault;
struct wave waves[WAVES];

/* The value after the fault. */
static value_t faulty(value_t value);

/* Notes that `lanes` of a wave are struck, in each of which `before` becomes `after`. */
static void note(struct wave *own, uint64_t lanes, value_t before, value_t after)
{
    if (lanes == 0)
        return;
    uint64_t words = flipwave_uniform_64(own->words);
    if (words == 0) {
        uint32_t first = __builtin_ctzll(lanes);
        own->before = flipwave_read_lane_64(before, first);
        own->after = flipwave_read_lane_64(after, first);
    }
    own->words = words + __builtin_popcountll(lanes);
}

/* The lanes struck, of an instruction that runs on `exec`. */
static uint64_t lanes_struck(uint64_t exec)
{
    return GIVEN(fault).is_active ? GIVEN(fault).lanes & exec : GIVEN(fault).lanes;
}

/* The value with the fault in `lanes`. */
static value_t strike(struct wave *own, uint64_t lanes, value_t value)
{
    value_t after = faulty(value);
    note(own, lanes, value, after);
    return lanes >> flipwave_lane() & 1 ? after : value;
}
