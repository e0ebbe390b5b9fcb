//! Standard input and output under the name `-`. A file of that name is `./-`.

use std::fs::File;
use std::path::Path;

/// Returns whether a path is `-`.
pub fn is_standard_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns standard input as a file.
pub(super) fn input() -> std::io::Result<File> {
    duplicate(std::io::stdin())
}

/// Returns standard output as a file.
pub(super) fn output() -> std::io::Result<File> {
    duplicate(std::io::stdout())
}

#[cfg(unix)]
fn duplicate(stream: impl std::os::fd::AsFd) -> std::io::Result<File> {
    Ok(stream.as_fd().try_clone_to_owned()?.into())
}

#[cfg(windows)]
fn duplicate(stream: impl std::os::windows::io::AsHandle) -> std::io::Result<File> {
    Ok(stream.as_handle().try_clone_to_owned()?.into())
}
