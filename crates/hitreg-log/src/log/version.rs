//! Format versions, and the compatibility of readers and files.

use serde::{Deserialize, Serialize};

/// A format version. Files store it as `[major, minor]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(u16, u16)", into = "(u16, u16)")]
pub struct FormatVersion {
    /// Increases when an older reader would misread the file.
    pub major: u16,
    /// Increases when a file has additions that an older reader may ignore.
    pub minor: u16,
}

/// The format of logs and traces that this build writes. It reads all minor versions of it.
pub const FORMAT: FormatVersion = FormatVersion { major: 1, minor: 0 };

impl From<(u16, u16)> for FormatVersion {
    fn from((major, minor): (u16, u16)) -> FormatVersion {
        FormatVersion { major, minor }
    }
}

impl From<FormatVersion> for (u16, u16) {
    fn from(version: FormatVersion) -> (u16, u16) {
        (version.major, version.minor)
    }
}

impl std::fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Why a reader must not read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableFormat {
    /// The file's major version is newer.
    #[error("the file has format {file}, and this build reads formats up to {reader}: use a newer hitreg")]
    Newer {
        /// The file's version.
        file: FormatVersion,
        /// The reader's version.
        reader: FormatVersion,
    },
    /// The version does not exist.
    #[error("the file claims format {file}, which does not exist: it is damaged, or from another program")]
    Never {
        /// The file's version.
        file: FormatVersion,
    },
}

/// Checks whether a reader of version `reader` can read a file of version `file`.
///
/// A reader reads all files of its own major version and of older ones. It ignores additions of a newer minor version,
/// and refuses newer major versions.
///
/// # Errors
/// When the reader cannot read the file.
pub fn check_readable_by(file: FormatVersion, reader: FormatVersion) -> Result<(), UnreadableFormat> {
    if file.major == 0 {
        Err(UnreadableFormat::Never { file })
    } else if file.major > reader.major {
        Err(UnreadableFormat::Newer { file, reader })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compatibility_table_of_the_format_page() {
        let v = |major, minor| FormatVersion { major, minor };
        let cases = [
            (v(1, 0), v(1, 0), Ok(())),
            (v(1, 0), v(1, 3), Ok(())),
            (v(1, 3), v(1, 0), Ok(())),
            (v(1, 9), v(2, 0), Ok(())),
            (v(2, 0), v(1, 9), Err(UnreadableFormat::Newer { file: v(2, 0), reader: v(1, 9) })),
            (v(0, 1), v(1, 0), Err(UnreadableFormat::Never { file: v(0, 1) })),
        ];
        for (file, reader, answer) in cases {
            assert_eq!(check_readable_by(file, reader), answer, "file {file}, reader {reader}");
        }
    }

    #[test]
    fn a_version_is_stored_as_a_pair() {
        assert_eq!(rmp_serde::to_vec_named(&FORMAT).unwrap(), [0x92, 1, 0]);
    }
}
