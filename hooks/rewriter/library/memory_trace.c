/* Records each access of each lane in a channel.
 *
 * Macros: RECORDS, maximum number of accesses. */

struct access {
    /* The address, as defined by `MemoryAddress`. */
    uint64_t address;
    /* The tool's number of the instruction. */
    uint32_t site;
    /* The lane, workgroup and wave. */
    uint32_t lane;
    uint32_t workgroup[3];
    uint32_t wave;
};

FLIPWAVE_CHANNEL(accesses, struct access, RECORDS);

/* Appends an access. Runs in the active lanes of the instruction. */
void trace(uint64_t address, uint32_t site, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    struct access access = { address, site, flipwave_lane(), { x, y, z }, wave };
    flipwave_append(&accesses, access);
}

/* Appends the second access of a two-address operation, at a distance of `distance` bytes. */
void trace_second(uint64_t address, int32_t distance, uint32_t site, uint32_t x, uint32_t y,
                  uint32_t z, uint32_t wave)
{
    trace(address + distance, site, x, y, z, wave);
}
