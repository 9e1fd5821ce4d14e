//! No storage: what a trial costs here is leadline's own cost.

use super::{Engine, Scheme, Storage};

pub static SCHEME: Scheme = Scheme {
    example: "null://",
    storage: Storage::None,
    ack_means: "nowhere: no data are moved",
    ..Scheme::new("null", ENGINES[0].words, ENGINES)
};

static ENGINES: &[Engine] = &[Engine {
    moves_data: false,
    ..Engine::new("null", "no storage: measures leadline itself")
}];
