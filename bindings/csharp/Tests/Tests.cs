// Tests of the bindings, without a test framework.
//
//     Tests.exe run FOLDER              calls everything, and leaves logs in the folder
//     Tests.exe program HEADER          prints a C program that prints the layout of the header's structs
//     Tests.exe header HEADER LAYOUT    compares hitreg.h and the output of that program with the bindings
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;
using Hitreg;

static class Tests {
    static int passed, failed;

    static int Main(string[] args) {
        if (args.Length == 2 && args[0] == "run") {
            string folder = args[1];
            Run("every table and kind", () => Everything.Test(Path.Combine(folder, "évery.hitlog")));
            Run("no allocation by pushes", () => Allocations.Test(folder));
            Run("refused calls", () => Refusals.Test(folder));
            Run("lost rows", () => Losses.Test(folder));
            Run("threads", () => Threads.Test(folder));
            Run("flight recorder, rotation, sides", () => Files.Test(folder));
            Run("traces", () => Traces.Test(folder));
            Run("playback", () => Playbacks.Test(folder));
        } else if (args.Length == 2 && args[0] == "program") {
            Console.Write(new Header(args[1]).Program());
            return 0;
        } else if (args.Length == 3 && args[0] == "header") {
            var header = new Header(args[1]);
            Run("functions", header.CompareFunctions);
            Run("enums", header.CompareEnums);
            Run("structs", () => header.CompareStructs(File.ReadAllLines(args[2])));
        }
        Console.WriteLine(passed + " passed, " + failed + " failed");
        return passed > 0 && failed == 0 ? 0 : 1;
    }

    static void Run(string name, Action test) {
        try {
            test();
            passed++;
            Console.WriteLine("ok: " + name);
        } catch (Exception error) {
            failed++;
            Console.WriteLine("FAILED: " + name + ": " + error);
        }
    }

    public static void Same<T>(T found, T expected, string what) {
        if (!EqualityComparer<T>.Default.Equals(found, expected)) {
            throw new Exception(what + ": " + found + ", not " + expected);
        }
    }

    public static void Holds(bool condition, string what) => Same(condition, true, what);

    /// <summary>Checks that a call throws, and returns the exception.</summary>
    public static E Throws<E>(Action call, string what) where E : Exception {
        try {
            call();
        } catch (E error) {
            return error;
        }
        throw new Exception(what + ": no " + typeof(E).Name);
    }

    /// <summary>Checks that the library refuses a call with a code and a message that has these words.</summary>
    public static void Refuses(Code code, string words, Action call, int exitCode = 128) {
        var error = Throws<HitregException>(call, words);
        Same(error.Code, code, error.Message);
        Same(error.ExitCode, exitCode, error.Message);
        Holds(error.Message.Contains(words), "\"" + error.Message + "\" has \"" + words + "\"");
    }

    public static Description OnePlayer(string game) =>
        new Description(game).Player("p0").Class("player", new Field("health", FieldType.I32, Scope.Status));
}

/// <summary>Pushes rows of every table with every kind of value, and reads the same back from the log.</summary>
static class Everything {
    const int Rounds = 300;
    static readonly FieldType[] Types = (FieldType[])Enum.GetValues(typeof(FieldType));
    static readonly string[] Weapons = { "rifle", "Schwert", "弓" };

    public static void Test(string path) {
        Record(path);
        Read(path);
    }

    static Value[] Values(RowStream stream, uint seq) => new Value[] {
        seq / 8f, -(int)seq, seq, long.MinValue + seq, ulong.MaxValue - seq, seq / 3.0, seq % 2 == 0,
        stream.Text(Weapons[seq % 3]),
    };

    static uint[] Put(RowStream stream, uint seq) {
        var cells = new uint[12];
        int at = Cells.Put(cells, 0, seq / 8f);
        at = Cells.Put(cells, at, -(int)seq);
        at = Cells.Put(cells, at, seq);
        at = Cells.Put(cells, at, long.MinValue + seq);
        at = Cells.Put(cells, at, ulong.MaxValue - seq);
        at = Cells.Put(cells, at, seq / 3.0);
        at = Cells.Put(cells, at, seq % 2 == 0);
        Tests.Same(stream.PutText(cells, at, Weapons[seq % 3]), cells.Length, "cells");
        return cells;
    }

