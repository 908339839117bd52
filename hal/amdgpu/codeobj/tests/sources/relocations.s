// Data with every dynamic relocation that the static linker leaves to the loader.
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
.quad own + 16                // RELATIVE64: the symbol is local
.quad outside + 5             // ABS64
.quad maybe                   // ABS64 against a weak symbol
.quad device                  // ABS64 against a symbol of its own
.Lwords_end:
.size words, .Lwords_end-words
own:
.quad 0x1122334455667788
.weak maybe
