//! The tracer in the kernel: counts the I/O calls of a tree of processes, static programs and io_uring
//! included, and hands over what it counted. Needs nothing on the user's machine but a kernel with BTF.

mod calls;
mod events;
mod layout;
mod loader;
mod outcome;
mod session;
mod support;
mod vocabulary;

pub use calls::{CALLS, Table};
pub use layout::Segment;
pub use leadline_record::trace::{COUNTERS, TIMES};
pub use outcome::{Call, FileRow, Image, Latencies, Trace};
pub use session::{Options, Session};
pub use support::BpfError;
pub use support::unavailable;