    static void Compare(Log log, Items<Value> values, uint seq) {
        Tests.Same(values.Count, 8, "values");
        Tests.Same(values[0].Real, seq / 8f, "f32");
        Tests.Same(values[1].Number, -(long)seq, "i32");
        Tests.Same(values[2].Number, (long)seq, "u32");
        Tests.Same(values[3].Number, long.MinValue + seq, "i64");
        Tests.Same((ulong)values[4].Number, ulong.MaxValue - seq, "u64");
        Tests.Same(values[5].Real64, seq / 3.0, "f64");
        Tests.Same(values[6].Number, seq % 2 == 0 ? 1L : 0, "bool");
        Tests.Same(log.Text(values[7]), Weapons[seq % 3], "text");
    }

    static void Record(string path) {
        var fields = Types.Select(type => new Field("f" + type, type)).ToArray();
        var columns = Types.Select(type => new Column("c" + type, type)).ToArray();
        using (var description = new Description("évery")
            .Player("p0").TickHz(100).Map("plane", new byte[] { 1, 0, 255 }).Seed(ulong.MaxValue)
            .Setting("every.thing", "yes").YDown().UsercmdsAsReceived().Class("player", fields).UsercmdFields(fields)
            .UsercmdBytes().Table("casts", columns))
        using (var recorder = Recorder.Create(path, description, new RecorderOptions { Patient = true })) {
            using (var stream = recorder.NewStream()) {
                Push(stream);
            }
            var written = recorder.Finish();
            // The bytes of a usercmd are a row of their own.
            Tests.Same(written.Rows, 2ul + Rounds * 14, "rows");
            Tests.Same(written.LostRows + written.DroppedChunks + written.LateRows, 0ul, "losses");
        }
    }

    static void Push(RowStream stream) {
        bool kept = stream.PushPresence(0, 1, 10000, Presence.Joined);
        for (uint seq = 1; seq <= Rounds; seq++) {
            long at = seq * 10000;
            kept &= stream.PushUsercmd(0, new Usercmd {
                Seq = seq, AtUs = at, ServerTimeUs = at - 1, LerpMs = 100, Msec = 10, Pitch = -1, Yaw = 2, Roll = 3,
                Forwardmove = 4, Sidemove = -5, Upmove = 6, Buttons = seq & 3, Impulse = 7,
                Bytes = new Items<byte>(new byte[] { 1, 2, (byte)seq }, (int)(seq % 4)), Fields = Values(stream, seq),
            });
            kept &= stream.PushSent(0, new Packet {
                Number = seq, AtUs = at, Newest = seq, Count = 1, Ack = seq - 1, Bytes = 60,
            });
            kept &= stream.PushReached(0, seq, at + 1000);
            kept &= stream.PushExecuted(0, seq, seq, How.StoodIn);
            var shot = new Shot {
                Usercmd = seq, AtUs = at, Index = 1, Reason = Reason.AlreadyDead, Target = 7, Hitgroup = 2, Damage = 30,
                RewoundUs = 1234, Weapon = stream.Text("rifle"), Impact = true, Pellets = 5,
            };
            kept &= stream.PushJudged(0, in shot);
            shot.Reason = Reason.Missed;
            shot.Target = -1;
            shot.Weapon = 12;
            kept &= stream.PushPredicted(0, in shot);
            kept &= stream.PushTick(seq, at, seq % 2 == 1 ? ulong.MaxValue - seq : (ulong?)null);
            uint[] cells = Put(stream, seq);
            kept &= stream.PushState(new State { Tick = seq, Viewer = 0, Entity = 0, Cells = cells });
            kept &= stream.PushBody(seq, 0, 0, cells);
            var damage = new Damage { Tick = seq, AtUs = at, Victim = 7, Attacker = -1, Amount = (int)seq };
            if (seq % 2 == 1) {
                damage.Weapon = stream.Text("rifle");
                damage.Armour = 0;
                damage.ForceY = -2.5f;
            }
            kept &= stream.PushDamage(in damage);
            var effects = new[] {
                new Effect { Kind = 3, Entity = 7, X = 1.5f }, new Effect { Kind = 9, Predictable = 1, Z = -2 },
            };
            kept &= stream.PushSnapshot(0, new Snapshot {
                Seq = seq, AtUs = at, ServerTimeUs = at + 1, Tick = seq, Ack = seq, Bytes = 400, Choked = 5,
                Entities = new ushort[] { 7, 0 }, Effects = new Items<Effect>(effects, (int)(seq % 3)),
            });
            kept &= stream.PushReceived(0, seq, at + 5000);
            kept &= stream.PushRow(Tables.Custom(0), 4, at, Values(stream, seq));
            kept &= stream.PushRow(Table.Reached, 0, at + 2000, new Value[] { seq });
        }
        kept &= stream.PushPresence(0, Rounds, Rounds * 10000, Presence.Left);
        Tests.Holds(kept, "every row is recorded");
        Tests.Same(stream.LatestLoss, Code.Ok, "losses");
    }

