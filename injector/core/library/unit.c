/* Permanent faults of one SIMD of one compute unit. */

struct unit {
    /* Workgroups of the dispatch in x and y, and waves of a workgroup. */
    uint32_t workgroups[2];
    uint32_t waves;
    /* Number of compute units of the device, and index of the faulty one. */
    uint32_t units;
    uint32_t unit;
    /* Number of SIMDs per compute unit, and index of the faulty one. */
    uint32_t simds;
    uint32_t simd;
    uint32_t reserved;
};

struct unit unit;

/* Returns true for waves on the faulty unit and sets `number` to the wave's index in `waves`, which is
 * its index in the dispatch. */
static bool is_struck_wave(uint32_t x, uint32_t y, uint32_t z, uint32_t wave, uint32_t *number)
{
    const uint32_t workgroup = x + GIVEN(unit).workgroups[0] * (y + GIVEN(unit).workgroups[1] * z);
    *number = workgroup * GIVEN(unit).waves + wave;
    return workgroup % GIVEN(unit).units == GIVEN(unit).unit
        && wave % GIVEN(unit).simds == GIVEN(unit).simd && *number < WAVES;
}

/* Every execution is struck. */
static bool is_struck_execution(struct wave *state)
{
    (void)state;
    return true;
}
