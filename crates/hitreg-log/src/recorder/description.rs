//! The description of a session, known before its first record, and the custom record kinds it declares.

use super::{FinishError, PushError};
use crate::log;
use crate::record::{
    CellKind, Class, FieldSchema, Origin, OwnValue, PlayerInfo, RecordedSide, Scope, SessionHeader, SessionId,
    TakenName, UnknownKind, usercmd_fields, value_of_setting,
};
use crate::trace::schema::is_reserved;
use crate::units::{CommandSeq, PlayerId, Seed};

/// The header data of a session: game, map, settings, players, classes and custom kinds.
#[derive(Clone, Debug)]
#[must_use]
pub struct Description {
    header: SessionHeader,
    kinds: Vec<CustomKind>,
    pub(super) capabilities: Vec<String>,
}

/// A custom record kind, declared by the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomKind {
    /// Name of the kind, unique in the description.
    pub name: String,
    /// Names and types of its columns except `at_us`.
    pub columns: Vec<(String, CellKind)>,
}

impl Description {
    /// Returns the description of a session of a game. Builds select their game by this name.
    pub fn new(game: impl Into<String>) -> Description {
        let header = SessionHeader {
            game: game.into(),
            rules: Vec::new().into(),
            map: String::new(),
            seed: Seed(0),
            settings: Vec::new(),
            preset: None,
            players: Vec::new(),
            origin: Origin::Live,
            side: None,
            classes: Vec::new(),
            usercmd: usercmd_fields(),
            usercmd_bytes: false,
            unknown: Vec::new(),
        };
        Description { header, kinds: Vec::new(), capabilities: Vec::new() }
    }

    /// Declares an optional command of this build, such as [`STEP`](crate::trace::STEP). Only traces store it.
    pub fn capability(mut self, name: impl Into<String>) -> Description {
        self.capabilities.push(name.into());
        self
    }

    /// Sets the map's name and its bytes. Leave the bytes empty when the replay loads the map from its own files.
    pub fn map(mut self, name: impl Into<String>, bytes: Vec<u8>) -> Description {
        (self.header.map, self.header.rules) = (name.into(), bytes.into());
        self
    }

    /// Sets the random seed of the session.
    pub fn seed(mut self, seed: u64) -> Description {
        self.header.seed = Seed(seed);
        self
    }

    /// Sets the server's tick rate, 1 to 1,000 Hz.
    pub fn tick_hz(self, hz: u32) -> Description {
        self.setting(TICK_HZ, hz.to_string())
    }