    static void Read(string path) {
        using (var log = new Log(path)) {
            Tests.Same(log.Game, "évery", "game");
            Tests.Same(log.MapName, "plane", "map");
            Tests.Holds(log.MapBytes.SequenceEqual(new byte[] { 1, 0, 255 }), "bytes of the map");
            Tests.Same(log.Seed, ulong.MaxValue, "seed");
            Tests.Same(log.Players, 1, "players");
            Tests.Same(log.Setting("every.thing"), "yes", "setting");
            var all = log.Settings();
            Tests.Holds(all.Exists(pair => pair.Key == "every.thing" && pair.Value == "yes"), "all settings");
            Tests.Same(log.Setting("recorder.usercmds"), "as_received", "setting");
            Tests.Same(log.Setting("recorder.y_axis"), "down", "setting");
            Tests.Same(log.Setting("nothing"), null, "setting");
            ReadRows(log);
            ReadOwn(log);
        }
    }

    static void ReadRows(Log log) {
        Tests.Same(log.Count(Table.States), 2 * Rounds, "states");
        Tests.Same(log.Count(Table.Reached), 2 * Rounds, "reached");
        PresenceChange change;
        Tests.Holds(log.ReadPresence(0, 0, out change), "joined");
        Tests.Same(change, new PresenceChange { Tick = 1, AtUs = 10000, Presence = Presence.Joined }, "joined");
        Tests.Holds(log.ReadPresence(0, 1, out change), "left");
        Tests.Same(
            change, new PresenceChange { Tick = Rounds, AtUs = Rounds * 10000, Presence = Presence.Left }, "left");
        Tests.Holds(!log.ReadPresence(0, 2, out change), "no third change");
        var cmd = new Usercmd();
        var state = new State();
        var snapshot = new Snapshot();
        for (int row = 0; row < Rounds; row++) {
            uint seq = (uint)row + 1;
            long at = seq * 10000;
            Tests.Holds(log.ReadUsercmd(0, row, ref cmd), "usercmd");
            Compare(log, cmd.Fields, seq);
            Tests.Same(cmd.Bytes.Count, (int)(seq % 4), "bytes");
            Tests.Holds(cmd.Bytes.Count < 3 || cmd.Bytes[2] == (byte)seq, "third byte");
            Items<byte> bytes = cmd.Bytes;
            Items<Value> fields = cmd.Fields;
            Tests.Same(cmd, new Usercmd {
                Seq = seq, AtUs = at, ServerTimeUs = at - 1, LerpMs = 100, Msec = 10, Pitch = -1, Yaw = 2, Roll = 3,
                Forwardmove = 4, Sidemove = -5, Upmove = 6, Buttons = seq & 3, Impulse = 7,
                Bytes = bytes, Fields = fields,
            }, "usercmd");
            Packet packet;
            Tests.Holds(log.ReadSent(0, row, out packet), "sent");
            Tests.Same(packet, new Packet {
                Number = seq, AtUs = at, Newest = seq, Count = 1, Ack = seq - 1, Bytes = 60,
            }, "packet");
            Arrival arrival;
            Tests.Holds(log.ReadReached(0, 2 * row, out arrival), "reached");
            Tests.Same(arrival, new Arrival { Number = seq, AtUs = at + 1000 }, "reached");
            Tests.Holds(log.ReadReceived(0, row, out arrival), "received");
            Tests.Same(arrival, new Arrival { Number = seq, AtUs = at + 5000 }, "received");
            var found = new Usercmd();
            Tests.Holds(log.FindUsercmd(0, seq, ref found), "a usercmd by its number");
            Tests.Same(found.AtUs, at, "the time of a usercmd");
            Tests.Holds(!log.FindUsercmd(0, seq + 1000000, ref found), "no usercmd of this number");
            Executed executed;
            Tests.Holds(log.ReadExecuted(0, row, out executed), "executed");
            Tests.Same(executed, new Executed { Usercmd = seq, Tick = seq, How = How.StoodIn }, "executed");
            var expected = new Shot {
                Usercmd = seq, AtUs = at, Index = 1, Reason = Reason.AlreadyDead, Target = 7, Hitgroup = 2, Damage = 30,
                RewoundUs = 1234, Impact = true, Pellets = 5L,
            };
            Shot shot;
            Tests.Holds(log.ReadJudged(0, row, out shot), "judged");
            Tests.Same(log.Text(shot.Weapon), "rifle", "weapon");
            expected.Weapon = shot.Weapon;
            Tests.Same(shot, expected, "judged");
            expected.Reason = Reason.Missed;
            expected.Target = -1;
            Tests.Holds(log.ReadPredicted(0, row, out shot), "predicted");
            Tests.Same(log.Text(shot.Weapon), "12", "weapon");
            expected.Weapon = shot.Weapon;
            Tests.Same(shot, expected, "predicted");
            Tick tick;
            Tests.Holds(log.ReadTick(row, out tick), "tick");
            ulong? hash = seq % 2 == 1 ? ulong.MaxValue - seq : (ulong?)null;
            Tests.Same(tick, new Tick { Number = seq, AtUs = at, Hash = hash }, "tick");
            for (int viewer = -1; viewer <= 0; viewer++) {
                Tests.Holds(log.ReadState(2 * row + viewer + 1, ref state), "state");
                Items<uint> cells = state.Cells;
                Tests.Same(state, new State { Tick = seq, Viewer = viewer, Cells = cells }, "state");
                Tests.Same(cells.Count, 12, "cells");
                Tests.Same(Cells.GetF32(cells, 0), seq / 8f, "f32");
                Tests.Same((int)cells[1], -(int)seq, "i32");
                Tests.Same(cells[2], seq, "u32");
                Tests.Same((long)Cells.Get64(cells, 3), long.MinValue + seq, "i64");
                Tests.Same(Cells.Get64(cells, 5), ulong.MaxValue - seq, "u64");
                Tests.Same(Cells.GetF64(cells, 7), seq / 3.0, "f64");
                Tests.Same(cells[9], seq % 2 == 0 ? 1u : 0, "bool");
                Tests.Same(log.Text(cells, 10), Weapons[seq % 3], "text");
            }
            Damage damage;
            Tests.Holds(log.ReadDamage(row, out damage), "damage");
            var harm = new Damage { Tick = seq, AtUs = at, Victim = 7, Attacker = -1, Amount = (int)seq };
            if (seq % 2 == 1) {
                Tests.Same(log.Text(damage.Weapon), "rifle", "weapon");
                harm.Weapon = damage.Weapon;
                harm.Armour = 0L;
                Tests.Same(damage.ForceX.Real, 0f, "force");
                Tests.Same(damage.ForceY.Real, -2.5f, "force");
                Tests.Same(damage.ForceZ.Real, 0f, "force");
                damage.ForceX = damage.ForceY = damage.ForceZ = default(Value);
            }
            Tests.Same(damage, harm, "damage");
            Tests.Holds(log.ReadSnapshot(0, row, ref snapshot), "snapshot");
            Items<ushort> entities = snapshot.Entities;
            Items<Effect> effects = snapshot.Effects;
            Tests.Same(snapshot, new Snapshot {
                Seq = seq, AtUs = at, ServerTimeUs = at + 1, Tick = seq, Ack = seq, Bytes = 400, Choked = 5,
                Entities = entities, Effects = effects,
            }, "snapshot");
            Tests.Holds(entities.Count == 2 && entities[0] == 0 && entities[1] == 7, "entities are sorted");
            Tests.Same(effects.Count, (int)(seq % 3), "effects");
            if (effects.Count == 2) {
                Tests.Same(effects[1], new Effect { Kind = 9, Predictable = 1, Z = -2 }, "effect");
            }
        }
        Tests.Holds(!log.ReadUsercmd(0, Rounds, ref cmd) && cmd.Seq == Rounds, "the last usercmd stays");
    }

