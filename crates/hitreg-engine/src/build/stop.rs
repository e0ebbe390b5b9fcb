//! Stops running processes early, because the user asked for it or because their result is not needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stops the processes that were started with it. Clones stop the same processes.
#[derive(Clone, Debug, Default)]
pub struct StopSignal {
    stopped: Arc<AtomicBool>,
    whole: Option<Arc<StopSignal>>,
}

impl StopSignal {
    /// A part of this stop. It can be stopped separately, and stopping the whole stops it too.
    #[must_use]
    pub fn part(&self) -> StopSignal {
        StopSignal { stopped: Arc::default(), whole: Some(Arc::new(self.clone())) }
    }

    /// Ends all processes that run with this stop, and prevents new ones.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    /// Whether this stop, or the whole that it is part of, has been stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst) || self.whole.as_ref().is_some_and(|whole| whole.is_stopped())
    }
}
