/* Permanent faults: those of one SIMD of one compute unit. */

struct unit {
    /* Workgroups of the dispatch in x and y, and waves of a workgroup. */
    uint32_t workgroups[2];
    uint32_t waves;
    /* Compute units of the device, and which it is. */
    uint32_t units;
    uint32_t unit;
    /* The same of SIMDs of a compute unit. */
    uint32_t simds;
    uint32_t simd;
    uint32_t reserved;
};

struct unit unit;

/* A wave on the unit has a number, which is that in the dispatch; others have none. */
static bool is_struck_wave(uint32_t x, uint32_t y, uint32_t z, uint32_t wave, uint32_t *number)
{
    const uint32_t workgroup = x + GIVEN(unit).workgroups[0] * (y + GIVEN(unit).workgroups[1] * z);
    *number = workgroup * GIVEN(unit).waves + wave;
    return workgroup % GIVEN(unit).units == GIVEN(unit).unit
        && wave % GIVEN(unit).simds == GIVEN(unit).simd && *number < WAVES;
}

/* Each execution is struck. */
static bool is_struck_execution(struct wave *own)
{
    (void)own;
    return true;
}
