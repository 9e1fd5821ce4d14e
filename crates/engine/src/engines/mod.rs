//! What moves the data: the engines, by the traits of `io`, and what a thread does with each. Their words and limits are
//! in the table of `schemes`.

mod io_uring;
mod libnfs;
mod local;
mod null;
mod rados;
mod radosstriper;
mod s3;
mod xrootd;

use crate::io::OneAtATime;
use crate::io::pooled::Pooled;
use crate::io::{Blocking, Queueing};
use crate::schemes::EngineName;
use crate::transfer::{self, Transfers};
use crate::trial::context::Context;
use crate::worker::{self, Worker};

/// What a thread does with an engine from the start of a trial to its end.
#[derive(Debug, Clone, Copy)]
pub struct Loops {
    /// Of a job of data.
    pub data: fn(&Context, u32),
    /// Of a transfer.
    pub stream: fn(&Transfers, u32),
}

static LOOPS: &[(&str, Loops)] = &[
    ("io_uring", queued::<io_uring::Ring>()),
    ("psync", blocking::<local::Psync>()),
    ("mmap", blocking::<local::Mmap>()),
    ("null", queued::<null::Null>()),
    ("rados", queued::<rados::Rados>()),
    ("radosstriper", queued::<radosstriper::RadosStriper>()),
    ("libcephfs", queued::<Pooled>()),
    ("libsmbclient", queued::<Pooled>()),
    ("xrootd", queued::<xrootd::Xrootd>()),
    ("libnfs", queued::<libnfs::Nfs>()),
    ("s3", queued::<s3::S3>()),
];

/// The loops of an engine of the table.
pub fn loops(engine: EngineName) -> Loops {
    let found = LOOPS.iter().find(|(name, _)| *name == engine.name());
    found.expect("every engine of the table has its loops").1
}

/// With an engine that has several operations in flight.
const fn queued<E: Queueing>() -> Loops {
    Loops {
        data: |context, thread| worker::run::<E>(context, thread, Worker::run_queued),
        stream: transfer::run_stream::<E>,
    }
}

/// With an engine that has one call at a time.
const fn blocking<E: Blocking>() -> Loops {
    Loops {
        data: |context, thread| worker::run::<E>(context, thread, Worker::run_blocking),
        stream: transfer::run_stream::<OneAtATime<E>>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemes::SCHEMES;

    #[test]
    fn every_engine_of_the_table_has_its_loops_and_no_other_has() {
        let engines = SCHEMES.iter().flat_map(|scheme| scheme.engines);
        let mut known: Vec<_> = engines.map(|engine| engine.name).collect();
        let mut here: Vec<_> = LOOPS.iter().map(|(name, _)| *name).collect();
        known.sort_unstable();
        here.sort_unstable();
        assert_eq!(here, known);
    }
}
