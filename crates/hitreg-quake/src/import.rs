//! Imports recordings of real games as logs: QuakeWorld demos, and captured datagrams and demos of Quake III's engine.

use std::path::{Path, PathBuf};

use crate::quake3::{self, ListenerCounts, Overview, Quake3ImportError, RecordingKind, ServerLog};
use crate::quakeworld::{self, DemoImportError, ImportOptions, ImportResult, map_stem, unpacked};
use hitreg_log::log::{FileKind, Lookalike, QueuePolicy, WriterOptions, kind_of, looks_like};
use hitreg_log::record::{Origin, PlayerInfo, SessionHeader};
use hitreg_log::store::{self, RecordingClaim, StoreError, Target};
use hitreg_log::units::{EntityId, Seed};
use hitreg_netcode::game::{BadCells, GameInput as _, Simulate};
use hitreg_netcode::settings::Settings;

/// Why a recording could not be imported, with the file at fault.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportFileError {
    /// A file cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file is no recording of the wanted kind, but a known kind of file.
    #[error("{}: not a {wanted}: it looks like {}{}. `hitreg import {importer}` takes {takes}", path.display(), looks.kind, importer_of(looks))]
    OtherFile {
        /// The file.
        path: PathBuf,
        /// What was expected.
        wanted: &'static str,
        /// What the file seems to be.
        looks: Lookalike,
        /// The subcommand of `hitreg import`.
        importer: &'static str,
        /// The files that it takes.
        takes: &'static str,
    },
    /// No map was given.
    #[error("{}: the demo was played on `{map}`: give this map with --map {map}.bsp, or a folder of maps with --maps", demo.display())]
    MapNeeded {
        /// The demo.
        demo: PathBuf,
        /// The name of the map.
        map: String,
    },
    /// The demo's map was not found in the folder of maps.
    #[error("{}: the demo was played on `{map}`, and there is no {map}.bsp below {}: add it there, or give it with --map", demo.display(), folder.display())]
    NoMap {
        /// The demo.
        demo: PathBuf,
        /// The name of the map.
        map: String,
        /// The folder that was searched.
        folder: PathBuf,
    },
    /// A QuakeWorld demo or its map is invalid.
    #[error("{}: {source}", path.display())]
    Import {
        /// The file at fault.
        path: PathBuf,
        /// The problem.
        source: crate::quakeworld::DemoImportError,
    },
    /// A Quake III recording, its map or its server log is invalid.
    #[error("{}: {source}", path.display())]
    Quake3 {
        /// The file at fault.
        path: PathBuf,
        /// The problem.
        source: crate::quake3::Quake3ImportError,
    },
}

/// Returns the advice on a file if it names its importer.
fn importer_of(looks: &Lookalike) -> &'static str {
    if looks.advice.contains("hitreg import ") { looks.advice } else { "" }
}

/// Returns the header of a session that another program recorded.
///
/// # Errors
/// When the rules cannot be encoded.
pub(crate) fn header_of<G: Simulate>(
    rules: &G::Rules,
    settings: &Settings,
    players: Vec<PlayerInfo>,
    origin: Origin,
) -> Result<SessionHeader, rmp_serde::encode::Error> {
    Ok(SessionHeader {
        game: G::NAME.to_owned(),
        rules: rmp_serde::to_vec(rules)?.into(),
        map: G::map_name(rules),
        seed: Seed(0),
        settings: settings.to_pairs(),
        preset: None,
        players,
        origin,
        side: None,
        classes: G::classes(),
        usercmd: G::Input::usercmd_fields(),
        usercmd_bytes: false,
        unknown: Vec::new(),
    })
}

/// Checks that every body of a snapshot is at a place where movement can run.
pub(crate) fn check_places<B>(bodies: &[(EntityId, B)], is_at_a_place: fn(&B) -> bool) -> Result<(), BadCells> {
    match bodies.iter().find(|(_, body)| !is_at_a_place(body)) {
        Some((entity, _)) => Err(BadCells { what: "an entity at no place".to_owned(), found: u32::from(entity.0) }),
        None => Ok(()),
    }
}

/// The place of the demos' maps.
#[derive(Clone, Debug)]
pub enum Maps {
    /// This file, for every demo.
    File(PathBuf),
    /// This folder or a folder below it, by the map name in the demo.
    Folder(PathBuf),
    /// Nowhere. Then the error names the map that is needed.
    NotGiven,
}

