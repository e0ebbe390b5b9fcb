//! Structs as states: members are read by their sizes, and a member of a size that its type does not have is refused.

use std::ffi::{CStr, CString};
use std::mem::offset_of;
use std::path::Path;
use std::ptr::{null, null_mut};

use hitreg_capi::hitreg_code::*;
use hitreg_capi::hitreg_type::*;
use hitreg_capi::*;
use tempfile::TempDir;

/// A game's struct, with members that are smaller than their fields.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Door {
    angle: f64,
    height: f32,
    key: i16,
    locks: u8,
    is_open: u8,
    name: [u8; 4],
    /// Bytes behind the name, which has no zero byte when it is full.
    next: [u8; 4],
    opened_at: i32,
    id: u64,
}

fn member(name: &'static CStr, value_type: hitreg_type, offset: usize, size: usize) -> hitreg_member {
    let field = hitreg_field { name: name.as_ptr(), value_type: value_type as u32, scope: 0, meaning: 0, unit: null() };
    hitreg_member { field, offset: offset as u32, size: size as u32 }
}

fn members() -> [hitreg_member; 8] {
    [
        member(c"angle", HITREG_F64, offset_of!(Door, angle), 8),
        member(c"height", HITREG_F32, offset_of!(Door, height), 4),
        member(c"key", HITREG_I32, offset_of!(Door, key), 2),
        member(c"locks", HITREG_U32, offset_of!(Door, locks), 1),
        member(c"is_open", HITREG_BOOL, offset_of!(Door, is_open), 1),
        member(c"name", HITREG_TEXT, offset_of!(Door, name), 4),
        member(c"opened_at", HITREG_I64, offset_of!(Door, opened_at), 4),
        member(c"id", HITREG_U64, offset_of!(Door, id), 8),
    ]
}

fn doors() -> Vec<Door> {
    let door = |name: &[u8; 4], key, locks| Door {
        angle: 0.1,
        height: -2.5,
        key,
        locks,
        is_open: 1,
        name: *name,
        next: *b"next",
        opened_at: -7,
        id: u64::MAX - 1,
    };
    vec![door(b"abcd", -3, 200), door(b"hall", 7, 0), door(b"ab\0\0", i16::MIN, 255), door(&[0; 4], 0, 1)]
}

fn message() -> String {
    // SAFETY: the text is valid until this thread's next failure.
    unsafe { CStr::from_ptr(hitreg_last_error()) }.to_string_lossy().into_owned()
}

fn must(code: hitreg_code) {
    assert_eq!(code, HITREG_OK, "{}", message());
}

/// Returns a description with a player, and a class of doors unless its members are refused.
fn describe(members: &[hitreg_member]) -> (*mut hitreg_description, hitreg_code) {
    // SAFETY: texts and arrays are valid.
    unsafe {
        let description = hitreg_description_new(c"mygame".as_ptr());
        must(hitreg_description_player(description, c"p0".as_ptr()));
        let count = members.len() as u32;
        (description, hitreg_description_struct(description, c"door".as_ptr(), members.as_ptr(), count))
    }
}

fn begin(path: &Path) -> (*mut hitreg_recorder, *mut hitreg_stream) {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    let (mut recorder, mut stream) = (null_mut(), null_mut());
    let (description, described) = describe(&members());
    must(described);
    // SAFETY: texts and handles are valid.
    unsafe {
        must(hitreg_recorder_create(path.as_ptr(), description, null(), &raw mut recorder));
        hitreg_description_free(description);
        must(hitreg_stream_new(recorder, &raw mut stream));
    }
    (recorder, stream)
}

fn push(stream: *mut hitreg_stream, entity: usize, door: &Door, members: &[hitreg_member]) -> hitreg_code {
    let (body, count) = ((&raw const *door).cast(), members.len() as u32);
    // SAFETY: the stream, the struct and the members are valid.
    unsafe { hitreg_push_struct(stream, 1, entity as u32, 0, body, members.as_ptr(), count) }
}

/// Records the doors as entities of one tick, and returns the log.
fn record(path: &Path) -> *mut hitreg_log {
    let (recorder, stream) = begin(path);
    let number = |number| hitreg_value { kind: 1, item_bytes: 0, count: 0, data: hitreg_value_data { number } };
    let tick = [number(1), hitreg_value { kind: 0, ..number(0) }];
    let (path, mut log) = (CString::new(path.to_str().unwrap()).unwrap(), null_mut());
    // SAFETY: handles, arrays and output pointers are valid.
    unsafe {
        must(hitreg_push_row(stream, hitreg_table::HITREG_TABLE_TICKS as u32, 0, 10, tick.as_ptr(), 2));
        for (entity, door) in doors().iter().enumerate() {
            must(push(stream, entity, door, &members()));
        }
        hitreg_stream_free(stream);
        must(hitreg_recorder_finish(recorder, null_mut()));
        hitreg_recorder_free(recorder);
        must(hitreg_log_open(path.as_ptr(), &raw mut log));
    }
    log
}

fn state(log: *const hitreg_log, index: usize) -> hitreg_state {
    let none = hitreg_value { kind: 0, item_bytes: 0, count: 0, data: hitreg_value_data { number: 0 } };
    let mut row = [none; 5];
    // SAFETY: the log and the output pointers are valid, and the last value is a list of cells.
    unsafe {
        let table = hitreg_table::HITREG_TABLE_STATES as u32;
        must(hitreg_log_row(log, table, 0, index, null_mut(), row.as_mut_ptr(), 5));
        let (cells, cell_count) = (row[4].data.items.cast(), row[4].count);
        hitreg_state { tick: 1, viewer: -1, entity: index as u32, class_number: 0, cells, cell_count }
    }
}

