//! A capture or a demo becomes a log: once through it to learn who plays what, and once more to make the records.

use std::io::{BufReader, Read};

use super::body::BodyRow;
use super::capture::{Capture, CaptureError};
use super::demo::Demo;
use super::listener::{Counts, Listener};
use super::protocol::Undecoded;
use super::rules::Rules;
use super::server_log::ServerLog;
use crate::bsp::quake3::MapError;
use hitreg_log::record::{Header, Origin, PlayerInfo, Record, usercmd_fields};
use hitreg_log::units::{Micros, Seed};
use hitreg_netcode::protocol::Direction;
use hitreg_netcode::settings::{SettingError, Settings};

/// The name that a log carries.
pub(crate) const NAME: &str = "quake3";
const PRESET: &str = "quake3";
const PROXIED: &str = "quake3-proxy";

/// What of a session there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The datagrams between clients and server.
    Capture,
    /// What one client had from the server.
    Demo,
}

impl Source {
    /// The name of its format.
    pub fn name(self) -> &'static str {
        match self {
            Source::Capture => "quake3-udp",
            Source::Demo => "quake3-demo",
        }
    }

    /// The origin of a log that was imported from it.
    pub fn origin(self) -> Origin {
        Origin::Imported { format: self.name().to_owned() }
    }
}

/// Why a recording does not become a log.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It cannot be read.
    #[error("{0}")]
    Capture(#[from] CaptureError),
    /// Nobody is heard entering a level.
    #[error(
        "it holds {datagrams} messages and no gamestate that could be read: a capture must begin before its clients connect{}",
        first.as_ref().map_or(String::new(), |first| format!("; the first that could not be read: {first}"))
    )]
    NoGamestate {
        /// How many there are.
        datagrams: u64,
        /// Why the first of those failed that did.
        first: Option<Undecoded>,
    },
    /// A map by another name than that which was played on.
    #[error("the session was played on `{played}`; force it if this is the same map under another name")]
    OtherMap {
        /// The name that the server told.
        played: String,
    },
    /// No map of this engine, or none of that name.
    #[error("{0}")]
    Map(#[from] MapError),
    /// A log of another session, or of a server that did not write down who was hurt.
    #[error(
        "it has no line of damage, and shooters were told of {hits} hits: it is another session's log, or its server ran \
         without `g_debugDamage 1`"
    )]
    ServerLog {
        /// How many.
        hits: u64,
    },
    /// A setting that is none.
    #[error("{0}")]
    Setting(#[from] SettingError),
    /// Rules that cannot be written.
    #[error("its rules cannot be written: {0}")]
    Rules(#[from] rmp_serde::encode::Error),
}

/// What a capture holds.
#[derive(Debug)]
pub struct Overview {
    /// The level.
    pub rules: Rules,
    /// The players whose connections are in it.
    pub players: Vec<u16>,
    /// What there is.
    pub counts: Counts,
    /// The first datagrams that could not be read: client, direction, why.
    pub undecoded: Vec<(u16, Direction, Undecoded)>,
    /// Where it is cut off, if it is.
    pub cut: Option<u64>,
}

/// Goes through a capture without making anything of it.
///
/// # Errors
/// When it is damaged, or nobody enters a level in it.
pub fn survey(source: Source, from: impl Read, log: &ServerLog) -> Result<Overview, ImportError> {
    let (listener, cut) = listen(source, &mut { from }, log, &mut |_| {})?;
    let (counts, undecoded) = (listener.counts(), listener.undecoded().to_vec());
    let first = undecoded.first().map(|(_, _, why)| *why);
    let rules = listener.rules().cloned().ok_or(ImportError::NoGamestate { datagrams: counts.datagrams, first })?;
    Ok(Overview { rules, players: listener.players().collect(), counts, undecoded, cut })
}

/// The header of a log of what an overview tells.
///
/// # Errors
/// When the rules cannot be written.
pub fn header(rules: &Rules, players: &[u16], origin: Origin) -> Result<Header, ImportError> {
    let player = |place: u16| PlayerInfo { name: format!("p{place}"), recorded: players.contains(&place) };
    Ok(Header {
        game: NAME.to_owned(),
        rules: rmp_serde::to_vec(rules)?.into(),
        map: rules.map_name.clone(),
        seed: Seed(0),
        settings: settings(rules)?.to_pairs(),
        preset: None,
        players: (0..rules.places).map(player).collect(),
        origin,
        side: None,
        classes: BodyRow::classes(),
        usercmd: usercmd_fields(),
        unknown: Vec::new(),
    })
}

/// The preset's, but for what this server does: predictions run as it ran them.
fn settings(rules: &Rules) -> Result<Settings, ImportError> {
    let mut settings = Settings::preset(PRESET)?;
    settings.set("prediction.among", "acking-packet")?;
    // Others are drawn between the two snapshots around the time that is shown, and stay where the newest has them
    // (cg_snapshot.c, cg_ents.c).
    settings.set("interpolation.mode", "history")?;
    settings.set("interpolation.on_missing", "hold")?;
    if rules.map.is_none() {
        settings.set("prediction.mode", "off")?;
    }
    settings.set("lag_compensation.enabled", if rules.unlagged { "true" } else { "false" })?;
    // Its server remembers 17 frames, the newest of which is the present (g_unlagged.c).
    settings.set("lag_compensation.max_unlag_ms", &(16_000 / i64::from(rules.server_hz)).min(1500).to_string())?;
    Ok(settings)
}

/// The records of a capture, in the order of their times, and the header of their log. `begin` takes the header first.
///
/// # Errors
/// As [`survey`].
pub fn import(
    source: Source,
    from: impl Read,
    log: &ServerLog,
    out: &mut dyn FnMut(Record),
) -> Result<(), ImportError> {
    listen(source, &mut { from }, log, out).map(|_| ())
}

/// The origin of a log that a proxy made.
pub(crate) fn overheard() -> Origin {
    Origin::Imported { format: PROXIED.to_owned() }
}

fn listen(
    source: Source,
    from: &mut dyn Read,
    log: &ServerLog,
    out: &mut dyn FnMut(Record),
) -> Result<(Listener, Option<u64>), ImportError> {
    let mut listener = Listener::new(log.clone());
    if source == Source::Demo {
        let mut demo = Demo::new(BufReader::new(from));
        while let Some((number, message)) = demo.read()? {
            listener.hear_message(number, message, out);
        }
        listener.finish(out);
        return Ok((listener, demo.cut()));
    }
    let mut capture = Capture::new(from)?;
    let mut first = None;
    let mut last = Micros::ZERO;
    while let Some(captured) = capture.read()? {
        let first = *first.get_or_insert(captured.at_ns);
        // A damaged stamp is not believed: time does not run backwards.
        let at = Micros(i64::try_from(captured.at_ns.saturating_sub(first) / 1_000).unwrap_or(i64::MAX)).max(last);
        last = at;
        listener.hear(at, captured.client, captured.direction, &captured.bytes, out);
    }
    listener.finish(out);
    Ok((listener, capture.cut()))
}
