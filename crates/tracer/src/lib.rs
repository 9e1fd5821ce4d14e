//! The LD_PRELOAD library: takes the place of the C library's I/O functions, calls them, and writes down what
//! they did, in a log of the process that a kill leaves whole.
//!
//! ```text
//! hooks/*      the functions, by kind; each calls the real one, then records
//! recording    what a call changes in a thread's records
//! descriptors, paths   from descriptor or path to the thread's record of the file
//! thread       a thread's state; the guard against being entered twice
//! process      the log, the memory beside it, fork
//! delay        which calls wait for a causal profile
//! held         what the kernel has counted, beside what was recorded
//! machine/*    what is said in a processor's own instructions
//! ```
//!
//! Rules that everything here keeps: recording allocates nothing, takes no lock, makes no call of the C library
//! that a signal handler may not make, leaves errno alone, and cannot panic. What finds no room is counted.

mod chunks;
mod clock;
mod delay;
mod descriptors;
mod environment;
mod extent;
mod held;
mod hooks;
#[cfg_attr(target_arch = "x86_64", path = "machine/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "machine/aarch64.rs")]
mod machine;
mod memory;
mod paths;
mod process;
mod recording;
mod scratch;
mod segments;
mod symbols;
mod sys;
mod thread;
