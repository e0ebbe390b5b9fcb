//! The C ABI: its header is up to date, and no program in C makes it fail.
#![expect(clippy::disallowed_methods, reason = "an environment variable asks for rewriting the header")]

extern crate hitreg_log as hitreg;

mod calls;
#[path = "../../../../tests/hostile/fuzz.rs"]
#[expect(dead_code, reason = "some of it is for targets of their own")]
mod fuzz;

use std::path::Path;

use cap::Cap;

#[global_allocator]
static MEMORY: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

/// `HITREG_WRITE_HEADER=1` rewrites the header.
#[test]
fn the_header_is_as_the_room_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    let sources = ["guard", "types", "about", "recorder", "push", "log", "log_more", "trace"];
    let builder = sources.iter().fold(cbindgen::Builder::new().with_config(config), |builder, name| {
        builder.with_src(root.join(format!("src/{name}.rs")))
    });
    let mut made = Vec::new();
    builder.generate().expect("a header").write(&mut made);
    let header = root.join("include/hitreg.h");
    if std::env::var_os("HITREG_WRITE_HEADER").is_some() {
        std::fs::write(&header, &made).expect("it can be written");
    }
    let made = String::from_utf8(made).expect("UTF-8");
    let there = std::fs::read_to_string(&header).expect("include/hitreg.h");
    assert!(
        made == there,
        "include/hitreg.h is not as src: HITREG_WRITE_HEADER=1 cargo test -p hitreg-capi --test capi"
    );
}
