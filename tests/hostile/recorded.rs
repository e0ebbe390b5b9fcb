//! Recorders with arbitrary calls: they write every record that they accept, and the file can be read.

use std::io::Write;
use std::sync::{Arc, Mutex};

use glam::Vec3;
use hitreg::log::{self, read_session, recover, write_session};
use hitreg::record::{
    ArrivalRecord, CellKind, Class, ClassId, DamageRecord, Effect, Execution, ExecutionRecord, FieldSchema, GapCause,
    GapRecord, HeardRecord, HitResult, OwnValue, PacketRecord, Presence, PresenceRecord, Record, Scope, Session,
    ShotRecord, SnapshotRecord, TextCode,
};
use hitreg::recorder::{Description, PushError, Recorder, RecorderOptions, Stream};
use hitreg::rng::Rng;
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq, Tick};
use hitreg::usercmd::{Input, Usercmd};

use crate::fuzz::target;
use crate::mutate;

/// The bytes that a recorder wrote.
#[derive(Clone, Default)]
struct RecordedBytes(Arc<Mutex<Vec<u8>>>);

impl Write for RecordedBytes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Calls, decoded from bytes. After the last byte, all values are zero.
struct Calls<'a> {
    bytes: std::slice::Iter<'a, u8>,
    now: i64,
}

