/* Functions of lanes that the sources of all instruction sets use. */

#define GIVEN(variable) (variable)

/* Returns a value that the lanes have in common, when all of them have read it. */
static uint64_t flipwave_uniform_64(uint64_t value)
{
    flipwave_sync(flipwave_active());
    return value;
}

/* Returns the value of a lane that runs the hook. */
static uint64_t flipwave_read_lane_64(uint64_t value, uint32_t lane)
{
    uint32_t lanes = flipwave_active();
    uint64_t high = flipwave_read_lane(lanes, value >> 32, lane);
    return high << 32 | flipwave_read_lane(lanes, (uint32_t)value, lane);
}
