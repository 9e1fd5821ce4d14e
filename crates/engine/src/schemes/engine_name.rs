//! The engine of a job, by the word for it in jobs and records.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Engine, SCHEMES, Scheme};

/// One of the table's engines, and the scheme that it serves.
#[derive(Clone, Copy)]
pub struct EngineName {
    scheme: &'static Scheme,
    engine: &'static Engine,
}

impl EngineName {
    pub(super) fn of(scheme: &'static Scheme, engine: &'static Engine) -> Self {
        Self { scheme, engine }
    }

    /// All, in the table's order.
    fn all() -> impl Iterator<Item = Self> {
        let of = |scheme: &'static Scheme| {
            let engines = scheme.engines.iter();
            engines.map(move |engine| Self { scheme, engine })
        };
        SCHEMES.iter().copied().flat_map(of)
    }

    /// The word for it in jobs and records.
    pub fn name(self) -> &'static str {
        self.engine.name
    }

    /// False: its library has no call that syncs a file.
    pub fn syncs(self) -> bool {
        self.scheme.syncs
    }

    /// True for engines that reach storage by a library, not by the kernel.
    pub fn needs_location(self) -> bool {
        self.scheme.has_locations()
    }
}

impl Deref for EngineName {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        self.engine
    }
}

impl fmt::Debug for EngineName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.engine.name)
    }
}

impl PartialEq for EngineName {
    fn eq(&self, other: &Self) -> bool {
        self.engine.name == other.engine.name
    }
}

impl Eq for EngineName {}

impl Serialize for EngineName {
    fn serialize<S: Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        into.serialize_str(self.engine.name)
    }
}

impl<'de> Deserialize<'de> for EngineName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let word = String::deserialize(from)?;
        let mut found = Self::all().filter(|engine| engine.name() == word);
        found.next().ok_or_else(|| {
            let known: Vec<_> = Self::all().map(|one| format!("`{}`", one.name())).collect();
            let known = known.join(", ");
            serde::de::Error::custom(format!("unknown variant `{word}`, expected one of {known}"))
        })
    }
}