    static void ReadOwn(Log log) {
        Table casts;
        int series;
        long at;
        Tests.Holds(log.FindTable("casts", out casts) && casts == Tables.Custom(0), "casts");
        Tests.Holds(!log.FindTable("spells", out casts), "there are no spells");
        casts = Tables.Custom(0);
        Tests.Holds(log.ReadSeries(casts, 0, out series) && series == 4, "series");
        Tests.Holds(!log.ReadSeries(casts, 1, out series), "one series");
        Tests.Same(log.Count(casts, 4), Rounds, "casts");
        var values = new Value[8];
        for (int row = 0; row < Rounds; row++) {
            Tests.Holds(log.ReadRow(casts, 4, row, out at, values), "cast");
            Tests.Same(at, (row + 1) * 10000L, "time");
            Compare(log, values, (uint)row + 1);
        }
        Tests.Holds(!log.ReadRow(casts, 4, Rounds, out at, values), "no more casts");
        Tests.Throws<InvalidOperationException>(() => values[0].Real.ToString(), "no value is no float");
    }
}

/// <summary>A million pushes of every kind allocate nothing.</summary>
static class Allocations {
    public static void Test(string folder) {
        using (var description = Tests.OnePlayer("allocations")
            .UsercmdFields(new Field("lean", FieldType.F32), new Field("gun", FieldType.Text)).UsercmdBytes()
            .Table("casts", new Column("spell", FieldType.Text), new Column("power", FieldType.F64)))
        using (var recorder = Recorder.KeepLast(1, description, new RecorderOptions { Patient = true }))
        using (var stream = recorder.NewStream()) {
            var fields = new Value[2];
            var cast = new Value[2];
            var bytes = new byte[] { 1, 2, 3 };
            var cells = new uint[1];
            var entities = new ushort[] { 0 };
            var effects = new Effect[1];
            Push(stream, 1, 10, fields, cast, bytes, cells, entities, effects);
            int collections = GC.CollectionCount(0);
            long before = GC.GetAllocatedBytesForCurrentThread();
            Push(stream, 11, 77000, fields, cast, bytes, cells, entities, effects);
            Tests.Same(GC.GetAllocatedBytesForCurrentThread() - before, 0L, "allocated bytes");
            Tests.Same(GC.CollectionCount(0), collections, "collections");
            before = GC.GetAllocatedBytesForCurrentThread();
            GC.KeepAlive(new byte[100]);
            Tests.Holds(GC.GetAllocatedBytesForCurrentThread() > before, "allocations are counted");
            Tests.Holds(recorder.Finish().Rows > 1000000, "a million rows");
        }
    }

