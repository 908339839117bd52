// A C view of LLVM's MC layer for AMDGPU. One session serves one thread at a time.

#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

struct FlipwaveSession;

enum FlipwaveOperandKind : uint8_t {
  FLIPWAVE_REGISTER = 0,
  FLIPWAVE_IMMEDIATE = 1,
  FLIPWAVE_OTHER = 2,
};

// One operand of the MC instruction, in MC's order.
struct FlipwaveOperand {
  int64_t value; // register number or immediate
  FlipwaveOperandKind kind;
  uint8_t definition; // written
  uint8_t tied;       // read, and the same register as a definition
  uint8_t type;       // LLVM's AMDGPU::OperandType, 0 beyond the described operands
};

enum FlipwaveFlag : uint32_t {
  FLIPWAVE_LOADS = 1 << 0,
  FLIPWAVE_STORES = 1 << 1,
  FLIPWAVE_BRANCH = 1 << 2,
  FLIPWAVE_CONDITIONAL = 1 << 3,
  FLIPWAVE_CALL = 1 << 4,
  FLIPWAVE_TERMINATOR = 1 << 5,
  FLIPWAVE_BARRIER = 1 << 6,
  FLIPWAVE_SIDE_EFFECTS = 1 << 7,
};

// A decoded instruction. `operands` and `text` live until the session's next call;
// `name` and the implicit register lists live in LLVM's static tables.
struct FlipwaveDecoded {
  const char *name;
  const char *text;
  const FlipwaveOperand *operands;
  const uint16_t *implicit_definitions;
  const uint16_t *implicit_uses;
  size_t text_length;
  size_t operand_count;
  size_t implicit_definition_count;
  size_t implicit_use_count;
  uint64_t format; // TSFlags
  uint32_t size;   // bytes
  uint32_t flags;  // FlipwaveFlag
};

// The result of assembling. On success `bytes`; otherwise `message`, with line and column
// from 1 (0: no place). All pointers live until the session's next call.
struct FlipwaveAssembled {
  const uint8_t *bytes;
  size_t length;
  const char *message;
  size_t message_length;
  uint32_t line;
  uint32_t column;
};

// Null when LLVM has no AMDGPU target or does not support the processor. LLVM's AMDGPU target must
// have been initialised.
FlipwaveSession *flipwave_open(const char *processor, const char *features);
void flipwave_close(FlipwaveSession *session);

// Returns 1 and fills `decoded` when `bytes` begin with an instruction, else 0.
int flipwave_decode(FlipwaveSession *session, const uint8_t *bytes, size_t length,
                    uint64_t address, FlipwaveDecoded *decoded);

// Returns 1 on success, 0 with a message otherwise. `text` need not end in a null byte. The
// caller keeps directives out: several of them reach the file system or run without bound.
int flipwave_assemble(FlipwaveSession *session, const char *text, size_t length,
                      FlipwaveAssembled *assembled);

// LLVM's registers: their numbers are below the count, names are static.
uint32_t flipwave_register_count(const FlipwaveSession *session);
const char *flipwave_register_name(const FlipwaveSession *session, uint32_t number);

// One of LLVM's subtarget features. Both strings are static.
struct FlipwaveFeature {
  const char *name;
  const char *description;
  uint8_t enabled; // by the session's processor or its feature string
};

// LLVM's subtarget features: their numbers are below the count.
uint32_t flipwave_feature_count(const FlipwaveSession *session);
FlipwaveFeature flipwave_feature(const FlipwaveSession *session, uint32_t number);
}
