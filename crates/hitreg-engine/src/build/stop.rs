//! Ending what runs before its time: because the user said so, or because its answer is not needed any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the processes that were started with it. Clones end the same ones.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    stopped: Arc<AtomicBool>,
    whole: Option<Arc<Stop>>,
}

impl Stop {
    /// A part that can be stopped by itself, and is when the whole is.
    #[must_use]
    pub fn part(&self) -> Stop {
        Stop { stopped: Arc::default(), whole: Some(Arc::new(self.clone())) }
    }

    /// Ends everything that runs under this, and lets nothing more begin.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    /// Whether it has been stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst) || self.whole.as_ref().is_some_and(|whole| whole.is_stopped())
    }
}
