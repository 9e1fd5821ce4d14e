//! The beginning and the ends of a process: constructor, exit in its forms, vfork, filters of system calls.

pub mod filter;

use core::ffi::{c_int, c_void};

use leadline_record::trace::layout::END_EXIT;

use crate::{process, symbols, thread};

/// Runs when the loader has loaded the library, before the program's main.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = begin;

unsafe extern "C" {
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

extern "C" fn begin() {
    process::start();
    thread::prepare_ends();
    if process::ready().is_none() {
        return;
    }
    // SAFETY: the functions have the types that are asked for, and the library is never unloaded.
    unsafe {
        libc::pthread_atfork(None, None, Some(after_fork));
        on_exit(at_exit, core::ptr::null_mut());
    }
}

unsafe extern "C" fn after_fork() {
    process::after_fork_in_child();
}

extern "C" fn at_exit(status: c_int, _: *mut c_void) {
    ended(status);
}

/// The program says how it ends.
pub fn ended(status: c_int) {
    if thread::is_vfork_child() {
        return;
    }
    super::uring::look();
    super::requests::abandoned();
    process::mark_end(END_EXIT, status & 0xff);
}

macro_rules! ends {
    ($($name:ident $real:ident)*) => {$(
        /// Ends the process without what `exit` does before.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(status: c_int) -> ! {
            ended(status);
            let real = symbols::$real.get();
            if !real.is_null() {
                // SAFETY: the real function of this name has this type.
                unsafe {
                    let real: unsafe extern "C" fn(c_int) -> ! = core::mem::transmute(real);
                    real(status)
                }
            }
            loop {
                crate::sys::raw!(SYS_exit_group, status);
            }
        }
    )*};
}
ends! { _exit UNDERSCORE_EXIT _Exit CAPITAL_EXIT quick_exit QUICK_EXIT }

/// The parent goes on after its vfork.
pub extern "C" fn after_vfork(result: isize) -> c_int {
    crate::scratch::release_after_vfork();
    if result < 0 {
        // SAFETY: the address is the calling thread's own.
        unsafe { *libc::__errno_location() = -result as i32 };
        return -1;
    }
    result as c_int
}
