//! Limits on the memory that a session may use.

/// The most memory, in bytes, that a replay or a new recording of a session may use. The reader of a log derives it
/// from the file. It is not part of the recorded data: two sessions compare equal whatever their allowances.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// The limit, in bytes.
    pub bytes: usize,
}

impl Allowance {
    /// Returns each share when `things` consumers use the allowance at the same time.
    #[must_use]
    pub fn shared_by(self, things: usize) -> Allowance {
        match self.bytes {
            usize::MAX => self,
            bytes => Allowance { bytes: bytes / things.max(1) },
        }
    }
}

impl Default for Allowance {
    /// No limit, for sessions that were not read from a file.
    fn default() -> Allowance {
        Allowance { bytes: usize::MAX }
    }
}

impl PartialEq for Allowance {
    fn eq(&self, _: &Allowance) -> bool {
        true
    }
}