    static void Push(RowStream stream, uint from, uint to, Value[] fields, Value[] cast, byte[] bytes, uint[] cells,
        ushort[] entities, Effect[] effects) {
        bool kept = true;
        for (uint seq = from; seq < to; seq++) {
            long at = seq * 1000;
            fields[0] = 0.5f;
            fields[1] = stream.Text("rifle");
            cast[0] = stream.Text(seq % 2 == 0 ? "fire" : "ice");
            cast[1] = 0.5;
            Cells.Put(cells, 0, (int)seq);
            kept &= stream.PushTick(seq, at, seq);
            kept &= stream.PushBody(seq, 0, 0, cells);
            kept &= stream.PushState(new State { Tick = seq, Viewer = 0, Cells = cells });
            kept &= stream.PushUsercmd(0, new Usercmd { Seq = seq, AtUs = at, Bytes = bytes, Fields = fields });
            kept &= stream.PushExecuted(0, seq, seq, How.Run);
            kept &= stream.PushSent(0, new Packet { Number = seq, AtUs = at, Newest = seq, Count = 1 });
            kept &= stream.PushReached(0, seq, at);
            kept &= stream.PushSnapshot(0, new Snapshot {
                Seq = seq, AtUs = at, Tick = seq, Entities = entities, Effects = effects,
            });
            kept &= stream.PushReceived(0, seq, at);
            kept &= stream.PushPredicted(0, new Shot { Usercmd = seq, AtUs = at, Target = -1 });
            kept &= stream.PushJudged(0, new Shot { Usercmd = seq, AtUs = at, Target = -1 });
            kept &= stream.PushDamage(new Damage { Tick = seq, AtUs = at, Attacker = -1, Amount = 1 });
            kept &= stream.PushRow(Tables.Custom(0), 0, at, cast);
        }
        Tests.Holds(kept, "every row is recorded");
    }
}