impl Calls<'_> {
    fn byte(&mut self) -> u8 {
        self.bytes.next().copied().unwrap_or_default()
    }

    /// Usually a small number, sometimes an extreme one.
    fn number(&mut self) -> i64 {
        let byte = self.byte();
        match byte {
            0..=199 => i64::from(byte) % 24,
            200..=209 => i64::MAX,
            210..=214 => i64::MIN,
            215..=219 => -1,
            220..=229 => i64::from(u32::MAX),
            230..=239 => i64::from(u16::MAX),
            _ => (0..8).fold(0, |number, _| number << 8 | i64::from(self.byte())),
        }
    }

    /// The time of the session, which advances, and sometimes jumps.
    fn at(&mut self) -> Micros {
        self.now = match self.byte() {
            byte @ 0..=229 => self.now.saturating_add(i64::from(byte) * 100),
            230..=239 => self.now.saturating_sub(40_000),
            240..=247 => self.now.saturating_add(60_000_000),
            _ => return Micros(self.number()),
        };
        Micros(self.now)
    }

    fn float(&mut self) -> f32 {
        f32::from_bits(self.number() as u32)
    }

    fn player(&mut self) -> PlayerId {
        PlayerId(self.number() as u16 % 5)
    }

    fn usercmd(&mut self) -> Usercmd {
        let input = Input {
            msec: self.byte(),
            viewangles: Vec3::new(self.float(), self.float(), 0.0),
            forwardmove: self.float(),
            buttons: self.number() as u16,
            impulse: self.byte(),
            ..Input::default()
        };
        let (seq, lerp_msec) = (CommandSeq(self.number() as u32), self.number() as u16);
        Usercmd { seq, lerp_msec, server_time: self.at(), input }
    }

    fn shot(&mut self) -> ShotRecord {
        let reasons =
            [HitResult::Hit, HitResult::HitWorld, HitResult::Missed, HitResult::AlreadyDead, HitResult::Launched];
        ShotRecord {
            command: CommandSeq(self.number() as u32),
            at: self.at(),
            index: self.byte(),
            reason: reasons[usize::from(self.byte()) % reasons.len()],
            target: (self.byte() < 128).then(|| EntityId(self.number() as u16)),
            hitgroup: self.byte(),
            damage: self.number() as i32,
            rewound: Micros(self.number()),
            weapon: TextCode(self.number() as u64),
            impact: self.byte() < 128,
            pellets: (self.byte() < 128).then(|| self.byte()),
        }
    }

    fn snapshot(&mut self) -> SnapshotRecord {
        let count = self.byte() % 8;
        let effect = |calls: &mut Self| Effect {
            kind: calls.byte(),
            entity: EntityId(calls.number() as u16),
            at: Vec3::splat(calls.float()),
            predictable: calls.byte() < 128,
        };
        SnapshotRecord {
            seq: SnapshotSeq(self.number() as u32),
            tick: Tick(self.number() as u32),
            at: self.at(),
            server_time: Micros(self.number()),
            ack: CommandSeq(self.number() as u32),
            bytes: self.number() as u16,
            choked: self.byte(),
            entities: (0..count).map(|_| EntityId(self.number() as u16)).collect(),
            effects: (0..count % 3).map(|_| effect(self)).collect(),
            extra: (0..count).map(|_| self.byte()).collect(),
            timing: None,
        }
    }

    fn record(&mut self) -> Record {
        let player = self.player();
        let arrival = |calls: &mut Self| ArrivalRecord { number: calls.number() as u32, at: calls.at() };
        match self.byte() % 12 {
            0 => {
                let (number, at, newest) = (self.number() as u32, self.at(), CommandSeq(self.number() as u32));
                Record::Sent(player, PacketRecord { number, at, newest, count: self.byte(), ..PacketRecord::default() })
            }
            1 => Record::Reached(player, arrival(self)),
            2 => Record::Received(player, arrival(self)),
            3 => Record::Predicted(player, self.shot()),
            4 => Record::Judged(player, self.shot()),
            5 => {
                let hows =
                    [Execution::Run, Execution::StoodIn, Execution::Missing, Execution::Late, Execution::OverBudget];
                let (command, tick) = (CommandSeq(self.number() as u32), Tick(self.number() as u32));
                Record::Executed(player, ExecutionRecord { command, tick, how: hows[usize::from(self.byte()) % 5] })
            }
            6 => {
                let (tick, at) = (Tick(self.number() as u32), self.at());
                let change = if self.byte() < 128 { Presence::Joined } else { Presence::Left };
                Record::Presence(player, PresenceRecord { tick, at, change })
            }
            7 => Record::Snapshot(player, self.snapshot()),
            8 => {
                let (tick, at, victim) = (Tick(self.number() as u32), self.at(), EntityId(self.number() as u16));
                let attacker = (self.byte() < 128).then(|| self.player());
                let (amount, weapon) = (self.number() as i32, TextCode(self.number() as u64));
                let (armour, force) = (Some(self.number() as u16), Some(Vec3::splat(self.float())));
                Record::Damage(DamageRecord { tick, at, victim, attacker, amount, weapon, armour, force })
            }
            9 => {
                let (from, to) = (self.at(), self.at());
                Record::Gap(GapRecord {
                    from,
                    to,
                    player: (self.byte() < 128).then_some(player),
                    why: GapCause::Paused,
                })
            }
            10 => {
                let (number, at) = (self.number() as u32, self.at());
                let commands = (0..self.byte() % 5).map(|_| self.usercmd()).collect();
                Record::Heard(player, HeardRecord { number, at, commands, ..HeardRecord::default() })
            }
            _ => {
                let hash = (self.byte() < 128).then(|| self.number() as u64);
                Record::Tick(hitreg::record::TickRecord { tick: Tick(self.number() as u32), at: self.at(), hash })
            }
        }
    }

    /// Makes one call and returns its result.
    fn push(&mut self, stream: &mut Stream) -> Result<(), PushError> {
        let player = self.player();
        match self.byte() % 8 {
            0 => {
                let (at, command) = (self.at(), self.usercmd());
                stream.usercmd(player, at, command)
            }
            1 => {
                let (at, command) = (self.at(), self.usercmd());
                stream.usercmd_with(
                    player,
                    at,
                    command,
                    &[OwnValue::Number(self.number()), OwnValue::Float(self.float())],
                )
            }
            2 => {
                let (at, command) = (self.at(), self.usercmd());
                let bytes = vec![self.byte(); usize::from(self.byte())];
                let own = [OwnValue::Number(self.number()), OwnValue::Float(self.float())];
                stream.usercmd_with_bytes(player, at, command, &own, &bytes)
            }
            3 => {
                let (tick, at) = (Tick(self.number() as u32), self.at());
                let hash = (self.byte() < 128).then(|| self.number() as u64);
                stream.tick(tick, at, hash)
            }
            4 => {
                let (tick, entity) = (Tick(self.number() as u32), EntityId(self.number() as u16));
                let cells = [self.float().to_bits(), self.number() as u32];
                stream.body(tick, entity, ClassId(u16::from(self.byte() % 3)), &cells)
            }
            5 => {
                let (kind, series, at) = (usize::from(self.byte() % 3), self.number() as u32, self.at());
                stream.row(kind, series, at, &[OwnValue::Number(self.number()), OwnValue::Float(self.float())])
            }
            _ => stream.push(self.record()),
        }
    }
}

