/* Counts divergent branches: conditions that hold for only some of the active lanes of a wave.
 *
 * Macros: COUNTERS, number of counted instructions. */

struct branch {
    /* Number of executions. */
    uint64_t executed;
    /* Number of executions with lanes on both paths. */
    uint64_t divergent;
} counters[COUNTERS];

/* A lane mask of a scalar instruction. */
#if FLIPWAVE_LANES == 64
typedef uint64_t lanes;
#else
typedef uint32_t lanes;
#endif

/* Counts a condition that holds for the lanes `after` of the lanes `before`. Runs in a single
 * lane, after an instruction that narrows EXEC. */
void branch(uint64_t before, uint64_t after, struct branch *counter)
{
    flipwave_count(&counter->executed, 1);
    if (after != 0 && after != before)
        flipwave_count(&counter->divergent, 1);
}

/* Counts an instruction that changes EXEC from `before` to `first & second`. If this enables
 * lanes, it is not divergent. Runs in a single lane. */
void branch_and(uint64_t before, lanes first, lanes second, struct branch *counter)
{
    uint64_t after = first & second;
    branch(before, after & ~before ? before : after, counter);
}

/* Counts an instruction that changes EXEC from `before` to `first & ~second`. */
void branch_and_not(uint64_t before, lanes first, lanes second, struct branch *counter)
{
    branch_and(before, first, ~second, counter);
}
