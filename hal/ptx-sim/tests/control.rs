//! Control flow that compilers do not write.
