//! Calls and answers on a stream: a header of two big-endian words (the call's number, bytes that follow), then
//! MessagePack. A call is `[name, arguments]`. What a peer announces is never believed before it came.

use std::io::{self, Read};

use rmpv::Value;

/// A call carries a part of a file at most.
pub const CALL_BYTES_MAX: u64 = 64 << 20;
const HEADER_BYTES: usize = 16;
const DEPTH_MAX: usize = 16;

/// One call. `plain` is what it asks, or in words why it cannot be read.
#[derive(Debug, PartialEq)]
pub struct Call {
    pub number: u64,
    pub plain: Result<(String, Vec<Value>), String>,
}

/// The next call; `None` at the end of the stream, also amid a frame, and at a frame that is too large.
pub fn read_call(input: &mut impl Read) -> io::Result<Option<Call>> {
    let mut header = [0; HEADER_BYTES];
    if !read_whole(input, &mut header)? {
        return Ok(None);
    }
    let (number, size) = header.split_at(HEADER_BYTES / 2);
    let (number, size) = (word(number), word(size));
    if size > CALL_BYTES_MAX {
        return Ok(None);
    }
    let mut data = Vec::new();
    if input.take(size).read_to_end(&mut data)? as u64 != size {
        return Ok(None);
    }
    Ok(Some(Call {
        number,
        plain: parse_call(&data),
    }))
}

fn word(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
}

fn read_whole(input: &mut impl Read, into: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(into) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// The name and arguments of a call, or why it is none.
pub fn parse_call(mut data: &[u8]) -> Result<(String, Vec<Value>), String> {
    let value = rmpv::decode::read_value_with_max_depth(&mut data, DEPTH_MAX)
        .map_err(|error| format!("a call that cannot be read: {error}"))?;
    if !data.is_empty() {
        return Err(format!("{} bytes follow a call", data.len()));
    }
    let Value::Array(parts) = value else {
        return Err("a call is a name and its arguments".to_owned());
    };
    match <[Value; 2]>::try_from(parts) {
        Ok([Value::String(name), Value::Array(arguments)]) => match name.into_str() {
            Some(name) => Ok((name, arguments)),
            None => Err("the name of a call is no text".to_owned()),
        },
        _ => Err("a call is a name and its arguments".to_owned()),
    }
}

/// The frame of an answer.
pub fn packed(number: u64, answer: &Value) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; HEADER_BYTES];
    rmpv::encode::write_value(&mut frame, answer)?;
    let size = (frame.len() - HEADER_BYTES) as u64;
    frame[..8].copy_from_slice(&number.to_be_bytes());
    frame[8..HEADER_BYTES].copy_from_slice(&size.to_be_bytes());
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(number: u64, value: &Value) -> Vec<u8> {
        packed(number, value).unwrap()
    }

    fn call(name: &str, arguments: Vec<Value>) -> Value {
        Value::Array(vec![name.into(), Value::Array(arguments)])
    }

    #[test]
    fn a_call_is_read_as_it_was_written_and_the_end_is_none() {
        let bytes = frame(7, &call("clock", vec![1.into(), Value::Nil]));
        let mut input = bytes.as_slice();
        let found = read_call(&mut input).unwrap().unwrap();
        assert_eq!(found.number, 7);
        assert_eq!(
            found.plain,
            Ok(("clock".to_owned(), vec![1.into(), Value::Nil]))
        );
        assert!(read_call(&mut input).unwrap().is_none());
        for length in 0..bytes.len() {
            assert!(
                read_call(&mut &bytes[..length]).unwrap().is_none(),
                "{length}"
            );
        }
    }

    #[test]
    fn a_frame_that_is_too_large_ends_the_stream_before_it_is_read() {
        let mut bytes = vec![0; 8];
        bytes.extend((CALL_BYTES_MAX + 1).to_be_bytes());
        let mut input = bytes.as_slice().chain(io::repeat(0));
        assert!(read_call(&mut input).unwrap().is_none());
    }

    #[test]
    fn what_is_no_call_is_refused_in_words_and_the_next_is_read() {
        let mut bytes = Vec::new();
        let wrong = [
            Value::Nil,
            Value::Array(vec!["name".into()]),
            Value::Array(vec![1.into(), Value::Array(vec![])]),
            Value::Map(vec![]),
        ];
        for value in &wrong {
            bytes.extend(frame(1, value));
        }
        bytes.extend(frame(2, &call("clock", vec![])));
        let mut input = bytes.as_slice();
        for _ in &wrong {
            let found = read_call(&mut input).unwrap().unwrap();
            assert!(found.plain.unwrap_err().contains("call"));
        }
        assert_eq!(read_call(&mut input).unwrap().unwrap().number, 2);
    }

    #[test]
    fn arrays_that_are_announced_and_do_not_come_take_no_memory() {
        // An array of 2^32-1 elements, and nested arrays beyond any depth.
        assert!(parse_call(&[0xdd, 0xff, 0xff, 0xff, 0xff]).is_err());
        assert!(parse_call(&[0xc6, 0xff, 0xff, 0xff, 0xff, 1]).is_err());
        assert!(parse_call(&vec![0x91; 1 << 20]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_call_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..4096)) {
            let _ = parse_call(&bytes);
            let mut input = bytes.as_slice();
            while let Ok(Some(_)) = read_call(&mut input) {}
        }

        #[test]
        fn a_call_with_a_byte_changed_is_a_call_or_an_error(
            place in 0_usize..64, byte in any::<u8>(), text in ".{0,16}"
        ) {
            let mut bytes = frame(3, &call("write", vec![text.into(), Value::Binary(vec![1; 24])]));
            let place = 16 + place % (bytes.len() - 16);
            bytes[place] = byte;
            let found = read_call(&mut bytes.as_slice()).unwrap().unwrap();
            prop_assert_eq!(found.number, 3);
        }
    }
}