/// <summary>Mistakes throw, with the library's code and message.</summary>
static class Refusals {
    public static void Test(string folder) {
        Tests.Same(Library.Version, Library.HeaderVersion, "version");
        Tests.Refuses(Code.File, "no such file", () => new Log(Path.Combine(folder, "none.hitlog")));
        Tests.Throws<ArgumentException>(() => new Description("a\0b"), "a zero character");
        Tests.Refuses(Code.Null, "game is null", () => new Description(null));
        Tests.Throws<ArgumentOutOfRangeException>(() => new Items<uint>(new uint[2], 3).ToString(), "a count");
        string path = Path.Combine(folder, "refusals.hitlog");
        var slow = Tests.OnePlayer("slow").TickHz(0);
        Tests.Refuses(Code.Description, "from 1 to 1000", () => Recorder.Create(path, slow));
        var description = Tests.OnePlayer("refusals");
        // A description stays as it is, whether a recorder could be created or not.
        Tests.Refuses(Code.File, "", () => Recorder.Create("/no/such/folder/a.hitlog", description));
        var recorder = Recorder.Create(path, description);
        description.Player("p1").Dispose();
        Tests.Throws<ObjectDisposedException>(() => description.Player("p1"), "a disposed description");
        var stream = recorder.NewStream();
        Tests.Refuses(Code.Misfit, "player 3", () => stream.PushReached(3, 1, 0));
        Tests.Refuses(Code.Misfit, "cells", () => stream.PushBody(1, 0, 0, new uint[2]));
        Tests.Refuses(Code.Misfit, "values", () => stream.PushRow(Table.Ticks, 0, 0, new Value[5]));
        Tests.Refuses(Code.Misfit, "", () => stream.PushRow(Table.Ticks, 0, 0, new Value[] { 1, 0.5f }));
        Tests.Throws<ArgumentNullException>(() => stream.Text(null), "a null text");
        recorder.Finish();
        Tests.Refuses(Code.Finished, "finished", () => stream.PushTick(1, 0));
        stream.Dispose();
        Tests.Throws<ObjectDisposedException>(() => stream.PushTick(1, 0), "a disposed stream");
        recorder.Dispose();
        recorder.Dispose();
        Tests.Throws<ArgumentNullException>(() => Recorder.Create(path, null), "a null handle");
    }
}

/// <summary>Rows that the recorder loses are a result, not an exception.</summary>
static class Losses {
    public static void Test(string folder) {
        using (var description = Tests.OnePlayer("losses"))
        using (var recorder =
            Recorder.Create(Path.Combine(folder, "losses.hitlog"), description, new RecorderOptions { Ring = 64 }))
        using (var stream = recorder.NewStream()) {
            uint tick = 1;
            while (stream.PushTick(tick, tick * 100000)) {
                tick++;
            }
            Tests.Same(stream.LatestLoss, Code.Overrun, "a full stream");
            while (!stream.PushTick(tick, tick * 100000)) {
                Thread.Sleep(1);
            }
            Thread.Sleep(50);
            Tests.Holds(!stream.PushTick(1, 0), "a late row");
            Tests.Same(stream.LatestLoss, Code.Late, "a late row");
            Written written = recorder.Written;
            Tests.Holds(written.LostRows > 0 && written.LateRows == 1, "counters");
        }
    }
}

/// <summary>A stream belongs to one thread until it is released.</summary>
static class Threads {
    public static void Test(string folder) {
        using (var description = Tests.OnePlayer("threads"))
        using (var recorder = Recorder.KeepLast(5, description))
        using (var stream = recorder.NewStream()) {
            stream.PushTick(1, 0);
            Elsewhere(() => Tests.Refuses(Code.Thread, "thread", () => stream.PushTick(2, 1)));
            stream.Release();
            Elsewhere(() => stream.PushTick(2, 1));
            Tests.Throws<ArgumentOutOfRangeException>(() => Recorder.KeepLast(-5, description), "a negative span");
            Tests.Throws<ArgumentOutOfRangeException>(() => Recorder.KeepLast(0, description), "no span");
            Tests.Refuses(Code.Thread, "thread", () => stream.PushTick(3, 2));
        }
    }

    static void Elsewhere(Action call) {
        Exception thrown = null;
        var thread = new Thread(() => {
            try {
                call();
            } catch (Exception error) {
                thrown = error;
            }
        });
        thread.Start();
        thread.Join();
        if (thrown != null) {
            throw new Exception("in another thread", thrown);
        }
    }
}

