//! Runs random C programs: any calls, in any order, with any arguments that the header allows. No call may fault, every
//! code but `HITREG_OK` has a message, and every finished log can be read.
#![expect(unsafe_code, reason = "this is the border to C")]

use std::ffi::{CStr, CString, c_char};
use std::ptr::{null, null_mut};

use ::hitreg_log::rng::Rng;
use hitreg_capi::hitreg_code::{HITREG_OK, HITREG_PANIC};
use hitreg_capi::*;
use tempfile::TempDir;

use crate::fuzz::target_within;

/// The memory limit of one program, in bytes. Recorders and readers use threads and compressors.
const WORK: usize = 4 << 30;

/// A program: a sequence of bytes that choose calls and arguments, and the handles so far. After the last byte, it
/// reads zeros.
struct CallProgram<'a> {
    bytes: std::slice::Iter<'a, u8>,
    folder: &'a str,
    texts: Vec<CString>,
    now: i64,
    abouts: Vec<*mut hitreg_about>,
    recorders: Vec<*mut hitreg_recorder>,
    streams: Vec<*mut hitreg_stream>,
    logs: Vec<*mut hitreg_log>,
    traces: Vec<*mut hitreg_trace>,
}

impl Drop for CallProgram<'_> {
    fn drop(&mut self) {
        // SAFETY: the library made each handle, and only this code frees it. Streams may outlive their recorders.
        unsafe {
            self.abouts.drain(..).for_each(|about| hitreg_about_free(about));
            self.recorders.drain(..).for_each(|recorder| hitreg_recorder_free(recorder));
            self.streams.drain(..).for_each(|stream| hitreg_stream_free(stream));
            self.logs.drain(..).for_each(|log| hitreg_log_free(log));
            self.traces.drain(..).for_each(|trace| hitreg_trace_free(trace));
        }
    }
}

