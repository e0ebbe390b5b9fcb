use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use super::*;
use crate::log::WriterOptions;
use crate::record::{FrameRecord, Origin, PlayerInfo, Record, SessionHeader};
use crate::trace::{Column, ColumnData, Table, TraceHeader, TraceSource};
use crate::units::{CommandSeq, Micros, PlayerId, Seed};
use crate::usercmd::Usercmd;

fn session() -> Session {
    let mut session = Session::new(SessionHeader {
        game: "disc".into(),
        rules: Vec::new().into(),
        map: "flat".into(),
        seed: Seed(1),
        settings: Vec::new(),
        preset: None,
        players: vec![PlayerInfo { name: "p0".into(), recorded: true }],
        origin: Origin::Synthetic,
        side: None,
        classes: Vec::new(),
        usercmd: Vec::new(),
        usercmd_bytes: false,
        unknown: Vec::new(),
    });
    session.players[0].frames = (1..200).map(frame).collect();
    session
}

fn frame(seq: u32) -> FrameRecord {
    let command = Usercmd { seq: CommandSeq(seq), ..Usercmd::default() };
    FrameRecord { at: Micros(i64::from(seq) * 15_625), command, ..FrameRecord::default() }
}

/// Returns a target whose existing file may be replaced.
fn again(path: &Path) -> Target {
    Target::own(path.to_owned())
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    save_bytes(&again(path), bytes)
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_saved_log_is_complete_and_replaces_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hitlog");
    put(&path, b"before").unwrap();
    assert!(matches!(read_log(&path), Err(StoreError { kind: StoreErrorKind::Content(_), .. })));
    save_log(&again(&path), &session(), WriterOptions::live()).unwrap();
    assert_eq!(read_log(&path).unwrap(), session());
    assert_eq!(kind_of(&path).unwrap(), FileKind::Log);
    assert_eq!(names(folder.path()), ["a.hitlog"]);
}

#[test]
fn a_failed_write_keeps_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hitlog");
    put(&path, b"before").unwrap();
    let full = |out: &mut (dyn Write + Send)| {
        out.write_all(&[0; 100_000])?;
        Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into())
    };
    let error = save(&again(&path), full).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{}: the disk is full: free some space and try again. No partial file was left", path.display())
    );
    assert_eq!(read_bytes(&path).unwrap(), b"before");
    assert_eq!(names(folder.path()), ["a.hitlog"]);
}

#[test]
fn a_directory_that_cannot_be_created_names_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = create_folder(&path).unwrap_err();
        assert!(matches!(error.kind, StoreErrorKind::NotDirectory) && error.path == file, "{error}");
    }
    let new = folder.path().join("new/below");
    create_folder(&new).unwrap();
    create_folder(&new).unwrap();
    let refused = StoreError::new("out", StoreErrorKind::Uncreatable(ErrorKind::PermissionDenied.into()));
    assert_eq!(refused.to_string(), "out: this directory cannot be created: permission is denied");
}

#[test]
fn errors_name_the_file_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let error = |path: PathBuf| Targets::default().file(&path, FileType::Log).unwrap_err();
    assert!(matches!(error(folder.path().into()), StoreError { kind: StoreErrorKind::IsDirectory, .. }));
    assert!(matches!(
        error(folder.path().join("no/such/a.hitlog")),
        StoreError { kind: StoreErrorKind::NoParent(_), .. }
    ));
    assert_eq!(error(PathBuf::new()).to_string(), "the path of a file is empty: name a file");
    assert!(matches!(error("/".into()), StoreError { kind: StoreErrorKind::IsDirectory, .. }));
    assert!(matches!(read_log(&folder.path().join("none")), Err(StoreError { kind: StoreErrorKind::NotFound, .. })));
    assert!(matches!(read_log(folder.path()), Err(StoreError { kind: StoreErrorKind::IsDirectory, .. })));
    assert!(names(folder.path()).is_empty());
    let denied = StoreError::write(Path::new("a.hitlog"), std::io::Error::from_raw_os_error(13).into()).to_string();
    assert!(
        cfg!(not(unix)) || denied.starts_with("a.hitlog: cannot be written: permission is denied: name"),
        "{denied}"
    );
}

#[test]
fn a_full_device_is_reported_as_a_full_disk() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        eprintln!("skipped: there is no /dev/full here");
        return;
    }
    let error = save_log(&again(full), &session(), WriterOptions::live()).unwrap_err();
    assert!(matches!(error, StoreError { kind: StoreErrorKind::DiskFull, .. }), "{error}");
}

#[test]
fn a_killed_recording_can_be_recovered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hitlog");
    let session = session();
    let mut recording = Recording::begin(&again(&path), &session.header).unwrap();
    for frame in &session.players[0].frames {
        recording.push(Record::Frame(PlayerId(0), frame.clone())).unwrap();
    }
    assert!(matches!(
        Recording::begin(&again(&path), &session.header),
        Err(StoreError { kind: StoreErrorKind::BeingRecorded, .. })
    ));
    // A killed process never finishes the writer.
    recording.flush().unwrap();
    drop(recording);
    let unfinished = Recording::unfinished_path(&path);
    assert_eq!(names(folder.path()), ["a.hitlog.part"]);
    let saved = (0..500).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        let (saved, damage) = log::recover(&std::fs::read(&unfinished).unwrap()).unwrap();
        (saved == session).then_some(damage)
    });
    let damage = saved.expect("what was flushed can be read");
    assert!(damage.torn.is_some() && damage.parts.is_empty());
    // The writer's thread may keep the file open for a moment.
    let refused = (0..500).find_map(|_| match Recording::begin(&again(&path), &session.header) {
        Err(StoreError { kind: StoreErrorKind::BeingRecorded, .. }) => {
            std::thread::sleep(std::time::Duration::from_millis(10));
            None
        }
        other => Some(other.map(drop)),
    });
    assert!(matches!(refused, Some(Err(StoreError { kind: StoreErrorKind::Unfinished(_), .. }))));
    std::fs::write(&unfinished, b"").unwrap();
    Recording::begin(&again(&path), &session.header).expect("an empty one is in nobody's way").finish().unwrap();
    assert_eq!(names(folder.path()), ["a.hitlog"]);
}

