//! Standard input and output under the name `-`; a file of that name is `./-`.

use std::fs::File;
use std::path::Path;

/// Whether a path is `-`.
pub fn is_meant(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Standard input, as a file of its own.
pub(super) fn input() -> std::io::Result<File> {
    duplicate(std::io::stdin())
}

/// Standard output, as a file of its own.
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