/// <summary>The flight recorder, rotation, and logs of the sides of a session.</summary>
static class Files {
    public static void Test(string folder) {
        var patient = new RecorderOptions { Patient = true };
        using (var recorder = Recorder.KeepLast(5, Tests.OnePlayer("kept"), patient)) {
            Push(recorder, 3000);
            recorder.Save(Path.Combine(folder, "kept.hitlog"));
        }
        using (var log = new Log(Path.Combine(folder, "kept.hitlog"))) {
            int ticks = log.Count(Table.Ticks);
            Tests.Holds(ticks >= 500 && ticks < 700, "the last five seconds: " + ticks + " ticks");
            Tests.Same(log.Setting("recorder.begins_after_tick"), (3000 - ticks).ToString(), "setting");
        }
        patient.RotateS = 10;
        using (var recorder = Recorder.Create(Path.Combine(folder, "long.hitlog"), Tests.OnePlayer("long"), patient)) {
            Push(recorder, 3000);
            recorder.Finish();
        }
        Tests.Same(Directory.GetFiles(folder, "long-????.hitlog").Length, 3, "files");
        patient.RotateS = 0;
        var sides = new[] { Tests.OnePlayer("sides").ServerSide(9), Tests.OnePlayer("sides").ClientSide(9, 0) };
        for (int side = 0; side < 2; side++) {
            string path = Path.Combine(folder, "side" + side + ".hitlog");
            using (var recorder = Recorder.Create(path, sides[side], patient)) {
                Push(recorder, side == 0 ? 100u : 0);
                recorder.Finish();
            }
        }
    }

    static void Push(Recorder recorder, uint ticks) {
        using (var stream = recorder.NewStream()) {
            for (uint tick = 1; tick <= ticks; tick++) {
                stream.PushTick(tick, tick * 10000);
                stream.PushBody(tick, 0, 0, new[] { tick });
            }
        }
    }
}

/// <summary>Traces that are written row by row, and column by column.</summary>
static class Traces {
    public static void Test(string folder) {
        using (var log = new Log(Path.Combine(folder, "kept.hitlog")))
        using (var recorder = Recorder.Trace(Path.Combine(folder, "rows.hittrace"), Tests.OnePlayer("kept"), log))
        using (var stream = recorder.NewStream()) {
            stream.PushTick(1, 10000, 5);
            stream.PushBody(1, 0, 0, new[] { 77u });
            recorder.Finish();
        }
        using (var log = new Log(Path.Combine(folder, "kept.hitlog")))
        using (var trace = new TraceWriter(log, "closed")) {
            trace.Setting("a.b", "c")
                .Table("ticks").Column("tick", null, new uint[] { 1, 2 }).Column("at_us", "us", new long[] { 10, 20 })
                .Column("hash", null, new ulong[] { 1, ulong.MaxValue })
                .Table("own").Key("number").Column("number", null, new uint[] { 7, 8 })
                .Column("real", "units", new[] { 0.5f, -1 }).Column("wide", null, new[] { 0.1, 1e300 })
                .Column("flag", null, new[] { true, false })
                .Names("name", new[] { "bow", "弓" }, new uint[] { 1, 0 });
            trace.Table("empty").Key("number").Column("number", null, new long[0]);
            trace.Write(Path.Combine(folder, "own.hittrace"));
            trace.Column("other", null, new uint[] { 1 });
            Tests.Refuses(
                Code.File, "has 1 rows and others 0", () => trace.Write(Path.Combine(folder, "own.hittrace")));
        }
    }
}

/// <summary>Sessions that a build replays, step by step.</summary>
static class Playbacks {
    static string log, cut;

    public static void Test(string folder) {
        log = Path.Combine(folder, "playéd.hitlog");
        cut = Path.Combine(folder, "kept.hitlog");
        string trace = Path.Combine(folder, "played.hittrace");
        Record();
        Replay(trace);
        Begin(trace);
        Refusals(trace);
    }

    static Description Describe() =>
        Tests.OnePlayer("played").Setting("played.gravity", "800").Capability("step").UsercmdFields(
            new Field("gun", FieldType.Text));

    /// <summary>Two usercmds run, one stands in for a lost one, and one is late.</summary>
    static void Record() {
        using (var recorder = Recorder.Create(log, Describe(), new RecorderOptions { Patient = true }))
        using (var stream = recorder.NewStream()) {
            stream.PushPresence(0, 1, 10000, Presence.Joined);
            for (uint seq = 1; seq <= 4; seq++) {
                var gun = new[] { stream.Text("gun" + seq) };
                stream.PushUsercmd(0, new Usercmd { Seq = seq, AtUs = seq * 10000, Fields = gun });
                stream.PushTick(seq, seq * 10000);
            }
            stream.PushExecuted(0, 1, 2, How.Run);
            stream.PushExecuted(0, 2, 2, How.StoodIn);
            stream.PushExecuted(0, 3, 3, How.Run);
            stream.PushExecuted(0, 2, 4, How.Late);
            stream.PushPresence(0, 4, 40000, Presence.Left);
            recorder.Finish();
        }
    }

