/* Every access of every lane, in a channel.
 *
 * Macros: RECORDS, how many accesses there is room for. */

struct access {
    /* Where: as `MemoryAddress` says. */
    uint64_t address;
    /* The instruction, by a number of the tool's. */
    uint32_t site;
    /* Who. */
    uint32_t lane;
    uint32_t workgroup[3];
    uint32_t wave;
};

FLIPWAVE_CHANNEL(accesses, struct access, RECORDS);

/* Appends an access. Meant to run on the instruction's lanes. */
void trace(uint64_t address, uint32_t site, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    struct access access = { address, site, flipwave_lane(), { x, y, z }, wave };
    flipwave_append(&accesses, access);
}

/* The same of an access `distance` bytes from there: the second of a two-address operation. */
void trace_second(uint64_t address, int32_t distance, uint32_t site, uint32_t x, uint32_t y,
                  uint32_t z, uint32_t wave)
{
    trace(address + distance, site, x, y, z, wave);
}
