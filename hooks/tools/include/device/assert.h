/* Declarations for the GPU side of a tool, which only parses host functions. */
#pragma once
#define assert(condition) ((void)(condition))
