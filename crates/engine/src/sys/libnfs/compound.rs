//! Writes and commits of NFS version 4 as COMPOUND calls of our own, through the library's connection.
//!
//! libnfs 4.0 has room for 4 KiB in such a call, so that its own write of more fails; a call that is made with
//! more room (RFC 7530, 16.2, 16.36 and 16.3) goes the same way. The calls name no open: its stateid is the
//! anonymous one (RFC 7530, 9.1.4.3).

use std::ffi::{c_int, c_void};

use super::{Decode, FileHandle, Handle, Libnfs, OpenFile, RpcCallback, Session};

const PROGRAM: c_int = 100_003;
const VERSION: c_int = 4;
const COMPOUND: c_int = 1;
/// Where `struct rpc_pdu` of libnfs.so.13 has its encoder; `can_compound` looks whether that is so.
const ENCODER_AT: usize = 16;
/// The head of a call is the RPC's header, credentials, and about 200 bytes.
const HEAD_BYTES: usize = 1024;

const PUTFH: u32 = 22;
const COMMIT: u32 = 5;
const WRITE: u32 = 38;
const UNSTABLE: u32 = 0;
const FILE_SYNC: u32 = 2;

/// What is kept of an answer.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub struct Answer {
    pub status: u32,
    pub written_bytes: u32,
}

/// A call, before it is sent.
pub enum Request<'a> {
    /// (offset, data, on the store when it ends)
    Write(u64, &'a [u8], bool),
    Commit,
}

fn number(bytes: &mut Vec<u8>, value: u32) {
    bytes.extend_from_slice(&value.to_be_bytes());
}

/// All of a call before its data.
fn head(file: &[u8], request: &Request<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES);
    for value in [0, 0, 2, PUTFH, file.len() as u32] {
        number(&mut bytes, value);
    }
    bytes.extend_from_slice(file);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    match request {
        Request::Write(offset, data, stable) => {
            number(&mut bytes, WRITE);
            bytes.extend_from_slice(&[0; 16]);
            bytes.extend_from_slice(&offset.to_be_bytes());
            number(&mut bytes, if *stable { FILE_SYNC } else { UNSTABLE });
            number(&mut bytes, data.len() as u32);
        }
        Request::Commit => {
            number(&mut bytes, COMMIT);
            bytes.extend_from_slice(&[0; 12]);
        }
    }
    bytes
}

/// Reads an answer: the call's status and, of a write, how much was taken.
extern "C" fn decode(zdr: Handle, into: *mut c_void) -> u32 {
    let Ok(library) = Libnfs::get() else { return 0 };
    let next = || {
        let mut value = 0;
        // SAFETY: `zdr` is the library's decoder of this answer, and checks its end.
        (unsafe { (library.libnfs_zdr_u_int)(zdr, &raw mut value) } != 0).then_some(value)
    };
    let read = || -> Option<Answer> {
        let status = next()?;
        let mut answer = Answer {
            status,
            written_bytes: 0,
        };
        if status != 0 {
            return Some(answer);
        }
        // The tag comes back as it was sent: empty.
        if next()? != 0 {
            return None;
        }
        for _ in 0..next()? {
            let (operation, _status) = (next()?, next()?);
            if operation == WRITE {
                answer.written_bytes = next()?;
            }
        }
        Some(answer)
    };
    match read() {
        Some(answer) => {
            // SAFETY: the library gives as many bytes as `rpc_allocate_pdu2` was told, for this answer alone.
            unsafe { into.cast::<Answer>().write(answer) };
            1
        }
        None => 0,
    }
}

/// RFC 7530, 13.1: the first hundred are those of UNIX; the rest has the nearest.
pub fn errno_of(status: u32) -> i32 {
    match status {
        69 => libc::EDQUOT,
        70 | 10_001 | 10_014 => libc::ESTALE,
        63 => libc::ENAMETOOLONG,
        66 => libc::ENOTEMPTY,
        10_008 | 10_013 => libc::EAGAIN,
        10_016 => libc::EACCES,
        10_038 | 10_010 => libc::EACCES,
        small if small < 60 => small as i32,
        _ => libc::EIO,
    }
}

