//! The header: generated from `hitreg.h.in` and the crate's source, documented, and valid in C99 and C++.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn checked_in() -> String {
    std::fs::read_to_string(root().join("include/hitreg.h")).expect("include/hitreg.h")
}

/// Returns the declarations of the crate with their comments, by name. Safety sections are for Rust alone.
fn declarations() -> BTreeMap<String, String> {
    let config = cbindgen::Config::from_file(root().join("cbindgen.toml")).expect("cbindgen.toml");
    let mut sources: Vec<PathBuf> =
        std::fs::read_dir(root().join("src")).expect("src").map(|entry| entry.expect("an entry").path()).collect();
    sources.sort();
    let builder = cbindgen::Builder::new().with_config(config);
    let builder = sources.iter().fold(builder, |builder, source| builder.with_src(source));
    let mut made = Vec::new();
    builder.generate().expect("declarations").write(&mut made);
    let made = String::from_utf8(made).expect("UTF-8");
    let blocks = made.split("\n\n").filter(|block| !block.trim().is_empty());
    let documented = |block: &str| {
        let (name, mut block) = (name_of(block), without_safety(block.trim_matches('\n')));
        for kind in ["enum", "struct", "union"] {
            block = block.replace(&format!("typedef {kind} {{"), &format!("typedef {kind} {name} {{"));
        }
        (name, block)
    };
    blocks.map(documented).collect()
}

/// Returns the name that a declaration declares.
fn name_of(block: &str) -> String {
    let code: Vec<&str> = block.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let (first, last) = (code.first().expect("code"), code.last().expect("code"));
    let declared = match first.starts_with("typedef") {
        true => last.trim_end_matches(';'),
        false => first.split('(').next().expect("a name"),
    };
    let name = declared.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().expect("a name");
    name.to_owned()
}

fn without_safety(block: &str) -> String {
    let (comment, code): (Vec<&str>, Vec<&str>) = {
        let comment = block.lines().take_while(|line| line.starts_with("//")).count();
        (block.lines().take(comment).collect(), block.lines().skip(comment).collect())
    };
    let kept = comment.iter().take_while(|line| **line != "// # Safety");
    let mut kept: Vec<&str> = kept.copied().collect();
    while kept.last() == Some(&"//") {
        kept.pop();
    }
    kept.extend(code);
    kept.join("\n")
}

/// Fills `hitreg.h.in`: a line `@NAME@` is the declaration of that name.
fn generated() -> String {
    let template = std::fs::read_to_string(root().join("hitreg.h.in")).expect("hitreg.h.in");
    let mut declarations = declarations();
    let mut made = String::new();
    for line in template.lines() {
        let name = line.strip_prefix('@').and_then(|line| line.strip_suffix('@'));
        let filled =
            name.map(|name| declarations.remove(name).unwrap_or_else(|| panic!("{name} is not in src, or twice here")));
        made.push_str(&filled.unwrap_or_else(|| line.replace("@VERSION@", env!("CARGO_PKG_VERSION"))));
        made.push('\n');
    }
    assert!(declarations.is_empty(), "hitreg.h.in lacks {:?}", declarations.keys());
    made
}

/// `HITREG_WRITE_HEADER=1` writes the header.
#[test]
#[expect(clippy::disallowed_methods, reason = "an environment variable asks for rewriting the header")]
fn the_header_is_generated_from_the_source() {
    let made = generated();
    if std::env::var_os("HITREG_WRITE_HEADER").is_some() {
        std::fs::write(root().join("include/hitreg.h"), &made).expect("it can be written");
    }
    let how = "HITREG_WRITE_HEADER=1 cargo test -p hitreg-capi --test capi";
    assert!(made == checked_in(), "include/hitreg.h is not what hitreg.h.in and src give: {how}");
}

#[test]
fn the_header_and_the_library_have_the_version_of_the_crate() {
    let version = env!("CARGO_PKG_VERSION");
    // SAFETY: the text is valid until the process ends.
    let library = unsafe { std::ffi::CStr::from_ptr(hitreg_capi::hitreg_version()) };
    assert_eq!(library.to_str(), Ok(version));
    assert!(checked_in().contains(&format!("#define HITREG_VERSION \"{version}\"")));
}

/// Old compilers on Windows read a header in the code page of the system.
#[test]
fn the_header_is_ascii() {
    let header = checked_in();
    let other: Vec<&str> = header.lines().filter(|line| !line.is_ascii()).collect();
    assert!(other.is_empty(), "{other:#?}");
}

