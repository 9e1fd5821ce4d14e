//! Classes of calls as storage serves them: what a causal profile delays, one class at a time. They are the kinds of
//! time, with small reads apart, since what these wait for is a round trip and not bytes.

use super::calls::Kind;

/// Reads up to here are small, as in the rules on traces: Darshan's bins up to 10 KiB.
pub const SMALL_BYTES_MAX: u64 = 10 << 10;

/// A class of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Metadata,
    SmallRead,
    LargeRead,
    Write,
    Sync,
}

impl Class {
    /// All classes, in the order of their numbers in a log.
    pub const ALL: [Self; 5] = [
        Self::Metadata,
        Self::SmallRead,
        Self::LargeRead,
        Self::Write,
        Self::Sync,
    ];

    /// The word that commands and tables use.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::SmallRead => "small-read",
            Self::LargeRead => "large-read",
            Self::Write => "write",
            Self::Sync => "sync",
        }
    }

    /// The class of a word, if there is one.
    pub fn of_word(word: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|class| class.word().as_bytes() == word)
    }

    /// The class of a call that has moved so many bytes.
    pub const fn of(kind: Kind, bytes: u64) -> Self {
        match kind {
            Kind::Read if bytes <= SMALL_BYTES_MAX => Self::SmallRead,
            Kind::Read => Self::LargeRead,
            Kind::Write => Self::Write,
            Kind::Meta => Self::Metadata,
            Kind::Sync => Self::Sync,
        }
    }
}

/// What a process's log says of one class: calls, their own time, and how long they were made to wait.
pub const CLASS_SUMS: usize = 3;
pub const CLASS_CALLS: usize = 0;
pub const CLASS_TICKS: usize = 1;
pub const CLASS_WAITED_NS: usize = 2;

/// Longer delays are a mistake of whoever asked.
const DELAY_NS_MAX: u64 = 1_000_000_000;

/// `CLASS:NS`: which class waits, and how long.
pub fn asked_delay(text: &[u8]) -> Option<(Class, u64)> {
    let (class, ns) = core::str::from_utf8(text).ok()?.split_once(':')?;
    let ns = ns.bytes().all(|byte| byte.is_ascii_digit()).then_some(ns)?;
    let ns: u64 = ns.parse().ok()?;
    Some((Class::of_word(class.as_bytes())?, ns)).filter(|_| ns <= DELAY_NS_MAX)
}

/// Is a path one of the directories, which stand between colons, or below one?
pub fn is_below(path: &[u8], places: &[u8]) -> bool {
    let mut places = places.split(|byte| *byte == b':');
    places.any(|place| match path.strip_prefix(place) {
        None => false,
        Some(rest) => rest.is_empty() || rest[0] == b'/' || place.ends_with(b"/"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_holds_itself_and_what_is_below_but_no_longer_name() {
        assert!(is_below(b"/data", b"/other:/data"));
        assert!(is_below(b"/data/a/b", b"/data"));
        assert!(!is_below(b"/database", b"/data"));
        assert!(!is_below(b"/dat", b"/data"));
        assert!(is_below(b"/anything", b"/"));
    }

    #[test]
    fn a_delay_is_a_class_and_ns_of_at_most_a_second() {
        assert_eq!(
            asked_delay(b"small-read:200"),
            Some((Class::SmallRead, 200))
        );
        assert_eq!(
            asked_delay(b"sync:1000000000"),
            Some((Class::Sync, 1_000_000_000))
        );
        for wrong in [
            &b"sync:1000000001"[..],
            b"sync",
            b"sync:",
            b"sleep:1",
            b"sync:-1",
            b"sync:+1",
        ] {
            assert_eq!(asked_delay(wrong), None);
        }
    }

    #[test]
    fn a_read_is_small_up_to_ten_kib() {
        assert_eq!(Class::of(Kind::Read, 0), Class::SmallRead);
        assert_eq!(Class::of(Kind::Read, SMALL_BYTES_MAX), Class::SmallRead);
        assert_eq!(Class::of(Kind::Read, SMALL_BYTES_MAX + 1), Class::LargeRead);
        assert_eq!(Class::of(Kind::Write, 1), Class::Write);
    }

    #[test]
    fn every_class_is_found_by_its_word() {
        for (number, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!(Class::of_word(class.word().as_bytes()), Some(class));
            assert_eq!(class as usize, number);
        }
        assert_eq!(Class::of_word(b"meta"), None);
    }
}
