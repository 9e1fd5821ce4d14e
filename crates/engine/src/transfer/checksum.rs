//! Checksums of a stream's file, in the order of the file, as its data flow.

use md5::{Digest, Md5};
use simd_adler32::Adler32;

use super::job::Checksum;

/// One that is being computed.
#[derive(Clone)]
enum State {
    Adler32(Adler32),
    Crc32c(u32),
    Md5(Md5),
}

impl State {
    fn new(kind: Checksum) -> Self {
        match kind {
            Checksum::Adler32 => Self::Adler32(Adler32::new()),
            Checksum::Crc32c => Self::Crc32c(0),
            Checksum::Md5 => Self::Md5(Md5::default()),
        }
    }

    fn add(&mut self, data: &[u8]) {
        match self {
            Self::Adler32(state) => state.write(data),
            Self::Crc32c(state) => *state = crc32c::crc32c_append(*state, data),
            Self::Md5(state) => state.update(data),
        }
    }

    fn hex(&self) -> String {
        match self {
            Self::Adler32(state) => format!("{:08x}", state.finish()),
            Self::Crc32c(state) => format!("{state:08x}"),
            Self::Md5(state) => {
                let bytes = state.clone().finalize();
                bytes.iter().map(|byte| format!("{byte:02x}")).collect()
            }
        }
    }
}

/// The checksum of one stream: each pass over the file begins anew.
#[derive(Clone)]
pub struct Checksums {
    kind: Checksum,
    size: u64,
    state: State,
    bytes: u64,
    /// Of the last pass that came to the file's end.
    whole: Option<State>,
}

impl Checksums {
    /// Of a file of `size` bytes.
    pub fn new(kind: Checksum, size: u64) -> Self {
        Self {
            kind,
            size,
            state: State::new(kind),
            bytes: 0,
            whole: None,
        }
    }

    /// Adds what comes next in the file; no part goes beyond its end.
    pub fn add(&mut self, data: &[u8]) {
        self.state.add(data);
        self.bytes += data.len() as u64;
        if self.bytes == self.size {
            let new = State::new(self.kind);
            self.whole = Some(std::mem::replace(&mut self.state, new));
            self.bytes = 0;
        }
    }

    /// In hexadecimal, and of how many bytes from the file's beginning: of the last whole pass, or of what there was.
    pub fn found(&self) -> (String, u64) {
        match &self.whole {
            Some(whole) => (whole.hex(), self.size),
            None => (self.state.hex(), self.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kind: Checksum, size: u64, parts: &[&[u8]]) -> (String, u64) {
        let mut checksums = Checksums::new(kind, size);
        parts.iter().for_each(|part| checksums.add(part));
        checksums.found()
    }

    #[test]
    fn known_values_are_met_whatever_the_parts() {
        // RFC 1950's algorithm, RFC 3720 B.4 and RFC 1321 A.5, of "123456789" as catalogues of checksums have them.
        for (kind, wanted) in [
            (Checksum::Adler32, "091e01de"),
            (Checksum::Crc32c, "e3069283"),
            (Checksum::Md5, "25f9e794323b453885f5181f1b624d0b"),
        ] {
            let wanted = (wanted.to_owned(), 9);
            assert_eq!(found(kind, 9, &[b"123456789"]), wanted);
            assert_eq!(found(kind, 9, &[b"1234", b"", b"56789"]), wanted);
            assert_eq!(found(kind, 99, &[b"12345", b"6789"]), wanted);
        }
    }

    #[test]
    fn each_pass_begins_anew_and_the_last_whole_one_counts() {
        let parts: [&[u8]; 3] = [b"123456789", b"1234", b"56"];
        let (hex, bytes) = found(Checksum::Crc32c, 9, &parts);
        assert_eq!((hex.as_str(), bytes), ("e3069283", 9));
    }
}
