//! The functions that take the C library's place, by kind.

mod aio;
mod close;
mod directory;
mod exec;
pub mod life;
mod open;
mod position;
mod stat;
pub mod stream;
mod syscall;
mod transfer;
mod tree;
mod uring;

pub use aio::requests;

/// Defines functions that call the real one and then record, with the start and the result; several names stand for
/// one way to record. What `first` is given was looked at before the call, because it may be gone after it.
macro_rules! hook {
    (@one $name:ident [$($call:ident)?] ($($argument:ident: $type:ty),* $(,)?) -> $return:ty,
        $(first $early:ident = $value:expr,)? |$made:ident $(, $outcome:ident)?| $record:expr) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $return {
            const CALL: leadline_record::trace::Call = crate::hooks::call_of!($name $($call)?);
            #[inline(always)]
            unsafe fn timed(
                (clock, real): (crate::clock::Clock, *mut core::ffi::c_void), $($argument: $type),*
            ) -> $return {
                let real: unsafe extern "C" fn($($type),*) -> $return =
                    // SAFETY: the real function of this name has this type.
                    unsafe { core::mem::transmute(real) };
                // SAFETY: as the call below, and no more is read than it reads.
                $(#[allow(unused_unsafe)] let $early = unsafe { $value };)?
                let start = clock.now();
                // SAFETY: the arguments are the program's own.
                let result = unsafe { real($($argument),*) };
                let $made = crate::recording::Made {
                    call: CALL,
                    start,
                    result: crate::hooks::Outcome::number(&result),
                    clock,
                };
                $(let $outcome = result;)?
                // SAFETY: what is recorded is what the real function was given, and has returned from.
                #[allow(unused_unsafe)]
                unsafe {
                    $record;
                }
                result
            }
            #[cold]
            #[inline(never)]
            unsafe fn by_either($($argument: $type),*) -> $return {
                let real = crate::symbols::real(CALL);
                if real.is_null() {
                    return crate::symbols::missing();
                }
                // SAFETY: as for the function itself.
                unsafe { timed((crate::clock::Clock::Either, real), $($argument),*) }
            }
            let real = crate::symbols::timed_by_counter(CALL);
            // SAFETY: as for the function itself.
            unsafe {
                if real.is_null() {
                    by_either($($argument),*)
                } else {
                    timed((crate::clock::Clock::Counter, real), $($argument),*)
                }
            }
        }
    };
    () => {};
    (fn $($name:ident $([$call:ident])?)|+: $arguments:tt -> $return:ty, |$made:ident| $record:expr; $($rest:tt)*) => {
        $(crate::hooks::hook! { @one $name [$($call)?] $arguments -> $return, |$made| $record })+
        crate::hooks::hook! { $($rest)* }
    };
    (fn $($name:ident $([$call:ident])?)|+: $arguments:tt -> $return:ty,
        |$made:ident, $outcome:ident| $record:expr; $($rest:tt)*) => {
        $(crate::hooks::hook! { @one $name [$($call)?] $arguments -> $return, |$made, $outcome| $record })+
        crate::hooks::hook! { $($rest)* }
    };
    (fn $($name:ident $([$call:ident])?)|+: $arguments:tt -> $return:ty,
        first $early:ident = $value:expr, |$made:ident| $record:expr; $($rest:tt)*) => {
        $(crate::hooks::hook! { @one $name [$($call)?] $arguments -> $return, first $early = $value, |$made| $record })+
        crate::hooks::hook! { $($rest)* }
    };
}
pub(crate) use hook;

/// The call of a function: its own name's, or the one that is said.
macro_rules! call_of {
    ($name:ident) => {
        leadline_record::trace::Call::$name
    };
    ($name:ident $call:ident) => {
        leadline_record::trace::Call::$call
    };
}
pub(crate) use call_of;

/// Exports a name that jumps to a function of variadic.c.
macro_rules! variadic {
    ($($name:ident to $function:ident;)*) => {$(
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            crate::machine::go_on_as!($function)
        }
        unsafe extern "C" {
            fn $function();
        }
    )*};
}
pub(crate) use variadic;

/// What a call returned, as segments show it.
pub trait Outcome {
    /// Negative for failure.
    fn number(&self) -> i64;
}

macro_rules! whole_numbers {
    ($($number:ty)*) => {$(
        impl Outcome for $number {
            #[inline(always)]
            fn number(&self) -> i64 {
                *self as i64
            }
        }
    )*};
}
whole_numbers! { i32 isize i64 usize }

impl Outcome for () {
    #[inline(always)]
    fn number(&self) -> i64 {
        0
    }
}
impl<T> Outcome for *mut T {
    /// Null, or mmap's MAP_FAILED, is failure.
    #[inline(always)]
    fn number(&self) -> i64 {
        if self.is_null() || self.addr() == usize::MAX {
            -1
        } else {
            0
        }
    }
}
