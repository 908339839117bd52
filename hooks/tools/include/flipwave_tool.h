/* Functions for instrumentation tools: one C file with hooks, their places, and a table.
 *
 * Flipwave compiles a tool's file twice: for the GPU, where only its hooks are used, and for the
 * host, where a separate process calls
 *
 *     void flipwave_instrument(const flipwave_inst *inst);
 *         once per instruction, by ascending address, to insert calls of hooks (required);
 *     bool flipwave_on_dispatch(const flipwave_dispatch *dispatch);
 *         before each dispatch; the original code runs if it returns false;
 *     void flipwave_finish(const flipwave_dispatch *dispatch);
 *         after each dispatch, to compute rows from what the hooks recorded.
 *
 * A hook is any other function of the file. Variables of the file exist on both sides, with separate
 * values. flipwave.h includes this file for tools. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Facts about instructions ---- */

/* The unit that executes an instruction. */
enum flipwave_class {
    FLIPWAVE_VALU,     /* vector arithmetic */
    FLIPWAVE_MATRIX,   /* matrix arithmetic (MFMA, WMMA) */
    FLIPWAVE_SALU,     /* scalar arithmetic */
    FLIPWAVE_SMEM,     /* scalar memory */
    FLIPWAVE_VMEM,     /* vector memory: global, flat, buffer, scratch */
    FLIPWAVE_LDS,      /* local data share */
    FLIPWAVE_BRANCH,   /* branches, calls, returns, end of program */
    FLIPWAVE_WAIT,     /* waits, nops, delays, priorities, clauses */
    FLIPWAVE_BARRIER,  /* barriers */
    FLIPWAVE_MESSAGE,  /* messages and traps */
    FLIPWAVE_IMAGE,    /* image operations */
    FLIPWAVE_GRAPHICS, /* exports and interpolation */
};

/* The address space of a memory access. */
enum flipwave_space {
    FLIPWAVE_NO_MEMORY,
    FLIPWAVE_SPACE_BUFFER,  /* through a buffer resource */
    FLIPWAVE_SPACE_FLAT,    /* generic addresses */
    FLIPWAVE_SPACE_GLOBAL,
    FLIPWAVE_SPACE_SCRATCH, /* private memory of a lane */
    FLIPWAVE_SPACE_SCALAR,  /* through the scalar cache, one access per wave */
    FLIPWAVE_SPACE_LDS,     /* in PTX, shared memory */
    FLIPWAVE_SPACE_CONSTANT, /* constant memory of PTX */
};

/* The element type of an instruction. */
enum flipwave_data_type {
    FLIPWAVE_F16,
    FLIPWAVE_BF16,
    FLIPWAVE_F32,
    FLIPWAVE_F64,
    FLIPWAVE_INTEGER, /* integers and untyped bits of any width */
};

/* The kind of an operand. */
enum flipwave_operand_kind {
    FLIPWAVE_VGPR,
    FLIPWAVE_AGPR,
    FLIPWAVE_SGPR,
    FLIPWAVE_SPECIAL,  /* EXEC, VCC, SCC, M0 and others */
    FLIPWAVE_CONSTANT, /* an immediate; `bits` has its value */
    FLIPWAVE_OTHER,    /* no value: `off`, hardware registers, messages */
};

/* An operand of an instruction. */
typedef struct flipwave_operand {
    enum flipwave_operand_kind kind;
    /* Written; other operands are read. */
    bool is_destination;
    /* Number of the first register, and the number of registers. */
    uint32_t first, words;
    /* Value of a constant, as the bits that a register would hold. */
    uint64_t bits;
} flipwave_operand;

/* An instruction. Text and operands stay valid during the call. */
typedef struct flipwave_inst {
    /* Address in the code object. */
    uint64_t pc;
    /* Number of the instruction in its code object, by ascending address. */
    uint32_t index;
    /* Number of its basic block. */
    uint32_t block;
    /* Operation, such as "global_load_dword", one name for all encodings. */
    const char *opcode;
    /* Number of the operation, the same in all code objects of a run. */
    uint32_t opcode_id;
    /* Assembler text. */
    const char *text;
    /* Size of the encoding in bytes. */
    uint32_t size;
    /* The kernel or device function that contains the instruction. */
    const char *function;
    /* Its source line; "" and 0 without debug information. */
    const char *file;
    uint32_t line;
    /* Target, such as "gfx90a" or "sm_80". */
    const char *target;
    enum flipwave_class class;
    enum flipwave_data_type data_type;
    /* Memory access: its space, its bytes per lane (for scalar memory, per wave), and its kind, exactly one of
     * the three. */
    enum flipwave_space space;
    uint32_t access_bytes;
    bool is_load, is_store, is_atomic;
    /* Two-address LDS operations access two elements of access_bytes / 2 bytes each, the second at
     * `distance` bytes from the first. All others have one element. */
    uint32_t elements;
    int64_t distance;
    /* The address is in M0, the same for all lanes. */
    bool has_uniform_address;
    bool is_branch, is_conditional_branch, is_call, is_return;
    bool is_barrier;
    /* Ends the wave. */
    bool is_end;
    /* Writes EXEC. In PTX: the next instruction may have other active lanes, because of their guards. */
    bool writes_exec;
    /* In a kernel, not in a device function. */
    bool in_kernel;
    /* First instruction of a kernel, first or last one of a basic block. */
    bool is_kernel_entry, is_block_entry, is_block_exit;
    /* A proxy that hooks of an emulated instruction replace. It has the opcode and text of the emulated
     * instruction, and no other facts than its position. */
    bool is_emulated;
    const flipwave_operand *operands;
    uint32_t operand_count;
} flipwave_inst;