/// The endings of demo files.
const DEMO_ENDINGS: [&str; 6] = ["qwd", "qwd.xz", "qwd.gz", "mvd", "mvd.xz", "mvd.gz"];
/// The endings of map files.
const MAP_ENDINGS: [&str; 3] = ["bsp", "bsp.gz", "bsp.xz"];

/// Imports a QuakeWorld demo with its map; `force` accepts any map. Returns the import and the demo's size in bytes.
///
/// # Errors
/// When a file cannot be read, when the map is missing, or when demo and map do not fit. The error names the file.
pub fn import_qwd(demo: &Path, maps: &Maps, force: bool) -> Result<(ImportResult, usize), ImportFileError> {
    let demo_bytes = store::read_bytes(demo)?;
    let map = match maps {
        Maps::File(map) => map.clone(),
        Maps::Folder(folder) => played_map(demo, &demo_bytes, folder)?,
        Maps::NotGiven => {
            let map = name_of_map(demo, &demo_bytes)?;
            return Err(ImportFileError::MapNeeded { demo: demo.to_owned(), map });
        }
    };
    let map_bytes = store::read_bytes(&map)?;
    let map_name = map.file_name().map(|name| name.to_string_lossy().into_owned());
    let options = ImportOptions { map_name, force_map: force };
    let imported =
        quakeworld::import(&demo_bytes, &map_bytes, &options).map_err(|source| match is_the_maps_fault(&source) {
            true => ImportFileError::Import { path: map, source },
            false => fault_of_demo(demo, &demo_bytes, source),
        })?;
    Ok((imported, demo_bytes.len()))
}

/// Returns all demos below a folder, sorted. `unread` receives the errors of folders that cannot be listed.
///
/// # Errors
/// When `folder` itself cannot be listed.
pub fn demos_below(folder: &Path, unread: &mut Vec<StoreError>) -> Result<Vec<PathBuf>, StoreError> {
    store::listed_files_below(folder, &DEMO_ENDINGS, unread)
}

/// Finds the file of the map on which a demo was played.
fn played_map(demo: &Path, bytes: &[u8], folder: &Path) -> Result<PathBuf, ImportFileError> {
    let map = name_of_map(demo, bytes)?;
    let is_it = |path: &PathBuf| {
        path.file_name().is_some_and(|name| map_stem(&name.to_string_lossy()).eq_ignore_ascii_case(&map))
    };
    let mut unread = Vec::new();
    let found = store::listed_files_below(folder, &MAP_ENDINGS, &mut unread)?.into_iter().find(is_it);
    // The map may be in a folder that cannot be listed.
    found.ok_or_else(|| match unread.into_iter().next() {
        Some(unread) => unread.into(),
        None => ImportFileError::NoMap { demo: demo.to_owned(), map, folder: folder.to_owned() },
    })
}

/// Returns the name of the map on which a demo was played.
fn name_of_map(demo: &Path, bytes: &[u8]) -> Result<String, ImportFileError> {
    quakeworld::played_map(bytes).map_err(|source| fault_of_demo(demo, bytes, source))
}

/// What a file of this kind seems to be, if it is a log or a trace and no recording of another program.
fn own_file(kind: FileKind) -> Option<Lookalike> {
    let kind = match kind {
        FileKind::Log => "a log of hitreg",
        FileKind::Trace => "a trace of hitreg",
        FileKind::Other => return None,
    };
    Some(Lookalike { kind, advice: "" })
}

/// The error of a demo. If the file is of another known kind, the error says so.
fn fault_of_demo(demo: &Path, bytes: &[u8], source: DemoImportError) -> ImportFileError {
    let path = demo.to_owned();
    let looks = match source {
        DemoImportError::Demo(_) => {
            own_file(kind_of(bytes)).or_else(|| unpacked(bytes).ok().and_then(|bytes| looks_like(&bytes)))
        }
        _ => None,
    };
    match looks.filter(|looks| *looks != Lookalike::QUAKEWORLD_DEMO) {
        Some(looks) => ImportFileError::OtherFile {
            path,
            wanted: "QuakeWorld demo",
            looks,
            importer: "qwd",
            takes: ".qwd and .mvd demos of QuakeWorld, also as .xz and .gz",
        },
        None => ImportFileError::Import { path, source },
    }
}

