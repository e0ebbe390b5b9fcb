//! Runs random C programs: any calls, in any order, with any arguments that the header allows. No call may fault, every
//! code but `HITREG_OK` has a message, and every finished log can be read.

use std::ffi::{CStr, CString, c_char};
use std::ptr::{null, null_mut};

use ::hitreg_log::rng::Rng;
use hitreg_capi::hitreg_code::{HITREG_ERROR_PANIC, HITREG_OK};
use hitreg_capi::*;
use tempfile::TempDir;

use crate::fuzz::target_within;

/// The memory limit of one program, in bytes. Recorders and readers use threads and compressors.
const WORK: usize = 4 << 30;

/// The items of a list, aligned for every kind of item. As values they are none, numbers or floats, never lists.
#[repr(align(8))]
struct AlignedItems([u32; 12]);

/// A program: a sequence of bytes that choose calls and arguments, and the handles so far. After the last byte, it
/// reads zeros.
struct CallProgram<'a> {
    bytes: std::slice::Iter<'a, u8>,
    folder: &'a str,
    texts: Vec<CString>,
    now: i64,
    descriptions: Vec<*mut hitreg_description>,
    recorders: Vec<*mut hitreg_recorder>,
    streams: Vec<*mut hitreg_stream>,
    logs: Vec<*mut hitreg_log>,
    traces: Vec<*mut hitreg_trace>,
}

