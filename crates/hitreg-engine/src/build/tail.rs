//! The end of a process's output.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How many bytes are kept.
const KEPT_BYTES: usize = 8 << 10;
/// How many lines are shown.
const LINES: usize = 8;
/// The limit on the length of a shown line, in characters.
const LINE_CHARS: usize = 400;

/// Reads a pipe to its end on its own thread, so that the writer never blocks, and keeps the end of the output.
pub(super) struct PipeTail {
    kept: Arc<Mutex<VecDeque<u8>>>,
    reader: JoinHandle<()>,
}

impl PipeTail {
    /// Starts to read a pipe.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn of(mut pipe: impl Read + Send + 'static) -> std::io::Result<PipeTail> {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let keeping = Arc::clone(&kept);
        let reader = std::thread::Builder::new().spawn(move || {
            let mut block = [0u8; 4096];
            // After a read error, no more output can be expected.
            while let Ok(count @ 1..) = pipe.read(&mut block) {
                let mut kept = keeping.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(&block[..count]);
                let surplus = kept.len().saturating_sub(KEPT_BYTES);
                kept.drain(..surplus);
            }
        })?;
        Ok(PipeTail { kept, reader })
    }

    /// Whether the other end of the pipe is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.reader.is_finished()
    }

    /// The last lines so far, without control characters.
    pub(super) fn lines(&self) -> Vec<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        let text = anstream::adapter::strip_str(&String::from_utf8_lossy(&bytes)).to_string();
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(LINES)..].iter().map(|line| printable(line)).collect()
    }
}

fn printable(line: &str) -> String {
    line.chars().take(LINE_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        let text: String = (0..10_000).map(|n| format!("line {n}\n\n")).collect();
        let tail = PipeTail::of(std::io::Cursor::new(format!("{text}\x1b[31mred\x1b[0m\x07\n"))).unwrap();
        while !tail.is_closed() {
            std::thread::yield_now();
        }
        let lines = tail.lines();
        assert_eq!((lines.len(), lines[0].as_str(), lines[7].as_str()), (8, "line 9993", "red"));
    }
}