impl CallProgram<'_> {
    fn byte(&mut self) -> u8 {
        self.bytes.next().copied().unwrap_or_default()
    }

    /// Returns a number, usually a small one.
    fn number(&mut self) -> u64 {
        match self.byte() {
            byte @ 0..=219 => u64::from(byte) % 12,
            220..=229 => u64::from(u32::MAX),
            230..=239 => u64::MAX,
            240..=245 => i64::MAX as u64,
            _ => (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte())),
        }
    }

    fn at(&mut self) -> i64 {
        match self.byte() {
            byte @ 0..=239 => self.now = self.now.saturating_add(i64::from(byte) * 100),
            _ => return self.number() as i64,
        }
        self.now
    }

    /// Returns a name, usually a valid one; sometimes an invalid text or null.
    fn text(&mut self) -> *const c_char {
        let texts: [&[u8]; 12] = [
            b"x",
            b"y",
            b"health",
            b"player",
            b"sv_gravity",
            b"800",
            b"ticks",
            b"spell",
            b"closed",
            b"\xff\xfe",
            b"",
            b"a\nb",
        ];
        let which = usize::from(self.byte()) % 13;
        let Some(text) = texts.get(which) else { return null() };
        self.kept(text.to_vec())
    }

    fn path(&mut self) -> *const c_char {
        let names = ["a.hitlog", "b.hitlog", "c.hittrace", "missing/a.hitlog", ""];
        match names.get(usize::from(self.byte()) % 6) {
            Some(name) => self.kept(format!("{}/{name}", self.folder).into_bytes()),
            None => null(),
        }
    }

    fn kept(&mut self, text: Vec<u8>) -> *const c_char {
        self.texts.push(CString::new(text).expect("no zero in it"));
        self.texts[self.texts.len() - 1].as_ptr()
    }

    /// Returns a struct of random numbers, usually with its correct size.
    fn any<T: Default>(&mut self) -> T {
        let mut made = T::default();
        let (whole, words) = (size_of::<T>() as u32, size_of::<T>() / 4);
        let size = match self.byte() {
            0..=239 => whole,
            240..=245 => 0,
            _ => whole.min(self.number() as u32),
        };
        // SAFETY: the header's structs consist of numbers without padding, and begin with their size.
        let words = unsafe { std::slice::from_raw_parts_mut((&raw mut made).cast::<u32>(), words) };
        words.iter_mut().for_each(|word| *word = self.number() as u32);
        words[0] = size;
        made
    }

    /// Returns a random struct with a plausible time. The time of each such struct is its third and fourth word.
    fn timed<T: Default>(&mut self) -> T {
        let (mut made, at) = (self.any::<T>(), self.at());
        // SAFETY: as in `any`; these structs have at least four words.
        unsafe { (&raw mut made).cast::<u8>().add(8).cast::<i64>().write_unaligned(at) };
        made
    }

    fn one_of<T>(list: &[*mut T], which: u8) -> *mut T {
        let which = usize::from(which);
        if list.is_empty() || which % 16 == 15 { null_mut() } else { list[which % list.len()] }
    }

    /// Returns a pointer to the value, or null.
    fn or_null<T>(&mut self, value: &T) -> *const T {
        if self.byte() < 240 { &raw const *value } else { null() }
    }

    /// Runs one call.
    fn call(&mut self) -> hitreg_code {
        match self.byte() % 8 {
            0 | 1 => self.describe(),
            2 => self.record(),
            3..=5 => self.push(),
            6 => self.read(),
            _ => self.trace(),
        }
    }

    fn describe(&mut self) -> hitreg_code {
        let which = self.byte();
        let about = Self::one_of(&self.abouts, which);
        let (name, other) = (self.text(), self.text());
        let [kind, scope, meaning] = [(); 3].map(|()| self.number() as u32);
        // SAFETY: texts and handles are valid, or null.
        unsafe {
            match self.byte() % 16 {
                0 => {
                    let made = hitreg_about_new(name);
                    self.abouts.extend((!made.is_null()).then_some(made));
                    HITREG_OK
                }
                1 => hitreg_about_tick_hz(about, kind),
                2 => hitreg_about_setting(about, name, other),
                3 => hitreg_about_map(about, name, [1, 2, 3].as_ptr(), 3.min(kind as usize)),
                4 => hitreg_about_seed(about, self.number()),
                5..=7 => hitreg_about_player(about, name),
                8 => hitreg_about_class(about, name),
                9 => hitreg_about_field(about, name, kind, scope, meaning, other),
                10 => hitreg_about_usercmd_field(about, name, kind, meaning, other),
                11 => hitreg_about_kind(about, name),
                12 => hitreg_about_column(about, name, kind),
                13 => hitreg_about_usercmd_bytes(about),
                14 => hitreg_about_usercmds_as_received(about),
                _ => hitreg_about_side(about, self.number(), self.number() as i32),
            }
        }
    }

    fn record(&mut self) -> hitreg_code {
        let (which, other) = (self.byte(), self.byte());
        let about = Self::one_of(&self.abouts, which);
        let recorder = Self::one_of(&self.recorders, which);
        let (path, options) = (self.path(), self.any::<hitreg_options>());
        let (mut made, mut stream) = (null_mut(), null_mut());
        let mut written = self.any::<hitreg_written>();
        // SAFETY: texts, structs and handles are valid, or null.
        let code = unsafe {
            match self.byte() % 8 {
                0 => hitreg_recorder_create(path, about, self.or_null(&options), &raw mut made),
                1 => hitreg_recorder_keep_last(self.number() as u32, about, self.or_null(&options), &raw mut made),
                2 => hitreg_recorder_trace(path, about, Self::one_of(&self.logs, other), &raw mut made),
                3 => hitreg_recorder_save(recorder, path),
                4 => hitreg_recorder_finish(recorder, &raw mut written),
                5 => hitreg_recorder_written(recorder, &raw mut written),
                6 => hitreg_stream_new(recorder, &raw mut stream),
                _ => hitreg_stream_release(Self::one_of(&self.streams, other)),
            }
        };
        self.recorders.extend((!made.is_null()).then_some(made));
        self.streams.extend((!stream.is_null()).then_some(stream));
        code
    }

    fn push(&mut self) -> hitreg_code {
        let which = self.byte();
        let stream = Self::one_of(&self.streams, which);
        let (player, at) = (self.number() as u16, self.at());
        let [number, tick] = [(); 2].map(|()| self.number() as u32);
        let cells = [self.number() as u32, number];
        let values = [self.any::<hitreg_value>(), self.any::<hitreg_value>()];
        let count = (self.number() as usize).min(2);
        // SAFETY: structs, arrays and handles are valid, or null.
        unsafe {
            match self.byte() % 15 {
                0 | 1 => hitreg_push_usercmd(stream, player, &self.timed()),
                2 => hitreg_push_usercmd_with(stream, player, &self.timed(), values.as_ptr(), count),
                3 => hitreg_push_usercmd_bytes(stream, player, at, number, cells.as_ptr().cast(), count * 4),
                4 => hitreg_push_packet(stream, player, &self.timed()),
                5 => hitreg_push_reached(stream, player, number, at),
                6 => {
                    let (snapshot, effects) = (self.timed(), [self.any::<hitreg_effect>()]);
                    let entities = [number as u16, player];
                    hitreg_push_snapshot(
                        stream,
                        player,
                        &snapshot,
                        entities.as_ptr(),
                        count,
                        effects.as_ptr(),
                        count.min(1),
                    )
                }
                7 => hitreg_push_received(stream, player, number, at),
                8 => hitreg_push_ran(stream, player, number, tick, self.number() as u32),
                9 => hitreg_push_tick(stream, tick, at, if which < 128 { null() } else { &7 }),
                10 => {
                    hitreg_push_body(stream, tick, self.number() as i32, player, number as u16, cells.as_ptr(), count)
                }
                11 => hitreg_push_shot(stream, player, &self.timed(), number),
                12 => hitreg_push_presence(stream, player, &self.timed()),
                13 => hitreg_push_damage(stream, tick, at, player, self.number() as i32, self.number() as i32),
                _ => hitreg_push_row(stream, tick as usize, number, at, values.as_ptr(), count),
            }
        }
    }

    fn read(&mut self) -> hitreg_code {
        let which = self.byte();
        let log = Self::one_of(&self.logs, which).cast_const();
        let (player, index, key) = (self.number() as u16, self.number() as usize, self.text());
        let (mut made, mut count, mut other, mut at) = (null_mut(), 0, 0, 0);
        let (mut bytes, mut cells, mut entities, mut series) = (null(), null(), null(), 0);
        let mut values = [hitreg_value::default(); 2];
        // SAFETY: texts, structs, output pointers and handles are valid, or null.
        unsafe {
            let code = match self.byte() % 16 {
                0 | 1 => hitreg_log_open(self.path(), &raw mut made),
                2 => {
                    let _ = (hitreg_log_game(log), hitreg_log_map(log, &raw mut bytes, &raw mut count));
                    let _ = (hitreg_log_seed(log), hitreg_log_setting(log, key), hitreg_log_players(log));
                    HITREG_OK
                }
                3 => hitreg_log_count(log, index as u32, player, &raw mut count),
                4 => hitreg_log_usercmd(log, player, index, &mut self.any()),
                5 => hitreg_log_usercmd_bytes(log, player, index as u32, &raw mut bytes, &raw mut count),
                6 => hitreg_log_ran(log, player, index, &mut self.any()),
                7 => hitreg_log_reached(log, player, index, &mut self.any()),
                8 => hitreg_log_tick(log, index, &mut self.any()),
                9 => hitreg_log_state(log, index, &mut self.any(), &raw mut cells),
                10 => {
                    let mut snapshot = self.any();
                    hitreg_log_snapshot(
                        log,
                        player,
                        index,
                        &raw mut snapshot,
                        &raw mut entities,
                        &raw mut count,
                        &raw mut other,
                    )
                }
                11 => hitreg_log_effect(log, player, index, other, &mut self.any()),
                12 => hitreg_log_received(log, player, index, &mut self.any()),
                13 => hitreg_log_presence(log, player, index, &mut self.any()),
                14 => hitreg_log_usercmd_values(log, player, index as u32, values.as_mut_ptr(), 2.min(index)),
                _ => {
                    let rows = hitreg_log_rows(log, key, &raw mut count);
                    let values = (values.as_mut_ptr(), 2.min(index));
                    let _ = hitreg_log_row(log, key, index, &raw mut series, &raw mut at, values.0, values.1);
                    rows
                }
            };
            self.logs.extend((!made.is_null()).then_some(made));
            code
        }
    }

    fn trace(&mut self) -> hitreg_code {
        let (which, other) = (self.byte(), self.byte());
        let trace = Self::one_of(&self.traces, which);
        let (name, unit, mut made) = (self.text(), self.text(), null_mut());
        let (numbers, rows) = ([self.number(), self.number(), self.number()], (self.number() as usize).min(3));
        let (codes, reals) = (numbers.map(|number| number as u32), numbers.map(|number| number as f32));
        // SAFETY: texts, arrays and handles are valid, or null.
        let code = unsafe {
            match self.byte() % 10 {
                0 => hitreg_trace_new(Self::one_of(&self.logs, other), name, &raw mut made),
                1 => hitreg_trace_setting(trace, name, unit),
                2 => hitreg_trace_table(trace, name),
                3 => hitreg_trace_key(trace, name),
                4 => hitreg_trace_u32(trace, name, unit, codes.as_ptr(), rows),
                5 => hitreg_trace_u64(trace, name, unit, numbers.as_ptr(), rows),
                6 => hitreg_trace_i64(trace, name, unit, numbers.as_ptr().cast(), rows),
                7 => hitreg_trace_f32(trace, name, unit, reals.as_ptr(), rows),
                8 => hitreg_trace_names(trace, name, [unit, name].as_ptr(), rows.min(2), codes.as_ptr(), rows),
                _ => hitreg_trace_write(trace, self.path()),
            }
        };
        self.traces.extend((!made.is_null()).then_some(made));
        code
    }
}