fn is_the_maps_fault(error: &DemoImportError) -> bool {
    matches!(
        error,
        DemoImportError::Map(_)
            | DemoImportError::Unpack { file: "map", .. }
            | DemoImportError::OtherMap { .. }
            | DemoImportError::InWalls { .. }
            | DemoImportError::NoSuchModel { .. }
    )
}

/// A recording and the files that belong to it.
#[derive(Clone, Copy, Debug)]
pub struct Quake3Recording<'a> {
    /// The kind of recording.
    pub source: RecordingKind,
    /// The file of the recording.
    pub recording: &'a Path,
    /// The map, or an archive that holds it.
    pub map: Option<&'a Path>,
    /// Whether to accept a map of another name.
    pub force_map: bool,
    /// The server's console log.
    pub server_log: Option<&'a Path>,
}

/// Imports a recording. It writes the log while reading, and returns an overview of the recording.
///
/// # Errors
/// When a file cannot be read or written, or is not a valid recording. The error names the file.
pub fn import_quake3(from: &Quake3Recording<'_>, target: &Target) -> Result<Overview, ImportFileError> {
    let log = from.server_log.map(store::read_bytes).transpose()?;
    let log = ServerLog::parse(log.as_deref().unwrap_or_default());
    let fault_of = |path: &Path, source| ImportFileError::Quake3 { path: path.to_owned(), source };
    let fail = |source| fault_of(from.recording, source);
    let surveyed = quake3::survey(from.source, store::open_file(from.recording)?, &log);
    let mut overview = surveyed.or_else(|source| Err(other_file(from)?.unwrap_or_else(|| fail(source))))?;
    let ListenerCounts { hits, logged, logged_outside, .. } = overview.counts;
    if let Some(path) = from.server_log.filter(|_| logged + logged_outside == 0 && hits > 0) {
        return Err(fault_of(path, Quake3ImportError::ServerLog { hits }));
    }
    if let Some(path) = from.map {
        let played = &overview.rules.map_name;
        let is_it = |file: &Path| file.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case(played.as_str()));
        let is_level = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("bsp"));
        if is_level && !from.force_map && !is_it(path) {
            return Err(fault_of(path, Quake3ImportError::OtherMap { played: played.clone() }));
        }
        let map = quake3::map_from(&store::read_bytes(path)?, played);
        overview.rules.map = Some(map.map_err(|error| fault_of(path, error.into()))?);
    }
    let header = quake3::header(&overview.rules, &overview.players, from.source.origin()).map_err(fail)?;
    let recording = store::open_file(from.recording)?;
    let mut to = RecordingClaim::new(target)?.begin(&header, WriterOptions::whole(), QueuePolicy::Wait)?;
    let mut failed: Option<StoreError> = None;
    let imported = quake3::import(from.source, recording, &log, &mut |record| {
        if failed.is_none() {
            failed = to.push(record).err();
        }
    });
    match (imported, failed) {
        (Err(source), _) => to.abandon().map_err(ImportFileError::from).and(Err(fail(source))),
        (Ok(_), Some(error)) => Err(to.discard(error).into()),
        (Ok(_), None) => Ok(to.finish_or_discard().map(|()| overview)?),
    }
}

/// The error for a file of another known kind.
fn other_file(from: &Quake3Recording<'_>) -> Result<Option<ImportFileError>, StoreError> {
    let (wanted, takes) = match from.source {
        RecordingKind::Capture => ("capture of datagrams", "captures, plain or as .zst (docs/openarena.md)"),
        RecordingKind::Demo => ("demo of Quake III", ".dm_68 and .dm_71 demos"),
    };
    let looks = own_file(store::kind_of(from.recording)?).or(store::looks_like(from.recording)?);
    let captures = [Lookalike::CAPTURE, Lookalike::ZSTD];
    let is_wanted = |looks: &Lookalike| from.source == RecordingKind::Capture && captures.contains(looks);
    let Some(looks) = looks.filter(|looks| !is_wanted(looks)) else { return Ok(None) };
    let (path, importer) = (from.recording.to_owned(), from.source.name());
    Ok(Some(ImportFileError::OtherFile { path, wanted, looks, importer, takes }))
}
