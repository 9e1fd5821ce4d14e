//! Threads for Samba's libraries, which keep a stack of memory for all of a process unless they are told how to keep
//! one for each thread. libsmbclient's own `smbc_thread_posix` does that, where it is there; Debian 12's version has
//! only what that function would call: `smb_thread_set_functions` of libsamba-util.

use std::ffi::{c_char, c_int, c_void};

use crate::sys::library::{self, Missing};

type Slot = *mut *mut c_void;
type Place = *const c_char;

/// `struct smb_thread_functions` of Samba 4 (lib/util/smb_threads.h).
#[repr(C)]
pub struct Functions {
    create_mutex: extern "C" fn(*const c_char, Slot, Place) -> c_int,
    destroy_mutex: extern "C" fn(*mut c_void, Place),
    lock_mutex: extern "C" fn(*mut c_void, c_int, Place) -> c_int,
    create_local: extern "C" fn(*const c_char, Slot, Place) -> c_int,
    destroy_local: extern "C" fn(Slot, Place),
    set_local: extern "C" fn(*mut c_void, *const c_void, Place) -> c_int,
    get_local: extern "C" fn(*mut c_void, Place) -> *mut c_void,
}

static FUNCTIONS: Functions = Functions {
    create_mutex,
    destroy_mutex,
    lock_mutex,
    create_local,
    destroy_local,
    set_local,
    get_local,
};

/// `SMB_THREAD_UNLOCK`.
const UNLOCK: c_int = 2;

extern "C" fn create_mutex(_name: *const c_char, made: Slot, _place: Place) -> c_int {
    let mutex = Box::new(libc::PTHREAD_MUTEX_INITIALIZER);
    // SAFETY: the library gives a place for the pointer.
    unsafe { *made = Box::into_raw(mutex).cast() };
    0
}

extern "C" fn destroy_mutex(mutex: *mut c_void, _place: Place) {
    // SAFETY: `create_mutex` made it, and the library ends its use with this call.
    unsafe {
        let mut mutex = Box::from_raw(mutex.cast::<libc::pthread_mutex_t>());
        libc::pthread_mutex_destroy(&raw mut *mutex);
    }
}

extern "C" fn lock_mutex(mutex: *mut c_void, how: c_int, _place: Place) -> c_int {
    // SAFETY: `create_mutex` made it.
    unsafe {
        if how == UNLOCK {
            libc::pthread_mutex_unlock(mutex.cast())
        } else {
            libc::pthread_mutex_lock(mutex.cast())
        }
    }
}

extern "C" fn create_local(_name: *const c_char, made: Slot, _place: Place) -> c_int {
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: the key is ours; the library gives a place for the pointer.
    unsafe {
        let result = libc::pthread_key_create(&raw mut key, None);
        if result == 0 {
            *made = Box::into_raw(Box::new(key)).cast();
        }
        result
    }
}

extern "C" fn destroy_local(slot: Slot, _place: Place) {
    // SAFETY: the library gives the place that `create_local` filled.
    unsafe {
        if !(*slot).is_null() {
            let key = Box::from_raw((*slot).cast::<libc::pthread_key_t>());
            libc::pthread_key_delete(*key);
            *slot = std::ptr::null_mut();
        }
    }
}

extern "C" fn set_local(key: *mut c_void, value: *const c_void, _place: Place) -> c_int {
    if key.is_null() {
        return libc::EINVAL;
    }
    // SAFETY: `create_local` made the key.
    unsafe { libc::pthread_setspecific(*key.cast::<libc::pthread_key_t>(), value) }
}

extern "C" fn get_local(key: *mut c_void, _place: Place) -> *mut c_void {
    if key.is_null() {
        // Samba asks before it has made its key: there is nothing yet.
        return std::ptr::null_mut();
    }
    // SAFETY: `create_local` made the key.
    unsafe { libc::pthread_getspecific(*key.cast::<libc::pthread_key_t>()) }
}

/// Tells Samba's libraries how; once, before any other call of theirs.
pub fn tell() -> Result<(), Missing> {
    const PACKAGE: &str = "libsmbclient";
    let client = library::open(&["libsmbclient.so.0"], PACKAGE)?;
    // SAFETY: the function has no parameter and no result (libsmbclient.h).
    let whole: Result<unsafe extern "C" fn(), Missing> =
        unsafe { library::function(&client, "smbc_thread_posix", PACKAGE) };
    if let Ok(whole) = whole {
        // SAFETY: no other call was made before.
        unsafe { whole() };
        return Ok(());
    }
    let parts = library::open(&["libsamba-util.so.0"], PACKAGE)?;
    // SAFETY: the type is that of smb_threads.h.
    let set: unsafe extern "C" fn(*const Functions) -> c_int =
        unsafe { library::function(&parts, "smb_thread_set_functions", PACKAGE)? };
    // SAFETY: no other call was made before; the functions stay for the life of the process.
    let told = unsafe { set(&raw const FUNCTIONS) };
    // The library stays loaded: libsmbclient needs it too.
    std::mem::forget(parts);
    if told == 0 {
        return Ok(());
    }
    Err(Missing {
        words: "Samba's libraries refuse threads".to_owned(),
        remedy: format!("install another version of {PACKAGE}"),
    })
}