/// Describes, records, finishes and reads a log first, so that the random calls have all kinds of handles.
fn begun(program: &mut CallProgram<'_>) {
    let path = program.kept(format!("{}/a.hitlog", program.folder).into_bytes());
    let [player, class, field, spell] = ["player", "player", "x", "spell"].map(|text| program.kept(text.into()));
    let (mut recorder, mut stream, mut log, mut trace) = (null_mut(), null_mut(), null_mut(), null_mut());
    let finish = program.byte() < 192;
    // SAFETY: texts and output pointers are valid.
    unsafe {
        let about = hitreg_about_new(player);
        program.abouts.push(about);
        let described = [
            hitreg_about_player(about, player),
            hitreg_about_player(about, player),
            hitreg_about_class(about, class),
            hitreg_about_field(about, field, 0, 0, 0, null()),
            hitreg_about_usercmd_bytes(about),
            hitreg_about_kind(about, spell),
            hitreg_about_column(about, field, 0),
        ];
        assert_eq!(described, [HITREG_OK; 7]);
        assert_eq!(hitreg_recorder_create(path, about, null(), &raw mut recorder), HITREG_OK);
        program.recorders.push(recorder);
        assert_eq!(hitreg_stream_new(recorder, &raw mut stream), HITREG_OK);
        program.streams.push(stream);
        for _ in 0..program.byte() % 32 {
            said(program.push());
        }
        if !finish {
            return;
        }
        assert_eq!(hitreg_recorder_finish(recorder, null_mut()), HITREG_OK, "{}", sentence());
        assert_eq!(hitreg_log_open(path, &raw mut log), HITREG_OK, "{}", sentence());
        program.logs.push(log);
        assert_eq!(hitreg_trace_new(log, program.kept(b"closed".to_vec()), &raw mut trace), HITREG_OK);
        program.traces.push(trace);
    }
}