    /// Adds a setting under any name; the last value of a name counts. Of the settings that `hitreg settings` lists, the
    /// recorder checks only `server.tick_hz`. Games made with hitreg refuse a log in which another has an invalid value, and
    /// `info` names the value.
    pub fn setting(mut self, key: impl Into<String>, value: impl Into<String>) -> Description {
        let (key, value) = (key.into(), value.into());
        match self.header.settings.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = value,
            None => self.header.settings.push((key, value)),
        }
        self
    }

    /// Declares that y points down in the game's world, as on a screen. Pages draw it so.
    pub fn y_down(self) -> Description {
        self.setting(Y_AXIS, "down")
    }

    /// Adds the next player. Pass a pseudonym unless players agreed to be recorded by name.
    pub fn player(mut self, name: impl Into<String>) -> Description {
        self.header.players.push(PlayerInfo { name: name.into(), recorded: true });
        self
    }

    /// Adds the next class of entities.
    pub fn class(mut self, class: Class) -> Description {
        self.header.classes.push(class);
        self
    }

    /// Adds a game-defined field to each usercmd.
    pub fn usercmd_field(mut self, field: FieldSchema) -> Description {
        self.header.usercmd.push(field);
        self
    }

    /// Declares that usercmds have bytes of their own ([`Stream::usercmd_with_bytes`](super::Stream::usercmd_with_bytes)).
    pub fn usercmd_bytes(mut self) -> Description {
        self.header.usercmd_bytes = true;
        self
    }

    /// Adds a custom record kind. Kinds count from 0 in the order of these calls. Each row has a time, a series (such
    /// as a player number) and these columns.
    pub fn kind(mut self, name: impl Into<String>, columns: Vec<(String, CellKind)>) -> Description {
        self.kinds.push(CustomKind { name: name.into(), columns });
        self
    }

    /// Declares that the log holds only the server's side, by the server's clock. All sides of one session share the
    /// number `session`.
    pub fn server_side(mut self, session: u64) -> Description {
        self.header.side = Some(RecordedSide { session: SessionId(session), player: None });
        self
    }

    /// Declares that the log holds one client's side, by that client's clock.
    pub fn client_side(mut self, session: u64, player: PlayerId) -> Description {
        self.header.side = Some(RecordedSide { session: SessionId(session), player: Some(player) });
        self
    }

    /// Declares that the server recorded the usercmds. Their times are arrival times at the server.
    pub fn usercmds_as_received(self) -> Description {
        self.setting(USERCMDS, AS_RECEIVED)
    }

    /// Checks the description and returns the log's header.
    pub(crate) fn into_header(self) -> Result<(SessionHeader, Vec<CustomKind>), FinishError> {
        let Description { mut header, kinds, capabilities: _ } = self;
        let fault = |what: String| Err(FinishError::Description(what));
        let sides_player = header.side.and_then(|side| side.player);
        if header.game.is_empty() {
            return fault("the game has no name".into());
        }
        // Every command reads the settings that hitreg defines, so their values must be valid.
        if let Some((key, _)) = header.settings.iter().find(|(key, _)| !is_dotted_name(key)) {
            return fault(format!("a setting is called `{key}`: its name needs words with dots between them"));
        }
        let hz = value_of_setting(&header.settings, TICK_HZ);
        if let Some(hz) = hz.filter(|hz| !hz.parse().is_ok_and(|hz: f64| (1.0..=1000.0).contains(&hz))) {
            return fault(format!("the tick rate is {hz}, and it must be from 1 to 1000 Hz"));
        }
        if header.players.is_empty() {
            return fault("the session has no players: call `player` for each one".into());
        }
        if let Err(too_many) = log::check_players(&header.players) {
            return fault(too_many);
        }
        if let Some(id) = sides_player.filter(|id| usize::from(id.0) >= header.players.len()) {
            return fault(format!("it is the side of player {id}, and there are {} players", header.players.len()));
        }
        if let Some(class) = header.classes.iter().find(|class| is_twice(class.fields.iter().map(|f| &f.name))) {
            return fault(format!("class `{}` has two fields of one name", class.name));
        }
        if is_twice(header.usercmd.iter().map(|field| &field.name)) {
            return fault("a usercmd has two fields of one name".into());
        }
        let is_column = |field: &&FieldSchema| header.usercmd_bytes && log::EXTRA_BYTES.contains(&&*field.name);
        if let Some(field) = header.usercmd.iter().find(is_column) {
            return fault(format!("a usercmd has bytes, and a field of the name `{}`: rename the field", field.name));
        }
        if is_twice(header.classes.iter().map(|class| &class.name)) {
            return fault("two classes of entities have one name".into());
        }
        let fields = header.classes.iter().flat_map(|class| &class.fields).chain(&header.usercmd);
        let columns = kinds.iter().flat_map(|kind| &kind.columns).map(|(name, _)| name);
        let names = header.classes.iter().map(|class| &class.name).chain(kinds.iter().map(|kind| &kind.name));
        if names.chain(fields.map(|field| &field.name)).chain(columns).any(String::is_empty) {
            return fault("a class, a kind of records, a field or a column has an empty name".into());
        }
        if let Err(taken) = TakenName::check(&header.classes, &header.usercmd[usercmd_fields().len()..]) {
            return fault(taken.to_string());
        }
        if is_twice(kinds.iter().map(|kind| &kind.name)) {
            return fault("two kinds of records have one name".into());
        }
        header.unknown =
            kinds.iter().map(CustomKind::declared).collect::<Result<_, _>>().map_err(FinishError::Description)?;
        let (map, most) = (header.rules.len(), log::MAP_BYTES_MAX);
        if map > most {
            return fault(format!("the map has {map} bytes, and a log takes at most {most}: give only its name"));
        }
        Ok((header, kinds))
    }
}

