//! Puts the tracer's library into the agent where the build names one: LEADLINE_TRACER.

use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-env-changed=LEADLINE_TRACER");
    println!("cargo:rerun-if-changed=build.rs");
    let library = std::env::var_os("LEADLINE_TRACER").filter(|path| !path.is_empty());
    let value = match library {
        Some(path) => {
            let path = PathBuf::from(path);
            assert!(path.is_absolute(), "LEADLINE_TRACER is a whole path");
            println!("cargo:rerun-if-changed={}", path.display());
            format!("Some(include_bytes!({path:?}))")
        }
        None => "None".to_owned(),
    };
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let source = format!("pub const LIBRARY: Option<&[u8]> = {value};\n");
    std::fs::write(out.join("library.rs"), source).expect("cargo's directory can be written");
}
