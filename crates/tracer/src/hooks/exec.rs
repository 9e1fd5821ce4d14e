//! Programs that this one starts: the tracer goes with them, even when they are given another environment, and
//! what it cannot go with is noted.

use core::ffi::{c_char, c_int, c_void};

use leadline_record::trace::layout::{END_EXEC, END_NONE};

use super::variadic;
use crate::symbols::{EXECVE, EXECVEAT, EXECVPE, FEXECVE, POSIX_SPAWN, POSIX_SPAWNP};
use crate::{process, symbols};

mod look;
mod prepare;

use prepare::{Environment, Program};

variadic! {
    execl to leadline_c_execl;
    execlp to leadline_c_execlp;
    execle to leadline_c_execle;
}

type Strings = *const *const c_char;

unsafe extern "C" {
    static environ: Strings;
}

/// Runs `call` with an environment that the tracer is in; the process image ends here if it succeeds.
unsafe fn replaced(
    program: Program,
    environment: Strings,
    call: impl Fn(Strings) -> c_int,
) -> c_int {
    let mut prepared = Environment::with_tracer(program, environment);
    process::mark_end(END_EXEC, 0);
    let mut result = call(prepared.strings());
    if result < 0 && errno() == libc::E2BIG && prepared.take_out() {
        result = call(prepared.strings());
        prepared.was_not_needed();
    }
    process::mark_end(END_NONE, 0);
    result
}

fn errno() -> c_int {
    // SAFETY: the address is the calling thread's own.
    unsafe { *libc::__errno_location() }
}

/// Runs a program in place of this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(
    path: *const c_char,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    let real = EXECVE.get();
    if real.is_null() {
        return symbols::missing();
    }
    // SAFETY: the real function has this type; the arguments are the program's own.
    unsafe {
        let real: unsafe extern "C" fn(*const c_char, Strings, Strings) -> c_int =
            core::mem::transmute(real);
        replaced(Program::At(path), environment, |environment| {
            real(path, arguments, environment)
        })
    }
}

/// As `execve`, looking for the program in PATH.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(
    file: *const c_char,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    let real = EXECVPE.get();
    if real.is_null() {
        return symbols::missing();
    }
    // SAFETY: as in `execve`.
    unsafe {
        let real: unsafe extern "C" fn(*const c_char, Strings, Strings) -> c_int =
            core::mem::transmute(real);
        replaced(Program::InPath(file), environment, |environment| {
            real(file, arguments, environment)
        })
    }
}

/// As `execve`, with the program's own environment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: the arguments are the program's own.
    unsafe { execve(path, arguments, environ) }
}

/// As `execvpe`, with the program's own environment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(file: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: the arguments are the program's own.
    unsafe { execvpe(file, arguments, environ) }
}

/// What variadic.c makes of the functions that take a list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leadline_execv_from_list(
    path: *const c_char,
    arguments: Strings,
    environment: Strings,
    search: c_int,
) -> c_int {
    // SAFETY: the arguments are the program's own.
    unsafe {
        if search == 0 {
            execve(path, arguments, environment)
        } else {
            execvpe(path, arguments, environment)
        }
    }
}

/// As `execve`, of an open file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fexecve(fd: c_int, arguments: Strings, environment: Strings) -> c_int {
    let real = FEXECVE.get();
    if real.is_null() {
        return symbols::missing();
    }
    // SAFETY: as in `execve`.
    unsafe {
        let real: unsafe extern "C" fn(c_int, Strings, Strings) -> c_int =
            core::mem::transmute(real);
        replaced(Program::Unknown, environment, |environment| {
            real(fd, arguments, environment)
        })
    }
}

/// As `execve`, relative to a directory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execveat(
    directory: c_int,
    path: *const c_char,
    arguments: Strings,
    environment: Strings,
    flags: c_int,
) -> c_int {
    let real = EXECVEAT.get();
    if real.is_null() {
        return symbols::missing();
    }
    // SAFETY: as in `execve`.
    unsafe {
        let real: unsafe extern "C" fn(c_int, *const c_char, Strings, Strings, c_int) -> c_int =
            core::mem::transmute(real);
        replaced(Program::Unknown, environment, |environment| {
            real(directory, path, arguments, environment, flags)
        })
    }
}

type Spawn = unsafe extern "C" fn(
    *mut c_int,
    *const c_char,
    *const c_void,
    *const c_void,
    Strings,
    Strings,
) -> c_int;

macro_rules! spawn {
    ($($name:ident $real:ident $where:ident)*) => {$(
        /// Starts a program in a child.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            pid: *mut c_int,
            path: *const c_char,
            actions: *const c_void,
            attributes: *const c_void,
            arguments: Strings,
            environment: Strings,
        ) -> c_int {
            let real = $real.get();
            if real.is_null() {
                return libc::ENOSYS;
            }
            // SAFETY: the real function has this type; the arguments are the program's own.
            unsafe {
                let real: Spawn = core::mem::transmute(real);
                let mut prepared = Environment::with_tracer(Program::$where(path), environment);
                let call = |environment| real(pid, path, actions, attributes, arguments, environment);
                let mut result = call(prepared.strings());
                if result == libc::E2BIG && prepared.take_out() {
                    result = call(prepared.strings());
                    if result != 0 {
                        prepared.was_not_needed();
                    }
                }
                result
            }
        }
    )*};
}
spawn! { posix_spawn POSIX_SPAWN At posix_spawnp POSIX_SPAWNP InPath }
