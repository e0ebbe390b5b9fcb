//! Progress bars and stopwatches: the one place of the command line that reads the clock.
#![expect(clippy::disallowed_methods, reason = "bars and speeds are about real time, and nothing else sees it")]

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::units::Micros;

/// A bar on stderr with rate and time left; nothing at all where stderr is no terminal.
pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar for something that takes `length` of session time.
    pub(super) fn of_session(what: &str, length: Micros) -> Progress {
        let style = "{prefix} {bar:20} {percent:>3} %  {wide_msg}";
        let progress = Progress::new(what, length.0.max(0) as u64, style);
        progress.bar.enable_steady_tick(Duration::from_millis(200));
        progress
    }

    /// A bar for this many things.
    pub(super) fn of_things(what: &str, things: u64) -> Progress {
        Progress::new(what, things, "{prefix} {bar:30} {pos}/{len}  {per_sec}  {eta} left")
    }

    fn new(what: &str, length: u64, template: &str) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        bar.set_prefix(what.to_owned());
        Progress { bar }
    }

    /// The session time that has been reached.
    pub(super) fn reached(&self, at: Micros) {
        let position = at.0.max(0) as u64;
        // Bars cost more than a tick does: a hundred steps a second of the session are enough.
        if position >= self.bar.position() + 10_000 {
            self.bar.set_position(position);
            let seconds = self.bar.elapsed().as_secs_f64().max(1e-3);
            let left = seconds * (self.bar.length().unwrap_or(0) as f64 / position.max(1) as f64 - 1.0).max(0.0);
            self.bar.set_message(format!("{:.0}x real time, {left:.0} s left", position as f64 / 1e6 / seconds));
        }
    }

    /// The session time that has been reached, and what there is to say about it.
    pub(super) fn reached_with(&self, at: Micros, message: String) {
        self.bar.set_position(at.0.max(0) as u64);
        self.bar.set_message(message);
    }

    /// How much session time there will be, once that is known.
    pub(super) fn set_length(&self, length: Micros) {
        self.bar.set_length(length.0.max(0) as u64);
    }

    /// Says a line on stderr, above the bar where there is one.
    pub(super) fn say(&self, line: &str) {
        use std::io::Write;
        // The session goes on whether anybody reads this or not.
        let _ = self.bar.suspend(|| writeln!(anstream::stderr(), "{line}"));
    }

    /// So many of about so many things are done.
    pub(super) fn done(&self, done: u64, of: u64) {
        self.bar.set_length(of);
        self.bar.set_position(done);
    }

    /// One more thing is done.
    pub(super) fn one_done(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// How long something took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch {
    started: Instant,
}

impl Stopwatch {
    pub(super) fn start() -> Stopwatch {
        Stopwatch { started: Instant::now() }
    }

    pub(super) fn elapsed_s(self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}