/* A dispatch of a kernel. */
typedef struct flipwave_dispatch {
    /* Number of the dispatch, from 0. */
    uint32_t number;
    const char *kernel;
    /* Work items of the grid and of a workgroup. */
    uint32_t grid[3], workgroup[3];
    /* Number of earlier dispatches of this kernel. */
    uint32_t launch;
    /* The dispatch runs code with hooks. */
    bool is_instrumented;
} flipwave_dispatch;

/* ---- Inserting hooks (in flipwave_instrument) ---- */

enum flipwave_when { FLIPWAVE_BEFORE, FLIPWAVE_AFTER, FLIPWAVE_INSTEAD };

/* Inserts a call of the hook named `hook`. The functions below then add its arguments, in order. It runs
 * in the active lanes of the instruction, unless one of the functions below selects others. */
#define flipwave_insert_call(inst, hook, when) flipwave_insert_call_at(inst, hook, when, __LINE__)

/* Runs the hook in one lane, whatever EXEC is: once per wave. */
void flipwave_one_lane(void);
/* Runs the hook in all lanes; results are written in the active lanes of the instruction. */
void flipwave_all_lanes(void);

/* The operand with this index. */
void flipwave_arg_operand(uint32_t index);
/* Registers by number, `words` of them. */
void flipwave_arg_vgpr(uint32_t first, uint32_t words);
void flipwave_arg_agpr(uint32_t first, uint32_t words);
void flipwave_arg_sgpr(uint32_t first, uint32_t words);
/* VCC, 32 or 64 bits depending on the wave size. */
void flipwave_arg_vcc(void);
/* Active lanes of the instruction, bit i for lane i. In PTX, those whose guard is true. */
void flipwave_arg_exec(void);
/* Lanes that reach the instruction: the active lanes, and in PTX also those whose guard is false. */
void flipwave_arg_reaching_lanes(void);
/* Address of the memory access: per lane, for scalar memory per wave. For LDS and scratch, the offset in
 * it. */
void flipwave_arg_address(void);
/* A number, passed in scalar or in vector registers. */
void flipwave_arg_number(uint64_t value);
void flipwave_arg_lane_number(uint64_t value);
/* Address of the instruction in the code object. */
void flipwave_arg_pc(void);
/* Number of the operation. */
void flipwave_arg_opcode_id(void);
/* Number of the workgroup in dimension 0 to 2. */
void flipwave_arg_workgroup(uint32_t dimension);
/* Number of the wave in its workgroup. */
void flipwave_arg_wave(void);
/* Address of the kernel's arguments. */
void flipwave_arg_kernel_arguments(void);
/* Address of a row of a table, see flipwave_new_row. */
#define flipwave_arg_row(table, row) flipwave_arg_row_(table, row, FLIPWAVE_ROW_BYTES(table))
/* Address of the first row of a table, and the offset of a row in bytes; two arguments. For
 * flipwave_increment. */
#define flipwave_arg_row_offset(table, row) \
    flipwave_arg_row_offset_(table, row, FLIPWAVE_ROW_BYTES(table))
/* Address of a variable of the file, by name, plus an offset in bytes. */
void flipwave_arg_variable(const char *name, uint64_t offset);

/* Registers that receive the hook's result permanently: those of an operand, or by number. */
void flipwave_result_operand(uint32_t index);
void flipwave_result_vgpr(uint32_t first, uint32_t words);
void flipwave_result_sgpr(uint32_t first, uint32_t words);
/* EXEC and VCC, 32 or 64 bits depending on the wave size. */
void flipwave_result_exec(void);
void flipwave_result_vcc(void);

/* ---- Output ----
 *
 * A tool writes the table that it declares: the first FLIPWAVE_ROWS, or if there is none, the first
 * declaration of another kind. The columns are those of the keys, then the members of the structure.
 * `type` must be a structure with a tag, such as `struct counts`. */

/* A table with rows for keys that flipwave_instrument knows, such as instructions or opcodes. Members of
 * `type` must be uint64_t. Names of key columns follow. */
#define FLIPWAVE_TABLE(name, type, ...) \
    FLIPWAVE_STATIC_TABLE(FLIPWAVE_KIND_TABLE, name, type, __VA_ARGS__)

