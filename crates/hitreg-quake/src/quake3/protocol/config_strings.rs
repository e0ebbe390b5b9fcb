//! Changes of config strings, which the server sends as commands (ioquake3's sv_init.c and cl_cgame.c).

use std::sync::Arc;

use super::message::{Gamestate, MOST_CONFIG_STRINGS};

/// The longest config string to assemble, in bytes: the limit of all strings of a gamestate.
const LONGEST: usize = 16_000;

/// Follows the changes of config strings.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigStringChanges {
    /// The parts so far of a string that is too long for one command.
    parts: Vec<u8>,
}

impl ConfigStringChanges {
    /// Applies a server command; returns whether it changes a config string.
    pub(crate) fn follow(&mut self, command: &[u8], gamestate: Option<&mut Arc<Gamestate>>) -> bool {
        let Some((kind, index, text)) = parse(command) else { return false };
        if matches!(kind, b"cs" | b"bcs0") {
            self.parts.clear();
        }
        self.parts.extend(&text[..text.len().min(LONGEST - self.parts.len())]);
        let Some(gamestate) = gamestate.filter(|_| matches!(kind, b"cs" | b"bcs2")) else { return false };
        Arc::make_mut(gamestate).strings.insert(index, std::mem::take(&mut self.parts));
        true
    }
}

/// Splits a command into its kind, the index of the string, and the text.
fn parse(command: &[u8]) -> Option<(&[u8], u16, &[u8])> {
    let mut words = command.splitn(3, |byte| *byte == b' ');
    let kind = words.next().filter(|kind| matches!(*kind, b"cs" | b"bcs0" | b"bcs1" | b"bcs2"))?;
    let index = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    let text = words.next()?.strip_prefix(b"\"")?;
    let end = text.iter().position(|byte| *byte == b'"').unwrap_or(text.len());
    (index < MOST_CONFIG_STRINGS as u16).then_some((kind, index, &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_change_config_strings() {
        let mut gamestate = Arc::new(Gamestate::default());
        let mut changes = ConfigStringChanges::default();
        let mut follow = |command: &[u8]| {
            let is_changed = changes.follow(command, Some(&mut gamestate));
            is_changed.then(|| gamestate.strings.iter().map(|(index, text)| (*index, text.clone())).collect::<Vec<_>>())
        };
        assert_eq!(follow(b"cs 1 \"\\a\\1 2\"\n"), Some(vec![(1, b"\\a\\1 2".to_vec())]));
        assert_eq!([follow(b"bcs0 2 \"ab\""), follow(b"bcs1 2 \"cd\"")], [None, None]);
        assert_eq!(follow(b"bcs2 2 \"e\"").expect("a change")[1], (2, b"abcde".to_vec()));
        assert_eq!(follow(b"cs 1 \"\"").expect("a change")[0], (1, Vec::new()));
        for other in [&b"print \"cs 1\""[..], b"cs", b"cs 1024 \"x\"", b"cs x \"y\"", b"cs 5 x", b"scores 1 2"] {
            assert_eq!(follow(other), None);
        }
        let long = [b"bcs1 3 \"".as_slice(), &[b'x'; 1000]].concat();
        (0..20).for_each(|_| assert_eq!(follow(&long), None));
        assert_eq!(follow(b"bcs2 3 \"x\"").expect("a change")[2].1.len(), LONGEST);
    }
}
