//! The trace log: what the tracer leaves of one process, laid out to be filled in place through a mapping.
//! Knows the format only: it neither intercepts nor interprets.

pub mod calls;
mod classes;
mod columns;
mod files;
pub mod layout;
mod reader;

pub use calls::{CALLS, CALLS_CHECKSUM, Call, Kind, RETIRED};
pub use classes::{
    CLASS_CALLS, CLASS_SUMS, CLASS_TICKS, CLASS_WAITED_NS, Class, SMALL_BYTES_MAX, asked_delay,
    is_below,
};
pub use columns::{Columns, NONE, ProcessEntry, SegmentColumns};
pub use columns::{Segment, read_segments};
pub use files::FileSums;
pub use files::{COUNTERS, TIMES};
pub use reader::TraceError;
pub use reader::{Log, Process, Source, read};
