//! Compiles the program for the kernel with clang. Without clang the crate still builds, and says so at use.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use leadline_record::trace::{COUNTERS, TIMES};

mod vocabulary {
    include!("src/vocabulary.rs");
}

const SOURCES: &str = "src/program";

fn main() {
    // File by file: where the sources are a copy, the directory is new each time. A new file is included by one.
    for file in fs::read_dir(SOURCES).expect("the sources are there") {
        let path = file.expect("a directory can be read").path();
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rerun-if-changed=src/vocabulary.rs");
    println!("cargo::rerun-if-env-changed=LEADLINE_CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("names.h"), names()).expect("the build directory can be written");
    let object = out.join("trace.bpf.o");
    if let Err(why) = compile(&out, &object) {
        println!("cargo::warning=built without BPF: {why}");
        fs::write(&object, b"").expect("the build directory can be written");
        println!("cargo::rustc-env=LEADLINE_BPF_MISSING={why}");
    } else {
        println!("cargo::rustc-env=LEADLINE_BPF_MISSING=");
    }
}

/// The object for the kernel, or why there is none. An error in the program itself fails the build.
fn compile(out: &Path, object: &Path) -> Result<(), String> {
    let clang = env::var("LEADLINE_CLANG").unwrap_or_else(|_| "clang".into());
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    if architecture != "x86_64" && architecture != "aarch64" {
        return Err(format!("no system calls are known for {architecture}"));
    }
    let output = Command::new(&clang)
        .args([
            "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror",
        ])
        .args(["-Wno-missing-prototypes", "-fno-stack-protector"])
        .arg(format!("-D__TARGET_ARCH_{architecture}"))
        .arg("-I")
        .arg(out)
        .args(["-c", &format!("{SOURCES}/trace.bpf.c"), "-o"])
        .arg(object)
        .output();
    let output = match output {
        Ok(output) => output,
        Err(_) => return Err("clang was missing".into()),
    };
    let words = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && words.contains("nknown target") {
        return Err("clang was built without the target bpf".into());
    }
    assert!(output.status.success(), "{clang} failed:\n{words}");
    Ok(())
}

/// C constants of the words.
fn names() -> String {
    let mut lines = vec!["// Made by build.rs.".to_owned()];
    for (prefix, words) in [
        ("COUNTER", &COUNTERS[..]),
        ("TIME", &TIMES[..]),
        ("KIND", &vocabulary::KINDS[..]),
    ] {
        enumerate(
            &mut lines,
            prefix,
            words.iter().map(|word| (*word).to_owned()),
        );
    }
    let lost = vocabulary::LOST.iter().map(|word| word.to_uppercase());
    enumerate(&mut lines, "LOST", lost);
    for (name, value) in vocabulary::SHAPES {
        lines.push(format!("#define SHAPE_{name} {value}"));
    }
    lines.join("\n") + "\n"
}

fn enumerate(lines: &mut Vec<String>, prefix: &str, words: impl Iterator<Item = String>) {
    let mut count = 0;
    for word in words {
        lines.push(format!("#define {prefix}_{word} {count}"));
        count += 1;
    }
    lines.push(format!("#define {prefix}_COUNT {count}"));
}
