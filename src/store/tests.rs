use super::*;
use crate::record::{FrameRecord, Origin, PlayerInfo};
use crate::units::{CommandSeq, Micros, PlayerId, Seed};
use crate::usercmd::Usercmd;

fn session() -> Session {
    let mut session = Session::new(Header {
        game: "disc".into(),
        rules: Vec::new(),
        map: "flat".into(),
        seed: Seed(1),
        settings: Vec::new(),
        preset: None,
        players: vec![PlayerInfo { name: "p0".into(), recorded: true }],
        origin: Origin::Synthetic,
        side: None,
        classes: Vec::new(),
        usercmd: Vec::new(),
        unknown: Vec::new(),
    });
    session.players[0].frames = (1..200).map(frame).collect();
    session
}

fn frame(seq: u32) -> FrameRecord {
    let command = Usercmd { seq: CommandSeq(seq), ..Usercmd::default() };
    FrameRecord { at: Micros(i64::from(seq) * 15_625), command }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_log_is_saved_whole_and_replaces_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hitlog");
    save_bytes(&path, b"before").unwrap();
    assert!(matches!(read_log(&path), Err(StoreError::Content { .. })));
    save_log(&path, &session(), Options::live()).unwrap();
    assert_eq!(read_log(&path).unwrap(), session());
    assert_eq!(kind_of(&path).unwrap(), FileKind::Log);
    assert_eq!(names(folder.path()), ["a.hitlog"]);
}

#[test]
fn an_error_while_writing_leaves_what_was_there_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hitlog");
    save_bytes(&path, b"before").unwrap();
    let full = |out: &mut dyn Write| {
        out.write_all(&[0; 100_000])?;
        Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into())
    };
    let error = save(&path, full).unwrap_err();
    assert_eq!(error.to_string(), format!("{}: the disk is full; nothing was left under this name", path.display()));
    assert_eq!(read_bytes(&path).unwrap(), b"before");
    assert_eq!(names(folder.path()), ["a.hitlog"]);
}

#[test]
fn errors_name_the_file_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let error = |path: PathBuf| save_log(&path, &session(), Options::live()).unwrap_err();
    assert!(matches!(error(folder.path().into()), StoreError::IsDirectory { .. }));
    assert!(matches!(error(folder.path().join("no/such/a.hitlog")), StoreError::NoParent { .. }));
    assert!(matches!(error("/".into()), StoreError::IsDirectory { .. }));
    assert!(matches!(read_log(&folder.path().join("none")), Err(StoreError::NotFound { .. })));
    assert!(matches!(read_log(folder.path()), Err(StoreError::IsDirectory { .. })));
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_full_device_is_a_full_disk() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        eprintln!("skipped: there is no /dev/full here");
        return;
    }
    let error = save_log(full, &session(), Options::live()).unwrap_err();
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error}");
}

#[test]
fn a_killed_recording_can_be_recovered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hitlog");
    let session = session();
    let mut recording = Recording::begin(&path, &session.header).unwrap();
    for frame in &session.players[0].frames {
        recording.push(&Record::Frame(PlayerId(0), *frame)).unwrap();
    }
    assert!(matches!(Recording::begin(&path, &session.header), Err(StoreError::Unfinished { .. })));
    // What a kill leaves: the writer is never finished.
    recording.flush().unwrap();
    let Recording { writer, unfinished, .. } = recording;
    drop(writer);
    assert_eq!(names(folder.path()), ["a.hitlog.part"]);
    let saved = (0..500).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        let (saved, damage) = recover_log(&unfinished).unwrap();
        (saved == session).then_some(damage)
    });
    let damage = saved.expect("what was flushed can be read");
    assert!(damage.torn.is_some() && damage.holes.is_empty());
}

#[test]
fn a_finished_recording_has_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hitlog");
    let session = session();
    let mut recording = Recording::begin(&path, &session.header).unwrap();
    for frame in &session.players[0].frames {
        recording.push(&Record::Frame(PlayerId(0), *frame)).unwrap();
    }
    recording.finish().unwrap();
    assert_eq!(names(folder.path()), ["a.hitlog"]);
    assert_eq!(read_log(&path).unwrap(), session);
}