fn sentence() -> String {
    // SAFETY: the text is valid until this thread's next failure.
    unsafe { CStr::from_ptr(hitreg_last_error()) }.to_string_lossy().into_owned()
}

/// Checks the result of a call.
fn said(code: hitreg_code) -> hitreg_code {
    assert_ne!(code, HITREG_PANIC, "{}", sentence());
    assert!(code == HITREG_OK || !sentence().is_empty(), "{code:?} without a sentence");
    code
}

#[test]
fn calls() {
    let calls = |_: &[u8], rng: &mut Rng| (0..rng.below(1200)).map(|_| rng.next_u64() as u8).collect();
    target_within("calls", WORK, vec![Vec::new()], calls, &mut |bytes| {
        let folder = TempDir::new().expect("a folder");
        let mut program = CallProgram {
            bytes: bytes.iter(),
            folder: folder.path().to_str().expect("UTF-8"),
            texts: Vec::new(),
            now: 0,
            abouts: Vec::new(),
            recorders: Vec::new(),
            streams: Vec::new(),
            logs: Vec::new(),
            traces: Vec::new(),
        };
        begun(&mut program);
        let mut last = HITREG_OK;
        while program.bytes.len() > 0 {
            last = said(program.call());
        }
        format!("{last:?}")
    });
}
