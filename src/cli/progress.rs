//! Progress bars and stopwatches. Only this module of the command line reads the clock.
#![expect(clippy::disallowed_methods, reason = "bars and rates show real time, and kept results have it")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::units::Micros;

/// A progress bar on stderr, with rate and time left. It is invisible if stderr is not a terminal.
pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar for a job that covers `length` of session time.
    pub(super) fn of_session(what: &str, length: Micros) -> Progress {
        let style = "{prefix} {bar:20} {percent:>3} %  {wide_msg}";
        let progress = Progress::new(what, length.0.max(0) as u64, style);
        progress.tick();
        progress
    }

    /// A bar for a replay that covers `length` of session time. It is hidden if others run beside it.
    pub(super) fn of_replay(length: Micros, is_alone: bool) -> Progress {
        if is_alone { Progress::of_session("replaying", length) } else { Progress { bar: ProgressBar::hidden() } }
    }

    /// A bar for a number of items.
    pub(super) fn of_things(what: &str, things: u64) -> Progress {
        Progress::new(what, things, "{prefix} {bar:30} {pos}/{len}  {per_sec}  {left} left")
    }

    /// A bar for a number of logs, with the number of those that differ.
    pub(super) fn of_logs(what: &str, logs: u64) -> Progress {
        Progress::new(what, logs, "{prefix} {bar:20} {pos}/{len}  {msg}  {per_sec}  {left} left")
    }

    /// A line for a job whose number of steps is not known.
    pub(super) fn of_steps(what: &str) -> Progress {
        let progress = Progress::new(what, 0, "{prefix}: {wide_msg}");
        progress.tick();
        progress
    }

    /// Draws the bar again from time to time, on a thread. A hidden bar needs none, and a bar without a thread is drawn at
    /// each step.
    fn tick(&self) {
        let may_start = || std::thread::Builder::new().spawn(|| ()).is_ok_and(|thread| thread.join().is_ok());
        if !self.bar.is_hidden() && may_start() {
            self.bar.enable_steady_tick(Duration::from_millis(200));
        }
    }

    fn new(what: &str, length: u64, template: &str) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        // Nothing is known of the rest before the first item is done.
        let left = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = match state.pos() {
                0 => out.write_char('?'),
                _ => write!(out, "{:#}", HumanDuration(state.eta())),
            };
        };
        bar.set_style(style.progress_chars("=> ").with_key("left", left));
        bar.set_prefix(what.to_owned());
        Progress { bar }
    }

    /// Sets the session time reached.
    pub(super) fn reached(&self, at: Micros) {
        let position = at.0.max(0) as u64;
        // Updating the bar costs more than a tick, so it is updated at most 100 times per second of session time.
        if position >= self.bar.position() + 10_000 {
            self.bar.set_position(position);
            let seconds = self.bar.elapsed().as_secs_f64().max(1e-3);
            let left = seconds * (self.bar.length().unwrap_or(0) as f64 / position.max(1) as f64 - 1.0).max(0.0);
            self.bar.set_message(format!("{:.0}x real time, {left:.0} s left", position as f64 / 1e6 / seconds));
        }
    }

    /// Sets the session time reached, with a message.
    pub(super) fn reached_with(&self, at: Micros, message: String) {
        self.bar.set_position(at.0.max(0) as u64);
        self.bar.set_message(message);
    }

    /// Sets the message about the current step.
    pub(super) fn step(&self, message: String) {
        self.bar.set_message(message);
    }

    /// Sets the total session time.
    pub(super) fn set_length(&self, length: Micros) {
        self.bar.set_length(length.0.max(0) as u64);
    }

    /// Prints a line on stderr, above the bar.
    pub(super) fn say(&self, line: &str) {
        use std::io::Write;
        // A closed stderr does not stop the command.
        let _ = self.bar.suspend(|| writeln!(anstream::stderr(), "{line}"));
    }

    /// Sets the number of finished items and the estimated total.
    pub(super) fn done(&self, done: u64, of: u64) {
        self.bar.set_length(of);
        self.bar.set_position(done);
    }

    /// Counts one more finished item.
    pub(super) fn one_done(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Measures how long something takes.
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

/// The time in milliseconds since 1970 (UTC).
pub(super) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
