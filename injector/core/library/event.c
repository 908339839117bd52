/* Faults in executions of one instruction by the waves of one workgroup. */

struct event {
    uint32_t workgroup[3];
    /* Index of the wave in the workgroup, or 0xffffffff for all waves. */
    uint32_t wave;
    /* The first struck execution, and the number of executions up to the last one that may be struck. */
    uint64_t occurrence;
    uint64_t window;
    /* Number of struck executions per 2^32 executions after the first, and the key that determines
     * them. */
    uint32_t rate;
    uint32_t key;
};

struct event event;

/* Returns true for waves of the event and sets `number` to the wave's index in `waves`, which is its
 * index in the workgroup. */
static bool is_struck_wave(uint32_t x, uint32_t y, uint32_t z, uint32_t wave, uint32_t *number)
{
    const uint32_t struck = GIVEN(event).wave;
    *number = wave;
    return x == GIVEN(event).workgroup[0] && y == GIVEN(event).workgroup[1]
        && z == GIVEN(event).workgroup[2] && (wave == struck || struck == ~0u) && wave < WAVES;
}

/* The 32-bit mixer lowbias32 of C. Wellons' "Prospecting for hash functions" (2018). */
static uint32_t mix(uint32_t word)
{
    word = (word ^ word >> 16) * 0x7feb352d;
    word = (word ^ word >> 15) * 0x846ca68b;
    return word ^ word >> 16;
}

/* Counts an execution and returns true if it is struck. */
static bool is_struck_execution(struct wave *state)
{
    uint64_t execution = flipwave_uniform_64(state->executions);
    state->executions = execution + 1;
    uint64_t number = execution - GIVEN(event).occurrence;
    if (execution < GIVEN(event).occurrence || number >= GIVEN(event).window)
        return false;
    return number == 0 || mix(GIVEN(event).key ^ (uint32_t)number) < GIVEN(event).rate;
}
