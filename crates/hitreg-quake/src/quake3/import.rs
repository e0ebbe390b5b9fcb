//! Converts a capture or a demo to a log in two passes: the first finds the players and the level, the second makes the
//! records.

use std::io::{BufReader, Read};

use super::listener::{DeliveryTime, ListenerCounts, Quake3Listener, ServerLog, UndecodedDatagram};
use super::protocol::UndecodedReason;
use super::recording::{CaptureError, CaptureReader, CapturedDatagram, DemoReader};
use super::{Quake3, Quake3Rules};
use crate::bsp::MapError;
use crate::clock::ClockRepair;
use crate::import::header_of;
use hitreg_log::record::{Origin, PlayerInfo, Record, SessionHeader};
use hitreg_log::units::{Micros, named};
use hitreg_netcode::protocol::SessionListener as _;
use hitreg_netcode::settings::{SettingError, Settings};

named! {
    /// The kind of a recording.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RecordingKind {
        /// Datagrams between clients and server.
        Capture = "quake3-udp",
        /// Messages that one client received.
        Demo = "quake3-demo",
    }
}

impl RecordingKind {
    /// Returns the origin of logs imported from it.
    pub fn origin(self) -> Origin {
        Origin::Imported { format: self.name().to_owned() }
    }
}

/// Why a recording cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum Quake3ImportError {
    /// The recording cannot be read.
    #[error("{0}")]
    Capture(#[from] CaptureError),
    /// No client enters a level in the recording.
    #[error(
        "it has {datagrams} messages but no readable gamestate: {}{}",
        match kind {
            RecordingKind::Capture => "start the capture before its clients connect",
            RecordingKind::Demo => "it is damaged, or lacks its beginning",
        },
        first.as_ref().map_or(String::new(), |first| format!("; the first that could not be read: {first}"))
    )]
    NoGamestate {
        /// The kind of the recording.
        kind: RecordingKind,
        /// Number of messages.
        datagrams: u64,
        /// The first decoding error, if any.
        first: Option<UndecodedReason>,
    },
    /// The given map is not the one that was played.
    #[error("the session was played on `{played}`; add --force-map if this is the same map under another name")]
    OtherMap {
        /// Name of the played map.
        played: String,
    },
    /// The given file is not a map of this engine, or lacks the named map.
    #[error("{0}")]
    Map(#[from] MapError),
    /// The server log belongs to another session, or the server did not log damage.
    #[error(
        "it has no damage lines of the recorded level, but the capture has {hits} reported hits: the log is of another \
         session, or its server ran without `g_debugDamage 1`"
    )]
    ServerLog {
        /// Number of hits reported to shooters.
        hits: u64,
    },
    /// A setting is invalid.
    #[error("{0}")]
    Setting(#[from] SettingError),
    /// The rules cannot be encoded.
    #[error("its rules cannot be written: {0}")]
    Rules(#[from] rmp_serde::encode::Error),
}

/// The content of a recording.
#[derive(Debug)]
pub struct Overview {
    /// The rules of the level.
    pub rules: Quake3Rules,
    /// Numbers of the players whose connections it contains.
    pub players: Vec<u16>,
    /// Counts of datagrams, usercmds, snapshots and hits.
    pub counts: ListenerCounts,
    /// Number of datagrams whose times ran backward or jumped, and were replaced.
    pub repaired_times: u64,
    /// The largest difference between the times of a capture and the server's clock.
    pub clock_error: Micros,
    /// The first decoding errors.
    pub undecoded: Vec<UndecodedDatagram>,
    /// Offset of the truncation, if the recording is truncated.
    pub cut: Option<u64>,
    /// Offset of the bytes after the end of a demo, such as a second demo.
    pub after_end: Option<u64>,
}

/// Reads a recording without making records.
///
/// # Errors
/// When it is damaged, or no client enters a level in it.
pub fn survey(source: RecordingKind, from: impl Read, log: &ServerLog) -> Result<Overview, Quake3ImportError> {
    import(source, from, log, &mut |_| {})
}

/// Returns the header of a log from the results of a survey.
///
/// # Errors
/// When the rules cannot be encoded.
pub fn header(rules: &Quake3Rules, players: &[u16], origin: Origin) -> Result<SessionHeader, Quake3ImportError> {
    let player = |place: u16| PlayerInfo { name: format!("p{place}"), recorded: players.contains(&place) };
    Ok(header_of::<Quake3>(rules, &settings(rules)?, (0..rules.places).map(player).collect(), origin)?)
}

/// Returns the preset's settings with changes for this server, so that predictions run as its clients ran them.
fn settings(rules: &Quake3Rules) -> Result<Settings, Quake3ImportError> {
    let mut settings = Settings::preset("quake3")?;
    settings.set("prediction.among", "acking-packet")?;
    // Clients interpolate others between the two snapshots around the displayed time, and hold the newest position
    // (cg_snapshot.c, cg_ents.c).
    settings.set("interpolation.mode", "history")?;
    settings.set("interpolation.on_missing", "hold")?;
    if rules.map.is_none() {
        settings.set("prediction.mode", "off")?;
    }
    settings.set("lag_compensation.enabled", if rules.unlagged { "true" } else { "false" })?;
    // The server remembers 17 frames, including the present one (g_unlagged.c).
    settings.set("lag_compensation.max_unlag_ms", &(16_000 / i64::from(rules.server_hz)).min(1500).to_string())?;
    Ok(settings)
}

/// Passes the records of a recording to `out`, in the order of their times.
///
/// # Errors
/// As [`survey`].
pub fn import(
    source: RecordingKind,
    from: impl Read,
    log: &ServerLog,
    out: &mut dyn FnMut(Record),
) -> Result<Overview, Quake3ImportError> {
    let mut listener = Quake3Listener::with_log(log.clone());
    let mut clock = ClockRepair::default();
    let (cut, after_end) = match source {
        RecordingKind::Demo => {
            let mut demo = DemoReader::new(BufReader::new(from));
            while let Some((number, message)) = demo.read()? {
                listener.hear_message(number, message, out);
            }
            (demo.cut, demo.after_end)
        }
        RecordingKind::Capture => {
            let mut capture = CaptureReader::new(from)?;
            let mut next = capture.read()?;
            let first_ns = next.as_ref().map_or(0, |first| i128::from(first.at_ns));
            let passed = |at_ns: u64| Micros(((i128::from(at_ns) - first_ns) / 1_000) as i64);
            let (mut start, mut last) = (None, Micros::ZERO);
            while let Some(CapturedDatagram { at_ns, direction, client, bytes }) = next {
                next = capture.read()?;
                let at = clock.repair(passed(at_ns), next.as_ref().map(|next| passed(next.at_ns)));
                // Datagrams may be recorded slightly out of order.
                last = last.max(at - *start.get_or_insert(at));
                listener.hear_at(last, client, direction, &bytes, DeliveryTime::Unknown, out);
            }
            (capture.cut(), None)
        }
    };
    listener.finish(out);
    let (counts, players) = (listener.counts(), listener.players.keys().copied().collect());
    let first = listener.undecoded.first().map(|first| first.why);
    let no_gamestate = Quake3ImportError::NoGamestate { kind: source, datagrams: counts.datagrams, first };
    let rules = listener.rules.ok_or(no_gamestate)?;
    let (repaired_times, clock_error) = (clock.repaired, listener.clock_error);
    Ok(Overview { rules, players, counts, repaired_times, clock_error, undecoded: listener.undecoded, cut, after_end })
}