fn restore(log: *const hitreg_log, state: &hitreg_state, door: &mut Door, members: &[hitreg_member]) -> hitreg_code {
    let (body, count) = ((&raw mut *door).cast(), members.len() as u32);
    // SAFETY: the log, the state, the struct and the members are valid.
    unsafe { hitreg_restore_struct(log, &raw const *state, body, members.as_ptr(), count) }
}

#[test]
fn structs_are_restored_as_they_were_pushed() {
    let folder = TempDir::new().unwrap();
    let log = record(&folder.path().join("doors.hitlog"));
    for (index, pushed) in doors().iter().enumerate() {
        let mut door = Door { name: *b"####", next: *b"next", ..Door::default() };
        let state = state(log, index);
        must(restore(log, &state, &mut door, &members()));
        assert_eq!(door, *pushed);
        // SAFETY: the state has the cells of a door.
        let cells = unsafe { std::slice::from_raw_parts(state.cells, state.cell_count as usize) };
        assert_eq!(cells[3..6], [i32::from(pushed.key) as u32, u32::from(pushed.locks), 1], "sign and zeros");
        assert_eq!(cells[8..10], [-7_i32 as u32, u32::MAX], "the sign of 64 bits");
    }
    // SAFETY: the last use of the log.
    unsafe { hitreg_log_free(log) };
}

#[test]
fn a_text_that_fills_its_array_ends_with_it() {
    let folder = TempDir::new().unwrap();
    let log = record(&folder.path().join("doors.hitlog"));
    let (full, mut door) = (state(log, 0), Door::default());
    // SAFETY: the state has the cells of a door.
    assert_eq!(unsafe { CStr::from_ptr(hitreg_log_text(log, full.cells.add(6))) }, c"abcd");
    // A smaller array has room for a part, with a zero byte.
    let mut smaller = members();
    smaller[5].size = 3;
    must(restore(log, &full, &mut door, &smaller));
    assert_eq!(door.name, *b"ab\0\0");
    // SAFETY: the last use of the log.
    unsafe { hitreg_log_free(log) };
}

#[test]
fn a_member_of_another_size_than_its_type_is_refused() {
    let folder = TempDir::new().unwrap();
    let (recorder, stream) = begin(&folder.path().join("refused.hitlog"));
    let log = record(&folder.path().join("doors.hitlog"));
    let (whole, door) = (state(log, 0), doors()[0]);
    for (place, name, size, wanted) in [
        (0, "angle", 4, "HITREG_F64 takes 8"),
        (1, "height", 8, "HITREG_F32 takes 4"),
        (2, "key", 8, "HITREG_I32 takes 1, 2 or 4"),
        (3, "locks", 8, "HITREG_U32 takes 1, 2 or 4"),
        (4, "is_open", 8, "HITREG_BOOL takes 1, 2 or 4"),
        (5, "name", 0, "HITREG_TEXT takes at least 1"),
        (6, "opened_at", 3, "HITREG_I64 takes 1, 2, 4 or 8"),
        (7, "id", 16, "HITREG_U64 takes 1, 2, 4 or 8"),
    ] {
        let mut wrong = members();
        wrong[place].size = size;
        let (description, described) = describe(&wrong);
        // SAFETY: the last use of the description.
        unsafe { hitreg_description_free(description) };
        let says = format!("the member of field `{name}` has {size} bytes, and {wanted}");
        assert_eq!((described, message()), (HITREG_ERROR_SIZE, says.clone()));
        assert_eq!((push(stream, 0, &door, &wrong), message()), (HITREG_ERROR_SIZE, says.clone()));
        let mut restored = Door::default();
        assert_eq!((restore(log, &whole, &mut restored, &wrong), message()), (HITREG_ERROR_SIZE, says));
        assert_eq!(restored, Door::default());
    }
    let mut restored = Door::default();
    assert_eq!(restore(log, &whole, &mut restored, &members()[1..]), HITREG_ERROR_MISFIT);
    assert_eq!(message(), "the state has 12 cells, and the members take 10");
    assert_eq!(push(stream, 0, &door, &members()[1..]), HITREG_ERROR_MISFIT);
    assert_eq!(push(stream, 70_000, &door, &members()), HITREG_ERROR_VALUE);
    assert_eq!(push(stream, 0, &Door { name: *b"\xffbcd", ..door }, &members()), HITREG_ERROR_VALUE);
    // SAFETY: null is refused; the last use of the handles.
    unsafe {
        let (of, count) = (members(), 8);
        assert_eq!(hitreg_push_struct(stream, 1, 0, 0, null(), of.as_ptr(), count), HITREG_ERROR_NULL);
        assert_eq!(hitreg_push_struct(stream, 1, 0, 0, (&raw const door).cast(), null(), count), HITREG_ERROR_NULL);
        let state = &raw const whole;
        assert_eq!(hitreg_restore_struct(log, state, null_mut(), of.as_ptr(), count), HITREG_ERROR_NULL);
        hitreg_log_free(log);
        hitreg_stream_free(stream);
        hitreg_recorder_free(recorder);
    }
}