impl CustomKind {
    /// Returns the kind as a header declares it, or what is wrong with it.
    fn declared(&self) -> Result<UnknownKind, String> {
        let name = &self.name;
        let columns: Vec<String> =
            std::iter::once(AT.to_owned()).chain(self.columns.iter().map(|(name, _)| name.clone())).collect();
        if is_twice(columns.iter().chain([&SERIES.to_owned()])) {
            return Err(format!("kind `{name}` has two columns of one name (each has `{AT}` and `{SERIES}`)"));
        }
        if log::CHUNK_KEYS.contains(&&**name) {
            return Err(format!("`{name}` is a name that every log has"));
        }
        let field = |(name, kind): &(String, CellKind)| FieldSchema::new(name, *kind, Scope::Status);
        let fields = self.columns.iter().map(field).collect();
        let unknown = UnknownKind { name: name.clone(), columns, fields };
        if unknown.is_known_kind() {
            return Err(format!("`{name}` is a kind that every log has"));
        }
        if is_reserved(name) {
            let what = "a table of traces: give the kind another name, such as `my.";
            return Err(format!("kind `{name}` has the name of {what}{name}`"));
        }
        Ok(unknown)
    }
}

/// The columns that every custom kind has.
const AT: &str = "at_us";
const SERIES: &str = "series";
/// The setting that holds the server's tick rate.
const TICK_HZ: &str = "server.tick_hz";
/// The setting that says that y points down.
pub(crate) const Y_AXIS: &str = "recorder.y_axis";
/// The setting that says whether clients or the server recorded the usercmds.
const USERCMDS: &str = "recorder.usercmds";
const AS_RECEIVED: &str = "as_received";
/// Stands before the number of the last such usercmd, if it is not the player's last.
const UNTIL: &str = "_until_";

/// Returns the last usercmd of a player that has the time of its arrival at the server, as the settings of a log say
/// ([`Description::usercmds_as_received`]). All before it have such times too. `None` if all have the times of client
/// frames. A merged log says it of each such player.
pub fn last_usercmd_as_received(settings: &[(String, String)], player: u32) -> Option<CommandSeq> {
    let own = usercmds_of(player);
    let values = settings.iter().filter(|(key, _)| key == USERCMDS || *key == own).map(|(_, value)| value);
    let last = |value: &String| match value.strip_prefix(AS_RECEIVED)? {
        "" => Some(CommandSeq(u32::MAX)),
        until => until.strip_prefix(UNTIL)?.parse().ok().map(CommandSeq),
    };
    values.filter_map(last).max()
}

/// The setting that says it of one player.
fn usercmds_of(player: u32) -> String {
    format!("{USERCMDS}.p{player}")
}

/// Limits that statement to the players whose usercmds a server recorded, each up to a usercmd if not all are.
pub(crate) fn usercmds_as_received_of(
    settings: &mut Vec<(String, String)>,
    players: impl Iterator<Item = (PlayerId, Option<CommandSeq>)>,
) {
    let said = settings.extract_if(.., |(key, _)| key == USERCMDS).any(|(_, value)| value == AS_RECEIVED);
    let value = |until: Option<CommandSeq>| match until {
        Some(until) => format!("{AS_RECEIVED}{UNTIL}{}", until.0),
        None => AS_RECEIVED.to_owned(),
    };
    if said {
        settings.extend(players.map(|(player, until)| (usercmds_of(player.0.into()), value(until))));
    }
}

/// Whether a setting's name is words with dots between them.
fn is_dotted_name(key: &str) -> bool {
    key.split('.').all(|word| !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || c.is_control()))
}