impl Session {
    /// Sends a call; `ended` is called with an `Answer` where its status is 0. False: nothing was sent.
    pub(super) fn send(
        &mut self,
        file: OpenFile,
        request: &Request<'_>,
        ended: RpcCallback,
        own: *mut c_void,
    ) -> bool {
        let data: &[u8] = match request {
            Request::Write(_, data, _) => data,
            Request::Commit => &[],
        };
        // SAFETY: the file is one of this session's; its handle is read before anything else happens to it.
        let file = unsafe {
            let FileHandle { length, value } = *(self.library.nfs_get_fh)(file.0);
            std::slice::from_raw_parts(value, length as usize)
        };
        let head = head(file, request);
        let room = HEAD_BYTES + head.len() + data.len();
        let Some((rpc, call)) = self.call_of(room, ended, own) else {
            return false;
        };
        let library = self.library;
        // SAFETY: the encoder is the call's (`can_compound`), with room for both; it copies them, and the library
        // owns the call from its queueing on.
        unsafe {
            let encoder = call.wrapping_byte_add(ENCODER_AT);
            let put = |bytes: &[u8]| {
                let from = bytes.as_ptr().cast_mut().cast();
                bytes.is_empty()
                    || (library.libnfs_zdr_opaque)(encoder, from, bytes.len() as u32) != 0
            };
            if !(put(&head) && put(data)) {
                (library.rpc_free_pdu)(rpc, call);
                return false;
            }
            (library.rpc_queue_pdu)(rpc, call) == 0
        }
    }

    fn call_of(
        &self,
        room: usize,
        ended: RpcCallback,
        own: *mut c_void,
    ) -> Option<(Handle, Handle)> {
        let library = self.library;
        // SAFETY: the context is ours, and the function the one that its answer needs.
        unsafe {
            let rpc = (library.nfs_get_rpc_context)(self.context);
            let bytes = size_of::<Answer>() as c_int;
            let decode: Decode = decode;
            let call = (library.rpc_allocate_pdu2)(
                rpc, PROGRAM, VERSION, COMPOUND, ended, own, decode, bytes, room,
            );
            (!call.is_null()).then_some((rpc, call))
        }
    }

    /// Whether the encoder of a call is where we look for it: it stands behind the header that was just encoded.
    pub(super) fn can_compound(&self) -> bool {
        extern "C" fn never(_: Handle, _: c_int, _: *mut c_void, _: *mut c_void) {}
        let Some((rpc, call)) = self.call_of(0, never, std::ptr::null_mut()) else {
            return false;
        };
        // SAFETY: the address lies in the call, which is longer; reading a wrong number there does no harm.
        unsafe {
            let encoder = call.wrapping_byte_add(ENCODER_AT);
            let position = (self.library.libnfs_zdr_getpos)(encoder);
            (self.library.rpc_free_pdu)(rpc, call);
            // Its mark of a record, ten words and credentials.
            (44..=512).contains(&position) && position.is_multiple_of(4)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_has_its_parts_in_the_protocols_order() {
        let bytes = head(&[1, 2, 3], &Request::Write(7, &[9; 5], true));
        let word = |index: usize| u32::from_be_bytes(bytes[index * 4..][..4].try_into().unwrap());
        assert_eq!([word(2), word(3), word(4)], [2, PUTFH, 3]);
        assert_eq!(word(6), WRITE);
        assert_eq!([word(12), word(13), word(14)], [7, FILE_SYNC, 5]);
        assert_eq!(bytes.len(), 15 * 4);
    }

    #[test]
    fn a_full_store_and_a_quota_keep_their_errors() {
        assert_eq!(errno_of(28), libc::ENOSPC);
        assert_eq!(errno_of(69), libc::EDQUOT);
        assert_eq!(errno_of(30), libc::EROFS);
    }
}
