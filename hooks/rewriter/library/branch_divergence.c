/* Conditions that hold for some lanes of a wave and not for others.
 *
 * Macros: COUNTERS, how many instructions are counted. */

struct branch {
    /* How often waves came by. */
    uint64_t executed;
    /* How often some lanes went one way and some the other. */
    uint64_t divergent;
} counters[COUNTERS];

/* What a scalar instruction takes for a mask of lanes. */
#if FLIPWAVE_LANES == 64
typedef uint64_t lanes;
#else
typedef uint32_t lanes;
#endif

/* Counts a condition that leaves `after` of the lanes in `before`. Meant to run on a single lane,
 * after an instruction that narrows EXEC. */
void branch(uint64_t before, uint64_t after, struct branch *counter)
{
    flipwave_count(&counter->executed, 1);
    if (after != 0 && after != before)
        flipwave_count(&counter->divergent, 1);
}

/* Counts an instruction that makes `one & other` of EXEC, `before` it. It divides no lanes where
 * that brings some back. Meant to run on a single lane. */
void branch_and(uint64_t before, lanes one, lanes other, struct branch *counter)
{
    uint64_t after = one & other;
    branch(before, after & ~before ? before : after, counter);
}

/* The same of `one & ~other`. */
void branch_and_not(uint64_t before, lanes one, lanes other, struct branch *counter)
{
    branch_and(before, one, ~other, counter);
}