#[test]
#[cfg(unix)]
fn links_are_followed_and_permissions_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mode = |name: &str| std::fs::metadata(at(name)).unwrap().permissions().mode() & 0o777;
    std::fs::create_dir(at("elsewhere")).unwrap();
    put(&at("elsewhere/a"), b"before").unwrap();
    std::fs::set_permissions(at("elsewhere/a"), std::fs::Permissions::from_mode(0o600)).unwrap();
    symlink("elsewhere/a", at("a")).unwrap();
    symlink("a", at("b")).unwrap();
    put(&at("b"), b"after").unwrap();
    assert_eq!((read_bytes(&at("elsewhere/a")).unwrap(), mode("elsewhere/a")), (b"after".to_vec(), 0o600));
    let recording = Recording::begin(&again(&at("b")), &session().header).unwrap();
    assert_eq!(names(&at("elsewhere")), ["a", "a.part"]);
    recording.finish().unwrap();
    assert_eq!((kind_of(&at("elsewhere/a")).unwrap(), mode("elsewhere/a")), (FileKind::Log, 0o600));
    assert!(at("a").is_symlink() && at("b").is_symlink());
    symlink("new", at("dangling")).unwrap();
    put(&at("dangling"), b"new").unwrap();
    assert!(at("dangling").is_symlink() && read_bytes(&at("new")).unwrap() == b"new");
    symlink("y", at("x")).unwrap();
    symlink("x", at("y")).unwrap();
    assert!(matches!(put(&at("x"), b""), Err(StoreError { kind: StoreErrorKind::Circle, .. })));
}

#[test]
fn a_finished_recording_has_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hitlog");
    let session = session();
    let mut recording = Recording::begin(&again(&path), &session.header).unwrap();
    for frame in &session.players[0].frames {
        recording.push(Record::Frame(PlayerId(0), frame.clone())).unwrap();
    }
    recording.finish().unwrap();
    assert_eq!(names(folder.path()), ["a.hitlog"]);
    assert_eq!(read_log(&path).unwrap(), session);
}

#[test]
fn damage_in_a_trace_is_reported_when_its_rows_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hittrace");
    let column = Column::new("tick", ColumnData::U32((0..9_000).map(|row| row * row).collect()));
    let trace = Trace { header: TraceHeader::default(), tables: vec![Table::new("ticks", vec![column])] };
    let mut bytes = log::write_trace(Vec::new(), &trace).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    put(&path, &bytes).unwrap();
    let file = TraceFile::open(&path).unwrap();
    assert_eq!(file.tables()[0].1, 9_000);
    let message = file.rows("ticks", &[])().unwrap_err();
    assert!(message.0.starts_with(&format!("{}: corrupt at offset", path.display())), "{message}");
    assert!(message.0.ends_with("To make the trace again, run: hitreg replay LOG -o TRACE"), "{message}");
}

#[test]
fn nothing_is_written_after_an_input_changed() {
    let folder = tempfile::tempdir().unwrap();
    let [input, part, output] = ["a.hitlog", "b.hitlog.part", "out.golden"].map(|name| folder.path().join(name));
    let target = |watched: &PathBuf| {
        let targets = Targets::default().watching(WatchedInputs::of([watched]));
        targets.file(&output, FileType::Golden).unwrap()
    };
    for path in [&input, &part] {
        save_log(&again(path), &session(), WriterOptions::live()).unwrap();
    }
    let (of_log, of_part) = (target(&input), target(&part));
    // The same bytes in another file.
    let other = folder.path().join("other");
    std::fs::copy(&input, &other).unwrap();
    std::fs::rename(&other, &input).unwrap();
    let refused = save_bytes(&of_log, b"hitreg golden ").unwrap_err();
    assert!(matches!(refused, StoreError { kind: StoreErrorKind::Changed, .. }), "{refused}");
    assert!(!output.exists());
    // An unfinished recording grows.
    std::fs::File::options().append(true).open(&part).unwrap().write_all(b"more").unwrap();
    save_bytes(&of_part, b"hitreg golden ").unwrap();
}

#[test]
fn files_are_found_by_their_endings_in_upper_or_lower_case() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["a.qwd", "B.QWD", "c.Qwd.XZ", "qwd", "d.mvd"] {
        std::fs::write(folder.path().join(name), "").expect("a file");
    }
    let found = |ending: &str| {
        let files = files_below(folder.path(), &[ending]).expect("a folder").into_iter();
        files.map(|path| path.file_name().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found("qwd"), ["B.QWD", "a.qwd"]);
    assert_eq!(found("qwd.xz"), ["c.Qwd.XZ"]);
}
