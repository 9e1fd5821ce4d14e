//! libsmbclient by dlopen: its functions and constants. Its header: libsmbclient.h of Samba 4.

use std::ffi::{c_char, c_int, c_void};

use crate::sys::library::functions;

pub type Context = *mut c_void;
pub type File = *mut c_void;
pub type AskLogin = extern "C" fn(
    Context,
    *const c_char,
    *const c_char,
    *mut c_char,
    c_int,
    *mut c_char,
    c_int,
    *mut c_char,
    c_int,
);
pub type Open = unsafe extern "C" fn(Context, *const c_char, c_int, libc::mode_t) -> File;
pub type Read = unsafe extern "C" fn(Context, File, *mut c_void, usize) -> isize;
pub type Write = unsafe extern "C" fn(Context, File, *const c_void, usize) -> isize;
pub type Seek = unsafe extern "C" fn(Context, File, libc::off_t, c_int) -> libc::off_t;
pub type OfFile = unsafe extern "C" fn(Context, File) -> c_int;
pub type StatFile = unsafe extern "C" fn(Context, File, *mut libc::stat) -> c_int;
pub type StatPath = unsafe extern "C" fn(Context, *const c_char, *mut libc::stat) -> c_int;
pub type OfPath = unsafe extern "C" fn(Context, *const c_char) -> c_int;
pub type MakePath = unsafe extern "C" fn(Context, *const c_char, libc::mode_t) -> c_int;
pub type Space = unsafe extern "C" fn(Context, *mut c_char, *mut libc::statvfs) -> c_int;
pub type OpenDirectory = unsafe extern "C" fn(Context, *const c_char) -> File;
pub type ReadDirectory = unsafe extern "C" fn(Context, File) -> *const Entry;
pub type ReadEntry = unsafe extern "C" fn(Context, File, *mut libc::stat) -> *const Found;
pub type Rename = unsafe extern "C" fn(Context, *const c_char, Context, *const c_char) -> c_int;
pub type Of<T> = unsafe extern "C" fn(Context) -> T;
pub type SetNumber = unsafe extern "C" fn(Context, c_int);

/// `struct smbc_dirent`: the name follows.
#[repr(C)]
pub struct Entry {
    pub kind: u32,
    entry_bytes: u32,
    comment_bytes: u32,
    comment: *const c_char,
    name_bytes: u32,
    pub name: [c_char; 1],
}

/// `struct libsmb_file_info`.
#[repr(C)]
pub struct Found {
    size: u64,
    pub attributes: u16,
    user: libc::uid_t,
    group: libc::gid_t,
    times: [libc::timespec; 4],
    pub name: *const c_char,
    short_name: *const c_char,
}

/// `FILE_ATTRIBUTE_DIRECTORY` of SMB (MS-FSCC, 2.6).
pub const ATTRIBUTE_DIRECTORY: u16 = 0x10;
/// `SMBC_DIR` and `SMBC_FILE`.
pub const KIND_DIRECTORY: u32 = 7;
pub const KIND_FILE: u32 = 8;
/// `SMBC_ENCRYPTLEVEL_REQUIRE`.
pub const ENCRYPT_REQUIRE: c_int = 2;

functions! {
    /// The functions that are used, by the library's own names.
    #[allow(non_snake_case)]
    Libsmbclient from &["libsmbclient.so.0"], "libsmbclient";
    smbc_version: unsafe extern "C" fn() -> *const c_char,
    smbc_new_context: unsafe extern "C" fn() -> Context,
    smbc_init_context: unsafe extern "C" fn(Context) -> Context,
    smbc_free_context: unsafe extern "C" fn(Context, c_int) -> c_int,
    smbc_setDebug: SetNumber,
    smbc_setTimeout: SetNumber,
    smbc_setOptionDebugToStderr: SetNumber,
    smbc_setOptionUseKerberos: SetNumber,
    smbc_setOptionNoAutoAnonymousLogin: SetNumber,
    smbc_setOptionSmbEncryptionLevel: SetNumber,
    smbc_setOptionProtocols: unsafe extern "C" fn(Context, *const c_char, *const c_char) -> c_int,
    smbc_setOptionUserData: unsafe extern "C" fn(Context, *mut c_void),
    smbc_getOptionUserData: unsafe extern "C" fn(Context) -> *mut c_void,
    smbc_setFunctionAuthDataWithContext: unsafe extern "C" fn(Context, AskLogin),
    smbc_getFunctionOpen: Of<Open>,
    smbc_getFunctionRead: Of<Read>,
    smbc_getFunctionWrite: Of<Write>,
    smbc_getFunctionLseek: Of<Seek>,
    smbc_getFunctionClose: Of<OfFile>,
    smbc_getFunctionFstat: Of<StatFile>,
    smbc_getFunctionStat: Of<StatPath>,
    smbc_getFunctionUnlink: Of<OfPath>,
    smbc_getFunctionMkdir: Of<MakePath>,
    smbc_getFunctionRmdir: Of<OfPath>,
    smbc_getFunctionRename: Of<Rename>,
    smbc_getFunctionStatVFS: Of<Space>,
    smbc_getFunctionOpendir: Of<OpenDirectory>,
    smbc_getFunctionReaddir: Of<ReadDirectory>,
    smbc_getFunctionReaddirPlus2: Of<ReadEntry>,
    smbc_getFunctionClosedir: Of<OfFile>,
}