fn is_twice<'a>(names: impl Iterator<Item = &'a String>) -> bool {
    let mut names: Vec<&String> = names.collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

/// Checks the number and the types of values against those of fields or columns.
pub(super) fn check_values(
    kind: &str,
    values: &[OwnValue],
    columns: impl ExactSizeIterator<Item = CellKind> + Clone,
) -> Result<(), PushError> {
    if values.len() == columns.len() && values.iter().zip(columns.clone()).all(|(value, kind)| value.is_of(kind)) {
        return Ok(());
    }
    let word = |value: &OwnValue| match value {
        OwnValue::Number(number) => number.to_string(),
        OwnValue::Unsigned(number) => number.to_string(),
        OwnValue::Float(_) => "a float".to_owned(),
        OwnValue::Double(_) => "a double".to_owned(),
        OwnValue::Text(_) => "a text".to_owned(),
    };
    // The range of a type is named if the value is an integer outside it.
    let column = |(place, kind): (usize, CellKind)| {
        let integer = values.get(place).and_then(|value| value.integer());
        match integer.zip(kind.integers()) {
            Some((integer, range)) if !range.contains(&integer) => {
                format!("{} ({} to {})", kind.name(), range.start(), range.end())
            }
            _ => kind.name().to_owned(),
        }
    };
    let list = |words: Vec<String>| if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
    Err(PushError::Row {
        kind: kind.to_owned(),
        found: list(values.iter().map(word).collect()),
        columns: list(columns.enumerate().map(column).collect()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_with_the_name_of_a_table_of_traces_is_refused() {
        let described = |name: &str| Description::new("mygame").player("p0").kind(name, Vec::new()).into_header();
        for name in ["shots", "bodies", "bodies.grenade", "views", "packets", "snapshots", "effects"] {
            assert!(described(name).is_err(), "{name}");
        }
        let error = described("views").unwrap_err().to_string();
        assert!(error.contains("kind `views` has the name of a table of traces: give the kind another"), "{error}");
        for name in ["corrections", "errors", "casts", "my.shots"] {
            assert!(described(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn names_that_no_table_can_have_are_refused() {
        let field = |name: &str| FieldSchema::new(name, CellKind::F32, Scope::Movement);
        let class = |name: &str| Class::new(name, vec![field("x")]);
        let base = || Description::new("mygame").player("p0");
        let refused = [
            (base().class(class("box")).class(class("box")), "two classes of entities have one name"),
            (base().class(class("")), "has an empty name"),
            (base().class(Class::new("box", vec![field("")])), "has an empty name"),
            (base().usercmd_field(field("")), "has an empty name"),
            (base().kind("", Vec::new()), "has an empty name"),
            (base().kind("casts", vec![(String::new(), CellKind::F32)]), "has an empty name"),
            (base().usercmd_bytes().usercmd_field(field("extra")), "a field of the name `extra`"),
            (base().kind("usercmd_bytes", Vec::new()), "has the name of a table of traces"),
            (
                base().map("dm", vec![0; log::MAP_BYTES_MAX + 1]),
                "the map has 11534337 bytes, and a log takes at most 11534336",
            ),
        ];
        for (about, says) in refused {
            let error = about.into_header().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let accepted = [
            base().class(class("box")).class(class("Box")),
            base().usercmd_field(field("extra")),
            base().map("dm", vec![0; log::MAP_BYTES_MAX]),
        ];
        accepted.into_iter().for_each(|about| assert!(about.into_header().is_ok()));
    }

    #[test]
    fn a_tick_rate_outside_1_to_1000_hz_is_refused() {
        let described = |hz: &str| Description::new("mygame").player("p0").setting(TICK_HZ, hz).into_header().is_ok();
        assert!(described("1") && described("31.25") && described("1000"));
        assert!(!described("0") && !described("1001") && !described("fast") && !described("NaN"));
        let error = Description::new("mygame").player("p0").tick_hz(0).into_header().unwrap_err();
        assert!(error.to_string().contains("the tick rate is 0, and it must be from 1 to 1000 Hz"), "{error}");
    }
}
