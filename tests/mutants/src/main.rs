//! Writes a copy of hitreg's sources with many mutants. The environment selects one of them.
//!
//! `mutants REPOSITORY COPY MODULES DROPPED` rewrites the modules of `hitreg-netcode` (such as `server,client`) from
//! REPOSITORY to COPY. Each site becomes `if crate::mutants::is(NUMBER) { mutant } else { original }`. DROPPED lists
//! the numbers of sites without a mutant. Standard output has one line for each site, separated by tabs:
//! number, file, line, first and last byte in the rewritten file, and the change.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Lit, Stmt, UnOp};

const SOURCES: &str = "crates/hitreg-netcode/src";

/// The module that the copy of `hitreg-netcode` has in addition. Number 0 selects no mutant.
const SELECTION: &str = r#"//! Selects one mutant of this build.

use std::sync::OnceLock;

#[inline]
pub(crate) fn is(number: u32) -> bool {
    static SELECTED: OnceLock<u32> = OnceLock::new();
    let selected = SELECTED.get_or_init(|| match std::env::var("HITREG_MUTANT") {
        Ok(number) => number.parse().expect("HITREG_MUTANT is a number"),
        Err(_) => 0,
    });
    *selected == number
}
"#;

/// A place in a file that a mutant can change.
struct Site {
    /// Bytes of the original expression.
    bytes: Range<usize>,
    line: usize,
    /// The changed expression, without other mutants. `None` removes a call.
    mutant: Option<String>,
    change: String,
}

/// Collects the sites of one file.
#[derive(Default)]
struct Sites {
    sites: Vec<Site>,
    /// Names of modules in other files that only tests have.
    test_modules: Vec<String>,
}

impl Sites {
    fn push(&mut self, place: &Expr, mutant: Option<String>, change: String) {
        let span = place.span();
        self.sites.push(Site { bytes: span.byte_range(), line: span.start().line, mutant, change });
    }
}

impl<'ast> Visit<'ast> for Sites {
    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            Expr::Binary(binary) => {
                if let Some(other) = other_operator(&binary.op)
                    && !has_let(expr)
                {
                    let (left, right) = (text(&binary.left), text(&binary.right));
                    let change = format!("{} -> {other}   in   {}", text(&binary.op), text(binary));
                    self.push(expr, Some(format!("({left}) {other} ({right})")), change);
                }
            }
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
                let change = format!("without the !   in   {}", text(unary));
                self.push(expr, Some(text(&unary.expr)), change);
            }
            Expr::Lit(literal) => {
                let mutant = match &literal.lit {
                    Lit::Int(int) => {
                        int.base10_parse::<u64>().ok().map(|value| format!("{}{}", value + 1, int.suffix()))
                    }
                    Lit::Bool(bool) => Some((!bool.value).to_string()),
                    _ => None,
                };
                if let Some(mutant) = mutant {
                    let change = format!("{} -> {mutant}", text(literal));
                    self.push(expr, Some(mutant), change);
                }
            }
            _ => {}
        }
        visit::visit_expr(self, expr);
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        // The compiler finds calls that return something: both branches must have the unit type.
        if let Stmt::Expr(call @ (Expr::Call(_) | Expr::MethodCall(_) | Expr::Try(_)), Some(_)) = statement {
            self.push(call, None, format!("without the call {}", text(call)));
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Mod(module) => {
                if module.content.is_none() && only_tests(&module.attrs) {
                    self.test_modules.push(module.ident.to_string());
                }
                &module.attrs
            }
            syn::Item::Fn(function) if function.sig.constness.is_none() => &function.attrs,
            syn::Item::Impl(block) => &block.attrs,
            syn::Item::Trait(block) => &block.attrs,
            _ => return,
        };
        if !only_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if function.sig.constness.is_none() && !only_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    // Constants, patterns and types cannot ask which mutant is selected.
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

fn other_operator(operator: &BinOp) -> Option<&'static str> {
    Some(match operator {
        BinOp::Add(_) => "-",
        BinOp::Sub(_) => "+",
        BinOp::Mul(_) => "/",
        BinOp::Div(_) => "*",
        BinOp::AddAssign(_) => "-=",
        BinOp::SubAssign(_) => "+=",
        BinOp::MulAssign(_) => "/=",
        BinOp::DivAssign(_) => "*=",
        BinOp::Lt(_) => "<=",
        BinOp::Le(_) => "<",
        BinOp::Gt(_) => ">=",
        BinOp::Ge(_) => ">",
        BinOp::Eq(_) => "!=",
        BinOp::Ne(_) => "==",
        BinOp::And(_) => "||",
        BinOp::Or(_) => "&&",
        _ => return None,
    })
}