impl Drop for CallProgram<'_> {
    fn drop(&mut self) {
        // SAFETY: the library made each handle, and only this code frees it. Streams may outlive their recorders.
        unsafe {
            self.descriptions.drain(..).for_each(|description| hitreg_description_free(description));
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

    fn random_time(&mut self) -> i64 {
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
        self.keep_text(text.to_vec())
    }

    fn path(&mut self) -> *const c_char {
        let names = ["a.hitlog", "b.hitlog", "c.hittrace", "missing/a.hitlog", ""];
        match names.get(usize::from(self.byte()) % 6) {
            Some(name) => self.keep_text(format!("{}/{name}", self.folder).into_bytes()),
            None => null(),
        }
    }

    fn keep_text(&mut self, text: Vec<u8>) -> *const c_char {
        self.texts.push(CString::new(text).expect("no zero in it"));
        self.texts[self.texts.len() - 1].as_ptr()
    }

    /// Returns a struct of random numbers, usually with its correct size.
    fn random_struct<T: Default>(&mut self) -> T {
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

    fn field(&mut self) -> hitreg_field {
        let [value_type, scope, meaning] = [(); 3].map(|()| self.number() as u32 % 16);
        hitreg_field { name: self.text(), value_type, scope, meaning, unit: self.text() }
    }

    fn describe(&mut self) -> hitreg_code {
        let which = self.byte();
        let description = Self::one_of(&self.descriptions, which);
        let (name, other, number) = (self.text(), self.text(), self.number());
        let fields = [self.field(), self.field()];
        let columns = fields.map(|field| hitreg_column { name: field.name, value_type: field.value_type });
        let (fields, columns, count) = (fields.as_ptr(), columns.as_ptr(), number.min(2) as usize);
        // SAFETY: texts, arrays and handles are valid, or null.
        unsafe {
            match self.byte() % 16 {
                0 | 1 => {
                    let made = hitreg_description_new(name);
                    self.descriptions.extend((!made.is_null()).then_some(made));
                    HITREG_OK
                }
                2 => hitreg_description_tick_hz(description, number as u32),
                3 | 4 => hitreg_description_setting(description, name, other),
                5 => hitreg_description_map(description, name, [1, 2, 3].as_ptr(), 3.min(number as usize)),
                6 => hitreg_description_seed(description, number),
                7 | 8 => hitreg_description_player(description, name),
                9 | 10 => hitreg_description_class(description, name, fields, count),
                11 => hitreg_description_usercmd_fields(description, fields, count),
                12 | 13 => hitreg_description_table(description, name, columns, count),
                14 => hitreg_description_usercmd_bytes(description),
                _ => hitreg_description_side(description, number, self.number() as i32),
            }
        }
    }

    fn record(&mut self) -> hitreg_code {
        let (which, other) = (self.byte(), self.byte());
        let description = Self::one_of(&self.descriptions, which);
        let recorder = Self::one_of(&self.recorders, which);
        let (path, options) = (self.path(), self.random_struct::<hitreg_options>());
        let (mut made, mut stream) = (null_mut(), null_mut());
        let mut written = self.random_struct::<hitreg_written>();
        // SAFETY: texts, structs and handles are valid, or null.
        let code = unsafe {
            match self.byte() % 8 {
                0 => hitreg_recorder_create(path, description, self.or_null(&options), &raw mut made),
                1 => {
                    hitreg_recorder_keep_last(self.number() as u32, description, self.or_null(&options), &raw mut made)
                }
                2 => hitreg_recorder_trace(path, description, Self::one_of(&self.logs, other), &raw mut made),
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

    /// Returns the number of a table, usually of one that exists.
    fn table(&mut self) -> u32 {
        match self.byte() {
            byte @ 0..=199 => u32::from(byte) % 12,
            200..=239 => hitreg_table::HITREG_TABLE_CUSTOM as u32,
            _ => self.number() as u32,
        }
    }

    /// Returns a value that is usually of the kind of a column: `n`umber, `r`eal, or a list. Lists have items of some
    /// bytes, `e`ffects or `v`alues, and begin with the first items of `items`.
    fn value(&mut self, column: u8, items: &[u32; 12]) -> hitreg_value {
        let usual = match column {
            b'n' => hitreg_value_kind::HITREG_VALUE_NUMBER as u16,
            b'r' => hitreg_value_kind::HITREG_VALUE_REAL as u16,
            _ => hitreg_value_kind::HITREG_VALUE_LIST as u16,
        };
        let kind = if self.byte() < 250 { usual } else { u16::from(self.byte()) % 4 };
        let item_bytes = match column {
            b'1' => 1,
            b'2' => 2,
            b'4' => 4,
            b'e' => size_of::<hitreg_effect>() as u16,
            b'v' => size_of::<hitreg_value>() as u16,
            _ => u16::from(self.byte()),
        };
        let most = size_of_val(items) as u32 / u32::from(item_bytes.max(1));
        let count = u32::from(self.byte() % 3).min(most);
        let data = match kind == hitreg_value_kind::HITREG_VALUE_LIST as u16 {
            true => hitreg_value_data { items: items.as_ptr().cast() },
            false => hitreg_value_data { number: self.number() as i64 },
        };
        hitreg_value { kind, item_bytes, count, data }
    }

    fn push(&mut self) -> hitreg_code {
        let which = self.byte();
        let stream = Self::one_of(&self.streams, which);
        let (table, series, at) = (self.table(), self.number() as u32, self.random_time());
        let columns: &[u8] = match table {
            0 => b"nnnnrrrrrrnnn1v",
            1 | 2 => b"nnnnnnn",
            3 => b"nnnnn",
            4 | 8 => b"n",
            5 => b"nnn",
            6 | 9 => b"nn",
            7 => b"nnnnnn2e",
            10 => b"nnnn4",
            11 => b"nnnn",
            _ => b"r",
        };
        let mut items = AlignedItems([0; 12]);
        items.0.iter_mut().for_each(|item| *item = u32::from(self.byte()) % 3);
        let values: Vec<hitreg_value> = columns.iter().map(|column| self.value(*column, &items.0)).collect();
        let count = if self.byte() < 250 { values.len() } else { values.len().min(self.number() as usize) };
        // SAFETY: arrays and handles are valid, or null.
        unsafe { hitreg_push_row(stream, table, series, at, values.as_ptr(), count) }
    }

    fn read(&mut self) -> hitreg_code {
        let which = self.byte();
        let log = Self::one_of(&self.logs, which).cast_const();
        let (series, index, key) = (self.number() as u32, self.number() as usize, self.text());
        let (mut made, mut count, mut bytes, mut at) = (null_mut(), 0, null(), 0);
        let (mut table, mut other) = (self.table(), 0);
        let none = hitreg_value { kind: 0, item_bytes: 0, count: 0, data: hitreg_value_data { number: 0 } };
        let mut values = [none; 15];
        // SAFETY: texts, output pointers and handles are valid, or null.
        unsafe {
            let code = match self.byte() % 9 {
                0 => hitreg_log_open(self.path(), &raw mut made),
                1 => {
                    let _ = (hitreg_log_game(log), hitreg_log_map(log, &raw mut bytes, &raw mut count));
                    let _ = (hitreg_log_seed(log), hitreg_log_setting(log, key), hitreg_log_players(log));
                    HITREG_OK
                }
                2 => hitreg_log_table(log, key, &raw mut table),
                3 => hitreg_log_series(log, table, index, &raw mut other),
                4 => hitreg_log_count(log, table, series, &raw mut count),
                5 => hitreg_log_usercmd_index(log, series, index as u32, &raw mut count),
                _ => {
                    let room = 15.min(self.number() as usize);
                    hitreg_log_row(log, table, series, index, &raw mut at, values.as_mut_ptr(), room)
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
                4 => hitreg_trace_column(trace, name, unit, 2, codes.as_ptr().cast(), rows),
                5 => hitreg_trace_column(trace, name, unit, 4, numbers.as_ptr().cast(), rows),
                6 => hitreg_trace_column(trace, name, unit, u32::from(which) % 16, numbers.as_ptr().cast(), rows),
                7 => hitreg_trace_column(trace, name, unit, 0, reals.as_ptr().cast(), rows),
                8 => hitreg_trace_names(trace, name, [unit, name].as_ptr(), rows.min(2), codes.as_ptr(), rows),
                _ => hitreg_trace_write(trace, self.path()),
            }
        };
        self.traces.extend((!made.is_null()).then_some(made));
        code
    }
}

/// Describes, records, finishes and reads a log, so that the random calls have all kinds of handles.
fn record_first_log(program: &mut CallProgram<'_>) {
    let path = program.keep_text(format!("{}/a.hitlog", program.folder).into_bytes());
    let [player, class, field, spell] = ["player", "player", "x", "spell"].map(|text| program.keep_text(text.into()));
    let (mut recorder, mut stream, mut log, mut trace) = (null_mut(), null_mut(), null_mut(), null_mut());
    let finish = program.byte() < 192;
    // SAFETY: texts and output pointers are valid.
    unsafe {
        let description = hitreg_description_new(player);
        program.descriptions.push(description);
        let x = hitreg_field { name: field, value_type: 0, scope: 0, meaning: 0, unit: null() };
        let column = hitreg_column { name: field, value_type: 0 };
        let described = [
            hitreg_description_player(description, player),
            hitreg_description_player(description, player),
            hitreg_description_class(description, class, &raw const x, 1),
            hitreg_description_usercmd_bytes(description),
            hitreg_description_table(description, spell, &raw const column, 1),
        ];
        assert_eq!(described, [HITREG_OK; 5]);
        assert_eq!(hitreg_recorder_create(path, description, null(), &raw mut recorder), HITREG_OK);
        program.recorders.push(recorder);
        assert_eq!(hitreg_stream_new(recorder, &raw mut stream), HITREG_OK);
        program.streams.push(stream);
        for _ in 0..program.byte() % 32 {
            checked(program.push());
        }
        if !finish {
            return;
        }
        assert_eq!(hitreg_recorder_finish(recorder, null_mut()), HITREG_OK, "{}", last_error());
        assert_eq!(hitreg_log_open(path, &raw mut log), HITREG_OK, "{}", last_error());
        program.logs.push(log);
        assert_eq!(hitreg_trace_new(log, program.keep_text(b"closed".to_vec()), &raw mut trace), HITREG_OK);
        program.traces.push(trace);
    }
}

fn last_error() -> String {
    // SAFETY: the text is valid until this thread's next failure.
    unsafe { CStr::from_ptr(hitreg_last_error()) }.to_string_lossy().into_owned()
}

/// Checks the result of a call.
fn checked(code: hitreg_code) -> hitreg_code {
    assert_ne!(code, HITREG_ERROR_PANIC, "{}", last_error());
    assert!(code == HITREG_OK || !last_error().is_empty(), "{code:?} without a sentence");
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
            descriptions: Vec::new(),
            recorders: Vec::new(),
            streams: Vec::new(),
            logs: Vec::new(),
            traces: Vec::new(),
        };
        record_first_log(&mut program);
        let mut last = HITREG_OK;
        while program.bytes.len() > 0 {
            last = checked(program.call());
        }
        format!("{last:?}")
    });
}