    static Playback Open(string path, string trace, params string[] more) =>
        Playback.Open(new[] { "replay", path, "-o", trace }.Concat(more).ToArray(), path == log ? "played" : "kept");

    static void Replay(string trace) {
        var steps = new List<string>();
        var cmd = new Usercmd();
        Playback playback = Open(log, trace, "--set", "played.gravity=100");
        Tests.Same(playback.Setting("played.gravity"), "100", "a changed setting");
        Tests.Same(playback.Log.Setting("played.gravity"), "800", "the recorded setting");
        Tests.Same(playback.Setting("played.wind"), null, "no setting");
        using (Description description = Describe())
        using (RowStream stream = playback.Begin(description)) {
            Step step;
            while (playback.Next(stream, out step)) {
                string what = step.Kind + " " + step.Tick + " " + step.AtUs + " " + step.Player;
                if (step.Kind == StepKind.Input) {
                    Tests.Holds(playback.Log.ReadUsercmd(step.Player, step.Row, ref cmd), "usercmd");
                    what += " " + playback.Log.Text(cmd.Fields[0]) + " " + step.How;
                } else if (step.Kind == StepKind.Tick) {
                    stream.PushTick(step.Tick, step.AtUs, 7);
                }
                steps.Add(what);
            }
        }
        playback.Finish();
        Tests.Same(
            string.Join(", ", steps),
            "Join 1 10000 0, Tick 1 10000 0, Input 2 20000 0 gun1 Run, Input 2 20000 0 gun1 StoodIn, Tick 2 20000 0, "
                + "Input 3 30000 0 gun3 Run, Tick 3 30000 0, Leave 4 40000 0, Tick 4 40000 0", "steps");
        Tests.Refuses(Code.Finished, "finished", playback.Finish);
        Log inside = playback.Log;
        playback.Dispose();
        Tests.Throws<ObjectDisposedException>(() => inside.Count(Table.Ticks), "the log of a disposed playback");
        Tests.Throws<ObjectDisposedException>(() => playback.Setting("a"), "a disposed playback");
    }

    /// <summary>A log that begins within a session: the body of the tick before is restored before the first tick.</summary>
    static void Begin(string trace) {
        using (Playback playback = Open(cut, trace))
        using (Description description = Tests.OnePlayer("kept"))
        using (RowStream stream = playback.Begin(description)) {
            var state = new State();
            Step step;
            Tests.Holds(playback.Next(stream, out step) && step.Kind == StepKind.Restore, "the first step");
            Tests.Holds(playback.Log.ReadState(step.Row, ref state), "the state");
            Tests.Same(state.Tick, 0u, "its tick");
            Tests.Same(state.Cells[0], step.Tick - 1, "its health");
            Tests.Holds(playback.Next(stream, out step) && step.Kind == StepKind.Tick, "the second step");
        }
    }

    static void Refusals(string trace) {
        Tests.Refuses(Code.File, "no such file", () => Open("none.hitlog", trace));
        Tests.Refuses(Code.File, "kept", () => Playback.Open(new[] { "replay", cut, "-o", trace }, "played"), 125);
        Tests.Refuses(Code.File, "step", () => Playback.Open(new[] { "step", log }, "played"), 125);
        Tests.Refuses(Code.File, "replay LOG -o TRACE", () => Playback.Open(new string[0], "played"), 125);
        Tests.Refuses(Code.File, "played.wind", () => Open(log, trace, "--set", "played.wind=1"), 125);
        Tests.Refuses(Code.Null, "game is null", () => Playback.Open(new[] { "replay", log, "-o", trace }, null));
        using (var description = Tests.OnePlayer("played"))
        using (var playback = Open(log, trace))
        using (playback.Begin(description))
            Tests.Refuses(Code.Value, "has begun", () => playback.Begin(description));
        // Finalizers free this playback and its log.
        Tests.Throws<ArgumentNullException>(() => Open(log, trace).Begin(null), "no description");
        GC.Collect();
        GC.WaitForPendingFinalizers();
    }
}