/// The number of records of each kind.
fn records(session: &Session) -> Vec<usize> {
    let of_players = session.players.iter().flat_map(|player| player.streams().map(|stream| stream.len()));
    of_players.chain(session.streams().map(|stream| stream.len())).chain([session.states.len()]).collect()
}

fn about() -> Description {
    let field = |name: &str, kind| FieldSchema::new(name, kind, Scope::Movement);
    let columns = [("spell", CellKind::U32), ("power", CellKind::F32)].map(|(name, kind)| (name.to_owned(), kind));
    let about = Description::new("any")
        .class(Class::new("player", vec![field("x", CellKind::F32), field("health", CellKind::I32)]))
        .usercmd_field(field("lean", CellKind::I32))
        .usercmd_field(field("zoom", CellKind::F32))
        .usercmd_bytes()
        .kind("casts", columns.to_vec());
    (0..4).fold(about, |about, player| about.player(format!("p{player}")))
}

#[test]
fn recorders() {
    let calls = |_: &[u8], rng: &mut Rng| {
        let random: Vec<u8> = (0..rng.below(1500)).map(|_| rng.next_u64() as u8).collect();
        mutate::bytes(&random, rng)
    };
    target("recorders", vec![Vec::new()], calls, &mut |bytes| {
        let memory = RecordedBytes::default();
        let window = Micros::from_ms([0, 250, 100_000][usize::from(bytes.first().copied().unwrap_or_default()) % 3]);
        let mut options = RecorderOptions::patient();
        options.window = window;
        let recorder = Recorder::to(memory.clone(), about(), options).expect("a description");
        let mut streams = [recorder.stream(), recorder.stream()];
        let mut calls = Calls { bytes: bytes.iter(), now: 0 };
        let mut taken = 0;
        let mut output = String::from("all");
        while calls.bytes.len() > 0 {
            let stream = usize::from(calls.byte() < 64);
            match calls.push(&mut streams[stream]) {
                Ok(()) => taken += 1,
                Err(error) => output = error.to_string(),
            }
        }
        let written = recorder.finish().expect("all is written");
        assert_eq!((written.lost_records, written.dropped_chunks), (0, 0), "a patient recorder waits");
        assert!(
            written.records <= taken * 2 && taken <= written.records + written.late_records,
            "{taken}: {written:?}"
        );
        let file = memory.0.lock().expect("no panic");
        let session = read_session(&file[..]).expect("the written log is readable");
        let (recovered, damage) = recover(&file).expect("a log");
        // By bytes, because NaN is not equal to itself.
        let again = |session| {
            write_session(Vec::new(), session, log::WriterOptions::live()).expect("the session can be written")
        };
        assert!(damage.is_none() && again(&recovered) == again(&session), "whole, and the same twice");
        let reread = read_session(&again(&session)[..]).expect("the written log is readable");
        assert_eq!(records(&reread), records(&session), "nothing is lost on the way");
        output
    });
}
