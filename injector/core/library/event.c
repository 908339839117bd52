/* Faults that strike executions of one instruction by the waves of one workgroup. */

struct event {
    uint32_t workgroup[3];
    /* All waves of it, where this is 0xffffffff. */
    uint32_t wave;
    /* The first execution that is struck, and how many there are up to the last. */
    uint64_t occurrence;
    uint64_t window;
    /* Of 2^32 executions after the first, how many are struck; and what decides which. */
    uint32_t rate;
    uint32_t key;
};

struct event event;

/* A wave of the event has a number, which is that in its workgroup; others have none. */
static bool is_struck_wave(uint32_t x, uint32_t y, uint32_t z, uint32_t wave, uint32_t *number)
{
    const uint32_t own = GIVEN(event).wave;
    *number = wave;
    return x == GIVEN(event).workgroup[0] && y == GIVEN(event).workgroup[1]
        && z == GIVEN(event).workgroup[2] && (wave == own || own == ~0u) && wave < WAVES;
}

/* The 32-bit mixer lowbias32 of C. Wellons' "Prospecting for hash functions" (2018). */
static uint32_t mix(uint32_t word)
{
    word = (word ^ word >> 16) * 0x7feb352d;
    word = (word ^ word >> 15) * 0x846ca68b;
    return word ^ word >> 16;
}

/* Counts an execution; whether it is struck. */
static bool is_struck_execution(struct wave *own)
{
    uint64_t execution = flipwave_uniform_64(own->executions);
    own->executions = execution + 1;
    uint64_t number = execution - GIVEN(event).occurrence;
    if (execution < GIVEN(event).occurrence || number >= GIVEN(event).window)
        return false;
    return number == 0 || mix(GIVEN(event).key ^ (uint32_t)number) < GIVEN(event).rate;
}
