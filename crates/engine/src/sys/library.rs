//! Libraries opened at run time, so that nobody needs what they do not use.

use std::ffi::{CStr, CString, c_int};
use std::path::{Path, PathBuf};

use libloading::Library;

/// Why a library cannot be used, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub words: String,
    pub remedy: String,
}

/// What went wrong while making a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    Library(Missing),
    /// The step in words, and its errno.
    Step(&'static str, i32),
}

/// What a step of making it gave: 0, or minus errno.
pub fn step(what: &'static str, result: c_int) -> Result<(), Refusal> {
    if result < 0 {
        Err(Refusal::Step(what, -result))
    } else {
        Ok(())
    }
}

/// A text as libraries take it; one that they cannot take is empty.
pub fn text(value: &str) -> CString {
    CString::new(value).unwrap_or_default()
}

/// The directory `lib` beside this extension or program, where the build puts libraries of leadline's own.
fn beside(name: &str) -> PathBuf {
    // SAFETY: an all-zero answer is one; the address is one of this object's own functions.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    let address = (beside as fn(&str) -> PathBuf) as *const libc::c_void;
    // SAFETY: as above.
    if unsafe { libc::dladdr(address, &raw mut found) } == 0 || found.dli_fname.is_null() {
        return PathBuf::from(name);
    }
    // SAFETY: the loader's text lives as long as this object.
    let object = unsafe { CStr::from_ptr(found.dli_fname) }.to_string_lossy();
    let directory = Path::new(object.as_ref())
        .parent()
        .unwrap_or(Path::new("."));
    directory.join("lib").join(name)
}

/// Opens the first of `names` that is there; `@` stands for the directory of leadline's own libraries.
pub fn open(names: &[&str], package: &str) -> Result<Library, Missing> {
    let mut why = String::new();
    for name in names {
        let file = match name.strip_prefix('@') {
            Some(own) => beside(own),
            None => PathBuf::from(name),
        };
        // SAFETY: the initialisers of these well-known libraries may run in any program that links them.
        match unsafe { Library::new(file) } {
            Ok(library) => return Ok(library),
            Err(error) => why = error.to_string(),
        }
    }
    let shown = names
        .first()
        .copied()
        .unwrap_or_default()
        .trim_start_matches('@');
    // The loader names what it did not find first: the library itself, or one that it needs.
    let absent = why.contains("No such file")
        && why
            .split(':')
            .next()
            .is_some_and(|missing| missing.ends_with(shown));
    Err(Missing {
        words: if absent {
            format!("{shown} is not installed")
        } else {
            format!("{shown} cannot be loaded: {why}")
        },
        remedy: format!("install the package {package}"),
    })
}

/// A function of `library`; an older version that lacks it is named.
///
/// # Safety
/// `T` must be the function's type as the library's header declares it.
pub unsafe fn function<T: Copy>(
    library: &Library,
    name: &str,
    package: &str,
) -> Result<T, Missing> {
    // SAFETY: the caller vouches for the type; the pointer is used only while the library is open.
    unsafe { library.get::<T>(name.as_bytes()) }
        .map(|symbol| *symbol)
        .map_err(|_| Missing {
            words: format!("the installed {package} has no function {name}: it is too old"),
            remedy: format!("install a newer {package}"),
        })
}

/// Declares a struct of a library's functions, and how it is loaded: all of them or an error that names one.
macro_rules! functions {
    ($(#[$about:meta])* $table:ident from $names:expr, $package:expr; $($name:ident: $type:ty,)+) => {
        $(#[$about])*
        pub struct $table {
            $(pub(super) $name: $type,)+
            _library: libloading::Library,
        }

        impl $table {
            fn load() -> Result<Self, $crate::sys::library::Missing> {
                let library = $crate::sys::library::open($names, $package)?;
                Ok(Self {
                    // SAFETY: each type is the one in the library's header.
                    $($name: unsafe {
                        $crate::sys::library::function(&library, stringify!($name), $package)?
                    },)+
                    _library: library,
                })
            }

            /// The library, loaded once in this process.
            pub fn get() -> Result<&'static Self, $crate::sys::library::Missing> {
                static LOADED: std::sync::OnceLock<Result<$table, $crate::sys::library::Missing>> =
                    std::sync::OnceLock::new();
                LOADED.get_or_init(Self::load).as_ref().map_err(Clone::clone)
            }
        }
    };
}
pub(crate) use functions;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_library_names_its_package() {
        let Err(missing) = open(&["libnothing-of-this-name.so.9"], "libnothing9") else {
            panic!("it should not be there");
        };
        assert!(
            missing.words.contains("is not installed"),
            "{}",
            missing.words
        );
        assert!(missing.remedy.contains("libnothing9"));
    }
}