#[test]
fn every_declaration_constant_and_field_is_documented() {
    let header = checked_in();
    let lines: Vec<&str> = header.lines().collect();
    let is_documented = |place: usize| lines[place - 1].trim_start().starts_with("//");
    let mut found = 0;
    let mut inside = false;
    for (place, line) in lines.iter().enumerate() {
        let begins = ["typedef ", "#define HITREG_VERSION", "static inline ", "hitreg_code ", "const char *", "void "];
        let is_member = inside && line.starts_with("  ") && !line.trim_start().starts_with("//");
        // A list and its length are documented together.
        let is_length = is_member && line.trim_end_matches(';').ends_with("_count") && lines[place - 1].contains('*');
        if begins.iter().any(|word| line.starts_with(word)) || (is_member && !is_length) {
            assert!(is_documented(place), "line {}: {line}", place + 1);
            found += 1;
        }
        inside = (inside || (line.starts_with("typedef ") && line.ends_with('{'))) && !line.starts_with('}');
    }
    assert!(found > 200, "{found} declarations");
}

/// Compiles a source that includes only the header. Notes a skipped test without the compiler.
fn compiles(compiler: &str, name: &str, flags: &[&str], source: &str) {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join(name);
    std::fs::write(&file, source).expect("written");
    let mut command = Command::new(compiler);
    command.args(["-Wall", "-Wextra", "-pedantic", "-Werror"]).args(flags).arg("-I").arg(root().join("include"));
    command.arg("-c").arg(&file).arg("-o").arg(folder.path().join("header.o"));
    match command.output() {
        Ok(output) => {
            let message = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{compiler} {flags:?}: {message}");
        }
        Err(_) => crate::note::skipped(&format!("there is no {compiler}")),
    }
}

#[test]
fn the_header_is_valid_c99_and_cpp() {
    let alone = "#include \"hitreg.h\"\n";
    for level in ["-O0", "-O2"] {
        compiles("cc", "header.c", &["-std=c99", "-Wconversion", level], &format!("{alone}int none;\n"));
        compiles("c++", "header.cpp", &["-std=c++17", "-Wconversion", level], alone);
        compiles("c++", "header.cpp", &["-std=c++11", level], alone);
    }
}

/// A use of each inline function, so that the compiler translates their bodies.
#[test]
fn the_inline_functions_are_valid_c99_and_cpp() {
    let header = checked_in();
    let inline = header.lines().filter_map(|line| line.strip_prefix("static inline "));
    let names: Vec<String> = inline.map(|line| name_of(&format!("{line};"))).collect();
    assert!(names.len() > 30, "{names:?}");
    let uses: String = names.iter().map(|name| format!("    use((any)&{name});\n")).collect();
    let source = format!(
        "#include \"hitreg.h\"\ntypedef void (*any)(void);\nvoid use(any function);\nvoid all(void);\nvoid all(void) {{\n{uses}}}\n"
    );
    compiles("cc", "inline.c", &["-std=c99", "-O2", "-Wno-cast-function-type"], &source);
    compiles("c++", "inline.cpp", &["-std=c++17", "-O2", "-Wno-cast-function-type"], &source);
}

/// The examples in the guide and the README, as one function each.
#[test]
fn the_examples_in_the_documentation_are_valid_c99() {
    let mut body = String::new();
    for page in ["docs/recorder.md", "README.md"] {
        let page = std::fs::read_to_string(root().join("../..").join(page)).expect("a page");
        let blocks = page.split("```c\n").skip(1).map(|rest| rest.split("```").next().expect("a block"));
        body.extend(blocks);
    }
    assert!(body.matches("hitreg_push_body").count() == 2, "{body}");
    let outside = "const uint32_t *cells, uint32_t n, uint32_t spell, uint32_t player, int64_t now_us, uint32_t tick, \
                   uint64_t state_hash, uint32_t entity, struct body body, const hitreg_log *log, hitreg_state state";
    let structs = "struct body {\n  double x;\n  uint8_t ammo;\n  char weapon[16];\n};\n";
    let source = format!("#include \"hitreg.h\"\n{structs}void all({outside});\nvoid all({outside}) {{\n{body}}}\n");
    compiles("cc", "examples.c", &["-std=c99"], &source);
}