/* Like FLIPWAVE_TABLE, but sorted by keys and without rows that are zero. */
#define FLIPWAVE_HISTOGRAM(name, type, ...) \
    FLIPWAVE_STATIC_TABLE(FLIPWAVE_KIND_HISTOGRAM, name, type, __VA_ARGS__)

/* A table whose 64-bit keys the hooks compute, at most `capacity` of them, a power of two. Members of
 * `type` must be uint64_t. The rows are sorted by key. */
#define FLIPWAVE_MAP(name, type, capacity, key) \
    FLIPWAVE_DECLARE_MAP(name, type, capacity, key)

/* A stream of records, which hooks append with flipwave_append. Names of columns for a member of the type
 * `flipwave_site` follow. Members may be integers, floating-point numbers, and flipwave_lane_number. */
#define FLIPWAVE_STREAM(name, type, ...) FLIPWAVE_DECLARE_STREAM(name, type, __VA_ARGS__)

/* A check, and the number of times that hooks found it violated: flipwave_detect(&name) counts the active
 * lanes. In a campaign with the tool as `detector`, a run with a number other than zero is `detected`. */
#define FLIPWAVE_DETECTOR(name) \
    FLIPWAVE_STATIC_TABLE(FLIPWAVE_KIND_DETECTOR, name, struct flipwave_detections)
#define flipwave_detect(detector) flipwave_count(&(detector)->rows[0].detections, 1)

/* The column of a detector. */
struct flipwave_detections { uint64_t detections; };

/* Rows that flipwave_finish computes. Members may also be `const char *`. */
#define FLIPWAVE_ROWS(name, type) FLIPWAVE_DECLARE_ROWS(name, type)

/* Number of a site in a stream, whose columns are the texts that flipwave_new_site got. */
typedef uint32_t flipwave_site;
/* A lane's number. 255 stands for an operation of the whole wave, and leaves the column empty. */
typedef uint8_t flipwave_lane_number;

/* Adds a row to the memory of a FLIPWAVE_TABLE or FLIPWAVE_HISTOGRAM and returns its number. Hooks count in
 * it, and flipwave_show adds it to the rows of the output. */
#define flipwave_new_row(table) flipwave_new_row_(table)

/* Adds the content of a row in memory to the row of the output that has these keys. Several rows in memory
 * may contribute to a row of the output, and one to several. */
#define flipwave_show(table, inst, row, ...) \
    flipwave_show_(table, inst, row, FLIPWAVE_TEXTS(__VA_ARGS__), __LINE__)

/* Adds a site to a stream and returns its number. */
#define flipwave_new_site(stream, inst, ...) \
    flipwave_new_site_(stream, inst, FLIPWAVE_TEXTS(__VA_ARGS__), __LINE__)

/* Keys: function, address and text of an instruction. */
#define FLIPWAVE_LOCATION(inst) (inst)->function, flipwave_hexadecimal((inst)->pc), (inst)->text

/* Numbers as keys. The text stays valid for 64 further calls. */
const char *flipwave_decimal(uint64_t number);
const char *flipwave_hexadecimal(uint64_t number);
/* The number that a text begins with, decimal or hexadecimal. */
uint64_t flipwave_number(const char *text);

/* Returns true if a text matches a pattern with `*` for any text and `?` for any character. */
bool flipwave_matches(const char *text, const char *pattern);

/* A parameter of the tool: an integer constant, which `--set NAME=VALUE` changes. The value may be the name
 * of an enumerator. */
#define FLIPWAVE_PARAMETER(name, value) \
    enum { name = FLIPWAVE_SECOND(FLIPWAVE_SET_##name, value) }; \
    FLIPWAVE_DECLARE_PARAMETER(name, "number " #name)

/* A text as a parameter of the tool. */
#define FLIPWAVE_TEXT_PARAMETER(name, value) \
    static const char name[] __attribute__((unused)) = \
        FLIPWAVE_SECOND(FLIPWAVE_TEXT_##name, value); \
    FLIPWAVE_DECLARE_PARAMETER(name, "text " #name)

/* ---- Reading what hooks recorded (in flipwave_finish) ----
 *
 * `table.rows[i]`, `stream.records[i]`, `map.keys[i]` and `map.values[i]` are valid for i below
 * flipwave_length. */
#define flipwave_length(output) flipwave_length_(output)
/* Key of a row of a FLIPWAVE_TABLE or FLIPWAVE_HISTOGRAM, by number of the column. */
#define flipwave_key(table, row, column) flipwave_key_(table, row, column)
/* Adds a row to a FLIPWAVE_ROWS. The structure follows, for example `flipwave_emit(&rows, {1, 2})`. */
#define flipwave_emit(rows_, ...) \
    do { \
        __typeof__(*(rows_)->rows) flipwave_row = __VA_ARGS__; \
        flipwave_emit_(rows_, &flipwave_row, sizeof(flipwave_row)); \
    } while (0)

/* Ends the tool with an error message. */
#define flipwave_fail(message) flipwave_fail_(message, __LINE__)

#include "flipwave_tool_impl.h"