/// Whether a condition binds names with `let`, so that it cannot move into a block.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

fn only_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test") || attribute.path().is_ident("cfg") && text(attribute).contains("test")
    })
}

/// Source text in one line, without comments, so that lines keep their numbers.
fn text(node: &impl ToTokens) -> String {
    node.to_token_stream().to_string().replace(['\n', '\t'], " ")
}

/// Writes the bytes `range` of `source` with the mutants in it. `sites` are those in the range, outer sites first.
fn render(source: &str, range: Range<usize>, sites: &[(u32, &Site)], places: &mut Vec<Range<usize>>, out: &mut String) {
    let mut at = range.start;
    let mut rest = sites;
    while let [(number, site), after @ ..] = rest {
        let inside = after.iter().take_while(|(_, inner)| inner.bytes.start < site.bytes.end).count();
        out.push_str(&source[at..site.bytes.start]);
        let (start, place) = (out.len(), places.len());
        places.push(start..start);
        match &site.mutant {
            Some(mutant) => out.push_str(&format!("(if crate::mutants::is({number}) {{ {mutant} }} else {{ ")),
            None => out.push_str(&format!("if crate::mutants::is({number}) {{}} else {{ ")),
        }
        render(source, site.bytes.clone(), &after[..inside], places, out);
        out.push_str(if site.mutant.is_some() { " })" } else { " }" });
        places[place].end = out.len();
        at = site.bytes.end;
        rest = &after[inside..];
    }
    out.push_str(&source[at..range.end]);
}

/// Adds the Rust files of a module: `path.rs`, and everything in the folder `path`.
fn files(path: &Path, found: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    let file = path.with_extension("rs");
    if file.is_file() {
        found.insert(file);
    }
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            files(&entry?.path().with_extension(""), found)?;
        }
    }
    Ok(())
}

/// Leaves an unchanged file alone, so that cargo does not build it again.
fn write(path: &Path, content: &str) -> io::Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().expect("a file is in a folder"))?;
    fs::write(path, content)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [repository, copy, modules, dropped] = &arguments[..] else {
        return Err("usage: mutants REPOSITORY COPY MODULES DROPPED".into());
    };
    let (from, to) = (Path::new(repository).join(SOURCES), Path::new(copy).join(SOURCES));
    let dropped: BTreeSet<u32> =
        fs::read_to_string(dropped)?.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;

    write(&to.join("mutants.rs"), SELECTION)?;
    write(&to.join("lib.rs"), &(fs::read_to_string(from.join("lib.rs"))? + "\nmod mutants;\n"))?;

    let mut paths = BTreeSet::new();
    for module in modules.split(',') {
        files(&from.join(module), &mut paths)?;
    }
    let mut parsed = Vec::new();
    let mut tests = BTreeSet::new();
    for path in paths {
        let source = fs::read_to_string(&path)?;
        let mut found = Sites::default();
        found.visit_file(&syn::parse_file(&source).map_err(|error| format!("{}: {error}", path.display()))?);
        tests.extend(found.test_modules.iter().map(|name| path.with_extension("").join(name).with_extension("rs")));
        parsed.push((path, source, found.sites));
    }

    let mut number = 0;
    for (path, source, mut sites) in parsed {
        let name = path.strip_prefix(&from)?;
        if tests.contains(&path) {
            sites.clear();
        }
        sites.sort_by_key(|site| (site.bytes.start, std::cmp::Reverse(site.bytes.end)));
        let mut kept = Vec::new();
        for site in &sites {
            number += 1;
            if !dropped.contains(&number) {
                kept.push((number, site));
            }
        }
        let (mut places, mut out) = (Vec::new(), String::new());
        render(&source, 0..source.len(), &kept, &mut places, &mut out);
        write(&to.join(name), &out)?;
        for ((number, site), place) in kept.iter().zip(places) {
            println!(
                "{number}\t{SOURCES}/{}\t{}\t{}\t{}\t{}",
                name.display(),
                site.line,
                place.start,
                place.end,
                site.change
            );
        }
    }
    Ok(())
}
