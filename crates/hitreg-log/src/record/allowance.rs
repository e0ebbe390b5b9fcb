//! How much may be made out of a session.

/// How many bytes of memory may be made out of a session: by replaying it, or by recording it anew. It comes from the file
/// that the session was read from, and is no part of what was recorded: sessions are the same whatever it is.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// The most bytes.
    pub bytes: usize,
}

impl Allowance {
    /// The same, where so many things are made at once.
    #[must_use]
    pub fn shared_by(self, things: usize) -> Allowance {
        match self.bytes {
            usize::MAX => self,
            bytes => Allowance { bytes: bytes / things.max(1) },
        }
    }
}

impl Default for Allowance {
    /// What was not read from a file may become whatever it becomes.
    fn default() -> Allowance {
        Allowance { bytes: usize::MAX }
    }
}

impl PartialEq for Allowance {
    fn eq(&self, _: &Allowance) -> bool {
        true
    }
}
