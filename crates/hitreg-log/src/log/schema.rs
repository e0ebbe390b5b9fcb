//! The columns of a log's tables, as the header declares them.

use super::chunk::HEARD_USERCMD;
use super::kinds::RecordLayout;
use super::version::{FORMAT, FormatVersion};
use crate::record::{
    ArrivalRecord, DamageRecord, ExecutionRecord, FieldSchema, FrameRecord, GapRecord, HeardRecord, PacketRecord,
    PlayerRecords, PresenceRecord, SessionHeader, ShotRecord, SnapshotRecord, TickRecord, UnknownKind, each_stream,
};

/// The columns of each record kind, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schema {
    /// The kinds and columns as the header declares them. Missing tables and columns are empty.
    pub(crate) kinds: Vec<(String, Vec<String>)>,
    /// The format version of the log.
    pub(crate) version: FormatVersion,
}

macro_rules! own_kinds {
    (
        players { $( $(#[$doc:meta])* $by:ident $variant:ident $field:ident $type:ident; )* }
        session { $( $(#[$own_doc:meta])* $own:ident $own_field:ident $own_type:ident; )* }
    ) => {
        fn own_kinds() -> Vec<(&'static str, Vec<String>)> {
            vec![
                $( (stringify!($field), columns_of::<$type>()), )*
                $( (stringify!($own_field), columns_of::<$own_type>()), )*
            ]
        }
    };
}
each_stream!(own_kinds);

fn columns_of<T: RecordLayout>() -> Vec<String> {
    let mut names = T::column_names();
    T::LISTS.iter().for_each(|name| names.push((*name).to_owned()));
    names
}

/// Returns the columns of a kind that hold usercmd fields of the game.
fn own_columns(kind: &str, own: &[FieldSchema]) -> impl Iterator<Item = String> {
    let prefix = match kind {
        "frames" => Some(""),
        "heard" => Some(HEARD_USERCMD),
        _ => None,
    };
    prefix.into_iter().flat_map(|prefix| own.iter().map(move |field| format!("{prefix}{}", field.name)))
}

impl Schema {
    /// Returns the schema in which this build writes a log: with the usercmd fields that the game declares, and with
    /// unknown kinds that it copies.
    pub(crate) fn new(header: &SessionHeader) -> Schema {
        let mut kinds: Vec<(String, Vec<String>)> =
            own_kinds().into_iter().map(|(kind, columns)| (kind.to_owned(), columns)).collect();
        let own = header.own_usercmd_fields();
        for (kind, columns) in &mut kinds {
            columns.extend(own_columns(kind, &own));
        }
        for UnknownKind { name, columns, .. } in &header.unknown {
            match kinds.iter_mut().find(|(kind, _)| kind == name) {
                Some((_, known)) => known.extend(columns.iter().cloned()),
                None => kinds.push((name.clone(), columns.clone())),
            }
        }
        Schema { kinds, version: FORMAT }
    }

    /// Returns the memory that reading any chunk of this log takes, even an empty one, in bytes. The reader visits
    /// everything that the header declares.
    pub(crate) fn empty_chunk_bytes(&self, header: &SessionHeader) -> usize {
        let declared = header.classes.len() + header.unknown.len() + self.kinds.len();
        header.players.len() * size_of::<PlayerRecords>() + declared * size_of::<UnknownKind>()
    }

    /// Returns the columns of a kind; `None` if the log does not declare it.
    pub(crate) fn columns(&self, kind: &str) -> Option<&[String]> {
        self.kinds.iter().find(|(name, _)| name == kind).map(|(_, columns)| &columns[..])
    }

    /// Returns the declared kinds and columns that this build does not know. `own` holds the usercmd fields that the
    /// game declares.
    pub(crate) fn unknown(&self, own: &[FieldSchema]) -> Vec<UnknownKind> {
        let kinds = own_kinds();
        let unknown = |(name, columns): &(String, Vec<String>)| {
            let known = kinds.iter().find(|(kind, _)| kind == name).map_or(&[][..], |(_, columns)| &columns[..]);
            let own: Vec<String> = own_columns(name, own).collect();
            let is_unknown = |column: &&String| !known.contains(column) && !own.contains(column);
            let columns: Vec<String> = columns.iter().filter(is_unknown).cloned().collect();
            let is_known = !known.is_empty() && columns.is_empty();
            (!is_known).then(|| UnknownKind { name: name.clone(), columns, fields: Vec::new() })
        };
        self.kinds.iter().filter_map(unknown).collect()
    }
}
