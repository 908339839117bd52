// Data with every kind of dynamic relocation that the static linker emits.
.text
.globl device
.p2align 8
.type device,@function
device:
  s_endpgm
.Lend:
.size device, .Lend-device

.data
.p2align 3
.globl words
.type words,@object
words:
.quad local_data + 16         // RELATIVE64: the symbol is local
.quad outside + 5             // ABS64 against an undefined symbol
.quad maybe                   // ABS64 against an undefined weak symbol
.quad device                  // ABS64 against a defined symbol
.Lwords_end:
.size words, .Lwords_end-words
local_data:
.quad 0x1122334455667788
.weak maybe
