//! The settings whose effect a replay cannot show.

use super::split_of_player;
use crate::sorted::{SortedMap, SortedSet};

/// What a replay ran. It decides which changed settings the replay can answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayScope {
    /// Whether only clients ran, on recorded snapshots.
    pub is_open: bool,
    /// Whether the changed settings only judged recorded shots again.
    pub is_rejudged: bool,
    /// Whether any shot was judged.
    pub has_judged_shots: bool,
    /// The players whose clients ran; `None` if it is not known. A server's own log runs none of them.
    pub clients: Option<SortedSet<u32>>,
}

/// Why a replay cannot show the effect of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum UnansweredReason {
    /// The setting decides which usercmds clients make, and the log holds them.
    RecordedUsercmds,
    /// Only a server uses the setting, and open loop runs none.
    NoServer,
    /// Only clients use the setting, and none of them ran.
    NoClient,
    /// The setting decides shots, and none was judged.
    NoShot,
}

/// The beginnings of the settings that only clients use.
const OF_CLIENTS: [&str; 4] = ["prediction.", "interpolation.", "extrapolation.", "client."];

/// The settings whose effect replays cannot show, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnansweredSettings(SortedMap<UnansweredReason, SortedSet<String>>);

impl UnansweredSettings {
    /// Returns whether the replays can show the effect of all settings.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the settings of other replays.
    pub fn append(&mut self, other: &UnansweredSettings) {
        for (reason, keys) in &other.0 {
            self.0.entry(*reason).or_default().extend(keys.iter().cloned());
        }
    }

    /// Returns one sentence for each reason.
    pub fn sentences(&self) -> Vec<String> {
        let sentence = |(reason, keys): (&UnansweredReason, &SortedSet<String>)| {
            let keys = keys.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            match reason {
                UnansweredReason::RecordedUsercmds => {
                    format!("the log holds the usercmds that the clients sent, and a replay cannot change {keys}")
                }
                UnansweredReason::NoServer => {
                    format!("open loop runs no server, and a replay of the clients alone cannot answer {keys}")
                }
                UnansweredReason::NoClient => {
                    format!("the log lacks the clients that use these settings, so a replay cannot answer {keys}")
                }
                UnansweredReason::NoShot => format!("no shot was judged, so a replay cannot answer {keys}"),
            }
        };
        self.0.iter().map(sentence).collect()
    }
}

impl ReplayScope {
    /// Returns which of these changed settings have an effect that a replay cannot show.
    pub fn unanswered<'k>(&self, keys: impl IntoIterator<Item = &'k str>) -> UnansweredSettings {
        let mut unanswered = UnansweredSettings::default();
        for key in keys {
            if let Some(reason) = self.reason(key) {
                unanswered.0.entry(reason).or_default().insert(key.to_owned());
            }
        }
        unanswered
    }

    fn reason(&self, key: &str) -> Option<UnansweredReason> {
        let (player, key) = split_of_player(key).map_or((None, key), |(player, of_all)| (Some(player), of_all));
        let is_of_clients = OF_CLIENTS.iter().any(|beginning| key.starts_with(beginning));
        let lacks_clients = self.clients.as_ref().is_some_and(|clients| match player {
            Some(player) => !clients.contains(&player.0.into()),
            None => clients.is_empty(),
        });
        let decides_shots = key.starts_with("lag_compensation.") || self.is_rejudged;
        match key {
            "client.cmd_hz" | "client.frames" => Some(UnansweredReason::RecordedUsercmds),
            _ if is_of_clients && lacks_clients && !self.is_rejudged => Some(UnansweredReason::NoClient),
            _ if !self.is_open => None,
            "client.redundancy" | "client.adaptive_redundancy" | "client.lead_ms" => {
                Some(UnansweredReason::RecordedUsercmds)
            }
            "lag_compensation.max_claim_error_ms" => Some(UnansweredReason::NoServer),
            _ if key.starts_with("server.") || key.starts_with("wire.") => Some(UnansweredReason::NoServer),
            _ if decides_shots && !self.has_judged_shots => Some(UnansweredReason::NoShot),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOSED: ReplayScope =
        ReplayScope { is_open: false, is_rejudged: false, has_judged_shots: true, clients: None };
    const OPEN: ReplayScope = ReplayScope { is_open: true, ..CLOSED };

    #[test]
    fn a_closed_loop_answers_all_settings_but_those_that_make_usercmds() {
        for key in ["server.update_hz", "client.redundancy", "lag_compensation.enabled", "p1.interpolation.lerp_ms"] {
            assert!(CLOSED.unanswered([key]).is_empty(), "{key}");
        }
        let sentences = CLOSED.unanswered(["client.cmd_hz", "server.tick_hz", "p1.client.frames"]).sentences();
        let expected = "the log holds the usercmds that the clients sent, and a replay cannot change client.cmd_hz, p1.client.frames";
        assert_eq!(sentences, [expected]);
    }

    #[test]
    fn settings_of_clients_need_the_clients_that_use_them() {
        let of = |clients: &[u32]| ReplayScope { clients: Some(clients.iter().copied().collect()), ..CLOSED };
        let expected = "the log lacks the clients that use these settings, so a replay cannot answer client.redundancy";
        assert_eq!(
            of(&[]).unanswered(["client.redundancy", "server.update_hz", "p1.server.update_hz"]).sentences(),
            [expected]
        );
        let keys = ["interpolation.lerp_ms", "p1.interpolation.lerp_ms", "p0.prediction.mode"];
        assert_eq!(
            of(&[0]).unanswered(keys).sentences(),
            [expected.replace("client.redundancy", "p1.interpolation.lerp_ms")]
        );
        assert!(of(&[0, 1]).unanswered(keys).is_empty());
        // The time by which a recorded shot is rewound depends on it.
        assert!(ReplayScope { is_rejudged: true, ..of(&[]) }.unanswered(["interpolation.lerp_ms"]).is_empty());
    }

    #[test]
    fn an_open_loop_answers_what_clients_do_and_how_shots_are_judged() {
        for key in ["prediction.mode", "interpolation.lerp_ms", "client.clock", "lag_compensation.enabled"] {
            assert!(OPEN.unanswered([key]).is_empty(), "{key}");
        }
        let unanswered =
            OPEN.unanswered(["client.redundancy", "p0.server.update_hz", "lag_compensation.enabled"]).sentences();
        assert_eq!(unanswered.len(), 2, "{unanswered:?}");
        let no_shot = ReplayScope { has_judged_shots: false, ..OPEN };
        assert_eq!(no_shot.unanswered(["lag_compensation.enabled"]).sentences().len(), 1);
        assert!(no_shot.unanswered(["interpolation.lerp_ms"]).is_empty());
        assert_eq!(
            ReplayScope { is_rejudged: true, ..no_shot }.unanswered(["interpolation.lerp_ms"]).sentences().len(),
            1
        );
    }
}
