//! Compiles the one C file: what stable Rust cannot define.

fn main() {
    println!("cargo:rerun-if-changed=src/variadic.c");
    cc::Build::new()
        .file("src/variadic.c")
        .flag("-Wall")
        .flag("-Wextra")
        .flag("-Werror")
        .flag("-fvisibility=hidden")
        .opt_level(2)
        .compile("leadline_variadic");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,now,-z,relro");
}
